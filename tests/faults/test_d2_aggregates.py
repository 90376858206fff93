"""Functions and aggregates that people write, held against Spark."""

from __future__ import annotations

import math

import pytest
from support.memory import InMemory
from support.tables import register

JOINED = " FROM a JOIN b ON a.k = b.k "
ITEMS = [
    "ROUND(SUM(b.y) / 3, 2)", "ROUND(AVG(b.y), -1)", "COALESCE(SUM(a.x), 0)", "COALESCE(SUM(a.x) FILTER (WHERE a.k > 5), 0)",
    "1 + COALESCE(SUM(a.x) FILTER (WHERE a.k > 5), 0)", "SUM(a.x) / NULLIF(COUNT(*), 0)", "NULLIF(COUNT(*), 3)", "FLOOR(AVG(b.y))",
    "SUM(a.x) / NULLIF(COUNT(*) FILTER (WHERE a.k > 7), 0)", "CEIL(AVG(b.y))", "ABS(0 - SUM(b.y))", "GREATEST(SUM(b.y), 100)",
    "LEAST(COUNT(*), 2)", "COUNT_IF(a.x > 5)", "COUNT_IF(a.x > 5) FILTER (WHERE b.y > 10)", "MEAN(b.y)", "MEAN(a.x)",
    "SUM(CASE a.t WHEN 'x' THEN b.y ELSE 1 END)", "SUM(CASE a.t WHEN 'x' THEN b.y WHEN 'y' THEN a.x END)",
    "SUM((a.x + b.y) * (a.x + b.y) * (a.x - b.y))", "SUM(a.x * b.y - b.y * a.x)", "AVG(a.x * b.y - b.y * a.x)",
]  # fmt: skip
DISTINCT = ["APPROX_COUNT_DISTINCT(b.y)", "approx_count_distinct(b.y, 0.01)", "COUNT(DISTINCT *)"]


TABLES = {
    "a": ("k INT, x INT, t STRING", [(1, 5, "x"), (1, 6, "y"), (2, 7, "x"), (3, None, "z")]),
    "b": ("k INT, y INT", [(1, 10), (2, 20), (2, 21), (9, 1)]),
}


@pytest.fixture
def tables(session):
    register(session, **TABLES)
    return session


def number(cell):
    value = getattr(cell, "value", cell)
    return None if value is None or math.isnan(value) else float(value)


def test_functions_over_aggregates_are_what_spark_computes(tables):
    """By exact maps on Spark, and within the intervals of counters in memory."""
    items = ", ".join(f"{item} AS v{i}" for i, item in enumerate(ITEMS))
    by_maps = tables.sql(f"SELECT APPROXIMATE {items}{JOINED}").rows[0]
    by_counters = InMemory(TABLES, sparse=False).sql(f"SELECT APPROXIMATE {items}{JOINED}").rows[0]
    truth = tables.sql(f"SELECT {items}{JOINED}").collect()[0]
    for item, known, cell, exact in zip(ITEMS, by_maps, by_counters, truth, strict=True):
        if exact is None:
            assert number(known) is number(cell) is None, item
        else:
            assert number(known) == pytest.approx(float(exact)), item
            assert cell.low - 1e-9 <= float(exact) <= cell.high + 1e-9, item


def test_distinct_values_by_other_names(tables):
    values, rows = tables.sql(f"SELECT COUNT(DISTINCT b.y), COUNT(DISTINCT *){JOINED}").collect()[0]
    for item in DISTINCT:
        answer = tables.sql(f"SELECT APPROXIMATE {item} AS n{JOINED}")
        assert answer.value == (rows if "*" in item else values)
        assert answer.rows[0][0].exact


def test_an_exact_run_does_not_take_sparks_estimate_of_distinct_values(tables):
    from skimql.parser.statement import parse_statement

    text = f"SELECT APPROXIMATE APPROX_COUNT_DISTINCT(b.y), t IN (SELECT approx_count_distinct(t) FROM a){JOINED}"
    statement = parse_statement(text)
    assert "COUNT(DISTINCT" in statement.select_sql
    assert "SELECT approx_count_distinct(t)" in statement.select_sql
    assert len(statement.select_sql) == len(text) - len(text) + len(statement.select_sql)
    assert tables.sql(f"SELECT COUNT(DISTINCT        b.y){JOINED}").collect()[0][0] == 3


def test_an_exists_over_one_equality_is_told_the_in_that_answers_it(tables):
    from skimql.errors import SkimqlError

    exists = "EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y > 15)"
    with pytest.raises(SkimqlError) as caught:
        tables.sql(f"SELECT APPROXIMATE COUNT(*) FROM a WHERE {exists} SIZE 10 KB")
    typed, sampled, other = caught.value.hint.split(", or ")
    assert (sampled, other) == ("the same with USING sampled_query at its end", "EXACT SELECT ...")
    truth = tables.sql(f"SELECT COUNT(*) FROM a WHERE {exists}").collect()[0][0]
    assert tables.sql(f"SELECT APPROXIMATE COUNT(*) FROM a WHERE {typed} SIZE 10 KB").value == truth
    assert tables.sql(f"SELECT APPROXIMATE COUNT(*) FROM a WHERE {exists} ERROR WITHIN 5%").value == truth
    with pytest.raises(SkimqlError) as negated:
        tables.sql(f"SELECT APPROXIMATE COUNT(*) FROM a WHERE NOT {exists} SIZE 10 KB")
    assert negated.value.hint == "the same with USING sampled_query at its end, or EXACT SELECT ..."
