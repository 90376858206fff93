"""The exact answer: the user's own SELECT, run by Spark as it stands."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ...errors import DataError
from ..results.answer import Answer
from ..sources.python_values import in_zone, python_values, with_loose_structs, zoned
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line


def run_exact(
    spark: SparkSession,
    sql: str,
    select: Callable[[], DataFrame],
    listener: ProgressListener | None = None,
) -> Answer:
    """Run what `select` makes of the statement `sql`, and keep its whole result.

    Raises
    ------
    SkimqlError
        As `select`.
    DataError
        If the run fails.
    """
    started = time.perf_counter()
    frame = select()
    try:
        table = run_job(spark, "exact answer", with_loose_structs(frame).toArrow, listener)
    except SPARK_FAULTS as fault:
        raise DataError(f"the exact run failed: {first_line(fault)}", "SKIMQL_EXACT_FAILED", sql) from fault
    answer = _answer(in_zone(spark, table))
    return replace(answer, seconds={"exact": time.perf_counter() - started}, method="exact_run")


def collected(frame: DataFrame, most: int | None = None) -> Answer:
    """The rows of a DataFrame, or the first `most`, as an answer: times in the zone of its session.

    Raises
    ------
    DataError
        If Spark fails.
    """
    first = frame if most is None else frame.limit(most)
    try:
        return _answer(in_zone(frame.sparkSession, first.toArrow()))
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
