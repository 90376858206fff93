"""Conjuncts: what one table decides is its filter, ``=`` between two tables a join."""

import pytest
from support.questions import edges, filters, query
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery


def test_conditions_go_where_they_belong():
    found = query("COUNT(*) FROM x, y WHERE x.n > 1 AND (x.id = y.id AND y.m < 5)", XYZ)
    assert filters(found) == {"x": "`n` > 1", "y": "`m` < 5"}
    assert edges(found) == [("x", ("`id`",), "y", ("`id`",))]


def test_what_every_branch_of_an_or_says_holds():
    found = query("COUNT(*) FROM x, y WHERE (x.id = y.id AND x.n = 1) OR (x.id = y.id AND x.n = 2)", XYZ)
    assert edges(found) == [("x", ("`id`",), "y", ("`id`",))]
    assert " OR " in filters(found)["x"]


@pytest.mark.parametrize("condition", ["x.id < y.id", "x.id = y.id OR x.n = y.m", "x.n + y.m = 3"])
def test_other_conditions_between_tables_are_refused(condition):
    with pytest.raises(UnsupportedQuery):
        query(f"COUNT(*) FROM x, y WHERE x.id = y.id AND ({condition})", XYZ)


def test_the_order_of_conditions_that_cannot_fail_does_not_matter():
    one, other = (
        filters(query(f"COUNT(*) FROM x JOIN y USING (id) WHERE {w}", XYZ))
        for w in ("n > 1 AND n < 9", "n < 9 AND n > 1")
    )
    assert one == other


def test_a_condition_that_may_fail_stays_behind_its_guard():
    found = filters(query("COUNT(*) FROM x JOIN y USING (id) WHERE n <> 0 AND 10 / n > 1", XYZ))
    assert found["x"].index("<> 0") < found["x"].index("/")
