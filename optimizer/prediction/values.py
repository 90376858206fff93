"""Distinct values before anything is built: how many tuples each has, and how many are left by a join.

What is counted need not be a join key. Of a counted column its distribution is known like that of a key
(`relation.AttributeStatistics`); how it goes together with the keys of its table is not, and taken for independent
but for the number of distinct pairs, where that is known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .cells import KeyCells, key_cells
from .figures import Figures
from .relation import Attribute, Relation

Floats = npt.NDArray[np.float64]

MOST_STRATA = 512


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of an attribute, in strata of equally many tuples.

    Parameters
    ----------
    weights : ndarray of float64, shape (n,)
        Tuples of each value of a stratum.
    counts : ndarray of float64, shape (n,)
        How many values a stratum stands for.
    """

    weights: Floats
    counts: Floats

    @property
    def distinct(self) -> float:
        """Number of values."""
        return float(self.counts.sum())

    @property
    def tuples(self) -> float:
        """Number of tuples."""
        return float(self.counts @ self.weights)

    def thinned(self, share: float) -> Values:
        """What is left where each tuple stays with probability `share`, whatever its value."""
        if share >= 1.0:
            return self
        present = chance_of_any(self.weights, share)
        left = present > 0.0
        kept = self.weights[left] * share / present[left]
        return Values(kept, self.counts[left] * present[left])


def values_of(relation: Relation, attribute: Attribute) -> Values:
    """The values of an attribute behind its relation's filter; the known number of distinct values is kept."""
    cells = key_cells([(relation, attribute)])
    weights, counts = cells.weights[0], cells.counts.copy()
    there = weights > 0.0
    weights, counts, heavy = weights[there], counts[there], cells.heavy[there]
    found, wanted = float(counts[~heavy].sum()), attribute.distinct - float(counts[heavy].sum())
    if found > 0.0 and wanted > 0.0:
        counts[~heavy] *= wanted / found
        weights = np.where(heavy, weights, weights * found / wanted)
    return Values(*strata(weights, counts))


def strata(weights: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Weights with their counts, those that are near each other together; tuples and values are kept."""
    if weights.size <= MOST_STRATA:
        return weights, counts
    steps = np.rint(
        np.log(weights) * MOST_STRATA / max(math.log(weights.max() / weights.min()), 1e-9)
    ).astype(np.int64)
    _, at = np.unique(steps, return_inverse=True)
    total, number = (np.bincount(at, w).astype(np.float64) for w in (counts * weights, counts))
    return total / number, number


def chance_of_any(tuples: Floats, share: float) -> Floats:
    """Probability that a value of so many tuples keeps one, each staying with probability `share`."""
    if share >= 1.0:
        return (tuples > 0.0).astype(np.float64)
    return np.asarray(-np.expm1(tuples * math.log1p(-share)))


@dataclass(eq=False)
class Presence:
    """Which tuples and keys of a query's relations have partners in the others; multiplicities do not matter.

    Parameters
    ----------
    figures : Figures
    groups : mapping of int to int
        How many groups a vertex has: of its tuples those of one group are looked at, an equal part of all.
    """

    figures: Figures
    groups: Mapping[int, int] = field(default_factory=dict)
    _shares: dict[tuple[int, int | None], float] = field(default_factory=dict)

    def share(self, vertex: int, but: int | None = None) -> float:
        """Share of a vertex's tuples that have partners over all its classes, or all but one."""
        if (vertex, but) not in self._shares:
            found = 1.0
            for joined in self.figures.tree.classes_of(vertex):
                if joined != but:
                    found *= self._over(vertex, joined)
            self._shares[vertex, but] = min(found, 1.0)
        return self._shares[vertex, but]

    def of_group(self, vertex: int, but: int | None = None) -> float:
        """`share` of those of one group."""
        return self.share(vertex, but) / self.groups.get(vertex, 1)

    def keys(self, joined: int, vertex: int) -> Floats:
        """Probability that each cell's keys of a class occur in a vertex, with partners over its other classes."""
        cells = self.figures.cells(joined)
        weights = cells.weights[self.figures.tree.classes[joined].vertices.index(vertex)]
        share = self.of_group(vertex, joined)
        return np.minimum(weights, 1.0) if share >= 1.0 else np.minimum(chance_of_any(weights, share), 1.0)

    def of_all(self, joined: int, vertices: Collection[int]) -> Floats:
        """Probability that each cell's keys of a class occur in all of some vertices."""
        found = np.ones(self.figures.cells(joined).counts.size)
        for vertex in vertices:
            found = found * self.keys(joined, vertex)
        return found

    def pairs(self, joined: int, one: int, other: int) -> tuple[Floats, Floats, Floats]:
        """The keys of a class for two of its vertices: tuples in each, and how many keys; the rest are filters."""
        members, cells = self.figures.tree.classes[joined].vertices, self.figures.cells(joined)
        left, right = (cells.weights[members.index(v)] * self.of_group(v, joined) for v in (one, other))
        beside = self.of_all(joined, [v for v in members if v not in (one, other)])
        # A filter of the class takes a key away from the side into which it is folded; both are as good.
        left, right = np.concatenate([left, left * 0.0]), np.concatenate([right, right])
        counts = np.concatenate([cells.counts * beside, cells.counts * (1.0 - beside)])
        used = (counts > 0.0) & ((left > 0.0) | (right > 0.0))
        return _alike(left[used], right[used], counts[used])

    def _over(self, vertex: int, joined: int) -> float:
        members, cells = self.figures.tree.classes[joined].vertices, self.figures.cells(joined)
        own = cells.counts * cells.weights[members.index(vertex)]
        if not own.sum():
            return 0.0
        return float(own @ self.of_all(joined, [v for v in members if v != vertex]) / own.sum())


def _alike(left: Floats, right: Floats, counts: Floats) -> tuple[Floats, Floats, Floats]:
    """The same with one cell for all keys of as many tuples on both sides: of a pilot most have few."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    first = np.flatnonzero(np.r_[True, (np.diff(left) != 0.0) | (np.diff(right) != 0.0)][: left.size])
    return left[first], right[first], np.add.reduceat(counts[order], first) if first.size else counts


def shared_cells(members: list[tuple[Relation, Attribute]]) -> KeyCells:
    """Cells of attributes that are not joined but whose values are compared: those of a set expression."""
    return key_cells(members)
