"""Join keys as 64-bit integers, computed by Spark: equal keys to equal integers, NULL to NULL.

Integers of any width go to their own value. Everything else (text, decimals, dates, composite keys) is cast to
the type in which Spark compares the two sides and fingerprinted with `xxhash64`. The cast comes first:
``xxhash64(INT 1) != xxhash64(BIGINT 1)``, decimals of another scale differ, and a NULL would hash to the seed.
Two of n different keys collide with probability n^2 / 2^65; nothing is ever folded to fewer bits.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..errors import UnsupportedQuery
from ..optimizer.plan import Attribute
from ..parser.join_graph import Edge, Query
from ..parser.types import common_type
from .spark import SPARK_FAULTS, first_line
from .tables import Tables

INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")


def key_column(attribute: Attribute) -> Column:
    """The 64-bit integer of a join attribute as a Spark column, BIGINT, NULL where any part is NULL."""
    if len(attribute.keys) == 1 and attribute.key_types[0] in INTEGER_TYPES:
        return F.expr(attribute.keys[0]).cast(attribute.key_types[0]).cast("bigint")
    parts = [F.expr(k).cast(t) for k, t in zip(attribute.keys, attribute.key_types, strict=True)]
    known = parts[0].isNotNull()
    for part in parts[1:]:
        known = known & part.isNotNull()
    return F.when(known, F.xxhash64(*parts))


def with_key_types(query: Query, tables: Tables, ansi: bool) -> Query:
    """The query with the comparison type of every join key known.

    The parser knows the types of columns; that of an expression is asked of Spark, by analysis alone.

    Raises
    ------
    UnsupportedQuery
        If Spark cannot compare the two sides, or the expression is not valid.
    """
    edges = tuple(_with_types(query, edge, tables, ansi) for edge in query.graph.edges)
    return replace(query, graph=replace(query.graph, edges=edges))


def _with_types(query: Query, edge: Edge, tables: Tables, ansi: bool) -> Edge:
    if None not in edge.key_types:
        return edge
    left = tables.frame(query.graph.vertices[edge.left].table)
    right = tables.frame(query.graph.vertices[edge.right].table)
    types = tuple(
        known or _compared(query, edge, _type_of(query, edge, left, a), _type_of(query, edge, right, b), ansi)
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
            "CAST one side to the type of the other",
        )
    return comparison.type


def _type_of(query: Query, edge: Edge, frame: DataFrame, expression: str) -> str:
    try:
        return frame.selectExpr(expression).schema.fields[0].dataType.simpleString()
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses the join key {expression}: {first_line(fault)}",
            "SKIMQL_BAD_KEY",
            query.sql,
            (edge.span.start, edge.span.end),
        ) from fault
