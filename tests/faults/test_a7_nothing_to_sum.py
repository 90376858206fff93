"""SUM and AVG over no value are NULL, with exact maps and without; so little that one cannot tell is no NULL."""

from __future__ import annotations

import math

import pytest
from support.exact import exact_answers
from support.memory import InMemory
from support.tables import register

from skimql import AccuracyNotReached, Session
from skimql.engine.results.answer import Answer, is_null, misses, with_target
from skimql.sketches.intervals.interval import Estimate, exact

UNKNOWN = Estimate(math.nan, -math.inf, math.inf, 0.95, False, "theorem")


def test_a_null_that_is_known_meets_every_target_and_one_that_is_not_misses_it():
    assert is_null(exact(math.nan))
    assert not is_null(UNKNOWN)
    assert not misses(exact(math.nan), 0.05)
    assert misses(UNKNOWN, 0.05)
    told = with_target(Answer(("r",), ((UNKNOWN,),)), 0.05)
    assert told.target == "missed"
    assert "no bound" in told.notes[0]
    assert with_target(Answer(("r",), ((exact(math.nan),),)), 0.05).target == "met"


TABLES = {
    "n": ("k INT, v INT, g STRING", [(1, None, "g"), (2, None, "h"), (None, 4, None), (9, 7, "z")]),
    "b": ("k INT, y INT", [(1, 10), (2, 20)]),
    "e": ("k INT, v INT", []),
}


@pytest.mark.spark
def test_sums_of_no_value_are_null_and_groups_that_join_nothing_are_not_there(session):
    """By exact maps on Spark, and in memory without them."""
    register(session, **TABLES)
    joined = "FROM n JOIN b ON n.k = b.k"
    queries = [
        f"SUM(n.v), AVG(n.v), COUNT(n.v), COUNT(*), SUM(n.v) * 2, SUM(n.v) + SUM(b.y) {joined}",
        f"SUM(b.y) FILTER (WHERE b.y > 100), AVG(b.y) FILTER (WHERE n.v > 0) {joined}",
        f"n.g, SUM(n.v), COUNT(*), SUM(b.y) {joined} GROUP BY n.g ORDER BY n.g",
        f"n.k, SUM(n.v), COUNT(*) {joined} GROUP BY n.k ORDER BY n.k",
        "SUM(e.v), AVG(e.v), COUNT(*) FROM e JOIN b ON e.k = b.k",
        "SUM(n.v), SUM(b.y), SUM(b.y) * 2, COUNT(*) FROM n JOIN b ON n.k = b.k + 100",
    ]
    truths = exact_answers(session, queries)
    for asked in (session, InMemory(TABLES, sparse=False)):
        for query in queries:
            expected = truths[query]
            found = asked.sql(f"SELECT APPROXIMATE {query}").arrow().to_pylist()
            names = [k for k in found[0] if not k.endswith(("_low", "_high"))][: len(expected[0])]
            assert [tuple(row[n] for n in names) for row in found] == expected, query


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    "ratio",
    [
        "SUM(n.v) / NULLIF(COUNT(b.y), 0)",
        "SUM(b.y) / NULLIF(SUM(n.v), 0)",
        "2 * SUM(n.v) / NULLIF(COUNT(*), 0)",
    ],
)
def test_a_ratio_that_is_guarded_against_zero_is_null_where_a_sum_in_it_is(ratio, sparse):
    for text in (
        f"{ratio} AS r FROM n JOIN b ON n.k = b.k",
        f"n.g, {ratio} AS r FROM n JOIN b ON n.k = b.k GROUP BY n.g",
    ):
        found = InMemory(TABLES, sparse=sparse).sql(f"SELECT APPROXIMATE {text}").records()
        assert found
        assert all(row["r"] is None for row in found), text


@pytest.mark.spark
def test_too_little_to_tell_is_an_error_where_the_error_is_asked_strictly(spark):
    spark.range(3000).selectExpr("id AS k", "1 AS v").createOrReplaceTempView("left_keys")
    spark.range(3000).selectExpr("id + 2990 AS k", "1 AS v").createOrReplaceTempView("right_keys")
    session = Session(spark, error=None, sparse=False, buckets=64, rows=11)
    sql = "SELECT APPROXIMATE AVG(l.v) AS r FROM left_keys l JOIN right_keys r ON l.k = r.k"
    assert session.sql(sql).value is None
    with pytest.raises(AccuracyNotReached):
        session.sql(f"{sql} ERROR WITHIN 5% BEHAVIOR 'strict' OPTIONS (sparse = false, buckets = 64)")
    for name in ("left_keys", "right_keys"):
        spark.catalog.dropTempView(name)


@pytest.mark.spark
def test_expressions_over_what_conditions_exclude_are_those_of_spark(spark, session):
    session.table("b", spark.sql("SELECT * FROM VALUES (1, 10), (2, 20) AS t(k, y)"))
    items = "COUNT(*) + 1, SUM(a.y), 2 * COUNT(a.y) - 3, SUM(a.y) + COUNT(*), 'x', COUNT(*) / COUNT(a.y)"
    rest = "FROM b AS a JOIN b ON a.k = b.k WHERE a.y = 1 AND a.y = 2"
    found = session.sql(f"SELECT APPROXIMATE {items} {rest}").rows[0]
    shown = [None if isinstance(c, Estimate) and is_null(c) else getattr(c, "value", c) for c in found]
    assert shown[:5] == [1, None, -3, None, "x"]
