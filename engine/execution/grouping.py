"""The groups of a query: Spark lists their values, and joins a group number to the table that is grouped.

Spark alone decides which values are one group: NULLs are, NaNs are, 0.0 and -0.0 are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import BudgetExceeded, DataError, UnsupportedQuery
from ...parser.join_graph import Query
from ..sources.filters import kept_by
from ..sources.python_values import in_zone, python_values, with_loose_structs
from ..sources.tables import Frames
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from .partial_aggregate import GROUP_COLUMN

_WAY_OUT = "EXACT SELECT ..., or GROUP BY an expression of another type"


@dataclass(frozen=True, slots=True)
class Numbered:
    """The tables of a query, the grouped one with the number of each tuple's group, NULL where it is in none.

    Attributes
    ----------
    tables : Frames
    table : str
        The one whose tuples are grouped.
    expressions : tuple of str
        What they are grouped by, Spark SQL.
    values : tuple of tuples
        The values of `expressions` in each group, by group number.
    numbers : DataFrame
        The same, with the number in `GROUP_COLUMN`.
    types : tuple of str
        The Spark types of `expressions`.
    """

    tables: Frames
    table: str
    expressions: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    numbers: DataFrame
    types: tuple[str, ...] = ()

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        frame = self.tables.frame(name)
        if name != self.table:
            return frame
        columns = [_value_column(i) for i in range(len(self.expressions))]
        same = F.lit(True)
        for expression, column in zip(self.expressions, columns, strict=True):
            same = same & F.expr(expression).eqNullSafe(F.col(f"`{column}`"))
        return frame.join(F.broadcast(self.numbers), same, "left").drop(*columns)


def listed(
    spark: SparkSession,
    tables: Frames,
    query: Query,
    most: int,
    listener: ProgressListener | None = None,
) -> Numbered:
    """List the groups of a query that groups by one table, in the order of their values.

    Raises
    ------
    BudgetExceeded
        If there are more than `most`.
    UnsupportedQuery
        For text under a collation, whose order and equality are Spark's alone.
    DataError
        If Spark fails.
    """
    vertex = query.graph.vertices[query.groups[0].vertex]
    expressions = tuple(g.expression for g in query.groups)
    names = [g.name for g in query.groups]
    place = query.groups[0].span.start, query.groups[-1].span.end
    statement = Statement(query.sql, place, _WAY_OUT)
    return numbered(
        spark, tables, vertex.table, [vertex.filter], expressions, names, most, statement, listener
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """What asks for groups: its text, where it names them, the ways out where they are many or cannot be told apart."""

    sql: str
    place: tuple[int, int]
    way_out: str
    fewer: str = "EXACT SELECT ..."


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
) -> Numbered:
    """List the groups of the tuples of a table that some filter keeps; raises as `listed`."""
    columns = [_value_column(i) for i in range(len(expressions))]
    sql, place = statement.sql, statement.place
    try:
        distinct = (
            kept_by(tables.frame(name), filters)
            .select(*(F.expr(e).alias(c) for e, c in zip(expressions, columns, strict=True)))
            .distinct()
        )
        kinds = tuple(f.dataType.simpleString() for f in distinct.schema.fields)
        for group, kind in zip(names, kinds, strict=True):
            if " collate " in kind:
                message = f"{group} is text under a collation"
                raise UnsupportedQuery(message, "SKIMQL_GROUP_TYPE", sql, place, statement.way_out)
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
    counted = table.append_column(GROUP_COLUMN, pa.array(range(table.num_rows), pa.int64()))
    return Numbered(tables, name, expressions, values, spark.createDataFrame(counted), kinds)


def _value_column(position: int) -> str:
    return f"{GROUP_COLUMN} {position}"
