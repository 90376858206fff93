"""Join keys as 64-bit integers, computed by Spark: equal keys to equal integers, NULL to NULL.

Integers of any width go to their own value. Everything else (text, decimals, dates, composite keys) is cast to
the type in which Spark compares the two sides and fingerprinted with `xxhash64`. The cast comes first:
``xxhash64(INT 1) != xxhash64(BIGINT 1)``, decimals of another scale differ, and a NULL would hash to the seed.
Two of n different keys collide with probability n^2 / 2^65; nothing is ever folded to fewer bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...optimizer.plan import Attribute
from ...parser.join_graph import Edge, Query
from ...parser.types import PADDED, common_type
from .tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import Column

INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")


def key_text(attribute: Attribute) -> str:
    """The 64-bit integer of a join attribute as SQL, BIGINT, NULL where any part is NULL."""
    parts = [compared_text(k, t) for k, t in zip(attribute.keys, attribute.key_types, strict=True)]
    if len(parts) == 1 and attribute.key_types[0] in INTEGER_TYPES:
        return f"CAST({parts[0]} AS BIGINT)"
    known = " AND ".join(f"{part} IS NOT NULL" for part in parts)
    return f"CASE WHEN {known} THEN xxhash64({', '.join(parts)}) END"


def compared_text(key: str, kind: str) -> str:
    """A key as SQL, as the type in which it is compared: equal keys to equal values."""
    if kind == PADDED:
        # Two of them are equal whatever the blanks at their ends.
        return f"rtrim(CAST({key} AS STRING))"
    return f"CAST({key} AS {kind})"


def is_column(expression: str) -> bool:
    """Whether an expression is a column, which cannot fail."""
    return bool(re.fullmatch(r"`(?:[^`]|``)*`", expression))


def key_column(attribute: Attribute) -> Column:
    """The 64-bit integer of a join attribute as a Spark column, see `key_text`."""
    from pyspark.sql import functions as F

    return F.expr(key_text(attribute))


# Types of key expressions that are known without Spark, by lower-cased table and expression.
KnownTypes = Mapping[tuple[str, str], str]


def with_key_types(query: Query, tables: Tables | None, ansi: bool, known: KnownTypes | None = None) -> Query:
    """The query with the comparison type of every join key known.

    The parser knows the types of columns; that of an expression is in `known`, or asked of Spark, by analysis alone.

    Raises
    ------
    UnsupportedQuery
        If Spark cannot compare the two sides, or the expression is not valid.
    """
    types: KnownTypes = {} if known is None else known
    edges = tuple(_with_types(query, edge, tables, ansi, types) for edge in query.graph.edges)
    return replace(query, graph=replace(query.graph, edges=edges))


def _with_types(query: Query, edge: Edge, tables: Tables | None, ansi: bool, known_types: KnownTypes) -> Edge:
    if None not in edge.key_types:
        return edge

    def type_of(vertex: int, expression: str) -> str:
        table = query.graph.vertices[vertex].table
        known = known_types.get((table.lower(), expression))
        place = (edge.span.start, edge.span.end)
        if known:
            return known
        assert tables is not None, "some source of types is given"
        return expression_type(tables, table, expression, query.sql, place)

    types = tuple(
        known or _compared(query, edge, type_of(edge.left, a), type_of(edge.right, b), ansi)
        for a, b, known in zip(edge.left_keys, edge.right_keys, edge.key_types, strict=True)
    )
    return replace(edge, key_types=types)


def _compared(query: Query, edge: Edge, left: str, right: str, ansi: bool) -> str:
    comparison = common_type(left, right, ansi)
    if comparison.type is None:
        raise UnsupportedQuery(
            comparison.reason,
            "SKIMQL_INCOMPARABLE_KEYS",
            query.sql,
            (edge.span.start, edge.span.end),
            comparison.way_out,
        )
    return comparison.type


def expression_type(
    tables: Tables,
    table: str,
    expression: str,
    sql: str,
    place: tuple[int, int] | None = None,
    what: str = "join key",
) -> str:
    """The Spark type of an expression over a table, by analysis; `place` is its span in `sql`, `what` its role.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_BAD_KEY`` if Spark refuses it.
    """
    from ..spark.session import SPARK_FAULTS, first_line

    try:
        # The type of a column by itself stands in the schema.
        own = tables.as_given(table).schema.fields
        fields = [f for f in own if f"`{f.name}`".lower() == expression.lower()]
        if len(fields) != 1:
            fields = tables.frame(table).selectExpr(expression).schema.fields
        return str(fields[0].dataType.simpleString())
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses the {what} {expression}: {first_line(fault)}",
            "SKIMQL_BAD_KEY",
            sql,
            place,
        ) from fault
