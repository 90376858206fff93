"""Partitioning domains that several queries share.

A domain partition belongs to a xi class: all edges of the class, in all queries, are split alike, so that
shared sketches stay shared. A vertex keeps one sketch for every *cell*, a combination of parts of its own
attributes; a tuple goes to exactly one. A query's estimate is the sum, over the combinations of parts of its
joins, of the product of one cell of each vertex.

Departs from [1], which keeps separate sketches of every relation for every combination of the whole query:
those could serve one query only. Combinations here have vertex cells in common, and their estimates are
correlated; `estimate_variance` counts that, exactly under attribute independence. One family serves all
parts of a class, since parts have no key in common.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, "Processing Complex Aggregate Queries over Data
   Streams", SIGMOD 2002, Section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, log, prod, sqrt

import numpy as np

from ..domain_partition import DomainPartition
from ..prediction.histograms import (
    Floats,
    Histogram,
    JoinStatistics,
    Keys,
    Overlap,
    overlap,
    refined,
    second_moment,
    shrinkage,
)
from .partition import LEAST_GAIN, UNIFORM_PART, best_parts, copies_for_budget, ranges_of
from .share import Metric, SharedGraph


@dataclass(frozen=True, slots=True)
class ClassPartition:
    """The parts of one xi class and the part of a vertex's space that each gets.

    A cell of a vertex gets the product of the shares of its parts.
    """

    domain: DomainPartition
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SharedPartition:
    """Partitions of the classes that are worth it, by class number of `SharedGraph.edge_classes`.

    `predicted_gains` has for every query the ratio of standard errors, without to with; 1 where no join of
    the query is partitioned.
    """

    classes: tuple[tuple[int, ClassPartition], ...]
    predicted_gains: tuple[float, ...]

    def cell_shares(self, attribute_classes: Sequence[int]) -> tuple[float, ...]:
        """Space of each cell of a vertex with these classes (`SharedGraph.attribute_classes`), in C order."""
        found = dict(self.classes)
        rows = [found[number].shares if number in found else (1.0,) for number in attribute_classes]
        return tuple(prod(cell) for cell in product(*rows))


def partition_shared(
    graph: SharedGraph,
    joins: Sequence[Sequence[JoinStatistics] | None],
    most: int = 4,
    metric: Metric = "average",
    copies: Sequence[float] | None = None,
    least_gain: float = LEAST_GAIN,
) -> SharedPartition:
    """Choose partitions of a workload's domains, if that is worth it.

    Parameters
    ----------
    graph : SharedGraph
        Well-formed.
    joins : sequence of sequences of JoinStatistics
        For every query, its edges in the order of `graph.edges`, with histograms of both sides; None for a
        query of which nothing is known, whose classes then stay whole.
    most : int
        Greatest number of combinations of parts in one query.
    metric : {"average", "maximum"}
        What to lower: the sum or the greatest of the queries' squared relative errors.
    copies : sequence of float, optional
        Space of every query (M_Q); equal if not given. Only ratios matter.
    least_gain : float
        A class is partitioned only if the standard errors of the queries that use it fall by this factor,
        together and as predicted.

    Notes
    -----
    Greedy: of all classes and candidates (for every join of a class, its best partitions in 2 to `most`
    parts), the one whose parts lower the error most, again and again. Shares by Theorem 4.1 of [1], mixed
    half-and-half with uniform. O(classes^2 * candidates * queries of a class * most^3).
    """
    search = _Search(graph, joins, most, metric, copies)
    while search.step(least_gain):
        pass
    gains = (sqrt(b / a) if a else 1.0 for b, a in zip(search.whole, search.errors, strict=True))
    return SharedPartition(tuple(sorted(search.chosen.items(), key=lambda pair: pair[0])), tuple(gains))


class _Search:
    """The partitions chosen so far and the error each query is left with."""

    def __init__(
        self,
        graph: SharedGraph,
        joins: Sequence[Sequence[JoinStatistics] | None],
        most: int,
        metric: Metric,
        copies: Sequence[float] | None,
    ) -> None:
        if len(joins) != len(graph.queries):
            raise ValueError(f"statistics of {len(joins)} queries for a workload of {len(graph.queries)}")
        self._joins = [row or () for row in joins]
        self._most, self._metric = most, metric
        self._copies = copies or [1.0] * len(joins)
        self._classes: list[list[int]] = [[] for _ in joins]
        unknown = set[int]()
        for edge, number in zip(graph.edges, graph.edge_classes(), strict=True):
            if joins[edge.query] is None:
                unknown.add(number)
            else:
                self._classes[edge.query].append(number)
        self._vertex_classes = [
            [sorted(set(graph.attribute_classes()[v]) & set(own)) for v in vertices]
            for own, vertices in zip(self._classes, graph.vertices_of(), strict=True)
        ]
        self.chosen: dict[int, ClassPartition] = {}
        self.whole = [self._error(q, {}) for q in range(len(joins))]
        self.errors = list(self.whole)
        self._candidates = self._propose(unknown)

    def step(self, least_gain: float) -> bool:
        """Partition a class, or one of more parts than it has; False if nothing is worth it."""
        best: tuple[float, int, ClassPartition, dict[int, float]] | None = None
        for number, candidates in self._candidates.items():
            users = [q for q, classes in enumerate(self._classes) if number in classes]
            others = {other: part for other, part in self.chosen.items() if other != number}
            bare = self._total(self._error(q, others) for q in users)
            now, count = self._total(self.errors[q] for q in users), self._count(number)
            for candidate in candidates:
                trial = {**others, number: candidate}
                more = candidate.domain.count / count
                if more <= 1 or any(self._combinations(q, trial) > self._most for q in users):
                    continue
                after = {q: self._error(q, trial) for q in users}
                left = self._total(after.values())
                if bare < left * least_gain**2 or now <= left * (1 + 1e-9):
                    continue
                # What a part buys, so that a class does not take the combinations that another needs.
                worth = (log(now / left) if left else inf) / log(more)
                if best is None or worth > best[0] * (1 + 1e-12):
                    best = worth, number, candidate, after
        if best is None:
            return False
        _, number, candidate, after = best
        self.chosen[number] = candidate
        for q, error in after.items():
            self.errors[q] = error
        return True

    def _count(self, number: int) -> int:
        return self.chosen[number].domain.count if number in self.chosen else 1

    def _total(self, errors: Iterable[float]) -> float:
        return sum(errors) if self._metric == "average" else max(errors)

    def _combinations(self, query: int, trial: Mapping[int, ClassPartition]) -> int:
        return prod(trial[number].domain.count for number in self._classes[query] if number in trial)

    def _propose(self, unknown: set[int]) -> dict[int, list[ClassPartition]]:
        """For every class, the best partitions of each of its different joins; none for `unknown` classes."""
        pairs: dict[int, dict[tuple[int, int], JoinStatistics]] = {}
        for classes, rows in zip(self._classes, self._joins, strict=True):
            for number, join in zip(classes, rows, strict=True):
                key = id(join.left_histogram), id(join.right_histogram)
                pairs.setdefault(number, {}).setdefault(key, join)
        return {
            number: [found for join in own.values() for found in _candidates(join, self._most)]
            for number, own in pairs.items()
            if number not in unknown
        }

    def _error(self, query: int, trial: Mapping[int, ClassPartition]) -> float:
        """Var / (E^2 M_Q) of the query under these partitions."""
        joins = self._joins[query]
        parts = [trial.get(number) for number in self._classes[query]]
        cuts = [_split(join, part) for join, part in zip(joins, parts, strict=True)]
        shares = {
            number: part.shares
            for number, part in zip(self._classes[query], parts, strict=True)
            if part is not None
        }
        sizes = combination_shares(self._classes[query], self._vertex_classes[query], shares)
        mean = prod(float(row.sizes.sum()) for row in cuts) * shrinkage(joins)
        return (
            estimate_variance(cuts, sizes) * shrinkage(joins) ** 2 / max(mean, 1.0) ** 2 / self._copies[query]
        )


@dataclass(frozen=True, slots=True, eq=False)
class PartMoments:
    """Mean and second moment of a join's atomic sketch in each part of its domain, shape (parts,)."""

    sizes: Floats
    moments: Floats


def estimate_variance(joins: Sequence[PartMoments], copies: Floats) -> float:
    """Variance of the sum over combinations of parts, up to the square of `shrinkage`.

    Parameters
    ----------
    joins : sequence of PartMoments
        The joins of the query.
    copies : ndarray of float64, shape (parts of join 0, parts of join 1, ...)
        How many copies a combination is averaged over. A combination reads the first copies of its sketches.

    Notes
    -----
    Under attribute independence, E[X_p X_q] is the product over joins of the second moment where p and q
    have one part and of the two join sizes where they have not; averages over s_p and s_q copies, of which
    min(s_p, s_q) are common, have the covariance of single copies over max(s_p, s_q). O(combinations^2).
    """
    together: Floats = np.ones((1, 1))
    apart: Floats = np.ones((1, 1))
    for join in joins:
        means = np.outer(join.sizes, join.sizes)
        apart = np.asarray(np.kron(apart, means))
        together = np.asarray(np.kron(together, means + np.diag(join.moments - join.sizes**2)))
    flat = copies.ravel()
    return float(max(np.sum((together - apart) / np.maximum.outer(flat, flat)), 0.0))


def combination_shares(
    classes: Sequence[int], vertex_classes: Sequence[Sequence[int]], shares: Mapping[int, Sequence[float]]
) -> Floats:
    """Space of every combination of parts, relative to the whole: that of its smallest cell.

    `classes` are those of the query's joins in order, `vertex_classes` those at each of its vertices.
    """
    rows = [np.asarray(shares.get(number, (1.0,))) for number in classes]
    smallest = np.ones([len(row) for row in rows])
    for own in vertex_classes:
        cell = np.ones([len(row) for row in rows])
        for axis, (number, row) in enumerate(zip(classes, rows, strict=True)):
            if number in own:
                cell = cell * row.reshape([-1 if a == axis else 1 for a in range(len(rows))])
        smallest = np.minimum(smallest, cell)
    return smallest


def _candidates(join: JoinStatistics, most: int) -> list[ClassPartition]:
    cut = overlap(join.left_histogram, join.right_histogram)
    found = []
    for count in range(2, most + 1):
        parts = best_parts(cut.squares[0], cut.squares[1], count)
        if parts.count == count:
            domain = DomainPartition(*ranges_of(cut.lows, parts.labels))
            moments = _moments(cut, parts.labels, count)
            variances = (moments.moments - moments.sizes**2).clip(0)
            shares = copies_for_budget(variances, 1.0, UNIFORM_PART)
            found.append(ClassPartition(domain, tuple(shares.tolist())))
    return found


def _split(join: JoinStatistics, part: ClassPartition | None) -> PartMoments:
    """A join's moments in the parts of its class, histograms cut at the ends of the parts as well."""
    left, right = join.left_histogram, join.right_histogram
    if part is None:
        cut = overlap(left, right)
        return _moments(cut, np.zeros(len(cut.lows), dtype=np.int64), 1)
    cut = overlap(_cut_at(left, part.domain), _cut_at(right, part.domain))
    return _moments(cut, part.domain.part_of(cut.lows), part.domain.count)


def _cut_at(histogram: Histogram, domain: DomainPartition) -> Histogram:
    return refined(histogram, np.array(domain.lows[1:], dtype=np.int64))


def _moments(cut: Overlap, labels: Keys, parts: int) -> PartMoments:
    inside = [labels == label for label in range(parts)]
    return PartMoments(
        np.array([cut.products[rows].sum() for rows in inside]),
        np.array([second_moment(cut, rows) for rows in inside]),
    )
