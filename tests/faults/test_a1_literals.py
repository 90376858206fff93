"""What literals are said to exclude is what Spark finds: long DECIMALs, and those that are cut when compared."""

from __future__ import annotations

import pytest

from skimql.parser.join_graph import Column, TableSchema
from skimql.parser.resolve import resolve
from skimql.parser.statement import parse_statement

N = "12345678901234567890123456789012345678"
SCHEMA = {
    name: TableSchema(
        name,
        (
            Column("k", "int"),
            Column("n", "decimal(38,0)"),
            Column("m", "decimal(38,18)"),
            Column("c", "char(3)"),
            Column("s", "string"),
        ),
    )
    for name in ("a", "b")
}


def resolved(condition):
    sql = f"SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE {condition}"
    return resolve(parse_statement(sql), SCHEMA)


@pytest.mark.parametrize(
    ("condition", "empty"),
    [
        (f"a.n = {N} AND a.n > {N[:-1]}7", False),
        (f"a.n = {N} AND a.n < {N}", True),
        (f"a.n = -{N} AND a.n < -{N[:-1]}7", False),
        ("a.n >= 1 AND a.n <= 0.5", False),
        ("a.m = 123456789012345678901 AND a.m < 5", False),
        ("a.c = 'ab' AND a.c = 'ab '", False),
        ("a.c = 'ab' AND a.c IN ('ab  ', 'x')", False),
        ("a.c >= 'ab ' AND a.c <= 'ab'", False),
        ("a.c = 'ab' AND a.c = 'abc'", True),
        ("a.s = 'ab' AND a.s = 'ab '", True),
    ],
)
def test_conditions_exclude_one_another_only_where_no_value_meets_them(condition, empty):
    assert bool(resolved(condition).empty) == empty


def test_a_literal_is_carried_from_char_to_char_and_not_to_text():
    sql = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.c = b.{} WHERE a.c = 'ab'"
    carried = resolve(parse_statement(sql.format("c")), SCHEMA).graph.vertices[1].filter
    assert carried == "`c` = 'ab'"
    assert resolve(parse_statement(sql.format("s")), SCHEMA).graph.vertices[1].filter is None
