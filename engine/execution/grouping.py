"""The groups of a query: Spark lists their values, and joins group numbers to the tables that are grouped.

Spark alone decides which values are one group: NULLs are, NaNs are, 0.0 and -0.0 are. Where a query groups by several
tables the groups of each are listed by themselves, and a group of the query is one of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import BudgetExceeded, DataError, UnsupportedQuery
from ...optimizer.groups import grouped_vertices
from ...optimizer.operators import GROUPS
from ...parser.join_graph import Query
from ..observed import observed
from ..sources.filters import filtered
from ..sources.python_values import in_zone, python_values, with_loose_structs
from ..sources.tables import Frames
from ..spark.arrow_frames import frame_of
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from .groups import Groups, VertexGroups, span
from .partial_aggregate import group_column

_WAY_OUT = "EXACT SELECT ..., or GROUP BY an expression of another type"


@dataclass(frozen=True, slots=True)
class Numbered:
    """The groups of the tuples of one table.

    Attributes
    ----------
    table : str
    vertex : int
        Whose tuples they are: it names the column of their numbers.
    expressions : tuple of str
        What they are grouped by, Spark SQL.
    values : tuple of tuples
        The values of `expressions` in each group, by group number.
    numbers : DataFrame
        The same, with the number in `group_column`.
    types : tuple of str
        The Spark types of `expressions`.
    """

    table: str
    vertex: int
    expressions: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    numbers: DataFrame
    types: tuple[str, ...]

    def joined(self, frame: DataFrame) -> DataFrame:
        """The table with the number of each tuple's group, NULL where it is in none."""
        columns = [_value_column(self.vertex, i) for i in range(len(self.expressions))]
        same = F.lit(True)
        for expression, column in zip(self.expressions, columns, strict=True):
            same = same & F.expr(expression).eqNullSafe(F.col(f"`{column}`"))
        return frame.join(F.broadcast(self.numbers), same, "left").drop(*columns)


@dataclass(frozen=True)
class SparkGroups(Groups):
    """The tables of a grouped query, its grouped ones with the numbers of their tuples' groups.

    Attributes
    ----------
    parts : tuple of VertexGroups
    tables : Frames
    numbered : tuple of Numbered
        One for each of `parts`.
    """

    parts: tuple[VertexGroups, ...]
    tables: Frames
    numbered: tuple[Numbered, ...]

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        frame = self.tables.frame(name)
        for own in self.numbered:
            if own.table == name:
                frame = own.joined(frame)
        return frame


@dataclass(frozen=True, slots=True)
class Statement:
    """What asks for groups: its text, where it names them, the ways out where they are many or cannot be told apart."""

    sql: str
    place: tuple[int, int]
    way_out: str
    fewer: str = "EXACT SELECT ..."


def listed(
    spark: SparkSession,
    tables: Frames,
    query: Query,
    most: int,
    listener: ProgressListener | None = None,
) -> SparkGroups:
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
    parts: list[VertexGroups] = []
    found: list[Numbered] = []
    statement = Statement(query.sql, span(query.groups), _WAY_OUT)
    for number in grouped_vertices(query):
        own = [(place, g) for place, g in enumerate(query.groups) if g.vertex == number]
        vertex = query.graph.vertices[number]
        expressions, names = tuple(g.expression for _, g in own), [g.name for _, g in own]
        with observed(GROUPS, vertex.alias) as seen:
            groups = numbered(
                spark,
                tables,
                vertex.table,
                [vertex.filter],
                expressions,
                names,
                most,
                statement,
                listener,
                number,
            )
            seen.rows, seen.half_width = len(groups.values), 0.0
        found.append(groups)
        parts.append(VertexGroups(number, tuple(place for place, _ in own), groups.values))
    return SparkGroups(tuple(parts), tables, tuple(found))


def numbered(
    spark: SparkSession,
    tables: Frames,
    name: str,
    filters: Sequence[str | None],
    expressions: tuple[str, ...],
    names: Sequence[str],
    most: int,
    statement: Statement,
    listener: ProgressListener | None = None,
    vertex: int = 0,
) -> Numbered:
    """List the groups of the tuples of a table that some filter keeps; raises as `listed`."""
    columns = [_value_column(vertex, i) for i in range(len(expressions))]
    sql, place = statement.sql, statement.place
    try:
        distinct = (
            filtered(tables.frame(name), filters)
            .select(*(F.expr(e).alias(c) for e, c in zip(expressions, columns, strict=True)))
            .distinct()
        )
        kinds = tuple(f.dataType.simpleString() for f in distinct.schema.fields)
        refuse_collated(names, kinds, statement)
        first = with_loose_structs(distinct).limit(most + 1).sort(*(F.col(f"`{c}`") for c in columns))
        table = run_job(spark, f"groups of {name}", first.toArrow, listener)
    except SPARK_FAULTS as fault:
        message = f"the groups of {name} cannot be listed: {first_line(fault)}"
        raise DataError(message, "SKIMQL_GROUPS_FAILED", sql, place, statement.way_out) from fault
    if table.num_rows > most:
        raise BudgetExceeded(
            f"more than {most:,} groups of {', '.join(names)}; each takes its own sketches",
            "SKIMQL_TOO_MANY_GROUPS",
            sql,
            place,
            f"SET skimql.max_groups = ..., or {statement.fewer}",
        )
    values = tuple(zip(*(python_values(c) for c in in_zone(spark, table).columns), strict=True))
    counted = table.append_column(group_column(vertex), pa.array(range(table.num_rows), pa.int64()))
    return Numbered(name, vertex, expressions, values, frame_of(spark, counted), kinds)


def refuse_collated(names: Sequence[str], kinds: Sequence[str], statement: Statement) -> None:
    """Refuse groups, by name and by Spark's type, that are text under a collation: bytes do not tell them apart.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_GROUP_TYPE``.
    """
    for group, kind in zip(names, kinds, strict=True):
        if " collate " in kind:
            message = f"{group} is text under a collation"
            raise UnsupportedQuery(
                message, "SKIMQL_GROUP_TYPE", statement.sql, statement.place, statement.way_out
            )


def _value_column(vertex: int, position: int) -> str:
    return f"{group_column(vertex)} {position}"
