"""The groups of a query: Spark lists their values, and joins a group number to the table that is grouped.

Spark alone decides which values are one group: NULLs are, NaNs are, 0.0 and -0.0 are.
"""

from __future__ import annotations

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
    """

    tables: Frames
    table: str
    expressions: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    numbers: DataFrame

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
    frame = kept_by(tables.frame(vertex.table), [vertex.filter])
    expressions = tuple(g.expression for g in query.groups)
    columns = [_value_column(i) for i in range(len(expressions))]
    try:
        distinct = frame.select(
            *(F.expr(e).alias(c) for e, c in zip(expressions, columns, strict=True))
        ).distinct()
        for group, column in zip(query.groups, distinct.schema.fields, strict=True):
            if " collate " in column.dataType.simpleString():
                raise _refused(query, f"{group.name} is text under a collation")
        first = with_loose_structs(distinct).limit(most + 1).sort(*(F.col(f"`{c}`") for c in columns))
        table = run_job(spark, f"groups of {vertex.table}", first.toArrow, listener)
    except SPARK_FAULTS as fault:
        message = f"the groups of {vertex.table} cannot be listed: {first_line(fault)}"
        raise DataError(message, "SKIMQL_GROUPS_FAILED", query.sql, _span(query), _WAY_OUT) from fault
    if table.num_rows > most:
        raise BudgetExceeded(
            f"more than {most:,} groups of {', '.join(g.name for g in query.groups)}; each takes its own sketches",
            "SKIMQL_TOO_MANY_GROUPS",
            query.sql,
            _span(query),
            "SET skimql.max_groups = ..., or EXACT SELECT ...",
        )
    values = tuple(zip(*(python_values(c) for c in in_zone(spark, table).columns), strict=True))
    numbered = table.append_column(GROUP_COLUMN, pa.array(range(table.num_rows), pa.int64()))
    return Numbered(tables, vertex.table, expressions, values, spark.createDataFrame(numbered))


def _value_column(position: int) -> str:
    return f"{GROUP_COLUMN} {position}"


def _span(query: Query) -> tuple[int, int]:
    return query.groups[0].span.start, query.groups[-1].span.end


def _refused(query: Query, why: str) -> UnsupportedQuery:
    return UnsupportedQuery(why, "SKIMQL_GROUP_TYPE", query.sql, _span(query), _WAY_OUT)
