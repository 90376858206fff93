"""COUNT(DISTINCT ...) over a join, from samples of both sides, on the random graphs of the paper.

Every seed is another graph and other hash functions; a third of the tuples is inserted and deleted besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from skimql.sketches.distinct.join_distinct import join_distinct as distinct_pairs
from skimql.sketches.distinct.join_distinct import join_distinct_with_key
from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.distinct.pair_sample import PairSample, PairSampleSpec
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate

from .graphs import Graph, random_graph
from .registry import Options, study
from .trials import Record, record

NODES = 1000
DENSITIES = (0.01, 0.02, 0.04)
COVERAGE_SEEDS = 500
SIZE_BUCKETS = 1024  # of the level sketches that give |A| and |C|
PROJECTIONS = ("a, c", "a, b", "a, b, c")


@study("join_distinct")
def join_distinct(options: Options) -> Iterator[Record]:
    """Three projections, at several sample sizes."""
    for q in DENSITIES[:1] if options.quick else DENSITIES:
        for size in (64,) if options.quick else (16, 32, 64, 128):
            judged = size == 64 and q == DENSITIES[0] and not options.quick
            yield from sampled_records(q, size, COVERAGE_SEEDS if judged else options.seeds)


def sampled_records(q: float, size: int, seeds: int) -> list[Record]:
    """One record for each projection; estimates and truths divided by the truth of their graph."""
    found: list[list[Estimate]] = [[], [], []]
    words = 0
    for seed in range(seeds):
        graph = random_graph(NODES, q, seed)
        estimates, words = sampled_estimates(graph, size, capacity(q, size), seed)
        truths = (graph.pairs, graph.one_sided, graph.full)
        for into, estimate, truth in zip(found, estimates, truths, strict=True):
            into.append(scaled(estimate, truth))
    return [
        record("join_distinct", "two-sided sample", words, {"distinct": p, "q": q, "k": size}, e, 1.0)
        for p, e in zip(PROJECTIONS, found, strict=True)
    ]


def capacity(q: float, size: int) -> int:
    """Pairs that a level has to give back: the partners of twice the sample size."""
    return int(2 * size * NODES * q)


@lru_cache(maxsize=4)
def passing_tuples(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Tuples that come and go."""
    rng = np.random.default_rng(99)
    return rng.integers(0, 2 * NODES, count), rng.integers(0, NODES, count)


def sampled_estimates(graph: Graph, size: int, capacity: int, seed: int) -> tuple[Sequence[Estimate], int]:
    """The three estimates, and the words of one relation's synopses for (a, c)."""
    family = make_family(seed=seed)
    passing = passing_tuples(len(graph.r[0]) // 3)
    samples, sizes, words = {}, [], 0
    for label, columns in (("a", graph.r), ("c", graph.s), ("b", graph.r[::-1]), ("b ", graph.s[::-1])):
        sample = PairSample(PairSampleSpec(family.derive(label.strip()), size, capacity))
        sample.update(*columns)
        sample.update(*passing)
        sample.update(*passing, np.full(len(passing[0]), -1))
        samples[label] = sample
        if label in "ac":
            level = LevelSketch(LevelSpec(family.derive(f"size of {label}"), SIZE_BUCKETS))
            level.update(columns[0])
            level.update(passing[0])
            level.update(passing[0], np.full(len(passing[0]), -1))
            sizes.append(level.estimate())
            words = (sample.nbytes + level.nbytes) // 8
    return (
        distinct_pairs(samples["a"], samples["c"], *sizes),
        join_distinct_with_key(samples["b"], samples["b "]),
        join_distinct_with_key(samples["b"], samples["b "], full=True),
    ), words


def scaled(estimate: Estimate, truth: float) -> Estimate:
    """The same, divided by the truth."""
    return Estimate(
        estimate.value / truth,
        estimate.low / truth,
        estimate.high / truth,
        estimate.confidence,
        estimate.certified,
        estimate.basis,
    )
