"""Studies of AGMS, hash and convolution sketches: single joins, chains, and their intervals.

Nothing is clipped by bounds here: that would flatter whatever errs by more than the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate, median_interval
from skimql.sketches.joins import moments
from skimql.sketches.joins.agms import AgmsSpec
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.estimate import join_estimate, ratio_estimate
from skimql.sketches.joins.join_tree import Edges
from skimql.sketches.joins.linear import LinearSketch

from .registry import Case, Options, study
from .trials import Record, zipf

Tensor = NDArray[np.int64]
ROWS = 11
ONE_JOIN = [(0, 1, 0, 0)]

SINGLE_DOMAIN, SINGLE_TUPLES = 1 << 18, 4_000_000
SINGLE_CELLS = ((0.0, 0), (0.5, 100), (1.0, 0), (1.0, 100), (1.0, 200), (1.5, 30), (1.5, 100), (2.0, 100))
SINGLE_WORDS = (256, 1024, 4096, 16384, 65536, 262144, 524288)  # 2 KB to 4 MB
REAL_AGMS = (1024,)  # words at which the real sketch is afforded, to check the computed one

CHAIN_DOMAIN, CHAIN_TUPLES = 128, 50_000
CHAIN_BUCKETS = (256, 1024, 4096)
CHAIN_AGMS_BUCKETS = 1024  # beyond, its error is computed
CHAIN_SEEDS = 100  # where the ratio of two errors is to be known within 10 %, 24 seeds are too few


@dataclass(frozen=True)
class JoinData:
    """Frequencies of the vertices of a query, its edges, its answer, and what to call it."""

    tensors: tuple[Tensor, ...]
    edges: Edges
    parameters: dict[str, Any]
    sums: Tensor | None = None  # per combination of values of vertex 0, for SUM and AVG

    @property
    def truth(self) -> float:
        """The exact count."""
        return moments.join_size(self.tensors, self.edges)

    @property
    def sum_truth(self) -> float:
        """The exact sum."""
        assert self.sums is not None, "made for sums"
        return moments.join_size([self.sums, *self.tensors[1:]], self.edges)


# --- one join


def single_data(options: Options) -> Iterator[JoinData]:
    """Zipf relations joined with their shifted copies, the pairs of the skimmed-sketch paper."""
    for z, shift in SINGLE_CELLS[2:4] if options.quick else SINGLE_CELLS:
        pair = tuple(zipf(SINGLE_DOMAIN, z, SINGLE_TUPLES, s) for s in (0, shift))
        yield JoinData(pair, ONE_JOIN, {"z": z, "shift": shift, "rows": ROWS})


def single_words(options: Options) -> Sequence[int]:
    """Words of one relation's synopsis."""
    return SINGLE_WORDS[1:4] if options.quick else SINGLE_WORDS


@study("single")
def single(options: Options) -> Iterable[Case | Record]:
    """Hash sketch, AGMS where it can be afforded, and AGMS by its exact variance."""
    for data in single_data(options):
        for words in single_words(options):
            yield case("single", "hash sketch", words, data, convolution_run(data, words // ROWS))
            if words in REAL_AGMS:
                yield case("single", "AGMS", words, data, agms_run(data, words // ROWS))
            variance = moments.single_join_variance(*data.tensors)
            yield case("single", "AGMS (computed)", words, data, computed_run(data, variance, words // ROWS))


def computed_run(data: JoinData, variance: float, s1: int) -> Callable[[int], Estimate]:
    """AGMS by its exact variance: 11 averages of s1 copies, taken as normal, which s1 is large enough for."""
    truth, spread = data.truth, math.sqrt(variance / s1)

    def run(seed: int) -> Estimate:
        return median_interval(np.random.default_rng(seed).normal(truth, spread, ROWS))

    return run


# --- chains


def chain_data(options: Options) -> Iterator[JoinData]:
    """Chains of two and three joins: independent and correlated attributes, Zipf 0.5 and 1."""
    for joins in (2, 3):
        for z in (0.5, 1.0):
            for correlation in (0.0, 0.8):
                if not options.quick or (z, correlation) == (1.0, 0.8):
                    yield chain(joins, z, correlation)


def chain(joins: int, z: float, correlation: float, data_seed: int = 1) -> JoinData:
    """A chain; a tuple of a middle relation has the same value twice with chance `correlation`."""
    rng = np.random.default_rng(data_seed)
    law = 1.0 / np.arange(1, CHAIN_DOMAIN + 1) ** z
    law /= law.sum()
    end = np.rint(CHAIN_TUPLES * law).astype(np.int64)
    middles = []
    for _ in range(joins - 1):
        pairs = rng.choice(CHAIN_DOMAIN, (2, CHAIN_TUPLES), p=law)
        pairs[1] = np.where(rng.random(CHAIN_TUPLES) < correlation, pairs[0], pairs[1])
        middle = np.zeros((CHAIN_DOMAIN, CHAIN_DOMAIN), dtype=np.int64)
        np.add.at(middle, tuple(pairs), 1)
        middles.append(middle)
    edges = [(v, v + 1, 0 if v == 0 else 1, 0) for v in range(joins)]
    return JoinData((end, *middles, end), edges, {"joins": joins, "z": z, "correlation": correlation})


@study("chains")
def chains(options: Options) -> Iterable[Case]:
    """Convolution sketches against AGMS sketches of the same words for each relation."""
    seeds = options.seeds if options.quick else max(options.seeds, CHAIN_SEEDS)
    for data in chain_data(options):
        variance = moments.join_variance(data.tensors, data.edges)
        for buckets in CHAIN_BUCKETS[:2] if options.quick else CHAIN_BUCKETS:
            words = ROWS * buckets
            yield case("chains", "convolution", words, data, convolution_run(data, buckets), seeds)
            if buckets <= CHAIN_AGMS_BUCKETS:
                yield case("chains", "AGMS", words, data, agms_run(data, buckets), seeds)
            yield case("chains", "AGMS (computed)", words, data, computed_run(data, variance, buckets), seeds)


# --- intervals


INTERVAL_SEEDS = 500  # a true 95 % interval misses at most 37 of them with 99 % chance
INTERVAL_BUCKETS = 1024


def interval_data() -> dict[str, JoinData]:
    """One query of every shape, with values to sum on its first vertex."""
    domain, tuples = 1 << 14, 1_000_000
    flat, skewed = ((zipf(domain, z, tuples), zipf(domain, z, tuples, 100)) for z in (0.5, 1.0))
    values = np.random.default_rng(9).integers(50, 150, domain)
    star_tensors = star()
    return {
        "single": JoinData(flat, ONE_JOIN, {"z": 0.5}, flat[0] * values),
        "single, skewed": JoinData(skewed, ONE_JOIN, {"z": 1.0}, skewed[0] * values),
        "2-chain": chain(2, 1.0, 0.8),
        "3-chain": chain(3, 1.0, 0.8),
        "3-chain, flat": chain(3, 0.5, 0.8),
        "star": JoinData(star_tensors, [(0, v, v - 1, 0) for v in (1, 2, 3)], {"shape": "star of 3"}),
    }


def star(domain: int = 64, tuples: int = 100_000, data_seed: int = 3) -> tuple[Tensor, ...]:
    """A fact relation with three foreign keys, and three dimensions with Zipf frequencies."""
    rng = np.random.default_rng(data_seed)
    law = 1.0 / np.arange(1, domain + 1) ** 0.8
    centre = np.zeros((domain,) * 3, dtype=np.int64)
    np.add.at(centre, tuple(rng.choice(domain, (3, tuples), p=law / law.sum())), 1)
    return centre, *(rng.permutation(np.rint(1000 * law).astype(np.int64)) for _ in range(3))


@study("intervals")
def intervals(options: Options) -> Iterable[Case]:
    """Coverage and width of the 95 % intervals: counts, self-joins, sums and averages."""
    seeds = options.seeds if options.quick else max(options.seeds, INTERVAL_SEEDS)
    words, data = ROWS * INTERVAL_BUCKETS, interval_data()
    for name, query in data.items():
        run = convolution_run(query, INTERVAL_BUCKETS)
        yield Case("intervals", f"{name} COUNT", words, query.parameters, query.truth, run, seeds)
    for name in ("single", "single, skewed"):
        query = data[name]
        itself = JoinData((query.tensors[0],) * 2, ONE_JOIN, query.parameters)
        run = convolution_run(itself, INTERVAL_BUCKETS, itself=True)
        yield Case("intervals", f"self, {name} COUNT", words, query.parameters, itself.truth, run, seeds)
        sums = convolution_run(query, INTERVAL_BUCKETS, aggregate="SUM")
        yield Case("intervals", f"{name} SUM", words, query.parameters, query.sum_truth, sums, seeds)
        average = convolution_run(query, INTERVAL_BUCKETS, aggregate="AVG")
        truth = query.sum_truth / query.truth
        yield Case("intervals", f"{name} AVG", words, query.parameters, truth, average, seeds)


# --- running them


def case(
    name: str, method: str, words: int, data: JoinData, run: Callable[[int], Estimate], seeds: int = 0
) -> Case:
    """A case of a count."""
    return Case(name, method, words, data.parameters, data.truth, run, seeds)


def convolution_run(
    data: JoinData, buckets: int, aggregate: str = "COUNT", itself: bool = False
) -> Callable[[int], Estimate]:
    """Estimates by convolution sketches of 11 rows; one sketch for both ends of a self-join."""
    batches = [batch(t) for t in data.tensors]
    sums = batch(data.sums) if data.sums is not None else None

    def run(seed: int) -> Estimate:
        families = edge_families(data.edges, seed)
        specs = [ConvolutionSpec(f, ROWS, buckets) for f in vertex_families(data, families)]
        counts = [filled(spec.empty(), b) for spec, b in zip(specs, batches, strict=True)]
        if itself:
            counts[1] = counts[0]
        if aggregate == "COUNT":
            return join_estimate(counts, data.edges)
        assert sums is not None, "SUM and AVG need values"
        summed = [filled(specs[0].empty(), sums), *counts[1:]]
        if aggregate == "SUM":
            return join_estimate(summed, data.edges)
        return ratio_estimate(summed, counts, data.edges)

    return run


def agms_run(data: JoinData, s1: int) -> Callable[[int], Estimate]:
    """Estimates by AGMS sketches, a median of 11 averages."""
    batches = [batch(t) for t in data.tensors]

    def run(seed: int) -> Estimate:
        families = edge_families(data.edges, seed)
        specs = [AgmsSpec(f, s1, ROWS) for f in vertex_families(data, families)]
        sketches = [filled(spec.empty(), b) for spec, b in zip(specs, batches, strict=True)]
        return join_estimate(sketches, data.edges)

    return run


def batch(tensor: Tensor) -> tuple[list[NDArray[np.int64]], Tensor]:
    """The distinct tuples of a relation, and how often each occurs: all that a linear sketch needs to see."""
    places = np.nonzero(tensor)
    return [np.ascontiguousarray(p, dtype=np.int64) for p in places], tensor[places]


def filled(sketch: LinearSketch[Any], relation: tuple[list[NDArray[np.int64]], Tensor]) -> LinearSketch[Any]:
    """A sketch of a relation."""
    sketch.update(*relation)
    return sketch


def edge_families(edges: Edges, seed: int) -> list[Any]:
    """An independent family for each edge."""
    return [make_family("tabulation", seed).derive(f"edge {i}") for i in range(len(edges))]


def vertex_families(data: JoinData, families: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The families of each vertex, in the order of its attributes."""
    table: list[dict[int, Any]] = [{} for _ in data.tensors]
    for (u, v, i, j), family in zip(data.edges, families, strict=True):
        table[u][i] = family
        table[v][j] = family
    return [tuple(row[i] for i in range(len(row))) for row in table]
