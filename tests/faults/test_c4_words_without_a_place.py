"""NULL, TRUE and the like as arguments and as names: sqlglot gives them no place in the text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from skimql.parser.select import parse_select


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(NULL), SUM((NULL)), AVG( NULL ), COUNT(x, NULL), COUNT(TRUE) FROM t",
        "SELECT t.true, a.t.null, t.false + 1, -t.null, true.x FROM t AS true",
        "SELECT CASE WHEN TRUE THEN NULL ELSE FALSE END, x IN (NULL), NULL IS NULL, t.true[1] FROM t",
        "SELECT COUNT(*) FROM t JOIN u USING (true) WHERE x IS NOT TRUE GROUP BY t.null ORDER BY t.true",
    ],
)
def test_every_name_null_and_boolean_knows_its_place(sql):
    source = parse_select(sql)
    kinds = (exp.Column, exp.Identifier, exp.Null, exp.Boolean)
    for node in source.tree.walk():
        if isinstance(node, kinds):
            text = source.text_of(node).lower()
            assert text == node.sql(dialect="spark").lower()


@pytest.mark.spark
def test_null_and_literal_arguments_and_columns_called_true_and_null(spark, session):
    session.table("a", spark.sql("SELECT * FROM VALUES (1, 2, 3), (1, NULL, 4) AS t(k, `true`, `null`)"))
    session.table("b", spark.sql("SELECT * FROM VALUES (1, 10), (2, 20) AS t(k, y)"))
    aggregates = [
        *("COUNT(NULL)", "SUM(NULL)", "AVG(NULL)", "COUNT(b.y, NULL)", "COUNT((NULL))", "SUM(NULL * b.y)"),
        *("COUNT(TRUE)", "COUNT(1)", "SUM(1)", "AVG(1)", "COUNT(CURRENT_DATE)", "COUNT(INTERVAL 1 DAY)"),
        *("SUM(NULL) FILTER (WHERE a.k > 0)", "COUNT(*) FILTER (WHERE FALSE)", "SUM(IF(a.k = 1, NULL, b.y))"),
        *("SUM(a.true)", "SUM(a.null)", "COUNT(a.true)", "SUM(a.true * b.y)", "COUNT(DISTINCT a.null)"),
        "SUM(CASE WHEN TRUE THEN a.null ELSE b.y END)",
    ]
    joined = f"{', '.join(aggregates)} FROM a JOIN b ON a.k = b.k WHERE a.null > 0 AND NULL IS NULL"
    (exact,) = session.sql(f"EXACT SELECT {joined}").rows
    (row,) = session.sql(f"SELECT APPROXIMATE {joined}").rows
    for aggregate, cell, value in zip(aggregates, row, exact, strict=True):
        got = None if cell.value != cell.value else cell.value
        assert got == value, aggregate
    grouped = "a.true, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.true ORDER BY a.true"
    rows = session.sql(f"SELECT APPROXIMATE {grouped}").rows
    assert [(group, cell.value) for group, cell in rows] == [(None, 1), (2, 1)]
    swapped = session.sql("SELECT APPROXIMATE COUNT(*) FROM a JOIN a AS c ON a.true = c.null - 1")
    assert swapped.value == 1
