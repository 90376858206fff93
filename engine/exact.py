"""The exact answer: the user's own SELECT, run by Spark as it stands."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ..errors import DataError, ParseError
from .answer import Answer
from .jobs import ProgressListener, run_job
from .python_values import python_values, with_loose_structs
from .spark import SPARK_FAULTS, first_line


def run_exact(
    spark: SparkSession, sql: str, select_sql: str, listener: ProgressListener | None = None
) -> Answer:
    """Run `select_sql` and keep its whole result.

    Raises
    ------
    ParseError
        If Spark cannot parse or resolve the text.
    DataError
        If the run fails.
    """
    started = time.perf_counter()
    try:
        frame = spark.sql(select_sql)
    except SPARK_FAULTS as fault:
        raise ParseError(first_line(fault), "SKIMQL_SPARK_REFUSES", sql) from fault
    try:
        table = run_job(spark, "exact answer", with_loose_structs(frame).toArrow, listener)
    except SPARK_FAULTS as fault:
        raise DataError(f"the exact run failed: {first_line(fault)}", "SKIMQL_EXACT_FAILED", sql) from fault
    return Answer(
        tuple(table.column_names),
        _rows(table),
        exact=True,
        seconds={"exact": time.perf_counter() - started},
    )


def _rows(table: pa.Table) -> tuple[tuple[Any, ...], ...]:
    # Column by column, since two columns may have one name.
    return tuple(zip(*map(python_values, table.columns), strict=True))
