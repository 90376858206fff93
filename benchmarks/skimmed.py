"""Skimmed sketches against hash sketches and AGMS on shifted Zipf pairs, at equal words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate, median_interval
from skimql.sketches.joins.convolution import ConvolutionSketch
from skimql.sketches.joins.hash_sketch import hash_spec, join_size_rows
from skimql.sketches.joins.skim import skim
from skimql.sketches.joins.skim_join import skimmed_average, skimmed_join

from .registry import Case, Options, study
from .trials import Record, record, worse_ratio, zipf

DOMAIN = 1 << 18
TUPLES = 4_000_000
CELLS = ((0.0, 0), (0.5, 100), (1.0, 0), (1.0, 100), (1.0, 200), (1.5, 30), (1.5, 100), (2.0, 100))
WORDS = (1024, 4096, 16384, 65536)
ROWS = 11
EDGE = [(0, 1, 0, 0)]
INTERVAL_SEEDS = 500

Ints = npt.NDArray[np.int64]


@study("skimmed")
def skimmed(options: Options) -> Iterable[Record]:
    """Join of a Zipf relation with its shifted copy, paired over the seeds.

    The skimmed records carry ``worse_than_hash``: the one-sided 1 % bootstrap bound of the ratio of their
    mean error to the hash sketch's. AGMS's error is that of a normal variable with its exact variance.
    """
    for words in WORDS[1:2] if options.quick else WORDS:
        for z, shift in CELLS[2:4] if options.quick else CELLS:
            yield from compared(z, shift, words, options.seeds)


def compared(z: float, shift: int, words: int, seeds: int, study_name: str = "skimmed") -> list[Record]:
    """Records of the hash sketch, the skimmed sketch and AGMS on one pair, with the same hash functions."""
    f, g = zipf(DOMAIN, z, TUPLES), zipf(DOMAIN, z, TUPLES, shift)
    truth = float(f.astype(float) @ g)
    plain, taken = [], []
    for seed in range(seeds):
        left, right = sketched([f, g], seed, words)
        keys = np.arange(DOMAIN)
        plain.append(median_interval(join_size_rows(left, right)))
        taken.append(skimmed_join([skim(left, [keys]), skim(right, [keys])], EDGE))
    data = {"z": z, "shift": shift, "rows": ROWS}
    hashed = record(study_name, "hash sketch", words, data, plain, truth)
    skim_record = record(study_name, "skimmed", words, data, taken, truth)
    skim_record["worse_than_hash"] = worse_ratio(skim_record["errors"], hashed["errors"])
    return [hashed, skim_record, agms_record(f, g, words, data, study_name)]


def sketched(weights: Sequence[Ints], seed: int, words: int) -> list[ConvolutionSketch]:
    """Hash sketches of 11 rows of frequency vectors."""
    spec = hash_spec(make_family("tabulation", seed), ROWS, words // ROWS)
    sketches = [ConvolutionSketch(spec) for _ in weights]
    for sketch, w in zip(sketches, weights, strict=True):
        sketch.update([np.arange(w.size)], w)
    return sketches


def agms_record(f: Ints, g: Ints, words: int, parameters: dict[str, float], study_name: str) -> Record:
    """The mean error that AGMS has at best: the mean of all copies, normal with its exact variance."""
    left, right = f.astype(float), g.astype(float)
    truth = left @ right
    variance = (left @ left) * (right @ right) + truth**2 - 2 * np.sum((left * right) ** 2)
    sigma = math.sqrt(variance / words) / truth
    return {
        "study": study_name,
        "method": "AGMS (exact variance)",
        "words": words,
        "parameters": parameters,
        "seeds": 0,
        "median_relative_error": 0.6745 * sigma,
        "mean_relative_error": math.sqrt(2 / math.pi) * sigma,
        "coverage": 0.95,
        "mean_width": 1.96 * sigma,
        "misses": 0,
        "width_over_rmse": 1.96,
        "errors": [],
    }


@study("intervals")
def skimmed_intervals(options: Options) -> Iterable[Case]:
    """Coverage and width of COUNT, SUM and AVG of skimmed sketches, 500 seeds."""
    domain, tuples, words = 1 << 13, 1_000_000, ROWS * 512
    keys = np.arange(domain)
    values = np.random.default_rng(9).integers(50, 150, domain)
    for z in (0.5, 1.0):
        f, g = zipf(domain, z, tuples), zipf(domain, z, tuples, 100)
        weights = [f, f * values, g]
        count, total = float(f @ g), float((f * values) @ g)
        truths = {"COUNT": count, "SUM": total, "AVG": total / count}
        seeds = options.seeds if options.quick else max(options.seeds, INTERVAL_SEEDS)
        for aggregate, truth in truths.items():
            run = skimmed_run(weights, keys, words, aggregate)
            yield Case("intervals", f"skimmed {aggregate}", words, {"z": z, "shift": 100}, truth, run, seeds)


def skimmed_run(weights: list[Ints], keys: Ints, words: int, aggregate: str) -> Callable[[int], Estimate]:
    """Estimates of one aggregate from the counts and sums of one relation and the counts of another."""

    def run(seed: int) -> Estimate:
        count, total, other = (skim(s, [keys]) for s in sketched(weights, seed, words))
        if aggregate == "AVG":
            return skimmed_average([total, other], [count, other], EDGE)
        return skimmed_join([count if aggregate == "COUNT" else total, other], EDGE)

    return run
