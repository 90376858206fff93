"""The Arrow batches in which Spark sends tuples to Python workers, while sketches are made of them.

A session of ours has these settings for good. Where there is none (Spark Connect) those of the user's session are
changed while a job of ours runs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from .isolation import BATCHES, OwnSession
from .java_faults import Py4JError
from .session import SPARK_FAULTS


@dataclass(slots=True)
class _Changed:
    """A session's own settings, None where it has none, and how many jobs run without them."""

    own: dict[str, str | None]
    jobs: int = field(default=0)


_lock = threading.Lock()
_changed: dict[int, _Changed] = {}


@contextlib.contextmanager
def large_batches(spark: SparkSession) -> Iterator[None]:
    """Settings for jobs that send tuples to workers; a user's session has its own ones back when the last job ends."""
    if isinstance(spark, OwnSession):
        yield
        return
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
    """The session's own settings, but for what somebody else has set meanwhile."""
    for name, value in own.items():
        if spark.conf.get(name, None) != BATCHES[name]:
            continue
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
