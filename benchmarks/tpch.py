"""Joins of large TPC-H tables, nothing stored: asked with a target, beside Spark's and DuckDB's exact runs.

``python -m benchmarks.tpch --sf 1 --json FILE``, resumable by FILE. The tables are made once by tpchgen-cli. TPC-H 3,
5, 10 and 12 are reduced to their aggregates: no GROUP BY, and query 5 without ``c_nationkey = s_nationkey``, which
closes a cycle. CPU seconds are those of this process and all its children (JVM, Python workers); every round runs all
engines in turn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from skimql import Answer, Session
from skimql.engine.spark.session import start_spark

from .report import RESULTS
from .tpch_plot import plot
from .tpch_queries import QUERIES
from .tpch_sampled import run_sampled, shown

TARGET = 0.05
TABLES = ("lineitem", "orders", "customer", "partsupp", "supplier", "nation", "region")
REVENUE = "SUM(l_extendedprice * (1 - l_discount)) AS v"

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and the bare scan of the columns it reads: for each table its columns and filter."""

    sql: str
    scans: dict[str, tuple[str, str]]


CASES = {
    "lineitem-orders sum": Case(
        f"SELECT {REVENUE} FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE o_orderdate < DATE '1995-03-15'",
        {
            "lineitem": ("l_orderkey, l_extendedprice, l_discount", "true"),
            "orders": ("o_orderkey", "o_orderdate < DATE '1995-03-15'"),
        },
    ),
    "lineitem-orders count": Case(
        "SELECT COUNT(*) AS v FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
        "WHERE o_orderdate < DATE '1995-03-15' AND l_shipmode IN ('MAIL', 'SHIP')",
        {
            "lineitem": ("l_orderkey", "l_shipmode IN ('MAIL', 'SHIP')"),
            "orders": ("o_orderkey", "o_orderdate < DATE '1995-03-15'"),
        },
    ),
    "lineitem-partsupp": Case(
        "SELECT SUM(l_quantity * ps_supplycost) AS v FROM lineitem JOIN partsupp "
        "ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey",
        {
            "lineitem": ("l_partkey, l_suppkey, l_quantity", "true"),
            "partsupp": ("ps_partkey, ps_suppkey, ps_supplycost", "true"),
        },
    ),
    "lineitem-orders-customer": Case(
        f"SELECT {REVENUE} FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey "
        "WHERE c_acctbal > 0",
        {
            "lineitem": ("l_orderkey, l_extendedprice, l_discount", "true"),
            "orders": ("o_orderkey, o_custkey", "true"),
            "customer": ("c_custkey", "c_acctbal > 0"),
        },
    ),
    "3": Case(
        f"SELECT {REVENUE} FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey "
        "WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'",
        {
            "lineitem": ("l_orderkey, l_extendedprice, l_discount", "l_shipdate > DATE '1995-03-15'"),
            "orders": ("o_orderkey, o_custkey", "o_orderdate < DATE '1995-03-15'"),
            "customer": ("c_custkey", "c_mktsegment = 'BUILDING'"),
        },
    ),
    "5": Case(
        f"SELECT {REVENUE} FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey "
        "JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey "
        "JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'ASIA' "
        "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
        {
            "lineitem": ("l_orderkey, l_suppkey, l_extendedprice, l_discount", "true"),
            "orders": (
                "o_orderkey, o_custkey",
                "o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
            ),
            "customer": ("c_custkey", "true"),
        },
    ),
    "10": Case(
        f"SELECT {REVENUE} FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey "
        "JOIN nation ON c_nationkey = n_nationkey WHERE l_returnflag = 'R' "
        "AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'",
        {
            "lineitem": ("l_orderkey, l_extendedprice, l_discount", "l_returnflag = 'R'"),
            "orders": (
                "o_orderkey, o_custkey",
                "o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'",
            ),
            "customer": ("c_custkey, c_nationkey", "true"),
        },
    ),
    "12": Case(
        "SELECT SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS v "
        "FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP') "
        "AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        "AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'",
        {
            "lineitem": (
                "l_orderkey",
                "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
                "AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'",
            ),
            "orders": ("o_orderkey, o_orderpriority", "true"),
        },
    ),
}


def cpu_seconds() -> float:
    """User and system time of this process and of all its descendants, living or waited for."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += sum(times[:4])
    return total


def measured(action: Callable[[], Any]) -> tuple[Figures, Any]:
    """CPU and wall seconds of a call, and what it returned."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = action()
    return {"cpu_s": cpu_seconds() - cpu, "wall_s": time.perf_counter() - wall}, result


def data(scale: str, folder: Path) -> Path:
    """The folder with the tables of a scale factor, made if they are not there."""
    target = folder / f"sf{scale}"
    if not (target / "lineitem.parquet").exists():
        program = shutil.which(
            "tpchgen-cli",
            path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))),
        )
        if program is None:
            raise SystemExit("tpchgen-cli is not installed: pip install '.[bench]'")
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run([program, "parquet", "-s", scale, f"--output-dir={target}"], check=True)
    return target


class Engines:
    """The three engines on the same files; every question to SkimQL is asked by a session that knows nothing yet."""

    def __init__(self, files: Path) -> None:
        import duckdb

        self.spark = start_spark(
            {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
        )
        self.duck = duckdb.connect()
        self.duck.execute("SET threads = 2")
        for table in TABLES:
            path = files / f"{table}.parquet"
            self.spark.read.parquet(str(path)).createOrReplaceTempView(table)
            self.duck.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")

    def skimql(self, sql: str, seed: int) -> Answer:
        """The estimate within the target."""
        answer = Session(self.spark, seed=seed).sql(f"{sql} ERROR WITHIN {TARGET:.0%} CONFIDENCE 95%")
        assert isinstance(answer, Answer)
        return answer

    def exact_spark(self, sql: str) -> float:
        """The exact value by Spark."""
        return float(self.spark.sql(sql).collect()[0][0])

    def exact_duckdb(self, sql: str) -> float:
        """The exact value by DuckDB."""
        return float(self.duck.execute(sql).fetchall()[0][0])

    def scan(self, case: Case) -> None:
        """Read the columns that the query needs, filtered, one table after the other."""
        for table, (columns, condition) in case.scans.items():
            most = ", ".join(f"max({c})" for c in columns.split(", "))
            self.spark.sql(f"SELECT {most} FROM {table} WHERE {condition}").collect()


def run(
    scale: str, folder: Path, seeds: int, rounds: int, warm_up: int, names: Sequence[str]
) -> Iterator[list[Figures]]:
    """The records of each query: `rounds` of each engine in turn, then SkimQL alone for the other seeds.

    Before them `warm_up` rounds that do not count: the JVM compiles a query's code for some seconds.
    """
    engines = Engines(data(scale, folder))
    for name in names:
        case, records = CASES[name], []
        truth = engines.exact_duckdb(case.sql)
        for number in range(-warm_up, max(rounds, seeds)):
            jobs: dict[str, Callable[[], Any]] = {
                "skimql": partial(engines.skimql, case.sql, number + warm_up + 1)
            }
            if number < rounds:
                jobs["scan"] = partial(engines.scan, case)
                jobs["spark"] = partial(engines.exact_spark, case.sql)
                jobs["duckdb"] = partial(engines.exact_duckdb, case.sql)
            for engine, job in jobs.items():
                figures, value = measured(job)
                record = {"query": name, "sf": scale, "engine": engine, "round": number, **figures}
                if isinstance(value, Answer):
                    record |= _of_answer(value)
                    value = value.value
                if value is not None:
                    record |= {
                        "value": float(value),
                        "relative_error": abs(float(value) - truth) / abs(truth),
                    }
                if number >= 0:
                    records.append(record)
        yield records


def _of_answer(answer: Answer) -> Figures:
    return {
        "low": _number(answer.low),
        "high": _number(answer.high),
        "exact": answer.exact,
        "bytes": answer.bytes_used,
        "seconds": dict(answer.seconds),
        "notes": list(answer.notes),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def summary(records: Sequence[Figures]) -> list[Figures]:
    """One line a query: medians of CPU seconds over the rounds of all engines, how many seeds met the target."""
    lines = []
    for name in dict.fromkeys(r["query"] for r in records):
        own = [r for r in records if r["query"] == name]
        rounds = {r["round"] for r in own if r["engine"] != "skimql"}
        cpu = {
            engine: statistics.median(
                r["cpu_s"] for r in own if r["engine"] == engine and r["round"] in rounds
            )
            for engine in dict.fromkeys(r["engine"] for r in own)
        }
        asked = [r for r in own if r["engine"] == "skimql"]
        errors = [r["relative_error"] for r in asked]
        lines.append(
            {
                "query": name,
                "cpu": cpu,
                "over_scan": cpu["skimql"] / cpu["scan"],
                "over_spark": cpu["skimql"] / cpu["spark"],
                "within_target": sum(e <= TARGET for e in errors),
                "seeds": len(errors),
                "largest_error": max(errors),
                "covered": sum(r["exact"] or (not math.isnan(r["value"]) and _covers(r, own)) for r in asked),
                "run_exactly": sum(r["exact"] for r in asked),
                "megabytes": max(r["bytes"] for r in asked) / 1e6,
            }
        )
    return lines


def _covers(record: Figures, records: Sequence[Figures]) -> bool:
    truth = next(r["value"] for r in records if r["engine"] == "duckdb")
    low, high = record["low"], record["high"]
    return (low is None or low <= truth) and (high is None or truth <= high)


def _run_all(chosen: argparse.Namespace) -> None:
    """The 22 queries, or some of them, by sampled queries; those that the file has of this size are not run again."""
    records = json.loads(chosen.json.read_text()) if chosen.json.exists() else []
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    known = {r["query"] for r in records if r["sf"] == chosen.sf}
    numbers = [n for n in map(int, chosen.only.split(",") if chosen.only else QUERIES) if n not in known]
    files = data(chosen.sf, chosen.data)
    for record in run_sampled(files, chosen.sf, chosen.seeds, measured, numbers) if numbers else ():
        print(shown(record), flush=True)
        records.append(record)
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", default="1")
    parser.add_argument("--data", type=Path, default=Path.home() / ".cache" / "skimql" / "tpch")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=4, help="rounds before those that count")
    parser.add_argument(
        "--queries", choices=["joins", "all"], default="joins", help="all: the 22, by sampled queries"
    )
    parser.add_argument("--query", action="append", choices=list(CASES))
    parser.add_argument("--only", default="", help="of all 22 these: 4,12,17")
    parser.add_argument("--json", type=Path, default=RESULTS / "tpch.json")
    parser.add_argument("--plot", type=Path, help="file for a plot of CPU seconds")
    chosen = parser.parse_args()
    if chosen.queries == "all":
        _run_all(chosen)
        return
    # Queries that the file has of this size are not run again.
    records = json.loads(chosen.json.read_text()) if chosen.json.exists() else []
    known = {r["query"] for r in records if r["sf"] == chosen.sf}
    left = [name for name in chosen.query or list(CASES) if name not in known]
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    for more in (
        run(chosen.sf, chosen.data, chosen.seeds, chosen.rounds, chosen.warm_up, left) if left else ()
    ):
        records += more
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")
    lines = summary(records)
    for line in lines:
        cpu = ", ".join(f"{engine} {seconds:.2f}" for engine, seconds in line["cpu"].items())
        print(
            f"{line['query']:25} CPU s: {cpu}; {line['over_scan']:.2f} x scan, {line['over_spark']:.2f} x exact; "
            f"{line['within_target']} of {line['seeds']} within {TARGET:.0%} (worst {line['largest_error']:.1%}), "
            f"{line['covered']} covered, {line['run_exactly']} run exactly, {line['megabytes']:.1f} MB"
        )
    if chosen.plot:
        plot(lines, chosen.sf, RESULTS / chosen.plot if chosen.plot.parent == Path() else chosen.plot)


if __name__ == "__main__":
    main()
