"""Whether SQL makes the bytes that Python makes, and at what cost: ``python -m benchmarks.sketch_functions``.

Random tables, each a group of one query (more groups than Spark hashes, so that it sorts): keys of few and of very
many values, NULLs, negative weights, DECIMALs; every hash family, one key and two. The bytes of ``skim_sketch`` beside
those of `to_bytes`; records {family, what, tables, same}. Then tables whose sums leave 64 bits, which are refused.

With ``--tuples N`` what they cost: CPU of driver and JVM for ``skim_sketch`` of 11 x 4,096 over N tuples, beside
``approx_count_distinct``, in turns; records {what, tuples, cpu, ratio}, with the bars of `BARS`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from skimql.engine.extension.enable import enable
from skimql.engine.spark.session import start_spark
from skimql.sketches import (
    ConvolutionSpec,
    LevelSpec,
    Meaning,
    SparseFirstSketch,
    SparseLevelSketch,
    make_family,
    to_bytes,
)
from skimql.sketches.joins.folding import fine_bits_for

from .cpu import measured

FAMILIES = ("countmin", "folded", "tabulation")
ROWS, BUCKETS, SEED = 11, 64, 3
MOST_TUPLES = 1_000
LEVELS = (32, 16)
# What is asked, and how many times the CPU of approx_count_distinct it may take.
BARS = {
    "approx_count_distinct(k)": 1.0,
    "skim_sketch(k)": 2.5,
    "skim_sketch(k), skim_sketch(k, x)": 3.0,
    "skim_sketch(struct(k, j))": 3.0,
    "skim_sketch(k, 'kind = distinct')": 3.0,
}
ROUNDS = 3

Ints = NDArray[np.int64]


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the tables, compare, print and write the records."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sketch_functions", description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--tuples", type=int, default=0, help="also what they cost over so many")
    parser.add_argument("--json", type=Path, help="file for the records")
    options = parser.parse_args(arguments)
    spark = start_spark({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    enable(spark)
    columns = random_tables(np.random.default_rng(1), options.tables)
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table(
            {n: pa.array(v, mask=columns["null"] if n == "k" else None) for n, v in columns.items()}
        )
        pq.write_table(table, f"{folder}/t.parquet", row_group_size=50_000)
        spark.read.parquet(folder).createOrReplaceTempView("t")
        asked = {(family, what): text for family in FAMILIES for what, text in items(family)}
        asked |= dict(distinct_items())
        listed = ", ".join(f"{text} AS c{n}" for n, text in enumerate(asked.values()))
        found = spark.sql(f"SELECT g, {listed} FROM t GROUP BY g").collect()
    records = compare(columns, list(asked), found)
    records.append({"family": "countmin", "what": "beyond 64 bits", **refused(spark, options.tables)})
    if options.tuples:
        records += costs(spark, options.tuples)
    for record in records:
        print(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


def random_tables(rng: np.random.Generator, tables: int) -> dict[str, Any]:
    """Columns of all tables one after the other: table, key, its absence, another key, weight."""
    sizes = rng.integers(1, MOST_TUPLES, tables)
    g = np.repeat(np.arange(tables), sizes)
    span = np.repeat(rng.choice([3, 50, 2_000, 1 << 62], tables), sizes)
    k = (rng.integers(0, 1 << 62, len(g)) % span) * rng.choice([1, -1], len(g))
    w = rng.integers(-(10**9), 10**9, len(g))
    return {"g": g, "k": k, "null": rng.random(len(g)) < 0.05, "j": rng.integers(0, 9, len(g)), "w": w}


def items(family: str) -> Iterator[tuple[str, str]]:
    """What is asked of a family, and the call that asks it."""
    told = f"'rows = {ROWS}, buckets = {BUCKETS}, seed = {SEED}, family = {family}'"
    yield "counts", f"skim_sketch(k, {told})"
    yield "sums", f"skim_sketch(k, w, {told})"
    yield "decimals", f"skim_sketch(k, CAST(w AS DECIMAL(12, 0)) / 100BD, {told})"
    yield "two keys", f"skim_sketch(struct(k, j), {told})"


def distinct_items() -> Iterator[tuple[tuple[str, str], str]]:
    """The same for distinct keys."""
    for family in ("xxhash64", "tabulation"):
        told = f"'kind = distinct, buckets = {LEVELS[0]}, levels = {LEVELS[1]}, seed = {SEED}, family = {family}'"
        yield (family, "distinct"), f"skim_sketch(k, {told})"


def compare(columns: dict[str, Any], asked: list[tuple[str, str]], found: list[Any]) -> list[dict[str, Any]]:
    """How many tables have the same bytes, by family and question."""
    same = dict.fromkeys(asked, 0)
    ends = np.searchsorted(columns["g"], np.arange(len(found) + 1))
    for number, *sketches in found:
        at = slice(ends[number], ends[number + 1])
        kept = ~columns["null"][at]
        k, j, w = (columns[n][at][kept] for n in "kjw")
        for (family, what), value in zip(asked, sketches, strict=True):
            same[family, what] += bytes(value) == _bytes(family, what, k, j, w)
    return [{"family": f, "what": w, "tables": len(found), "same": n} for (f, w), n in same.items()]


def _bytes(family: str, what: str, k: Ints, j: Ints, w: Ints) -> bytes:
    if what == "distinct":
        level = SparseLevelSketch(LevelSpec(make_family(family, SEED).derive("key"), *LEVELS))
        level.update(k)
        return to_bytes(level, Meaning(("bigint",)))
    parameters = {"fine_bits": fine_bits_for(BUCKETS)} if family == "folded" else {}
    labels = ("k", "j") if what == "two keys" else ("key",)
    families = tuple(make_family(family, SEED, **parameters).derive(label) for label in labels)
    sketch = SparseFirstSketch(ConvolutionSpec(families, ROWS, BUCKETS))
    weighted = what in ("sums", "decimals")
    # The quotient of a DECIMAL(12, 0) and 100 has six digits behind the point.
    scale = 10**6 if what == "decimals" else 1
    sketch.update([k, j][: len(labels)], (w * (scale // 100 or 1)) if weighted else None)
    meaning = Meaning(("bigint",) * len(labels), scale, "sums" if weighted else "counts")
    return to_bytes(sketch, meaning)


def refused(spark: Any, tables: int) -> dict[str, int]:
    """How many of tables whose sums of one key leave 64 bits are refused by their code."""
    from pyspark.errors import PySparkException

    same = 0
    few = min(tables, 20)
    for number in range(few):
        try:
            spark.sql(
                f"SELECT skim_sketch(id % {number + 1}, {1 << 62}) FROM range({3 * (number + 1)})"
            ).collect()
        except PySparkException as fault:
            same += fault.getCondition() == "SKIMQL_OVERFLOW"
    return {"tables": few, "same": same}


def costs(spark: Any, tuples: int) -> list[dict[str, Any]]:
    """CPU seconds for each of `BARS`, medians of rounds in turns."""
    with tempfile.TemporaryDirectory() as folder:
        spark.range(tuples).selectExpr(
            "CAST(pow(rand(1), 3) * 1000000 AS BIGINT) AS k", "id % 9 AS j", "id % 1000 AS x"
        ).write.parquet(f"{folder}/t")
        spark.read.parquet(f"{folder}/t").createOrReplaceTempView("cost")
        seconds: dict[str, list[float]] = {what: [] for what in BARS}
        for _ in range(ROUNDS + 1):
            for what, found in seconds.items():
                found.append(measured(spark.sql(f"SELECT {what} FROM cost").collect).cpu_s)
    medians = {what: statistics.median(found[1:]) for what, found in seconds.items()}
    base = medians["approx_count_distinct(k)"]
    return [
        {"what": w, "tuples": tuples, "cpu": round(m, 2), "ratio": round(m / base, 2), "bar": BARS[w]}
        for w, m in medians.items()
    ]


if __name__ == "__main__":
    main()
