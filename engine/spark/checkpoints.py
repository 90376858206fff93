"""How Spark writes the files of a stream's checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_MANAGER = "FileSystemBasedCheckpointFileManager"


@contextmanager
def without_shells(spark: SparkSession) -> Iterator[None]:
    """Have the checkpoints of the streams that are started meanwhile written without a shell for every file.

    Spark's default asks Hadoop for links and rights, for which Hadoop, without its native library, starts processes: a
    quarter of what a micro-batch of few events takes. This manager renames files as the default does, but onto no file
    that is there: it is not for streams with a state of Spark's own, which a second action over a batch writes again.
    What the user has set stays.
    """
    manager = None if spark.conf.get(_SETTING, None) is not None else _manager(spark)
    if manager is None:
        yield
        return
    spark.conf.set(_SETTING, manager)
    try:
        yield
    finally:
        spark.conf.unset(_SETTING)


def _manager(spark: SparkSession) -> str | None:
    jvm: Any = spark._jvm
    if jvm is None:
        return None

    from py4j.java_gateway import JavaClass

    streaming = jvm.org.apache.spark.sql.execution.streaming
    # In the package of Spark 4.3, or in that of 4.0.
    for package, name in ((streaming.checkpointing, "checkpointing."), (streaming, "")):
        if isinstance(getattr(package, _MANAGER), JavaClass):
            return f"org.apache.spark.sql.execution.streaming.{name}{_MANAGER}"
    return None
