"""The exact answer: the user's own SELECT, run by Spark as it stands."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegralType, NumericType

from ...errors import DataError, SkimqlError
from ...parser.absolutes import sums_in, with_absolutes
from ...parser.join_graph import Query
from ..results.answer import Answer
from ..results.rounding import untold, with_rounding
from ..sources.python_values import in_zone, python_values, with_loose_structs, zoned
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line

Select = Callable[[str], DataFrame]


def run_exact(
    spark: SparkSession,
    sql: str,
    text: str,
    select: Select,
    listener: ProgressListener | None = None,
    query: Query | None = None,
) -> Answer:
    """Run what `select` makes of `text`, a part of the statement `sql`, and keep its whole result.

    With the `query` that the text is, sums of doubles that cancel out have an interval; see `with_rounding`.

    Raises
    ------
    SkimqlError
        As `select`.
    DataError
        If the run fails.
    """
    started = time.perf_counter()
    frame, query = _typed(query, select, text)
    sums = query is not None and any(sums_in(query, item) for item in query.items)
    wide = _Wide.of(query, select) if query is not None and sums else None
    ran = wide.frame if wide is not None else frame if frame is not None else select(text)
    try:
        table = run_job(spark, "exact answer", with_loose_structs(ran).toArrow, listener)
    except SPARK_FAULTS as fault:
        raise DataError(f"the exact run failed: {first_line(fault)}", "SKIMQL_EXACT_FAILED", sql) from fault
    table = in_zone(spark, table)
    own = table.num_columns if wide is None or query is None else len(query.items)
    answer = _answer(table.select(list(range(own))))
    if wide is not None and query is not None:
        answer = with_rounding(answer, query, wide.sums(_rows(table), own), wide.whole)
    elif sums and query is not None:
        answer = untold(answer, query)
    return replace(answer, seconds={"exact": time.perf_counter() - started}, method="exact_run")


def _typed(query: Query | None, select: Select, text: str) -> tuple[DataFrame | None, Query | None]:
    """The query with the type of each item that is computed from sums, and the DataFrame where these were asked for."""
    if query is None or not any(item.type is None and sums_in(query, item) for item in query.items):
        return None, query
    frame = select(text)
    types = [field.dataType.simpleString() for field in frame.schema.fields]
    items = tuple(replace(item, type=kind) for item, kind in zip(query.items, types, strict=True))
    return frame, replace(query, items=items)


@dataclass(frozen=True, slots=True)
class _Wide:
    """The user's columns, and behind them what tells the rounding of their sums.

    Attributes
    ----------
    frame : DataFrame
    columns : mapping of int to tuple of int
        By aggregate the places, behind the user's columns, of its value, absolute values and count.
    whole : frozenset of int
        The aggregates of integers.
    """

    frame: DataFrame
    columns: Mapping[int, tuple[int, ...]]
    whole: frozenset[int]

    @classmethod
    def of(cls, query: Query, select: Select) -> _Wide | None:
        """None where the text cannot be written."""
        beside = with_absolutes(query)
        if beside is None:
            return None
        try:
            frame = select(beside.text)
        except SkimqlError:
            return None
        own, kinds = len(query.items), [field.dataType for field in frame.schema.fields]
        least = {a: places[3] for a, places in beside.columns.items() if len(places) > 1}
        whole = frozenset(a for a, n in least.items() if isinstance(kinds[own + n], IntegralType))
        if all(isinstance(kinds[own + n], NumericType) for n in least.values()):
            return cls(frame, beside.columns, whole)
        # The least of texts, which Spark would sort for, is not selected, and so not computed.
        kept = [n for n in range(len(kinds)) if n - own not in least.values()]
        numbered = frame.toDF(*(f"c{n}" for n in range(len(kinds))))
        moved = {n - own: place - own for place, n in enumerate(kept)}
        columns = {a: tuple(moved[n] for n in places[:3]) for a, places in beside.columns.items()}
        return cls(numbered.select(*(f"c{n}" for n in kept)), columns, whole)

    def sums(self, rows: Sequence[Sequence[Any]], own: int) -> list[dict[int, tuple[Any, ...]]]:
        """Of each row, by aggregate, its value and, where that is a double, what tells its rounding."""
        return [
            {
                a: tuple(
                    row[own + n]
                    for n in (places[:3] if isinstance(row[own + places[0]], float) else places[:1])
                )
                for a, places in self.columns.items()
            }
            for row in rows
        ]


def collected(frame: DataFrame, most: int | None = None, listener: ProgressListener | None = None) -> Answer:
    """The rows of a DataFrame, or the first `most`, as an answer: times in the zone of its session.

    Raises
    ------
    DataError
        If Spark fails.
    """
    first = frame if most is None else frame.limit(most)
    try:
        table = run_job(frame.sparkSession, "reading the result", first.toArrow, listener)
        return _answer(in_zone(frame.sparkSession, table))
    except SPARK_FAULTS as fault:
        raise DataError(f"the statement failed: {first_line(fault)}", "SKIMQL_EXACT_FAILED") from fault


def result_types(spark: SparkSession, select_sql: str) -> tuple[pa.DataType | None, ...]:
    """The types of the columns of a SELECT by Spark's analysis alone; empty where Spark cannot read it.

    What Arrow has no type for is None.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    # Spark 4.0 takes UTC without being told.
    named: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
    )
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    kinds: list[pa.DataType | None] = []
    try:
        fields = spark.sql(select_sql).schema.fields
    except SPARK_FAULTS:
        return ()
    for field in fields:
        try:
            kinds.append(zoned(to_arrow_type(field.dataType, **named), zone))
        except SPARK_FAULTS:
            kinds.append(None)
    return tuple(kinds)


def _answer(table: pa.Table) -> Answer:
    return Answer(tuple(table.column_names), _rows(table), exact=True, types=tuple(table.schema.types))


def _rows(table: pa.Table) -> tuple[tuple[Any, ...], ...]:
    # Column by column, since two columns may have one name.
    return tuple(zip(*map(python_values, table.columns), strict=True))
