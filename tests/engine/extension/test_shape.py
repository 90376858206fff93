"""The columns of an answer are known before it is run."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from support.tables import register

from skimql import UnsupportedQuery
from skimql.engine.extension.shape import shape_of

QUERIES = [
    "SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM sa JOIN sb ON sa.k = sb.k",
    "SELECT APPROXIMATE g, COUNT(*) AS n FROM sa JOIN sb ON sa.k = sb.k GROUP BY g HAVING n > 0 ORDER BY n LIMIT 3",
    "SELECT APPROXIMATE COUNT(*) AS n FROM sa JOIN sb ON sa.k = sb.k ERROR WITHIN 5%",
]


@pytest.mark.parametrize("text", QUERIES)
def test_they_are_those_of_the_answer(session, text):
    register(session, sa=("k INT, v INT", [(1, 2), (2, 3)]), sb=("k INT, g STRING", [(1, "x"), (2, "y")]))
    schema = session.schema(text)
    assert schema == session.sql(text).arrow().schema
    shape = shape_of(session, text)
    assert shape.columns == schema.names
    if text == QUERIES[0]:
        # No value comes of it, whoever runs it.
        with pytest.raises(PySparkException, match="SKIMQL_NOT_ANSWERED"):
            shape.collect()


def test_others_have_none(session):
    with pytest.raises(UnsupportedQuery) as fault:
        session.schema("SELECT 1")
    assert fault.value.code == "SKIMQL_NOT_AN_ANSWER"
