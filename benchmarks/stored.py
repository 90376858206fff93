"""What an answer from kept sketches costs: ``python -m benchmarks.stored [--rounds 9] [--json FILE]``.

Records, medians of interleaved rounds: CPU and wall seconds of the process that imports numpy, pyarrow.parquet and
sqlglot (``imports``), of ``skimql --catalog DIR -c ...`` for a query and for SHOW SKETCHES, and of the same query
inside a session that has asked it before (``session``, without a process). Spark is used to make the catalog only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

IMPORTS = [sys.executable, "-c", "import numpy, pyarrow.parquet, sqlglot"]
SKIMQL = [sys.executable, "-c", "from skimql.cli.main import run; run()"]
QUERY = (
    "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s, AVG(l.price) AS a"
    " FROM orders o JOIN lines l ON o.id = l.oid"
)
TIMES_THE_IMPORTS, SESSION_SECONDS = 2.0, 0.005  # what issue 6 asks

Cost = tuple[float, float]


def make_catalog(folder: str) -> None:
    """A catalog with counters of two tables, 11 x 4,096, by Spark."""
    from skimql import Session

    session = Session(catalog=folder, sparse=False)
    session.table("orders", session.spark.sql("SELECT id FROM range(200000)"))
    lines = "SELECT id * 7919 % 200000 AS oid, id % 100 AS price FROM range(800000)"
    session.table("lines", session.spark.sql(lines))
    session.sql("CREATE SKETCH o ON orders (id)")
    session.sql("CREATE SKETCH l ON lines (oid CLASS id) FOR SUM(price)")
    session.spark.stop()


def process_cost(command: Sequence[str]) -> Cost:
    """CPU and wall seconds of a process, which may keep the bytecode of what it imports."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def session_cost(ask: Callable[[], object]) -> Cost:
    """CPU and wall seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    ask()
    return time.process_time() - cpu, time.perf_counter() - wall


def measure(folder: str, rounds: int) -> list[dict[str, object]]:
    """The records."""
    from skimql import Session

    answer = [*SKIMQL, "--catalog", folder, "-c"]
    jobs = {"imports": IMPORTS, "query": [*answer, QUERY], "show": [*answer, "SHOW SKETCHES"]}
    costs: dict[str, list[Cost]] = {job: [] for job in (*jobs, "session")}
    session = Session(catalog=folder)
    session.sql(QUERY)
    for command in jobs.values():
        process_cost(command)  # compiles what pip compiles when it installs
    for _ in range(rounds):
        for job, command in jobs.items():
            costs[job].append(process_cost(command))
        for _ in range(5):
            costs["session"].append(session_cost(lambda: session.sql(QUERY)))
    return [
        {
            "job": job,
            "rounds": len(taken),
            "cpu_s": round(statistics.median(c for c, _ in taken), 5),
            "wall_s": round(statistics.median(w for _, w in taken), 5),
        }
        for job, taken in costs.items()
    ]


def main() -> None:
    """Measure, print, and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: the measured one must never have loaded Spark.
        make = f"from benchmarks.stored import make_catalog; make_catalog({folder!r})"
        subprocess.run([sys.executable, "-c", make], check=True)
        records = measure(folder, options.rounds)
    base = next(float(str(r["cpu_s"])) for r in records if r["job"] == "imports")
    for r in records:
        cpu, wall = float(str(r["cpu_s"])), float(str(r["wall_s"]))
        bar = (
            f"{1000 * SESSION_SECONDS:g} ms" if r["job"] == "session" else f"{TIMES_THE_IMPORTS:g} x imports"
        )
        print(
            f"{r['job']!s:<8} {1000 * cpu:8.1f} ms CPU {1000 * wall:8.1f} ms wall  {cpu / base:5.2f} x imports"
            + ("" if r["job"] == "imports" else f"  (bar: {bar})")
        )
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
