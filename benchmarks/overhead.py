"""What the extension costs: ``python -m benchmarks.overhead [--json FILE]``.

``SELECT 1`` by a session that knows SkimQL's statements and by one that does not, in turns; an answer from a kept
sketch by `Session.sql`, by ``spark.sql`` and by beeline, warm. Medians in milliseconds, CPU of this process and of the
JVM, and how often Python and JVM speak. Records: {what, statements, ms, cpu_ms, calls}; the bars are those of `BARS`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import surface_clients as clients
from .cpu import measured

QUERY = "SELECT APPROXIMATE COUNT(*) AS n FROM oa JOIN ob ON oa.k = ob.k"
BARS = {"SELECT 1, more": 0.2, "stored, spark.sql": 20.0, "stored, beeline": 60.0}
# Statements that do not count, for each one that does: what the JVM compiles is compiled after some hundreds.
WARM = 5
_SECONDS = re.compile(r"\((\d+\.\d+) seconds\)")


class Clock:
    """Times of statements, with what else they take."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self.calls = 0
        self.cpu = 0.0

    def timed(self, ask: Callable[[], Any]) -> None:
        """One statement."""
        begun = time.perf_counter()
        ask()
        self.ms.append((time.perf_counter() - begun) * 1e3)

    def record(self, what: str) -> dict[str, Any]:
        """The record."""
        return {
            "what": what,
            "statements": len(self.ms),
            "ms": round(statistics.median(self.ms), 2),
            "least_ms": round(min(self.ms), 2),
            "cpu_ms": round(self.cpu / len(self.ms), 2) if self.cpu else None,
            "calls": self.calls,
        }


def calls_of(ask: Callable[[], Any]) -> int:
    """How often Python asks the JVM for it, and the JVM Python."""
    from py4j.clientserver import ClientServerConnection

    count = [0]
    send, answer = ClientServerConnection.send_command, ClientServerConnection._call_proxy

    def sending(*arguments: Any) -> Any:
        count[0] += 1
        return send(*arguments)

    def answering(*arguments: Any) -> Any:
        count[0] += 1
        return answer(*arguments)

    ClientServerConnection.send_command = sending
    ClientServerConnection._call_proxy = answering
    try:
        ask()
    finally:
        ClientServerConnection.send_command = send
        ClientServerConnection._call_proxy = answer
    return count[0]


def select_one(plain: Any, known: Any, times: int) -> list[dict[str, Any]]:
    """``SELECT 1`` in turns."""
    clocks = {"SELECT 1, without": (Clock(), plain), "SELECT 1, with": (Clock(), known)}
    for _ in range(times):
        for clock, spark in clocks.values():
            clock.timed(lambda spark=spark: spark.sql("SELECT 1"))
    records = []
    for what, (clock, spark) in clocks.items():
        clock.calls = calls_of(lambda spark=spark: spark.sql("SELECT 1"))
        records.append(clock.record(what))
    more = records[1]["ms"] - records[0]["ms"]
    return [*records, {"what": "SELECT 1, more", "statements": times, "ms": round(more, 3)}]


def stored(what: str, ask: Callable[[], Any], times: int) -> dict[str, Any]:
    """An answer from kept sketches, warm."""
    for _ in range(WARM * times):
        ask()
    clock = Clock()

    def all_of_them() -> None:
        for _ in range(times):
            clock.timed(ask)

    clock.cpu = measured(all_of_them).cpu_s * 1e3
    # Beside those of a statement there may be those by which the JVM is told what is not needed any more.
    clock.calls = min(calls_of(ask) for _ in range(5))
    return clock.record(what)


def by_beeline(port: int, times: int) -> dict[str, Any]:
    """The same as beeline measures it, in one connection."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.sql"
        make = ("CREATE SKETCH sa ON oa (k)", "CREATE SKETCH sb ON ob (k)")
        script.write_text("".join(f"{text};\n" for text in (*make, *[QUERY] * (WARM + 1) * times)))
        told = subprocess.run(
            ["beeline", "-u", f"jdbc:hive2://127.0.0.1:{port}/", "-n", "u", "-f", str(script)],
            env=clients.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
    ms = [float(s) * 1e3 for s in _SECONDS.findall(told.stdout + told.stderr)][-times:]
    return {
        "what": "stored, beeline",
        "statements": len(ms),
        "ms": round(statistics.median(ms), 2),
        "least_ms": min(ms),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the records; 1 where one is above its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--times", type=int, default=1_000, help="how often SELECT 1 is asked by each")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    import skimql
    from skimql.engine.spark.session import start_spark

    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        spark = start_spark({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
        paths = {name: f"{folder}/{name}.parquet" for name in ("oa", "ob")}
        for path in paths.values():
            spark.range(100_000).selectExpr("id % 1000 AS k").coalesce(1).write.parquet(path)
        plain = spark.newSession()
        plain.sql("SELECT 1")
        session = skimql.enable(spark, catalog=f"{folder}/kept", tables=paths)
        records += select_one(plain, spark, asked.times)
        for name in paths:
            spark.sql(f"CREATE SKETCH s{name} ON {name} (k)")
        some = max(asked.times // 10, 20)
        records.append(stored("stored, Session.sql", lambda: session.sql(QUERY).rows, some))
        records.append(stored("stored, spark.sql", lambda: spark.sql(QUERY).collect(), some))
        records.append(stored("SELECT 1, collected", lambda: spark.sql("SELECT 1").collect(), some))
        spark.stop()
        with clients.thrift(paths) as port:
            records.append(by_beeline(port, some))
    for record in records:
        print(record)
    if asked.json is not None:
        asked.json.write_text("\n".join(map(json.dumps, records)) + "\n")
    return int(any(r["ms"] > BARS.get(r["what"], r["ms"]) for r in records))


if __name__ == "__main__":
    sys.exit(main())
