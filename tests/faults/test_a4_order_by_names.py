"""ORDER BY takes the SELECT item of a name before the column, HAVING and GROUP BY the column, as Spark does."""

from __future__ import annotations

import pytest
from support.exact import exact_answers
from support.memory import InMemory
from support.tables import register

from skimql import SkimqlError

JOINED = "FROM g JOIN b ON g.k = b.k"
QUERIES = [
    "-g.q AS q, COUNT(*) AS n {J} GROUP BY g.q ORDER BY q LIMIT 1",
    "-g.q AS q, COUNT(*) AS n {J} GROUP BY g.q ORDER BY g.q",
    "-g.q AS q, COUNT(*) AS n {J} GROUP BY g.q ORDER BY q + g.q, n DESC",
    "-g.q AS q, COUNT(*) AS n {J} GROUP BY g.q HAVING q > 3 ORDER BY q",
    "COUNT(*) AS q, g.q AS n {J} GROUP BY g.q HAVING q > 4 ORDER BY q",
    "-SUM(b.y) AS y, g.q {J} GROUP BY g.q HAVING SUM(y) > 5 ORDER BY -y",
    "g.w AS q, g.q AS w, COUNT(*) AS n {J} GROUP BY w, q HAVING q < 9 ORDER BY q",
    "g.w AS q, g.q AS q, COUNT(*) AS n {J} GROUP BY g.w, g.q ORDER BY q",
    "g.q % 4 AS q, COUNT(*) AS n {J} GROUP BY g.q % 4 HAVING q > 1 ORDER BY q",
    "g.s AS k, COUNT(*) AS n {J} GROUP BY g.s ORDER BY k",
    "g.s, -COUNT(*) AS k {J} GROUP BY g.s ORDER BY k + 1, g.s",
    "-k AS k, COUNT(*) AS n FROM g JOIN b USING (k) GROUP BY k HAVING k > 1 ORDER BY k",
]


TABLES = {
    "g": ("k INT, q INT, w INT, s STRING", [(1, 3, 30, "b"), (2, 5, 20, "a"), (3, 9, 10, "c")]),
    "b": ("k INT, y INT", [(1, 1), (2, 1), (2, 5), (3, 7), (3, 8), (3, 9)]),
}


@pytest.mark.spark
def test_names_in_order_by_and_having_mean_what_they_mean_in_spark(session):
    """Each in memory, where names mean what they mean in a session; one of ORDER BY with HAVING there too."""
    register(session, **TABLES)
    texts = [query.format(J=JOINED) for query in QUERIES]
    exact = exact_answers(session, texts)
    memory = InMemory(TABLES)
    for asked, chosen in ((memory, texts), (session, texts[3:4])):
        for sql in chosen:
            rows = asked.sql(f"SELECT APPROXIMATE {sql}").rows
            assert [tuple(getattr(c, "value", c) for c in row) for row in rows] == exact[sql], sql


@pytest.mark.spark
def test_an_aggregate_of_an_item_in_order_by_is_refused_as_spark_does(spark, session):
    session.table("g", spark.sql("SELECT * FROM VALUES (1, 3), (2, 5) AS t(k, q)"))
    session.table("h", spark.sql("SELECT * FROM VALUES (1), (2) AS t(k)"))
    sql = "SELECT APPROXIMATE -g.q AS q, COUNT(*) FROM g JOIN h ON g.k = h.k GROUP BY g.q ORDER BY SUM(q)"
    with pytest.raises(SkimqlError, match="is the item of that name") as caught:
        session.sql(sql)
    assert caught.value.code == "SKIMQL_MISPLACED_AGGREGATE"
