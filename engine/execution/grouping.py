"""The groups of a query: Spark lists their values, and joins group numbers to the tables that are grouped.

Spark alone decides which values are one group: NULLs are, NaNs are, 0.0 and -0.0 are. Where a query groups by several
tables the groups of each are listed by themselves, and a group of the query is one of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import BudgetExceeded, DataError, UnsupportedQuery
from ...optimizer.choose import grouped_vertices
from ...parser.join_graph import Group, Query
from ..queries.exact import in_zone
from ..sources.filters import kept_by
from ..sources.python_values import python_values, with_loose_structs
from ..sources.tables import Frames
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from .scan import group_column

_WAY_OUT = "EXACT SELECT ..., or GROUP BY an expression of another type"


@dataclass(frozen=True, slots=True)
class VertexGroups:
    """The groups of one vertex.

    Attributes
    ----------
    vertex : int
    table : str
    expressions : tuple of str
        What its tuples are grouped by, Spark SQL.
    places : tuple of int
        Where each of them stands in the GROUP BY clause.
    values : tuple of tuples
        The values of `expressions` in each group, by group number.
    numbers : DataFrame
        The same, with the number in `group_column`.
    """

    vertex: int
    table: str
    expressions: tuple[str, ...]
    places: tuple[int, ...]
    values: tuple[tuple[Any, ...], ...]
    numbers: DataFrame

    def joined(self, frame: DataFrame) -> DataFrame:
        """The table with the number of each tuple's group, NULL where it is in none."""
        columns = [_value_column(self.vertex, i) for i in range(len(self.expressions))]
        same = F.lit(True)
        for expression, column in zip(self.expressions, columns, strict=True):
            same = same & F.expr(expression).eqNullSafe(F.col(f"`{column}`"))
        return frame.join(F.broadcast(self.numbers), same, "left").drop(*columns)


@dataclass(frozen=True, slots=True)
class Groups:
    """The tables of a grouped query, its grouped ones with the numbers of their tuples' groups.

    Attributes
    ----------
    tables : Frames
    parts : tuple of VertexGroups
        One for each vertex whose tuples are grouped, ascending.
    """

    tables: Frames
    parts: tuple[VertexGroups, ...]

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        frame = self.tables.frame(name)
        for part in self.parts:
            if part.table == name:
                frame = part.joined(frame)
        return frame

    @property
    def counts(self) -> Mapping[int, int]:
        """How many groups each grouped vertex has."""
        return {p.vertex: len(p.values) for p in self.parts}

    @property
    def number(self) -> int:
        """How many groups the query may have at most."""
        return math.prod(self.counts.values())

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """The groups of the query as numbers of groups of its vertices, in the order of `per_group`."""
        return product(*(range(len(p.values)) for p in self.parts))

    def values(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        """The value of each GROUP BY expression in one group of the query."""
        found = {
            place: value
            for part, number in zip(self.parts, numbers, strict=True)
            for place, value in zip(part.places, part.values[number], strict=True)
        }
        return tuple(found[place] for place in range(len(found)))


def listed(
    spark: SparkSession,
    tables: Frames,
    query: Query,
    most: int,
    listener: ProgressListener | None = None,
) -> Groups:
    """List the groups of every vertex that a query groups, in the order of their values.

    Raises
    ------
    BudgetExceeded
        If a vertex has more than `most`.
    UnsupportedQuery
        For text under a collation, whose order and equality are Spark's alone.
    DataError
        If Spark fails.
    """
    parts = [_vertex_groups(spark, tables, query, v, most, listener) for v in grouped_vertices(query)]
    return Groups(tables, tuple(parts))


def too_many(query: Query, most: int) -> BudgetExceeded:
    """The refusal of a query with more groups than each can have synopses of its own."""
    return BudgetExceeded(
        f"more than {most:,} groups of {', '.join(g.name for g in query.groups)}; each takes its own sketches",
        "SKIMQL_TOO_MANY_GROUPS",
        query.sql,
        _span(query.groups),
        "SET skimql.max_groups = ..., or EXACT SELECT ...",
    )


def _vertex_groups(
    spark: SparkSession,
    tables: Frames,
    query: Query,
    number: int,
    most: int,
    listener: ProgressListener | None,
) -> VertexGroups:
    vertex = query.graph.vertices[number]
    own = [(place, g) for place, g in enumerate(query.groups) if g.vertex == number]
    frame = kept_by(tables.frame(vertex.table), [vertex.filter])
    expressions = tuple(g.expression for _, g in own)
    columns = [_value_column(number, i) for i in range(len(expressions))]
    try:
        distinct = frame.select(
            *(F.expr(e).alias(c) for e, c in zip(expressions, columns, strict=True))
        ).distinct()
        for (_, group), column in zip(own, distinct.schema.fields, strict=True):
            if " collate " in column.dataType.simpleString():
                raise _refused(query, f"{group.name} is text under a collation")
        first = with_loose_structs(distinct).limit(most + 1).sort(*(F.col(f"`{c}`") for c in columns))
        table = run_job(spark, f"groups of {vertex.table}", first.toArrow, listener)
    except SPARK_FAULTS as fault:
        message = f"the groups of {vertex.table} cannot be listed: {first_line(fault)}"
        raise DataError(message, "SKIMQL_GROUPS_FAILED", query.sql, _span(query.groups), _WAY_OUT) from fault
    if table.num_rows > most:
        raise too_many(query, most)
    values = tuple(zip(*(python_values(c) for c in in_zone(spark, table).columns), strict=True))
    numbered = table.append_column(group_column(number), pa.array(range(table.num_rows), pa.int64()))
    return VertexGroups(
        number,
        vertex.table,
        expressions,
        tuple(place for place, _ in own),
        values,
        spark.createDataFrame(numbered),
    )


def _value_column(vertex: int, position: int) -> str:
    return f"{group_column(vertex)} {position}"


def _span(groups: Sequence[Group]) -> tuple[int, int]:
    return groups[0].span.start, groups[-1].span.end


def _refused(query: Query, why: str) -> UnsupportedQuery:
    return UnsupportedQuery(why, "SKIMQL_GROUP_TYPE", query.sql, _span(query.groups), _WAY_OUT)
