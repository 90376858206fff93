"""CPU of exact joins and of what they put out: what the constants of the planner's `cost` module rest on.

``python -m benchmarks.costs --json FILE`` joins two tables of a million rows each over ever fewer distinct keys, and
three tables whose first join is larger than the last; counts and sums, median of two warm rounds. With broadcasts and
without, since larger tables than these are sorted and merged.

Records: ``{query, join, keys, input, output, intermediate, aggregate, cpu_s}``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from skimql.engine.spark.session import start_spark

from .cpu import measured

ROWS = 1_000_000
KEYS = (1_000_000, 100_000, 10_000, 3_333)
ROUNDS = 2
SPARK = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
}
AGGREGATES = {"count": "count(*)", "sum": "sum(a.v * b.v)"}
Record = dict[str, Any]


def joins(
    spark: SparkSession, folder: Path, rows: int = ROWS, keys_of: Sequence[int] = KEYS
) -> Iterator[Record]:
    """The CPU of exact joins of two and of three tables."""
    rng = np.random.default_rng(1)
    for side in ("a", "b"):
        columns = {f"k{k}": rng.integers(0, k, rows) for k in KEYS}
        columns["v"] = rng.integers(0, 1000, rows)
        # The third table keeps one in a hundred of the second one's rows.
        columns["far"] = rng.integers(0, 100_000, rows)
        pq.write_table(pa.table(columns), folder / f"{side}.parquet", row_group_size=rows // 4)
        spark.read.parquet(str(folder / f"{side}.parquet")).createOrReplaceTempView(side)
    pq.write_table(pa.table({"far": np.arange(1000)}), folder / "c.parquet")
    spark.read.parquet(str(folder / "c.parquet")).createOrReplaceTempView("c")
    for join, threshold in (("broadcast", str(100 << 20)), ("merge", "-1")):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        scan = "SELECT max(k10000), sum(v) FROM a"
        yield {"query": "scan", "join": join, "input": rows, "cpu_s": _cpu(spark, scan)}
        group = "SELECT sum(n * n) FROM (SELECT k10000, count(*) n FROM a GROUP BY k10000)"
        yield {"query": "group", "join": join, "input": rows, "keys": 10_000, "cpu_s": _cpu(spark, group)}
        for keys in keys_of:
            for name, aggregate in AGGREGATES.items():
                sql = f"SELECT {aggregate} FROM a JOIN b ON a.k{keys} = b.k{keys}"
                told = {
                    "query": "two",
                    "join": join,
                    "keys": keys,
                    "input": 2 * rows,
                    "output": rows**2 / keys,
                }
                yield told | {"aggregate": name, "cpu_s": _cpu(spark, sql)}
        for keys in (k for k in keys_of if rows // k == 10):
            wide, far = f"a JOIN b ON a.k{keys} = b.k{keys}", "c ON b.far = c.far"
            orders = {
                "large first": f"SELECT count(*) FROM {wide} JOIN {far}",
                "small first": f"SELECT count(*) FROM b JOIN c ON b.far = c.far JOIN a ON a.k{keys} = b.k{keys}",
            }
            for name, sql in orders.items():
                output = rows**2 / keys / 100
                told = {"query": f"three, {name}", "join": join, "keys": keys, "input": 2 * rows + 1000}
                first = rows**2 / keys if name == "large first" else rows / 100
                yield told | {"output": output, "intermediate": first, "cpu_s": _cpu(spark, sql)}


def _cpu(spark: SparkSession, sql: str) -> float:
    """Median of warm rounds."""
    spark.sql(sql).collect()
    return median(measured(lambda: spark.sql(sql).collect()).cpu_s for _ in range(ROUNDS))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keys", type=int, nargs="*", default=KEYS, help="distinct keys of the tables")
    chosen = parser.parse_args()
    spark = start_spark(SPARK)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for record in joins(spark, Path(folder), keys_of=chosen.keys):
            print(json.dumps(record), flush=True)
            found.append(record)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
