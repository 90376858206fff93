"""Small schemas for the parser's tests."""

from __future__ import annotations

from skimql.parser.join_graph import Column, TableSchema


def table(table_name, view=None, **columns):
    """A table whose columns have the given Spark types."""
    return TableSchema(table_name, tuple(Column(name, kind) for name, kind in columns.items()), view)


def schema(*tables):
    """Tables by name."""
    return {t.name: t for t in tables}


# The tables that the cases share: three tables joined on id.
XYZ = schema(
    table("x", id="int", n="int"),
    table("y", id="int", m="int"),
    table("z", id="int", w="string"),
)
