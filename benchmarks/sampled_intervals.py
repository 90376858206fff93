"""Intervals of samples of keys over many seeds: quantiles, deviations, looks that stop where they are narrow enough.

``python -m benchmarks.sampled_intervals --json FILE [--seeds 500]``. Every cell is one population of keys, sampled anew
by each seed: how many intervals do not hold the truth, how many have no end, and how many may miss by chance (in one of
a hundred runs of all cells one has more). Exits with 1 where more do.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from skimql import Estimate
from skimql.engine.queries.sampled_plan import FIRST_RATE, RESERVE, least_rate
from skimql.optimizer.candidates.spending import MOST_RATE, SPENT
from skimql.sketches.samples.cluster_moments import Moments, estimate_moment
from skimql.sketches.samples.cluster_quantiles import ClusteredValues
from skimql.sketches.samples.known_keys import JoinTerms
from skimql.sketches.samples.sample_join import estimate_total

Rng = np.random.Generator
Record = dict[str, Any]

CONFIDENCE, RATE = 0.95, 0.1
VALUES: dict[str, Callable[[Rng, int], Any]] = {
    "flat": lambda rng, n: rng.uniform(0.0, 100.0, n),
    "zipf(1.5)": lambda rng, n: rng.zipf(1.5, n).astype(float),
    "lognormal(1)": lambda rng, n: np.exp(rng.normal(size=n)),
    "lognormal(2)": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "pareto(1.1)": lambda rng, n: rng.pareto(1.1, n),
    "pareto(1.5)": lambda rng, n: rng.pareto(1.5, n),
}
QUANTILES = ("flat", "zipf(1.5)", "pareto(1.1)", "lognormal(1)")
DEVIATIONS = ("flat", "lognormal(1)", "lognormal(2)", "pareto(1.5)", "pareto(1.1)")
SHARES = (0.25, 0.5, 0.9, 0.95)
FUNCTIONS = ("var_samp", "stddev_pop", "covar_samp", "corr")
SUMS: dict[str, Callable[[Rng, int], Any]] = {
    "counts": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "gamma(1/4)": lambda rng, n: rng.gamma(0.25, 10.0, n),
    "lognormal(1)": lambda rng, n: np.exp(rng.normal(size=n)),
    "of both signs": lambda rng, n: rng.normal(0.5, 1.0, n),
}
ERRORS = (0.05, 0.1, 0.2)


def sizes_of(kind: str, rng: Rng, keys: int) -> Any:
    """Tuples of each key."""
    return rng.integers(1, 6, keys) if kind == "alike" else np.minimum(rng.zipf(2.0, keys), 100)


def quantiles(seeds: range, keys: int = 2000) -> Iterator[Record]:
    """The cells of quantiles."""
    for values in QUANTILES:
        for sizes in ("alike", "zipf"):
            rng = np.random.default_rng(4)
            key = np.repeat(np.arange(keys), sizes_of(sizes, rng, keys))
            x = VALUES[values](rng, len(key))
            truths = [np.quantile(x, s, method="inverted_cdf") for s in SHARES]
            found = []
            for seed in seeds:
                kept = np.random.default_rng(seed).random(keys) < RATE
                met = kept[key]
                owners = np.cumsum(kept)[key[met]] - 1
                sample = ClusteredValues(x[met], owners, np.full(kept.sum(), RATE))
                found.append([sample.quantile(s, CONFIDENCE, discrete=True) for s in SHARES])
            for share, truth, own in zip(SHARES, truths, zip(*found, strict=True), strict=True):
                yield cell(f"quantile {share}", f"{values}, sizes {sizes}", truth, own)


def deviations(seeds: range, keys: int = 10_000) -> Iterator[Record]:
    """The cells of variances, deviations, covariances and correlations."""
    for values in DEVIATIONS:
        rng = np.random.default_rng(3)
        sizes = sizes_of("alike", rng, keys)
        key = np.repeat(np.arange(keys), sizes)
        x = VALUES[values](rng, len(key))
        y = 0.5 * x + VALUES[values](rng, len(key))
        means = np.array([np.bincount(key, x) / sizes, np.bincount(key, y) / sizes])
        dx, dy = x - means[0][key], y - means[1][key]
        squares = np.array([np.bincount(key, d) for d in (dx * dx, dy * dy, dx * dy)])
        truths = (x.var(ddof=1), x.std(), np.cov(x, y)[0, 1], np.corrcoef(x, y)[0, 1])
        found = []
        for seed in seeds:
            kept = np.random.default_rng(seed).random(keys) < RATE
            sample = Moments(
                sizes[kept].astype(float), means[:, kept], squares[:, kept], np.full(kept.sum(), RATE)
            )
            found.append([estimate_moment(f, sample, CONFIDENCE) for f in FUNCTIONS])
        for function, truth, own in zip(FUNCTIONS, truths, zip(*found, strict=True), strict=True):
            yield cell(function, values, truth, own)


def refined(seeds: range, keys: int = 12_000) -> Iterator[Record]:
    """The cells of looks that stop at the first interval that is narrow enough; without one at the exact answer."""
    for name, make in SUMS.items():
        sums = make(np.random.default_rng(1), keys)
        truth = float(sums.sum())
        for error in ERRORS:
            found = [look(sums, seed, error) for seed in seeds]
            record = cell(f"refined to {error:.0%}", name, truth, [e for e, _ in found if e is not None])
            looks = sum(n for _, n in found) / len(found)
            exact = sum(e is None for e, _ in found)
            # The promise is of all seeds: those that end with all keys do not miss.
            yield record | {"seeds": len(found), "exact": exact, "looks": round(looks, 2)}


def look(sums: Any, seed: int, error: float) -> tuple[Estimate | None, int]:
    """The answer at which the looks stop, None of all keys, and how many there were."""
    places = np.random.default_rng(seed).random(sums.size)
    rate, tried = FIRST_RATE, []
    while rate < 1.0 and len(tried) < len(SPENT):
        kept = sums[places < rate]
        probabilities = np.full(kept.size, rate)
        unseen = np.array([[-math.inf, math.inf]])
        confidence = 1.0 - (1.0 - CONFIDENCE) * SPENT[len(tried)]
        found = estimate_total(
            JoinTerms(np.arange(kept.size), kept[np.newaxis], probabilities, unseen), confidence
        )
        tried.append(rate)
        width = max(found.high - found.value, found.value - found.low) / abs(found.value)
        if width <= error:
            return found, len(tried)
        excess = width / error
        wanted = (
            1.0 / (1.0 + (1.0 - rate) / rate / (RESERVE * excess**2)) if math.isfinite(excess) else 8 * rate
        )
        rate = max(wanted if wanted <= MOST_RATE else 1.0, least_rate(tried))
    return None, len(tried) + 1


def cell(function: str, values: str, truth: float, found: Any) -> Record:
    """What came of one cell."""
    missed = sum(not e.low <= truth <= e.high for e in found)
    wide = [max(e.high - e.value, e.value - e.low) for e in found]
    ends = [
        w for e, w in zip(found, wide, strict=True) if math.isfinite(w) and (e.low, e.high) != (-1.0, 1.0)
    ]
    scale = abs(truth) or 1.0
    width = round(float(np.median(ends) / scale), 4) if ends else None
    return {
        "function": function,
        "values": values,
        "seeds": len(found),
        "missed": missed,
        "unknown": len(found) - len(ends),
        "half_width": width,
    }


def main() -> int:
    """Run all cells."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=500)
    options = parser.parse_args()
    seeds = range(options.seeds)
    records = [*quantiles(seeds), *deviations(seeds), *refined(seeds)]
    for record in records:
        record["most"] = int(stats.binom.isf(0.01 / len(records), max(record["seeds"], 1), 1 - CONFIDENCE))
        print(record)
    options.json.write_text(json.dumps(records, indent=1) + "\n")
    over = [r for r in records if r["missed"] > r["most"]]
    print(f"{len(records)} cells, {len(over)} over what chance allows")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
