"""The exact answer: the user's own SELECT, run by Spark as it stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..errors import DataError
from .answer import Answer
from .jobs import ProgressListener, run_job
from .spark import SPARK_FAULTS, first_line


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
        table = run_job(spark, "exact answer", frame.toArrow, listener)
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
    return tuple(zip(*(column.to_pylist() for column in table.columns), strict=True))
