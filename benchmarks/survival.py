"""What becomes of Spark when SkimQL's side of the extension fails: ``python -m benchmarks.survival [--times 20]``.

Each fault so many times: how long until the error, its code, and whether Spark's own statements go on. Then 8 threads
of 100 mixed statements, and 50 times on and off. Records: {fault, times, seconds, codes, spark}, {threads, statements,
wrong}, {cycles, threads, descriptors, py4j}; processes that are left are counted in {fault, times, seconds, left}.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

QUERY = "SELECT APPROXIMATE COUNT(*) AS n FROM sa JOIN sb ON sa.k = sb.k"
MOST_SECONDS = 10.0
SLOW = "SELECT APPROXIMATE COUNT(*) FROM long_one a JOIN long_one b ON a.k = b.k"


def code_of(ask: Callable[[], Any]) -> str:
    """The code that a statement is refused with; the empty text where it is not."""
    from pyspark.errors import PySparkException

    from skimql import SkimqlError

    try:
        ask()
    except PySparkException as fault:
        return str(fault.getCondition() or type(fault).__name__)
    except SkimqlError as fault:
        return fault.code
    return ""


@contextlib.contextmanager
def handler_raises(spark: Any) -> Iterator[None]:
    """The Python raises at every call."""
    from skimql.engine.extension.handler import Handler

    def fails(*_: Any) -> Any:
        raise RuntimeError("planted")

    before, Handler.apply = Handler.apply, fails  # type: ignore[method-assign]
    try:
        yield
    finally:
        Handler.apply = before  # type: ignore[method-assign]


@contextlib.contextmanager
def callbacks_down(spark: Any) -> Iterator[None]:
    """Nobody listens to the JVM's calls."""
    import skimql

    spark._sc._gateway.shutdown_callback_server()
    yield
    skimql.enable(spark)


@contextlib.contextmanager
def other_jar(spark: Any) -> Iterator[None]:
    """The jar in the JVM is not that of this package."""
    from skimql.engine.extension import jar

    before, jar.version = jar.version, lambda *_: "another"
    try:
        yield
    finally:
        jar.version = before


def enabling(spark: Any) -> None:
    """What is refused where the jar is another."""
    import skimql

    skimql.enable(spark)


def children(jvm: int) -> list[int]:
    """The Pythons that the jar has started in a JVM."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words, status = (folder / "cmdline").read_text(), (folder / "status").read_text()
            if "skimql.engine.extension.bridge" in words and f"PPid:\t{jvm}\n" in status:
                found.append(int(folder.name))
    return found


def bridged(spark: Any) -> int:
    """Make the jar start a Python of its own; its process number."""
    import skimql
    from skimql.engine.extension.enable import _classes

    skimql.disable(spark)
    extensions = _classes(spark).extensions
    extensions().apply(spark._jsparkSession.extensions())
    extensions.attach(spark._jsparkSession)
    spark.sql(QUERY).collect()
    return children(spark._sc._gateway.proc.pid)[0]


def timed(
    name: str, times: int, fault: Callable[[Any], Any], spark: Any, ask: Callable[[], Any]
) -> dict[str, Any]:
    """One fault, so many times."""
    seconds, codes, works = [], set(), True
    for _ in range(times):
        with fault(spark):
            begun = time.perf_counter()
            codes.add(code_of(ask))
            seconds.append(time.perf_counter() - begun)
            works = works and spark.sql("SELECT 1").collect()[0][0] == 1
    return {
        "fault": name,
        "times": times,
        "seconds": round(max(seconds), 2),
        "codes": sorted(codes),
        "spark": works,
    }


def killed(spark: Any, times: int) -> Iterator[dict[str, Any]]:
    """The Python that the jar has started ends in mid-statement, and between statements."""
    seconds, codes, works = [], set(), True
    for _ in range(times):
        child = bridged(spark)
        ended: list[float] = []

        def kill(child: int = child, ended: list[float] = ended) -> None:
            time.sleep(0.5)
            os.kill(child, signal.SIGKILL)
            ended.append(time.perf_counter())

        thread = threading.Thread(target=kill)
        thread.start()
        codes.add(code_of(lambda: spark.sql(SLOW).collect()))
        thread.join()
        seconds.append(time.perf_counter() - ended[0])
        works = works and spark.sql("SELECT 1").collect()[0][0] == 1
        # The next statement has a Python again.
        works = works and code_of(lambda: spark.sql(QUERY).collect()) == ""
    left = children(spark._sc._gateway.proc.pid)
    yield {
        "fault": "bridge killed",
        "times": times,
        "seconds": round(max(seconds), 2),
        "codes": sorted(codes),
        "spark": works,
        "children": len(left),
    }


def many_threads(spark: Any, count: int = 8, statements: int = 100) -> dict[str, Any]:
    """Mixed statements at once; how many give what they should not."""
    mixed: list[tuple[str, Any]] = [
        ("SELECT 1 AS one", [(1,)]),
        ("SELECT n FROM (" + QUERY + ") q", [(8,)]),
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT APPROXIMATE COUNT(*) FROM sa JOIN sb ON sa.k < sb.k", "SKIMQL_NON_EQUI_JOIN"),
        ("SELECT approx n FROM (SELECT 1 AS approx)", [(1,)]),
    ]
    wrong: list[Any] = []

    def ask(offset: int) -> None:
        for number in range(statements):
            text, expected = mixed[(number + offset) % len(mixed)]
            found: list[Any] = []

            def rows(text: str = text, found: list[Any] = found) -> None:
                found += [tuple(r) for r in spark.sql(text).collect()]

            code = code_of(rows)
            if (code or found) != expected:
                wrong.append((text, code or found))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"threads": count, "statements": count * statements, "wrong": len(wrong), "first": repr(wrong[:1])}


def cycles(spark: Any, times: int = 50) -> dict[str, Any]:
    """On and off again: what has grown, in this process and in the JVM."""
    import skimql

    def size() -> tuple[int, ...]:
        pool = spark._sc._gateway.gateway_property.pool
        jvm = spark._jvm.java.lang.Thread.activeCount()
        return threading.active_count(), len(os.listdir("/proc/self/fd")), len(pool), jvm

    def once() -> None:
        skimql.disable(spark)
        skimql.enable(spark)
        spark.sql(QUERY).collect()

    once()
    before = size()
    for _ in range(times):
        once()
    grown = [after - first for after, first in zip(size(), before, strict=True)]
    return {
        "cycles": times,
        **dict(zip(("threads", "descriptors", "py4j", "jvm_threads"), grown, strict=True)),
    }


def jvm_full(spark: Any, times: int) -> dict[str, Any]:
    """The JVM has less than a megabyte left."""
    arrays, byte = spark._jvm.java.lang.reflect.Array, spark._jvm.java.lang.Byte.TYPE
    seconds, codes, works = [], set(), True
    for _ in range(times):
        held = spark._jvm.java.util.Vector()
        for size in (1 << 23, 1 << 20):
            with contextlib.suppress(Exception):
                while True:
                    held.add(arrays.newInstance(byte, size))
        begun = time.perf_counter()
        # There may be enough for the answer.
        codes.add(code_of(lambda: spark.sql(QUERY).collect()) or "answered")
        seconds.append(time.perf_counter() - begun)
        held.removeAllElements()
        works = (
            works
            and spark.sql("SELECT 1").collect()[0][0] == 1
            and not code_of(lambda: spark.sql(QUERY).collect())
        )
    return {
        "fault": "JVM out of memory",
        "times": times,
        "seconds": round(max(seconds), 2),
        "codes": sorted(codes),
        "spark": works,
    }


def stopped(times: int) -> dict[str, Any]:
    """The session is stopped in mid-statement; the next one of this process works."""
    import skimql

    seconds, codes, works = [], set(), True
    for _ in range(times):
        spark = started()
        skimql.enable(spark)
        ended: list[float] = []

        def stop(spark: Any = spark, ended: list[float] = ended) -> None:
            time.sleep(0.7)
            ended.append(time.perf_counter())
            spark.stop()

        thread = threading.Thread(target=stop)
        thread.start()
        codes.add(code_of(lambda spark=spark: spark.sql(SLOW).collect()))
        seconds.append(time.perf_counter() - ended[0])
        thread.join()
        works = works and started().sql("SELECT 1").collect()[0][0] == 1
    return {
        "fault": "session stopped",
        "times": times,
        "seconds": round(max(seconds), 2),
        "codes": sorted(codes),
        "spark": works,
    }


DRIVER = """
import os, sys
from benchmarks.survival import QUERY, SLOW, bridged, started
import skimql
spark = started()
print(spark._sc._gateway.proc.pid, *([bridged(spark)] if sys.argv[1] == "bridge" else []), flush=True)
if sys.argv[1] != "bridge":
    skimql.enable(spark)
spark.sql(SLOW).collect()
"""


def driver_gone(times: int, kind: str) -> dict[str, Any]:
    """The Python that drives Spark is killed in mid-statement: its JVM, and a child of that, end too."""
    seconds, left = [], 0
    for _ in range(times):
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert driver.stdout is not None
        others = [int(word) for word in driver.stdout.readline().split()]
        time.sleep(1)
        driver.kill()
        driver.wait()
        begun = time.perf_counter()
        while any(map(is_alive, others)) and time.perf_counter() - begun < MOST_SECONDS:
            time.sleep(0.1)
        seconds.append(time.perf_counter() - begun)
        left += sum(map(is_alive, others))
    return {"fault": f"driver gone, {kind}", "times": times, "seconds": round(max(seconds), 2), "left": left}


def is_alive(process: int) -> bool:
    """Whether a process runs; what only waits to be collected does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


OTHER = """
from benchmarks.survival import code_of, enabling, started
import sys
spark = started({"spark.jars": sys.argv[1]})
print(code_of(lambda: enabling(spark)), spark.sql("SELECT 1").collect()[0][0])
"""


def another_jar() -> dict[str, Any]:
    """Spark was started with the jar of another SkimQL."""
    from skimql.engine.extension import jar

    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(jar.HERE / "java", f"{folder}/java")
        (Path(folder) / "java" / "src" / "Other.java").write_text("class Other {}")
        other = jar.build(Path(folder) / jar.NAME, Path(folder))
        told = subprocess.run(
            [sys.executable, "-c", OTHER, str(other)], capture_output=True, text=True, check=True
        ).stdout
    code, one = told.split()
    return {
        "fault": "jar of another SkimQL",
        "times": 1,
        "whole_seconds": round(time.perf_counter() - begun, 1),
        "codes": [code],
        "spark": one == "1",
    }


def started(more: dict[str, str] | None = None) -> Any:
    """Spark with the tables that are asked."""
    from skimql.engine.spark.session import start_spark

    conf = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "600m"}
    spark = start_spark(conf | (more or {}))
    spark.sql("SELECT * FROM VALUES (1), (1), (2), (3) AS t(k)").createOrReplaceTempView("sa")
    spark.sql("SELECT * FROM VALUES (1), (1), (2), (2), (3), (3) AS t(k)").createOrReplaceTempView("sb")
    spark.sql("SELECT id % 1000 AS k FROM range(60000000)").createOrReplaceTempView("long_one")
    spark.sql("SET skimql.error = none")
    return spark


@contextlib.contextmanager
def enabled() -> Iterator[Any]:
    """A Spark that knows SkimQL's statements."""
    import skimql

    spark = started()
    skimql.enable(spark)
    yield spark
    spark.stop()


def python_fails(times: int) -> Iterator[dict[str, Any]]:
    """The Python that answers fails, and that of another SkimQL asks."""
    with enabled() as spark:

        def query() -> None:
            spark.sql(QUERY).collect()

        yield timed("handler raises", times, handler_raises, spark, query)
        yield timed("callback server down", times, callbacks_down, spark, query)
        yield timed("another jar", times, other_jar, spark, lambda: enabling(spark))


def memory_lacks(times: int) -> Iterator[dict[str, Any]]:
    """The JVM's memory is full."""
    with enabled() as spark:
        yield jvm_full(spark, times)


def much_happens(_: int) -> Iterator[dict[str, Any]]:
    """Many threads, and many times on and off."""
    with enabled() as spark:
        yield many_threads(spark)
        yield cycles(spark)


def bridge_ends(times: int) -> Iterator[dict[str, Any]]:
    """The Python that the jar has started ends; one that drives Spark takes its place."""
    import skimql

    with enabled() as spark:
        yield from killed(spark, times)
        skimql.enable(spark)
        left = len(children(spark._sc._gateway.proc.pid))
        yield {"fault": "enabled over a bridge", "times": 1, "children": left}


def driver_ends(times: int) -> Iterator[dict[str, Any]]:
    """The Python that drives Spark ends."""
    yield driver_gone(times, "enabled")
    yield driver_gone(times, "bridge")


PARTS: dict[str, Callable[[int], Iterable[dict[str, Any]]]] = {
    "python": python_fails,
    "memory": memory_lacks,
    "much": much_happens,
    "bridge": bridge_ends,
    "stopped": lambda times: [stopped(times)],
    "driver": driver_ends,
    "jar": lambda _: [another_jar()],
}


def main(arguments: list[str] | None = None) -> int:
    """Print the records; 1 where one is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.survival", description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    asked = parser.parse_args(arguments)
    records: list[dict[str, Any]] = []
    for part in (p for p in PARTS if p in asked.only):
        for record in PARTS[part](asked.times):
            records.append(record)
            print(record, flush=True)
    if asked.json is not None:
        asked.json.write_text("\n".join(map(json.dumps, records)) + "\n")
    bad = [
        r
        for r in records
        if r.get("wrong")
        or r.get("seconds", 0) > MOST_SECONDS
        or r.get("spark") is False
        or "" in r.get("codes", ())
        or r.get("left", 0)
        or any(r.get(grown, 0) > 1 for grown in ("descriptors", "py4j", "jvm_threads"))
    ]
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
