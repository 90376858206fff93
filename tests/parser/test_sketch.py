"""CREATE SKETCH says keys, weight and filter in the words in which queries say theirs."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.errors import SkimqlError
from skimql.parser.sketch import Appended, SketchDefinition, resolve_append, resolve_sketch
from skimql.parser.statement import parse_statement

TABLES = schema(
    table("orders", custkey="bigint", orderkey="bigint", total="decimal(12,2)", status="string", day="date"),
    table("customer", custkey="bigint"),
)


def define(text):
    return resolve_sketch(parse_statement("CREATE SKETCH s ON " + text), TABLES)


def test_a_sketch_is_a_virtual_relation_with_classes():
    text = "Orders (CustKey CLASS customer, orderkey+1) FOR SUM(total * 2) WHERE status='F' AND orders.custkey > 3"
    assert define(text) == SketchDefinition(
        "orders",
        "`custkey` > 3 AND `status` = 'F'",
        ("`custkey`", "`orderkey` + 1"),
        ("bigint", None),
        ("customer", "`orderkey` + 1"),
        "`total` * 2",
    )


def test_query_and_sketch_agree_in_every_word():
    resolved = query(
        "SUM(o.total * 2) FROM orders AS o JOIN customer c ON c.custkey = o.custkey WHERE o.custkey > 3 AND status = 'F'",
        TABLES,
    )
    sketch = define("orders (custkey) FOR SUM((total*2)) WHERE (status = 'F') AND custkey>3")
    (edge,) = resolved.graph.edges
    assert resolved.graph.vertices[0].filter == sketch.filter
    assert edge.left_keys == sketch.keys
    assert edge.class_name == sketch.classes[0]
    assert resolved.aggregates[0].total[0].factors[0].expression == sketch.weight


def test_append_has_a_filter():
    statement = parse_statement("APPEND SKETCH s FROM orders WHERE day = DATE '2026-11-27' /* today */")
    assert resolve_append(statement, TABLES) == Appended("orders", "`day` = DATE '2026-11-27'", None)


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ("order (custkey)", "UNKNOWN_TABLE", "order"),
        ("orders (cust)", "UNKNOWN_COLUMN", "cust"),
        ("orders (custkey CLASS k, orderkey CLASS K)", "CLASS_TWICE", "K"),
        ("orders (custkey) WHERE rand() < 0.5", "UNSUPPORTED_FUNCTION", "rand"),
        ("orders (custkey) FOR SUM(sum(total))", "MISPLACED_AGGREGATE", "sum(total)"),
        ("orders (custkey +)", "SYNTAX_ERROR", "+"),
        ("orders (custkey) WHERE custkey = customer.custkey", "UNKNOWN_TABLE", "customer.custkey"),
    ],
)
def test_mistakes_are_shown_in_the_statement(text, code, marked):
    with pytest.raises(SkimqlError) as caught:
        define(text)
    assert caught.value.code == f"SKIMQL_{code}"
    start, end = caught.value.span
    assert caught.value.sql[start:end] == marked
