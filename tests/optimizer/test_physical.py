"""The physical plan itself."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import choose
from skimql.optimizer.physical import ExactRun, Nothing, PhysicalPlan, SketchJoin

QUERY = query("COUNT(*) FROM x JOIN y ON x.id = y.id", XYZ)


def test_a_plan_knows_what_it_builds_and_by_which_method():
    built = choose(QUERY, 1, 11, 64)
    plan = PhysicalPlan(QUERY, (), SketchJoin(built.method, built))
    assert (plan.build, plan.method) == (built, "hash")


@pytest.mark.parametrize("attempt", [ExactRun("SELECT 1"), Nothing("never")])
def test_nothing_is_built_for_what_needs_no_synopses(attempt):
    with pytest.raises(ValueError, match="nothing is built"):
        PhysicalPlan(QUERY, (), attempt).build  # noqa: B018
