"""Every kind of mistake as the user sees it: class, code, line, caret, reason, way out. Golden files."""

from __future__ import annotations

import pickle

import pytest
from support.golden_text import assert_golden
from support.schemas import schema, table

from skimql import errors
from skimql.errors import SkimqlError
from skimql.parser.resolve import resolve, resolve_rows
from skimql.parser.statement import ApproximateSelect, EstimateRows, parse_statement

TABLES = schema(
    table("orders", key="bigint", custkey="bigint", total="decimal(12,2)", status="string", due="date"),
    table("lineitem", key="bigint", shipped="date", price="double", **{"ship mode": "string"}),
    table("customer", custkey="bigint", name="string collate UTF8_LCASE", 国="string"),
    table("Twice", Id="int", id="int"),
)

MISTAKES = {
    "non_equi_join": "SELECT APPROXIMATE COUNT(*)\nFROM orders o, lineitem l\n"
    "WHERE o.key = l.key AND l.shipped < o.due",
    "or_join": "SELECT APPROX COUNT(*) FROM orders o JOIN lineitem l ON o.key = l.key OR (o.due =\n  "
    "l.shipped)",
    "null_safe_join": "SELECT APPROX COUNT(*) FROM orders o JOIN lineitem l ON\n\to.key\t<=>\tl.key",
    "cross_predicate": "SELECT APPROX COUNT(*) FROM orders o, lineitem l WHERE o.key = l.key AND NOT (o.due "
    "= l.shipped)",
    "mixed_key": "SELECT APPROX COUNT(*) FROM orders o, lineitem l WHERE o.key + l.key = 7",
    "cross_product": "SELECT APPROX COUNT(*) FROM orders, lineitem",
    "cyclic_join": "SELECT APPROX COUNT(*) FROM orders a, orders b, orders c\n"
    "WHERE a.key = b.key AND b.custkey = c.custkey\n  AND c.total = a.total",
    "left_join": "SELECT APPROX COUNT(*) FROM orders LEFT JOIN lineitem USING (key)",
    "semi_join": "SELECT APPROX COUNT(*) FROM orders LEFT ANTI JOIN lineitem USING (key)",
    "key_types": "SELECT APPROX COUNT(*) FROM orders o JOIN lineitem l ON o.key = l.shipped",
    "collation": "SELECT APPROX COUNT(*) FROM customer a JOIN customer b ON a.name = b.name",
    "unknown_table": "SELECT APPROX COUNT(*) FROM order o",
    "unknown_alias": "SELECT APPROX COUNT(*) FROM orders o JOIN lineitem l ON o.key = ll.key",
    "unknown_column": "SELECT APPROX SUM(l.prize) FROM lineitem l",
    "unknown_using": "SELECT APPROX COUNT(*) FROM orders JOIN lineitem USING (orderkey)",
    "ambiguous_column": "SELECT APPROX COUNT(key) FROM orders JOIN lineitem ON orders.key = lineitem.key",
    "ambiguous_case": "SELECT APPROX COUNT(ID) FROM twice",
    "same_table_twice": "SELECT APPROX COUNT(*) FROM orders JOIN orders ON orders.key = orders.key",
    "wide_characters": "SELECT APPROX COUNT(*) /* 注文 */ FROM customer c "
    "WHERE c.国 = '日本' AND c.国家 = 'x'",
    "double_quotes": 'SELECT APPROX COUNT(l."ship mode") FROM lineitem l',
    "double_quoted_table": 'SELECT APPROX COUNT(*) FROM "order items"',
    "maximum": "SELECT APPROX MAX(total) FROM orders",
    "not_grouped": "SELECT APPROX status, COUNT(*) FROM orders",
    "star": "SELECT APPROX * FROM orders",
    "sum_distinct": "SELECT APPROX SUM(DISTINCT total) FROM orders",
    "cross_expression": "SELECT APPROX SUM(o.total / l.price) FROM orders o JOIN lineitem l USING (key)",
    "function_of_aggregate": "SELECT APPROX round(SUM(total)) FROM orders",
    "aggregate_in_from": "SELECT APPROX COUNT(*) FROM (SELECT key, SUM(price) p FROM lineitem GROUP BY key)",
    "aggregate_in_where": "SELECT APPROX COUNT(*) FROM orders WHERE SUM(total) > 3",
    "correlated": "SELECT APPROX COUNT(*) FROM orders o\n"
    "WHERE EXISTS (SELECT * FROM lineitem WHERE lineitem.key = o.key)",
    "random": "SELECT APPROX COUNT(*) FROM orders WHERE rand() < 0.1",
    "union": "SELECT APPROX COUNT(*) FROM (SELECT key FROM orders UNION ALL SELECT key FROM lineitem)",
    "syntax": "SELECT APPROX COUNT(*) FROM orders WHERE total >",
    "inner_approximate": "SELECT APPROX COUNT(*) FROM (SELECT APPROXIMATE key FROM orders)",
    "clause_order": "SELECT APPROX COUNT(*) FROM orders ERROR WITHIN 5% GROUP BY status",
    "error_above_one": "SELECT APPROX COUNT(*) FROM orders ERROR WITHIN 5 CONFIDENCE 95%",
    "unknown_method": "SELECT APPROX COUNT(*) FROM orders USING skimed",
    "unknown_behavior": "SELECT APPROX COUNT(*) FROM orders BEHAVIOR 'stric'",
    "open_text": "SELECT APPROX COUNT(*) FROM orders WHERE status = 'F",
    "open_comment": "SELECT APPROX COUNT(*) /* why /* not */ FROM orders",
    "set_without_value": "SET skimql.error",
    "sketch_without_table": "CREATE SKETCH s (custkey)",
    "rows_of_distinct": "ESTIMATE ROWS FOR SELECT DISTINCT status FROM orders",
}


def read(text):
    """All the parser does with a text."""
    statement = parse_statement(text)
    if isinstance(statement, ApproximateSelect):
        resolve(statement, TABLES)
    elif isinstance(statement, EstimateRows):
        resolve_rows(statement, TABLES)


def mistake(text):
    """The error that the text gives."""
    with pytest.raises(SkimqlError) as caught:
        read(text)
    return caught.value


@pytest.mark.parametrize("name", list(MISTAKES))
def test_messages(name):
    error = mistake(MISTAKES[name])
    assert_golden("errors", f"{name}.txt", f"{type(error).__name__} {error.code}\n{error}")


@pytest.mark.parametrize("name", list(MISTAKES))
def test_every_mistake_has_a_place_a_way_out_and_survives_pickling(name):
    error = mistake(MISTAKES[name])
    assert error.span is not None
    assert 0 <= error.span[0] < error.span[1] <= len(MISTAKES[name]) + 1
    assert error.hint
    assert error.code.startswith("SKIMQL_")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "sql", ["SELECT x FROM t", "SELECT " + "a, " * 60 + "x FROM t " + "WHERE 1 " * 60, "城 " * 70 + "x"]
)
@pytest.mark.parametrize("columns", [None, 79, 40])
def test_the_carets_stand_below_the_mistake_on_a_narrow_terminal_too(sql, columns):
    start = sql.index("x")
    fault = SkimqlError("no", sql=sql, span=(start, start + 1))
    _, line, carets = fault.told(columns).splitlines()
    assert columns is None or errors._columns(line) <= columns
    before = next(line[:n] for n in range(len(line)) if errors._columns(line[:n]) == carets.index("^"))
    assert line[len(before)] == "x"


def test_a_long_message_is_cut_on_a_terminal():
    fault = SkimqlError("x" * 5000)
    assert len(fault.told(80)) < 1600
    assert "3,500 characters more" in fault.told(80)
    assert len(str(fault)) > 5000
