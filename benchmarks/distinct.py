"""Distinct counts and set expressions under deletions: error, coverage and width against the formulas.

Each record carries ``error_over_theory``: the root mean square error over the golden formula, 0.649 /
sqrt(K) for distinct counts and sqrt((1 - phi) / (1.44 K phi) + .42 / K) for set expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.distinct.set_expression import Difference, Intersection, Stream, estimate
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate
from skimql.sketches.reference.fm import FMSketch, FMSpec
from skimql.sketches.reference.two_level_hash import TwoLevelHashSketch, TwoLevelHashSpec

from .registry import Case, Options, study
from .trials import Record, record

LEVELS = 32
UNION = 40_000
COVERAGE_SEEDS = 500
Run = Callable[[int], Estimate]


@study("distinct")
def distinct(options: Options) -> Iterator[Case | Record]:
    """`keys` distinct keys that are left when half of the stream is deleted again."""
    sizes = (256,) if options.quick else (64, 256, 1024)
    for keys in (20_000,) if options.quick else (1_000, 20_000, 200_000):
        for buckets in sizes:
            spec = LevelSpec(buckets=buckets)
            run = level_run(keys, buckets)
            case = Case("distinct", "level", spec.words, {"keys": keys}, keys, run, many(buckets, options))
            yield against(case, 0.649 / math.sqrt(buckets), options)
    for copies in sizes[:2]:
        fm = FMSpec(copies=copies, levels=LEVELS)
        for method, run in (("FM", fm_run(copies, False)), ("FM, likelihood", fm_run(copies, True))):
            case = Case("distinct", method, copies * fm.levels, {"keys": 20_000}, 20_000, run)
            yield against(case, 0.649 / math.sqrt(copies), options)
    two_level = TwoLevelHashSpec(copies=64, levels=LEVELS, key_bits=16)
    words = two_level.shape[0] * two_level.shape[1]
    case = Case("distinct", "2-level hash", words, {"keys": 20_000}, 20_000, two_level_run(two_level))
    yield against(case, 0.649 / 8, options)


@study("set_expression")
def set_expression(options: Options) -> Iterator[Case | Record]:
    """Two streams with `phi` of their union in common, a tenth of each inserted and deleted besides."""
    for phi in (0.5,) if options.quick else (0.5, 0.1, 0.02):
        for buckets in (256,) if options.quick else (64, 256, 1024):
            # Rare witnesses make the error itself uncertain: more seeds there.
            seeds = many(buckets, options) or (0 if phi > 0.05 else max(options.seeds, 96))
            yield from set_cases(phi, buckets, seeds, options)


def many(buckets: int, options: Options) -> int:
    """Seeds of a case: enough to judge coverage at the middle size, as many as asked for (0) elsewhere."""
    return COVERAGE_SEEDS if buckets == 256 and not options.quick else 0


def set_cases(phi: float, buckets: int, seeds: int, options: Options) -> Iterator[Record]:
    """Intersection and difference at one share and size."""
    words = LevelSpec(buckets=buckets).words
    for operation, share in ((Intersection, phi), (Difference, (1 - phi) / 2)):
        data = {"operation": operation.__name__.lower(), "phi": phi}
        run = set_run(phi, buckets, operation)
        case = Case("set_expression", "level", words, data, share * UNION, run, seeds)
        theory = math.sqrt((1 - share) / (1.4427 * buckets * share) + 0.42 / buckets)
        yield against(case, theory, options)


def against(case: Case, theory: float, options: Options) -> Record:
    """Run a case and compare its error with the formula."""
    estimates = [case.run(seed) for seed in range(case.seeds or options.seeds)]
    done = record(case.study, case.method, case.words, case.parameters, estimates, case.truth)
    done["error_over_theory"] = float(np.sqrt(np.mean(np.square(done["errors"])))) / theory
    return done


def level_run(keys: int, buckets: int) -> Run:
    """A level sketch that sees twice the keys, and the deletion of half of them."""

    def run(seed: int) -> Estimate:
        sketch = LevelSketch(LevelSpec(make_family(seed=seed), buckets, LEVELS))
        sketch.update(np.arange(2 * keys))
        sketch.update(np.arange(keys, 2 * keys), np.full(keys, -1))
        return sketch.estimate()

    return run


def fm_run(copies: int, likelihood: bool) -> Run:
    """The Flajolet-Martin sketch on 20,000 keys left of 40,000."""

    def run(seed: int) -> Estimate:
        sketch = FMSketch(FMSpec(make_family(seed=seed), copies, LEVELS))
        sketch.update([np.arange(40_000)])
        sketch.update([np.arange(20_000)], np.full(20_000, -1))
        return sketch.estimate_by_likelihood() if likelihood else sketch.estimate()

    return run


def two_level_run(spec: TwoLevelHashSpec) -> Run:
    """The 2-level hash sketch on 20,000 keys left of 40,000."""

    def run(seed: int) -> Estimate:
        sketch = TwoLevelHashSketch(replace(spec, family=make_family(seed=seed)))
        sketch.update([np.arange(40_000)])
        sketch.update([np.arange(20_000)], np.full(20_000, -1))
        return sketch.estimate()

    return run


def set_run(phi: float, buckets: int, operation: type[Intersection] | type[Difference]) -> Run:
    """Two overlapping streams in level sketches of one family."""
    both = round(phi * UNION)
    half = (UNION - both) // 2
    a = np.arange(both + half)
    b = np.concatenate([a[:both], np.arange(both + half, UNION)])

    def run(seed: int) -> Estimate:
        spec = LevelSpec(make_family(seed=seed), buckets, LEVELS)
        streams = {"a": LevelSketch(spec), "b": LevelSketch(spec)}
        for name, keys in (("a", a), ("b", b)):
            passing = np.arange(UNION, UNION + UNION // 10)
            streams[name].update(np.concatenate([keys, passing]))
            streams[name].update(passing, np.full(len(passing), -1))
        return estimate(operation(Stream("a"), Stream("b")), streams)

    return run
