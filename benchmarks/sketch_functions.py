"""Whether SQL makes the bytes that Python makes: ``python -m benchmarks.sketch_functions [--tables N] [--json FILE]``.

Random tables, each a group of one query (more groups than Spark hashes, so that it sorts): keys of few and of very
many values, NULLs, negative weights, DECIMALs; every hash family, one key and two. The bytes of ``skim_sketch`` beside
those of `to_bytes`; records {family, what, tables, same}.
"""

from __future__ import annotations

import argparse
import json
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
from skimql.sketches import ConvolutionSpec, Meaning, SparseFirstSketch, make_family, to_bytes
from skimql.sketches.joins.folding import fine_bits_for

FAMILIES = ("countmin", "folded", "tabulation")
ROWS, BUCKETS, SEED = 11, 64, 3
MOST_TUPLES = 1_000

Ints = NDArray[np.int64]


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the tables, compare, print and write the records."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sketch_functions", description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
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
        listed = ", ".join(f"{text} AS c{n}" for n, text in enumerate(asked.values()))
        found = spark.sql(f"SELECT g, {listed} FROM t GROUP BY g").collect()
    records = compare(columns, list(asked), found)
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


if __name__ == "__main__":
    main()
