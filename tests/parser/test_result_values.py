"""Values over aggregates and groups: what they are, which of them are the same, what their names mean."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery
from skimql.parser.expressions import Aggregated, Constant, Grouped, Operation

JOINED = " FROM x JOIN y ON x.id = y.id"


def names(resolved):
    return [f.name for f in resolved.features]


def test_expressions_share_their_aggregates_with_the_items():
    resolved = query("SUM(n) AS s, SUM(x.n) / COUNT(*) AS mean, -(COUNT(*) + 1) * 2.5" + JOINED, XYZ)
    assert [(a.function, a.name) for a in resolved.aggregates] == [("sum", "s"), ("count", "count(1)")]
    mean, scaled = (i.expression for i in resolved.items[1:])
    assert mean == Operation("/", (Aggregated(0), Aggregated(1)))
    plus = Operation("+", (Aggregated(1), Constant(1)))
    assert scaled == Operation("*", (Operation("neg", (plus,)), Constant(2.5)))
    assert names(resolved) == ["expression over aggregates"]


def test_having_prefers_the_alias_of_an_aggregate():
    resolved = query("n, COUNT(*) AS m FROM x JOIN y USING (id) GROUP BY n HAVING m BETWEEN 1 AND 3", XYZ)
    ends = (Operation(">=", (Aggregated(0), Constant(1))), Operation("<=", (Aggregated(0), Constant(3))))
    assert resolved.having == Operation("and", ends)


def test_bounds_may_be_selected():
    resolved = query(
        "COUNT(*) AS n, lower_bound(n), UPPER_BOUND(n) AS high, relative_error(SUM(m))" + JOINED, XYZ
    )
    assert [i.name for i in resolved.items] == ["n", "lower_bound(n)", "high", "relative_error(sum(m))"]
    assert resolved.items[1].expression == Operation("lower_bound", (Aggregated(0),))
    assert resolved.items[3].expression == Operation("relative_error", (Aggregated(1),))
    assert "bounds in SELECT" in names(resolved)


def test_run_exactly_values_stand_in_the_place_of_their_bounds():
    resolved = query(
        "COUNT(*) AS `n`, SUM(m)m, lower_bound(n), upper_bound(m) AS u, relative_error(SUM(m) + 1 /* ( */)"
        f", lower_bound(n) + 1 AS p{JOINED} HAVING absolute_error(COUNT(*)) < 3 ORDER BY upper_bound(u2)".replace(
            "u2", "SUM(n)"
        ),
        XYZ,
    )
    n, m = "CAST((COUNT(*)\n) AS DOUBLE)", "CAST((SUM(m)\n) AS DOUBLE)"
    assert " ".join(resolved.exact_sql.split("FROM")[0].split()) == " ".join(
        f"SELECT COUNT(*) AS `n`, SUM(m)m, {n}, {m} AS u, NVL2((SUM(m) + 1\n), 0D, NULL), {n} + 1 AS p ".split()
    )
    assert "HAVING NVL2((COUNT(*)\n), 0D, NULL) < 3 ORDER BY CAST((SUM(n)\n) AS DOUBLE)" in resolved.exact_sql
    assert names(resolved).count("bounds in SELECT") == 6
    # A part of the text, as that behind the FROM.
    place = resolved.select_sql.index("HAVING")
    assert resolved.exact_part(place, len(resolved.select_sql)).startswith("HAVING NVL2(")


@pytest.mark.parametrize("of", ["l", "l + 1", "lower_bound(COUNT(*))"])
def test_a_bound_has_no_bounds(of):
    with pytest.raises(UnsupportedQuery) as refused:
        query(f"COUNT(*) AS n, lower_bound(n) AS l, upper_bound({of}) FROM x", XYZ)
    assert (refused.value.code, refused.value.hint) == (
        "SKIMQL_BOUND_ARGUMENT",
        "COUNT(*) AS n, upper_bound(n)",
    )


def test_a_group_that_is_not_null_is_not_a_group_that_is_not_true():
    resolved = query("w, COUNT(*) AS n FROM z GROUP BY w HAVING w IS NOT NULL", XYZ)
    assert resolved.having == Operation("not", (Operation("is_null", (Grouped(0),)),))
    with pytest.raises(UnsupportedQuery):
        query("w, COUNT(*) AS n FROM z GROUP BY w HAVING w IS NOT TRUE", XYZ)


def test_order_by_prefers_the_item_and_refuses_its_name_within_an_aggregate():
    resolved = query("COUNT(*) AS n FROM x GROUP BY n ORDER BY n", XYZ)
    assert resolved.order[0].expression == Aggregated(0)
    with pytest.raises(UnsupportedQuery) as refused:
        query("COUNT(*) AS n FROM x GROUP BY n ORDER BY SUM(n)", XYZ)
    assert (refused.value.code, refused.value.hint) == ("SKIMQL_MISPLACED_AGGREGATE", "x.n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ROUND(SUM(n), -2)", Operation("round", (Aggregated(0), Constant(-2)))),
        ("COALESCE(SUM(n), 0)", Operation("coalesce", (Aggregated(0), Constant(0)))),
        ("CAST(SUM(n) AS DOUBLE) / 2", Operation("/", (Aggregated(0), Constant(2)))),
    ],
)
def test_functions_of_estimates_whose_value_on_an_interval_is_one(text, value):
    assert query(f"{text} FROM x", XYZ).items[0].expression == value


@pytest.mark.parametrize(
    "text", ["ROUND(SUM(n), 1.5)", "COALESCE(0, SUM(n))", "FLOOR(SUM(n), 1)", "EXP(SUM(n))"]
)
def test_functions_that_have_no_interval_are_refused(text):
    with pytest.raises(UnsupportedQuery, match="no interval"):
        query(f"{text} FROM x", XYZ)
