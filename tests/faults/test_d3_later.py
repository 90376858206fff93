"""What is refused with a true reason today and belongs to other issues."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import schema, table

TABLES = schema(table("a", k="int", x="int"), table("b", k="int", y="int"))


@pytest.mark.xfail(
    strict=True, reason="The user's own query on sampled keys: the SQL that people really write"
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT APPROXIMATE COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "SELECT APPROXIMATE COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) z",
        "SELECT APPROXIMATE COUNT(*) > 3 FROM a JOIN b ON a.k = b.k",
        "SELECT APPROXIMATE COUNT(*) FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
    ],
)
def test_what_people_really_write(text):
    query(text, TABLES)


@pytest.mark.xfail(strict=True, reason="The Spark SQL extension: the dialect wherever Spark SQL is spoken")
@pytest.mark.parametrize(
    "text", ["CREATE TABLE z AS SELECT APPROXIMATE COUNT(*) FROM a", "FROM a SELECT APPROXIMATE COUNT(*)"]
)
def test_the_dialect_wherever_spark_sql_is_spoken(text):
    from skimql.parser.statement import PassThrough, parse_statement

    assert not isinstance(parse_statement(text), PassThrough)


@pytest.mark.xfail(strict=True, reason="The Spark SQL extension: the dialect wherever Spark SQL is spoken")
def test_parameters_and_session_variables():
    query("SELECT APPROXIMATE COUNT(*) FROM a WHERE x < :limit", TABLES)
