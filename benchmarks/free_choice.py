"""What the free choice costs beside Spark's own exact run of the same text, and what it looks at before.

``python -m benchmarks.free_choice --json FILE [--study demo|groups|joins] [--query NAME] [--rounds 3] [--sf 1]``.
*demo* asks the GROUP BYs of `benchmarks.groups` on the demo tables, by one session; *groups* the grouped queries of
TPC-H without a clause, *joins* those of `benchmarks.tpch` with an error, each by a session that knows nothing yet.
Both engines take turns; one round before those that count. Records, one a query: the attempts, CPU seconds of all
processes and of the driver alone, Spark jobs, and calls from Python into the JVM, of either engine (medians).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from py4j.clientserver import JavaClient
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession

from skimql import Answer, Session, demo_tables
from skimql.engine.spark.session import start_spark

from .groups import DEMO, GROUPED
from .groups import TABLES as GROUP_TABLES
from .tpch import CASES, TARGET, data, measured
from .tpch_queries import QUERIES, approximate

STUDIES = ("demo", "groups", "joins")
TABLES = tuple(dict.fromkeys(GROUP_TABLES))
WARM = 1

Figures = dict[str, Any]
Pair = tuple[str, Callable[[], Answer], Callable[[], Any]]


class Calls:
    """Counts the commands that Python sends to the JVM."""

    def __init__(self) -> None:
        self.number = 0
        for client in (GatewayClient, JavaClient):
            if "send_command" in client.__dict__:
                self._count(client)

    def _count(self, client: type) -> None:
        send = client.send_command  # type: ignore[attr-defined]

        def counted(own: Any, *args: Any, **options: Any) -> Any:
            self.number += 1
            return send(own, *args, **options)

        client.send_command = counted  # type: ignore[attr-defined]


def figures_of(spark: SparkSession, calls: Calls, action: Callable[[], Any]) -> tuple[Figures, Any]:
    """What a call takes, and what it returns."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    process, jobs, sent = psutil.Process().cpu_times(), scheduler.numTotalJobs(), calls.number
    figures, found = measured(action)
    after = psutil.Process().cpu_times()
    figures |= {
        "driver_cpu_s": after.user + after.system - process.user - process.system,
        "calls": calls.number - sent,
        "jobs": scheduler.numTotalJobs() - jobs,
    }
    return figures, found


def pairs(spark: SparkSession, study: str, folder: Path, names: Sequence[str]) -> Iterator[Pair]:
    """Each query of a study, as it is asked and as Spark runs it."""
    if study == "demo":
        session = Session(spark)
        for name, path in demo_tables().items():
            session.table(name, path)
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
        for name, select in DEMO.items():
            if not names or name in names:
                yield (
                    name,
                    _asked(lambda: session, f"SELECT APPROXIMATE {select}"),
                    _run(spark, f"SELECT {select}"),
                )
        return
    for table in TABLES:
        spark.read.parquet(str(folder / f"{table}.parquet")).createOrReplaceTempView(table)
    seeds = iter(range(1, sys.maxsize))

    def new() -> Session:
        return Session(spark, seed=next(seeds))

    texts = (
        {str(q): (approximate(q), QUERIES[q]) for q in GROUPED}
        if study == "groups"
        else {n: (f"{c.sql} ERROR WITHIN {TARGET:.0%} CONFIDENCE 95%", c.sql) for n, c in CASES.items()}
    )
    for name, (asked, own) in texts.items():
        if not names or name in names:
            yield name, _asked(new, asked), _run(spark, own)


def _asked(session: Callable[[], Session], text: str) -> Callable[[], Answer]:
    return lambda: session().answer(text)


def _run(spark: SparkSession, text: str) -> Callable[[], Any]:
    return lambda: spark.sql(text).collect()


def records(study: str, folder: Path, rounds: int, names: Sequence[str], calls: Calls) -> Iterator[Figures]:
    """One for each query of a study."""
    spark = start_spark(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
    )
    for name, asked, own in pairs(spark, study, folder, names):
        taken: dict[str, list[Figures]] = {"": [], "exact_": []}
        tried: list[list[str]] = []
        for number in range(rounds + WARM):
            exact, _ = figures_of(spark, calls, own)
            ours, answer = figures_of(spark, calls, asked)
            if number >= WARM:
                taken["exact_"].append(exact)
                taken[""].append(ours)
                tried.append([f"{a.attempt.method}: {a.outcome}" for a in answer.attempts])
        found = {
            f"{engine}{figure}": statistics.median(f[figure] for f in own_figures)
            for engine, own_figures in taken.items()
            for figure in own_figures[0]
        }
        yield {
            "study": study,
            "query": name,
            "method": answer.method,
            "attempts": tried,
            **found,
            "over_exact": found["cpu_s"] / found["exact_cpu_s"],
            "more_jobs": found["jobs"] - found["exact_jobs"],
        }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--study", choices=STUDIES, action="append")
    parser.add_argument("--query", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sf", default="1")
    parser.add_argument("--data", type=Path, default=Path.home() / ".cache" / "skimql" / "tpch")
    chosen = parser.parse_args()
    studies = chosen.study or list(STUDIES)
    folder = data(chosen.sf, chosen.data) if {"groups", "joins"} & set(studies) else Path()
    found, calls = [], Calls()
    for study in studies:
        for record in records(study, folder, chosen.rounds, chosen.query, calls):
            found.append(record)
            chosen.json.write_text(json.dumps(found, indent=1) + "\n")
            print(
                f"{study} {record['query']:26} {record['over_exact']:.2f} x exact ({record['exact_cpu_s']:.2f} CPU s),"
                f" {record['more_jobs']:+.0f} jobs, {record['calls']:.0f} calls, {record['attempts'][-1]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
