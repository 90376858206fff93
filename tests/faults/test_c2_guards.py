"""In ANSI mode nothing is computed that the user's query does not compute: guards, filters and joins protect."""

from __future__ import annotations

import pytest
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType

from skimql import DataError
from skimql.engine.sources.filters import cannot_fail, cheap_first

COLUMNS = StructType(
    [StructField("k", IntegerType()), StructField("s", StringType()), StructField("d", DateType())]
)
JOINED = "FROM a JOIN b ON a.k = b.k"
# Spark itself fails on some of them: it computes the argument of AVG before it asks the FILTER.
PROTECTED = {
    "SUM(10 / a.x) FILTER (WHERE a.x <> 0), COUNT(*) {J}": (2.0, 2),
    "SUM(CASE WHEN a.x <> 0 THEN 10 / a.x ELSE b.y END) {J}": (22.0,),
    "SUM(CASE WHEN a.x = 0 THEN b.y WHEN 10 / a.x > 1 THEN 10 / a.x END) {J}": (22.0,),
    "AVG(CAST(a.s AS INT)) FILTER (WHERE a.s RLIKE '^[0-9]+$') {J}": (7.0,),
    "COUNT(DISTINCT 10 / a.x) FILTER (WHERE a.x <> 0) {J}": (1,),
    "COUNT(10 / a.x) FILTER (WHERE a.x <> 0) {J}": (1,),
    "SUM(10 / a.x) FROM a JOIN a AS c ON a.k = c.k WHERE a.x <> 0": (2.0,),
    "COUNT(*) FROM b AS a JOIN b ON a.k = CAST(b.t AS INT) WHERE b.t RLIKE '^[0-9]+$'": (1,),
    "COUNT(*) {J} WHERE a.x <> 0 AND 10 / a.x > 1": (1,),
}
# The scan of a fails; the tuple with x = 0 joins only what the rest of the query leaves out.
APART = {
    "SUM(10 / a.x), COUNT(*) {J} WHERE b.y < 15": (2.0, 1),
    "SUM(10 / a.x * b.y) {J} WHERE b.y < 15": (20.0,),
    "SUM(10 / a.x) FILTER (WHERE b.y < 15), COUNT(*) {J}": (2.0, 2),
    "SUM(CASE WHEN b.y < 15 THEN a.r[0] ELSE b.y END) {J}": (21,),
    "SUM(10 / a.x) FILTER (WHERE c.u > 0), SUM(c.u) FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k": (4.0, 3),
    "COUNT(DISTINCT 10 / a.x) {J} WHERE b.y < 15": (1,),
    "b.y, SUM(10 / a.x) {J} WHERE b.y < 15 GROUP BY b.y": (10, 2.0),
    "10 / a.x AS g, COUNT(*) {J} WHERE b.y < 15 GROUP BY 10 / a.x": (2.0, 1),
}


@pytest.mark.parametrize(
    "text",
    [
        "to_date(`s`, 'yyyy-MM-dd') = DATE '2020-01-02'",
        "`s` = 'a''b'",
        "log(`k`) > 1",
        "(`s` = 'a' OR `k` = 2)",
        "`s` IN (SELECT s FROM t WHERE k = 1 AND s = 'x')",
        "-`k` < 1",
        "10 / `k` > 1",
    ],
)
def test_conjuncts_change_places_and_not_their_words(text):
    assert cheap_first(f"{text} AND `k` > 0", COLUMNS) == f"`k` > 0 AND {text}"
    assert cheap_first(f"`k` > 0 AND {text}", COLUMNS) == f"`k` > 0 AND {text}"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("`y`", True),
        ("CASE WHEN `y` < 15 THEN 1 END", True),
        ("CASE WHEN `t` RLIKE '^[0-9]+$' AND NOT `y` IS NULL THEN NULL ELSE 1 END", True),
        ("10 / `x`", False),
        ("-`x`", False),
        ("CASE WHEN `x` <> 0 THEN `x` + 1 END", False),
        ("`r`[0]", False),
        ("CAST(`s` AS INT)", False),
    ],
)
def test_comparisons_and_case_over_columns_cannot_fail(text, safe):
    assert cannot_fail(text) is safe


@pytest.fixture
def guarded(spark, session, as_users_have_it):
    """Tables of which the second tuple has values that fail."""
    rows = "(1, 5, '7', array(1, 2)), (2, 0, 'x', array())"
    session.table("a", spark.sql(f"SELECT * FROM VALUES {rows} AS t(k, x, s, r)"))
    session.table("b", spark.sql("SELECT * FROM VALUES (1, 10, '1'), (2, 20, 'q') AS t(k, y, t)"))
    session.table("c", spark.sql("SELECT * FROM VALUES (1, 1), (1, 2), (2, 0) AS t(k, u)"))
    return session


@pytest.mark.spark
@pytest.mark.parametrize("queries", [PROTECTED, APART], ids=["protected", "apart"])
def test_what_the_query_protects_does_not_fail(guarded, queries):
    for query, expected in queries.items():
        answer = guarded.sql(f"SELECT APPROXIMATE {query.format(J=JOINED)}")
        assert [tuple(getattr(c, "value", c) for c in row) for row in answer.rows] == [expected], query
        # Of distinct values the tuples that join are known beforehand, by an exact message.
        apart = queries is APART and "DISTINCT" not in query
        assert any("tuples that join" in note for note in answer.notes) == apart, query


@pytest.mark.spark
def test_what_the_query_does_not_protect_fails_as_in_spark(guarded):
    for aggregate in ("SUM(10 / a.x)", "SUM(10 / a.x) FILTER (WHERE b.y > 15)", "COUNT(a.r[0])"):
        with pytest.raises(DataError, match=r"zero|bounds"):
            guarded.sql(f"SELECT APPROXIMATE {aggregate} {JOINED}")
    with pytest.raises(DataError, match="zero"):
        guarded.sql("SELECT APPROXIMATE SUM(10 / x) FROM a")
