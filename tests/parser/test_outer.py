"""Outer joins that later conditions make inner."""

import pytest
from support.questions import edges, query
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery

LEFT = "COUNT(*) FROM x LEFT JOIN y ON x.id = y.id"


@pytest.mark.parametrize(
    "condition",
    ["y.m > 0", "y.m IS NOT NULL", "y.m + 1 IN (1, 2)", "NOT (y.m IS NULL)", "y.m > 0 OR y.id = 3"],
)
def test_a_condition_that_no_padded_tuple_meets_makes_the_join_inner(condition):
    assert edges(query(f"{LEFT} WHERE {condition}", XYZ)) == edges(query(LEFT.replace("LEFT ", ""), XYZ))


@pytest.mark.parametrize(
    "condition", ["x.n > 0", "y.m IS NULL", "coalesce(y.m, 1) > 0", "y.m > 0 OR x.n = 3"]
)
def test_any_other_leaves_it_outer_and_refused(condition):
    with pytest.raises(UnsupportedQuery) as fault:
        query(f"{LEFT} WHERE {condition}", XYZ)
    assert fault.value.code == "SKIMQL_OUTER_JOIN"
