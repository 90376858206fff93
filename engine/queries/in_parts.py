"""The rows of a DataFrame, however many, a part at a time: no process holds more than a partition or two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ...errors import DataError
from ..results.columns import unique
from ..sources.python_values import in_zone, python_values, with_loose_structs
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from ..spark.shipping import ship
from .exact import collected

Take = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


def each_part(frame: DataFrame, take: Take, listener: ProgressListener | None = None) -> None:
    """Give `take` the columns of a DataFrame, their names all different, some thousand rows at a time; at least once.

    Python workers pack them as Arrow batches, which come one partition after the other. What needs no job of Spark's
    comes as a whole.

    Raises
    ------
    DataError
        If Spark fails; what `take` has then is the beginning of the result.
    """
    if frame.isLocal():
        _whole(frame, take, listener)
        return
    spark = frame.sparkSession
    names, _ = unique(frame.columns)
    ship(spark)
    # By numbers: several columns may have one name.
    packed = (
        with_loose_structs(frame)
        .toDF(*(f"c{i}" for i in range(len(names))))
        .mapInArrow(_packed, "batch BINARY")
    )
    taken = 0

    def run() -> None:
        nonlocal taken
        try:
            for row in packed.toLocalIterator(prefetchPartitions=True):
                part = in_zone(spark, pa.ipc.open_stream(row.batch).read_all())
                taken += part.num_rows
                take(names, [python_values(column) for column in part.columns])
        except SPARK_FAULTS as fault:
            # Not repeated by `run_job` where a worker has died: its first rows are written.
            if taken:
                raise _broken(fault, taken) from fault
            raise

    try:
        run_job(spark, "reading the result", run, listener)
    except SPARK_FAULTS as fault:
        raise DataError(f"the statement failed: {first_line(fault)}", "SKIMQL_EXACT_FAILED") from fault
    if not taken:
        _whole(frame.limit(0), take, listener)


def _whole(frame: DataFrame, take: Take, listener: ProgressListener | None) -> None:
    columns = collected(frame, listener=listener).result
    take([c.name for c in columns], [c.values for c in columns])


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def _broken(fault: BaseException, taken: int) -> DataError:
    return DataError(
        f"the result broke off after {taken:,} rows, what is written is its beginning only: {first_line(fault)}",
        "SKIMQL_EXACT_FAILED",
    )
