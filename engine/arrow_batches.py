"""The Arrow batches in which Spark sends tuples to Python workers, while sketches are made of them.

A batch of ours holds numbers alone, and few columns. With a bound on its bytes Spark measures the whole batch after
each tuple, a third of what sending one costs; without, and with more tuples in a batch, memory stays within megabytes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from .spark import SPARK_FAULTS

BATCHES = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),  # at this value Spark does not measure
    "spark.sql.execution.arrow.maxRecordsPerBatch": "40000",
}


@dataclass(slots=True)
class _Changed:
    """A session's own settings, None where it has none, and how many jobs run without them."""

    own: dict[str, str | None]
    jobs: int = field(default=0)


_lock = threading.Lock()
_changed: dict[int, _Changed] = {}


@contextlib.contextmanager
def large_batches(spark: SparkSession) -> Iterator[None]:
    """Settings of the session for jobs that send tuples to workers; its own ones are back when the last job ends."""
    with _lock:
        changed = _changed.get(id(spark))
        if changed is None:
            changed = _Changed({name: spark.conf.get(name, None) for name in BATCHES})
            for name, value in BATCHES.items():
                spark.conf.set(name, value)
            _changed[id(spark)] = changed
        changed.jobs += 1
    try:
        yield
    finally:
        with _lock:
            changed.jobs -= 1
            if not changed.jobs:
                del _changed[id(spark)]
                # Where Spark is gone so are its settings, and the fault of the job is the one to tell.
                with contextlib.suppress(*SPARK_FAULTS, Py4JError, OSError):
                    _restore(spark, changed.own)


def _restore(spark: SparkSession, own: Mapping[str, str | None]) -> None:
    for name, value in own.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
