"""An archive of the classes that Spark loads: with it a JVM of a test takes half of its CPU time to start.

A run with several workers makes it beside the installed packages, once; any other run uses it where it is there. A JVM
ignores one that was made for another Java, other jars or other options, and says nothing of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

# Loads what the tests that start a JVM of their own load, and ends the JVM as it has to be for what it writes at its exit.
MAKES = """
import sys
from pyspark import SparkContext
from skimql import Session
from skimql.engine.spark.session import start_spark

spark = start_spark({"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "1"})
folder = sys.argv[1]
spark.sql("SELECT id % 7 AS k, id AS v FROM range(60)").write.parquet(f"{folder}/t")
spark.sql("SELECT id % 7 AS k, id AS v FROM range(60)").write.csv(f"{folder}/c", header=True)
session = Session(spark, catalog=f"{folder}/catalog", error=None)
session.table("t", f"{folder}/t", format="parquet")
session.table("c", f"{folder}/c", format="csv")
for text in (
    "SELECT APPROXIMATE COUNT(*), SUM(t.v) FROM t JOIN c ON t.k = c.k",
    "EXACT SELECT COUNT(*) FROM t JOIN c ON t.k = c.k",
    f"CREATE STREAM s (k BIGINT, v BIGINT) FROM PARQUET '{folder}/t'",
    "CREATE CONTINUOUS VIEW q WITH (trigger = 'available now') AS SELECT APPROXIMATE COUNT(*) FROM s",
):
    session.sql(text)
session.finish_streams()
gateway = SparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait(60)
"""


def archive(options: str) -> Path | None:
    """Where the archive is, or would be, for JVMs with these options; None without Java or Spark."""
    from skimql.engine.spark.session import find_java

    java, spark = find_java(), importlib.util.find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        return None
    jars = Path(spark.origin).with_name("jars")
    told = (java.resolve(), java.stat().st_mtime_ns, jars, jars.stat().st_mtime_ns, options, MAKES)
    name = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
    return Path(sys.prefix, f"skimql-tests-{name}.jsa")


def with_archive(options: str) -> str:
    """The options of a JVM, those that read the archive among them where it is there."""
    path = archive(options)
    if path is None or not path.exists():
        return options
    return f"{options} -XX:SharedArchiveFile={path} -Xlog:cds*=off -Xlog:class+path=off"


def make(options: str, folder: Path) -> None:
    """Make the archive where it is missing, in a virtual environment alone; the tests run without it as well.

    `folder` is for what Spark writes.
    """
    path = archive(options)
    if path is None or path.exists() or sys.prefix == sys.base_prefix:
        return
    made = path.with_suffix(f".{os.getpid()}")
    environment = {
        **os.environ,
        "SPARK_SUBMIT_OPTS": f"{options} -XX:ArchiveClassesAtExit={made} -Xlog:cds*=off",
    }
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", MAKES, str(folder)], capture_output=True, env=environment, timeout=300
        )
    if made.exists():
        made.replace(path)
