"""Skimmed sketches against hash sketches and AGMS on shifted Zipf pairs, at equal words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skimql.sketches.convolution import ConvolutionSketch
from skimql.sketches.hash_sketch import hash_spec, join_size_rows
from skimql.sketches.interval import Estimate, median_interval
from skimql.sketches.skim import skim
from skimql.sketches.skim_join import skimmed_join
from skimql.sketches.xi import make_family

from .trials import Record, record, worse_ratio, zipf

DOMAIN = 1 << 18
TUPLES = 4_000_000
CELLS = ((0.0, 0), (0.5, 100), (1.0, 0), (1.0, 100), (1.0, 200), (1.5, 30), (1.5, 100), (2.0, 100))
EDGE = [(0, 1, 0, 0)]


def skimmed(
    seeds: int = 24,
    words: Sequence[int] = (4096, 16384, 65536),
    cells: Sequence[tuple[float, int]] = CELLS,
    rows: int = 11,
) -> list[Record]:
    """Join of a Zipf relation with its shifted copy, paired over the seeds.

    The skimmed records carry ``worse_than_hash``: the one-sided 1 % bootstrap bound of the ratio of their
    mean error to the hash sketch's. AGMS's error is that of a normal variable with its exact variance.
    """
    keys = np.arange(DOMAIN)
    records = []
    for size in words:
        for z, shift in cells:
            f, g = zipf(DOMAIN, z, TUPLES), zipf(DOMAIN, z, TUPLES, shift)
            truth = float(f.astype(float) @ g)
            plain: list[Estimate] = []
            taken: list[Estimate] = []
            for seed in range(seeds):
                spec = hash_spec(make_family("tabulation", seed), rows, size // rows)
                left, right = ConvolutionSketch(spec), ConvolutionSketch(spec)
                left.update([keys], f)
                right.update([keys], g)
                plain.append(median_interval(join_size_rows(left, right)))
                taken.append(skimmed_join([skim(left, [keys]), skim(right, [keys])], EDGE))
            data = {"z": z, "shift": shift, "rows": rows}
            hashed = record("skimmed", "hash sketch", size, data, plain, truth)
            skim_record = record("skimmed", "skimmed", size, data, taken, truth)
            skim_record["worse_than_hash"] = worse_ratio(skim_record["errors"], hashed["errors"])
            records += [hashed, skim_record, agms_record(f, g, size, data)]
    return records


def agms_record(f: np.ndarray, g: np.ndarray, words: int, parameters: dict) -> Record:
    """The mean error that AGMS has at best: the mean of all copies, normal with its exact variance."""
    left, right = f.astype(float), g.astype(float)
    truth = left @ right
    variance = (left @ left) * (right @ right) + truth**2 - 2 * np.sum((left * right) ** 2)
    sigma = math.sqrt(variance / words) / truth
    return {
        "study": "skimmed",
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
