"""The Python that the jar starts where none drives Spark: ``python -m skimql.engine.extension.bridge``.

On its standard input it is told at which port of this machine the JVM listens, and by which token; it serves the
statements of that JVM, and ends with it: when its input ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from ...errors import EnvironmentFault
from ..catalog.catalog import Catalog
from ..settings import Settings
from . import jar
from .handler import Handler
from .sessions import Sessions

CATALOG = "spark.skimql.catalog"
# What would make PySpark think of another Spark than the one that has started this process.
_OTHERS = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE", "MASTER")


def main() -> int:
    """Serve the JVM at the other end of the standard input until that ends."""
    # Whatever prints here is not for the JVM.
    to_jvm = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        serve(json.loads(sys.stdin.readline()))
    except Exception as fault:
        text = fault.message if isinstance(fault, EnvironmentFault) else f"{type(fault).__name__}: {fault}"
        print(json.dumps({"error": text}), file=to_jvm, flush=True)
        return 1
    print(json.dumps({"ready": os.getpid()}), file=to_jvm, flush=True)
    sys.stdin.read()
    # Nothing may wait for threads that wait for the JVM.
    os._exit(0)


def serve(told: Mapping[str, Any]) -> None:
    """Connect to the JVM, and give it the handler.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_OTHER_JAR`` where the jar there is not that of this package, or its Spark not this PySpark.
    """
    if told["version"] != jar.version():
        raise EnvironmentFault(
            f"its SkimQL is another than the jar's ({jar.version()}, the jar is {told['version']})",
            "SKIMQL_OTHER_JAR",
        )
    # Ctrl-C in spark-sql is for its JVM, which cancels what runs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _OTHERS:
        os.environ.pop(name, None)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    os.environ["PYSPARK_GATEWAY_PORT"] = str(told["port"])
    os.environ["PYSPARK_GATEWAY_SECRET"] = told["token"]

    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
    from pyspark.sql import SparkSession

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    del os.environ["PYSPARK_GATEWAY_SECRET"]
    java = gateway.entry_point.session()
    theirs = str(java.version())
    if theirs.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise EnvironmentFault(
            f"its PySpark is {pyspark.__version__}, and Spark is {theirs}", "SKIMQL_OTHER_JAR"
        )
    jsc = gateway.jvm.JavaSparkContext(gateway.entry_point.context())
    conf = SparkConf(_jvm=gateway.jvm, _jconf=jsc.getConf())
    context = SparkContext(gateway=gateway, jsc=jsc, conf=conf)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    handler = Handler()
    handler.sessions = Sessions(SparkSession(context, java), Catalog(conf.get(CATALOG)), Settings())
    gateway.entry_point.opened(handler)


if __name__ == "__main__":
    sys.exit(main())
