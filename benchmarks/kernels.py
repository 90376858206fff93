"""Speed of the update kernels on one core: python -m benchmarks.kernels --json FILE.

CPU time, the best of several rounds: what the machine does beside is not the kernel's. Keys are distinct
64-bit values, the worst case for caches.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.distinct.pair_sample import PairSample, PairSampleSpec
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.agms import AgmsSpec
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.linear import update_many
from skimql.sketches.joins.sparse import SparseFirstSketch

TUPLES = 1 << 19
ROUNDS = 7


@dataclass(frozen=True)
class Kernel:
    """A named kernel, what has to run, and how fast it has to be.

    `prepare` makes the data and returns what is timed; `least` is in tuples per CPU second, 0 where nothing
    is asked.
    """

    name: str
    prepare: Callable[[], Callable[[], object]]
    tuples: int = TUPLES
    least: float = 0.0


def keys(columns: int = 1, tuples: int = TUPLES) -> list[np.ndarray]:
    """Random 64-bit keys, the same in every run."""
    return list(np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (columns, tuples)))


def weights(tuples: int = TUPLES) -> np.ndarray:
    """Values such as prices: up to 1,000."""
    return np.random.default_rng(2).integers(0, 1000, tuples)


def convolution(rows: int, buckets: int, attributes: int = 1, weighted: int = 0, family: str = "tabulation"):
    """Update of a convolution sketch: COUNT, and `weighted` SUMs on the same hashes."""

    def prepare():
        families = tuple(make_family(family, 1).derive(str(i)) for i in range(attributes))
        sketches = [ConvolutionSpec(families, rows, buckets).empty() for _ in range(1 + weighted)]
        columns, values = keys(attributes), [None] + [weights()] * weighted
        return lambda: update_many(sketches, columns, values)

    return prepare


def agms(atoms: int, tuples: int):
    """Update of an AGMS sketch in one group."""

    def prepare():
        sketch, columns = AgmsSpec((make_family("tabulation", 1),), atoms, 1).empty(), keys(1, tuples)
        return lambda: sketch.update(columns)

    return prepare


def level(buckets: int):
    """Update of a level sketch."""

    def prepare():
        sketch, (column,) = LevelSketch(LevelSpec(make_family(seed=1), buckets)), keys()
        return lambda: sketch.update(column)

    return prepare


def pair_sample(capacity: int):
    """Update of a pair sample by the first of two attributes."""

    def prepare():
        sample, columns = PairSample(PairSampleSpec(make_family(seed=1), 64, capacity)), keys(2)
        return lambda: sample.update(*columns)

    return prepare


def sparse_first(distinct: int):
    """Update of a sketch that stays an exact map."""

    def prepare():
        spec = ConvolutionSpec((make_family("tabulation", 1),), 11, 4096)
        columns = [keys()[0] % distinct]

        def run():
            sketch = SparseFirstSketch(spec)
            sketch.update(columns)
            assert sketch.exact is not None

        return run

    return prepare


def hashing(family: str, words: int):
    """Hashing alone."""

    def prepare():
        chosen, column = make_family(family, 1), keys()[0]
        return lambda: [
            chosen.sign_words(column[s : s + (1 << 16)], 64 * words) for s in range(0, TUPLES, 1 << 16)
        ]

    return prepare


KERNELS: list[Kernel] = [
    Kernel("tabulation, 1 word", hashing("tabulation", 1)),
    Kernel("tabulation, 3 words", hashing("tabulation", 3)),
    Kernel("xxhash64, 1 word", hashing("xxhash64", 1)),
    Kernel("hash sketch 7 x 1k", convolution(7, 1024), least=10e6),
    Kernel("hash sketch 11 x 4k", convolution(11, 4096), least=6e6),
    Kernel("hash sketch 11 x 4k, COUNT and SUM", convolution(11, 4096, weighted=1)),
    Kernel("hash sketch 7 x 64k", convolution(7, 65536)),
    Kernel("hash sketch 11 x 1000", convolution(11, 1000)),
    Kernel("hash sketch 11 x 4k, xxhash64", convolution(11, 4096, family="xxhash64")),
    Kernel("hash sketch 11 x 4k, polynomial61", convolution(11, 4096, family="polynomial61")),
    Kernel("convolution, 2 attributes, 7 x 1k", convolution(7, 1024, 2), least=5e6),
    Kernel("convolution, 3 attributes, 11 x 4k", convolution(11, 4096, 3)),
    Kernel("AGMS 1024", agms(1024, 1 << 17), 1 << 17, least=2.5e6),
    Kernel("AGMS 5120", agms(5120, 1 << 15), 1 << 15),
    Kernel("exact map, 1,000 keys", sparse_first(1000)),
    Kernel("level sketch 32 x 1k", level(1024), least=8e6),
    Kernel("pair sample, 1,024 pairs a level", pair_sample(1024)),
]


def measure(kernel: Kernel, rounds: int = ROUNDS) -> dict[str, object]:
    """Tuples per second of CPU time, in the best round."""
    run = kernel.prepare()
    run()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return {
        "kernel": kernel.name,
        "tuples_per_s": kernel.tuples / best,
        "ns_per_tuple": best / kernel.tuples * 1e9,
        "least": kernel.least,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure the kernels whose names contain the given text, print a table, write the records."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="only kernels whose name contains this")
    parser.add_argument("--json", type=Path, help="file for the records")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    records = []
    print(f"{'kernel':40} {'M tuples/s':>10} {'ns/tuple':>9}  bar")
    for kernel in KERNELS:
        if options.name in kernel.name:
            record = measure(kernel, options.rounds)
            records.append(record)
            bar = "" if not kernel.least else "ok" if record["tuples_per_s"] >= kernel.least else "MISSED"
            bar += f" (>= {kernel.least / 1e6:g})" if kernel.least else ""
            print(
                f"{kernel.name:40} {record['tuples_per_s'] / 1e6:10.2f} {record['ns_per_tuple']:9.1f}  {bar}"
            )
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
