"""A plan that a catalog keeps must be one of its query."""

from dataclasses import replace

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import choose
from skimql.optimizer.workload.planned_use import check_plan

QUERY = query("SUM(n) FROM x JOIN y ON x.id = y.id WHERE y.m > 3", XYZ)
PLAN = choose(QUERY, 1, 11, 64)


def test_the_querys_own_plan_passes():
    check_plan(PLAN, QUERY)


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(*) FROM x JOIN y ON x.id = y.id WHERE y.m > 3",
        "SUM(n) FROM x JOIN y ON x.id = y.id WHERE y.m > 4",
        "SUM(n) FROM x JOIN y ON x.id = y.m WHERE y.m > 3",
        "SUM(n) FROM x JOIN z ON x.id = z.id",
        "SUM(n + 1) FROM x JOIN y ON x.id = y.id WHERE y.m > 3",
    ],
)
def test_that_of_another_does_not(text):
    with pytest.raises(ValueError):
        check_plan(PLAN, query(text, XYZ))


def test_a_term_needs_a_sketch_for_each_table():
    (aggregate,) = PLAN.aggregates
    short = tuple(replace(t, synopses=t.synopses[:1]) for t in aggregate.total)
    with pytest.raises(ValueError):
        check_plan(replace(PLAN, aggregates=(replace(aggregate, total=short),)), QUERY)
