"""Key samples: joins of two to four tables on one key, averages, distinct keys, deletions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec
from skimql.sketches.samples.sample_join import estimate_average, estimate_distinct, estimate_join

from .registry import Case, Options, study
from .trials import zipf

DOMAIN, TUPLES = 1 << 16, 1_000_000
CAPACITIES = (256, 1024, 4096, 16384)
INTERVAL_SEEDS = 500

Ints = npt.NDArray[np.int64]


@study("key_sample")
def key_sample(options: Options) -> Iterable[Case]:
    """Error against space by skew and number of tables; with half of each stream deleted again."""
    for capacity in CAPACITIES[1:2] if options.quick else CAPACITIES:
        for z in (0.0, 0.25, 0.5, 1.0):
            weights = [zipf(DOMAIN, z, TUPLES, shift) for shift in (0, 100, 300, 700)]
            for tables in (2, 3, 4):
                truth = float(np.prod([w.astype(float) for w in weights[:tables]], axis=0).sum())
                run = joined(weights[:tables], capacity, False)
                parameters = {"z": z, "tables": tables}
                yield Case("key_sample", "key sample", 2 * capacity, parameters, truth, run)
            truth = float(weights[0].astype(float) @ weights[1])
            run = joined(weights[:2], capacity, True)
            parameters = {"z": z, "tables": 2}
            yield Case("key_sample", "half deleted", 2 * capacity, parameters, truth, run)


def joined(weights: list[Ints], capacity: int, deleted: bool) -> Callable[[int], Estimate]:
    """Join estimates; `deleted` inserts as many other keys before and deletes them after."""

    def run(seed: int) -> Estimate:
        spec = KeySampleSpec(make_family("tabulation", seed), capacity)
        samples = [KeySample(spec) for _ in weights]
        for sample, w in zip(samples, weights, strict=True):
            if deleted:
                sample.update(np.arange(w.size, 2 * w.size), w)
            sample.update(np.arange(w.size), w)
            if deleted:
                sample.update(np.arange(w.size, 2 * w.size), -w)
            sample.bound_unseen("count", 0, float(w.max()))
        return estimate_join(samples)

    return run


@study("intervals")
def key_sample_intervals(options: Options) -> Iterable[Case]:
    """Coverage and width over 500 seeds: COUNT, SUM of both signs, AVG and COUNT DISTINCT.

    Flat keys, with the bounds on their weights known: what a plain key sample is for. Without bounds it says
    that it is not certified.
    """
    seeds = options.seeds if options.quick else max(options.seeds, INTERVAL_SEEDS)
    rng = np.random.default_rng(9)
    domain, capacity = 1 << 14, 1024
    f, g = rng.integers(1, 5, domain), rng.integers(0, 5, domain)
    values = rng.integers(50, 150, domain)
    signed = rng.integers(-50, 150, domain)
    count = float(f @ g)
    questions = {
        "COUNT": (values, count),
        "SUM": (values, float((f * values) @ g)),
        "SUM, both signs": (signed, float((f * signed) @ g)),
        "AVG": (values, float((f * values) @ g) / count),
        "DISTINCT": (values, float(np.count_nonzero(g))),
    }
    for name, (price, truth) in questions.items():
        run = asked(name, f, g, f * price, capacity)
        yield Case("intervals", f"key sample {name}", 3 * capacity, {"weights": "0 to 4"}, truth, run, seeds)


def asked(name: str, f: Ints, g: Ints, price: Ints, capacity: int) -> Callable[[int], Estimate]:
    """Answers to one question from samples with a count and a price column."""

    def run(seed: int) -> Estimate:
        spec = KeySampleSpec(make_family("tabulation", seed), capacity, ("count", "price"))
        left, right = KeySample(spec), KeySample(spec)
        for sample, counts, sums in ((left, f, price), (right, g, g)):
            present = np.flatnonzero(counts)
            sample.update(present, np.stack([counts, sums])[:, present])
            sample.bound_unseen("count", 0, float(counts.max()))
            sample.bound_unseen("price", min(0.0, float(sums.min())), float(sums.max()))
        if name == "DISTINCT":
            return estimate_distinct([left, right])
        if name == "AVG":
            return estimate_average([left, right], ["price", "count"])
        return estimate_join([left, right], ["count" if name == "COUNT" else "price", "count"])

    return run
