"""What a pilot costs beside a bare scan, and how far its figures are off: CPU seconds of the JVM and of Python.

``python -m benchmarks.pilot [--tuples N] [--json FILE]`` makes a Parquet table in a scratch folder: `k` Zipf keys in
random order, `c` keys of which each stands in one place (as in a table ordered by its key), `g` of 40 values. The
pilot is compared with a scan, with Spark's own distinct count and heaviest keys, with an exact grouping, and with
the same figures from a few row groups alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from skimql import Session
from skimql.engine.sources.keys import with_key_types
from skimql.engine.statistics import gather, relations_of
from skimql.engine.statistics.pilot import run_pilot
from skimql.optimizer.prediction.pilot_counts import Rates
from skimql.parser.statement import parse_statement

ROUNDS = 3
TICKS = os.sysconf("SC_CLK_TCK")


def write_table(path: Path, tuples: int, data_seed: int = 1) -> None:
    """Write the table in row groups of a million tuples."""
    rng = np.random.default_rng(data_seed)
    domain = max(tuples // 20, 1000)
    shares = np.cumsum(1 / np.arange(1, domain + 1))
    writer = None
    for start in range(0, tuples, 1_000_000):
        count = min(1_000_000, tuples - start)
        k = np.searchsorted(shares, rng.random(count) * shares[-1])
        table = pa.table(
            {"k": k, "c": np.arange(start, start + count) // 20, "g": rng.integers(0, 40, count)}
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None, "a table has tuples"
    writer.close()


def cpu_seconds() -> float:
    """Of this process and of the JVM that it started, with its workers."""
    total = time.process_time()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, rest = (entry / "stat").read_text().split(" (", 1)[1].rsplit(") ", 1)
            fields = rest.split()
            if name == "java" and int(fields[1]) == os.getpid():
                total += sum(int(f) for f in fields[11:15]) / TICKS
        except (OSError, ValueError):
            continue
    return total


def measured(run: Callable[[], object]) -> float:
    """Median CPU seconds of a few warm rounds."""
    run()
    seconds = []
    for _ in range(ROUNDS):
        start = cpu_seconds()
        run()
        seconds.append(cpu_seconds() - start)
    return statistics.median(seconds)


def study(tuples: int) -> list[dict[str, Any]]:
    """A record for each job, and one for each column and way of looking at it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        write_table(path, tuples)
        session = Session()
        session.table("t", str(path))
        return [*_costs(session, tuples), *_errors(session, path, tuples)]


def _query(session: Session, column: str) -> Any:
    parsed = parse_statement(f"SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.{column} = b.{column}")
    return with_key_types(session._resolved(parsed), session.tables, True)


def _costs(session: Session, tuples: int) -> list[dict[str, Any]]:
    spark, frame = session.spark, session.tables.frame("t")
    one = relations_of(_query(session, "k").graph)[:1]
    two = [*one, *relations_of(_query(session, "g").graph)[:1]]
    rates = Rates.for_tuples(tuples)
    jobs: dict[str, Callable[[], object]] = {
        "scan max(k)": lambda: frame.agg(F.max("k")).collect(),
        "scan max(k), max(g)": lambda: frame.agg(F.max("k"), F.max("g")).collect(),
        "pilot of k": lambda: run_pilot(spark, frame, one, rates),
        "pilot of k and g": lambda: run_pilot(spark, frame, two, rates),
        "approx_count_distinct(k)": lambda: frame.agg(F.approx_count_distinct("k")).collect(),
        "percentile_approx(k), 100 buckets": lambda: frame.agg(
            F.percentile_approx("k", [n / 100 for n in range(101)], 10_000)
        ).collect(),
        "GROUP BY k, exactly": lambda: frame.groupBy("k").count().agg(F.max("count")).collect(),
    }
    return [
        {"study": "pilot cost", "tuples": tuples, "job": job, "cpu_s": measured(run)}
        for job, run in jobs.items()
    ]


def _errors(session: Session, path: Path, tuples: int) -> list[dict[str, Any]]:
    """Relative errors of distinct counts and self-join sizes: of the pilot, and scaled up from one row group in ten."""
    records = []
    groups = pq.ParquetFile(path).num_row_groups
    chosen = list(range(0, groups, 10))
    for column in ("k", "c", "g"):
        whole = pq.read_table(path, columns=[column])[column].to_numpy()
        counts = np.unique(whole, return_counts=True)[1].astype(np.float64)
        truth = {"distinct": float(len(counts)), "self_join_size": float(counts @ counts)}
        part = pq.ParquetFile(path).read_row_groups(chosen, columns=[column])[column].to_numpy()
        seen = np.unique(part, return_counts=True)[1].astype(np.float64)
        share = len(part) / len(whole)
        # Of tuples drawn one by one E[s (s - 1)] = q^2 w (w - 1); of blocks that holds where keys do not cluster.
        scaled = float((seen @ seen - (1 - share) * seen.sum()) / share**2)
        attribute = gather(session.spark, session.tables, _query(session, column))[0].attributes[0]
        ways = {
            "pilot": {
                "distinct": attribute.distinct or 0.0,
                "self_join_size": attribute.self_join_size or 0.0,
            },
            "a tenth of the row groups": {"distinct": float(len(seen)), "self_join_size": scaled},
        }
        records += [
            {
                "study": "pilot error",
                "tuples": tuples,
                "column": column,
                "way": way,
                **{name: told[name] / truth[name] - 1 for name in truth},
            }
            for way, told in ways.items()
        ]
    return records


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tuples", type=int, default=20_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records = study(options.tuples)
    for record in records:
        print(json.dumps(record))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
