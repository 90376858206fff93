"""Views with odd names, and broken ones, in Spark's catalog: an unknown table is told as such."""

from __future__ import annotations

import pytest

from skimql import UnknownName

# Interpreted, Spark's own list of its tables cannot be read.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

ODD = ("my-view", "order items", "größe", "a`b", "select", "1st")


@pytest.fixture
def odd(session, spark):
    for name in ODD:
        quoted = name.replace("`", "``")
        spark.sql(f"CREATE OR REPLACE TEMP VIEW `{quoted}` AS SELECT * FROM VALUES (1), (1) AS v(k)")
    spark.sql("CREATE TABLE gone (k INT) USING parquet")
    spark.sql("CREATE VIEW broken AS SELECT * FROM gone")
    spark.sql("DROP TABLE gone")
    session.table("t", spark.sql("SELECT 1 AS k"))
    yield session
    spark.sql("DROP VIEW broken")


def test_an_unknown_table_is_told_with_near_names(odd):
    for query, hint in (
        ("SELECT APPROXIMATE COUNT(*) FROM myview x JOIN t ON x.k = t.k", "`my-view`"),
        ("ESTIMATE ROWS FOR SELECT * FROM grösse x JOIN t ON x.k = t.k", "größe"),
        ("EXPLAIN SELECT APPROXIMATE COUNT(*) FROM `order item` x JOIN t ON x.k = t.k", "`order items`"),
        ("CREATE SKETCH s ON orderitems (k)", "`order items`"),
        ("SELECT APPROXIMATE COUNT(*) FROM nothing_like_it x JOIN t ON x.k = t.k", "t"),
        ("SELECT APPROXIMATE COUNT(*) FROM parquet.`/no/such/place` x JOIN t ON x.k = t.k", "t"),
    ):
        with pytest.raises(UnknownName) as told:
            odd.sql(query)
        assert told.value.code == "SKIMQL_UNKNOWN_TABLE", query
        assert hint in told.value.hint, (query, told.value.hint)


def test_odd_names_can_be_asked_as_they_are_told(odd, spark, tmp_path):
    quoted = ["`" + name.replace("`", "``") + "`" for name in ODD]
    joined = "FROM t " + " ".join(f"JOIN {q} x{i} ON t.k = x{i}.k" for i, q in enumerate(quoted))
    assert odd.sql(f"SELECT APPROXIMATE COUNT(*) {joined}").value == 2 ** len(ODD)
    for name in ODD:
        odd.table(name, spark.sql("SELECT 1 AS k"))
    assert odd.sql(f"SELECT APPROXIMATE COUNT(*) {joined}").value == 1
    assert odd.sql(f"EXACT SELECT COUNT(*) {joined}").value == 1
    path = str(tmp_path / "some.folder")
    spark.sql("SELECT * FROM VALUES (1), (1), (1) AS v(k)").write.parquet(path)
    assert odd.sql(f"SELECT APPROXIMATE COUNT(*) FROM parquet.`{path}` x JOIN t ON x.k = t.k").value == 3
