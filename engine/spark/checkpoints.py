"""How Spark writes the files of a stream's checkpoint."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_MANAGER = "FileSystemBasedCheckpointFileManager"


def write_without_shells(spark: SparkSession) -> None:
    """Have the checkpoints of a session's streams written without a shell for every file.

    Spark's default asks Hadoop for links and rights, for which Hadoop, without its native library, starts processes: a
    quarter of what a micro-batch of few events takes. This manager renames files as the default does. What the user has
    set stays.
    """
    jvm: Any = spark._jvm
    if jvm is None or spark.conf.get(_SETTING, None) is not None:
        return
    streaming = jvm.org.apache.spark.sql.execution.streaming
    # In the package of Spark 4.3, or in that of 4.0.
    for package, name in ((streaming.checkpointing, "checkpointing."), (streaming, "")):
        if isinstance(getattr(package, _MANAGER), JavaClass):
            spark.conf.set(_SETTING, f"org.apache.spark.sql.execution.streaming.{name}{_MANAGER}")
            return
