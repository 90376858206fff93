"""Sizes and predicted errors of samples of one key class: each table alone, two levels, in scan order.

*Key sample*, *two-level*: every table is sampled by itself, with the same hash; dense keys are counted beside it,
chosen jointly from the statistics of all tables, or by each table alone (streams). *Sampled messages*: one
relation of the class is sampled, and the other relations are scanned one after the other, each only for the keys
that are still wanted; one entry (key, weight, product of all weights) is kept for each sampled key, whatever the
number of tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...sketches.ranking import least_of, rounded
from ...sketches.samples.two_level_plan import ENTRY_BYTES, TOTAL_BYTES, split_by_itself
from ..messages import Residual
from .figures import Figures
from .variance import Predicted, is_dense, sample_variance

Ints = npt.NDArray[np.int64]

DENSE_SHARES = (0.0, 0.0625, 0.125, 0.25, 0.5)
MESSAGE_ENTRY_BYTES = 24  # key, weight in the first relation, product of all weights
ROOM = 1.1  # planned for more rows than expected
NO_DENSE: Ints = np.empty(0, np.int64)
NO_DENSE.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One scan of sampled messages: a vertex, restricted to the wanted keys of a class."""

    vertex: int
    joined: int


@dataclass(frozen=True, slots=True, eq=False)
class Beyond:
    """A table that is not sampled but asked for keys: a hash sketch, exact while it takes no more than its bytes.

    Parameters
    ----------
    vertex, joined : int
        The table, and its class.
    buckets : int
        In a row of the sketch.
    dense_keys : ndarray of int64
        Keys counted exactly beside it.
    nbytes : int
        Planned bytes.
    """

    vertex: int
    joined: int
    buckets: int
    dense_keys: Ints
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class SamplePlan:
    """A sample of one class.

    Parameters
    ----------
    joined : int
        The sampled class.
    dense_keys : tuple of ndarray of int64
        Keys counted exactly: one array for each vertex of the class in the residual tree, or one for all.
    capacities : tuple of int
        Sampled keys that each of them may keep beside its dense ones; one number for sampled messages.
    largest_other : tuple of float
        For each of them a bound on the weight of a key that is not dense.
    largest_product : float
        Bound on the contribution of a key that is not dense.
    probability : float
        Predicted share of the keys that is sampled.
    nbytes : float
        Predicted bytes of everything held.
    predicted : Predicted
    steps : tuple of Step
        Scan order of sampled messages; empty for samples of each table by itself.
    vertices : tuple of int
        Of sample x sketch: the tables that are sampled, in the order of `dense_keys` and `capacities`.
    beyond : tuple of Beyond
        Of sample x sketch: the tables that are sketched.
    """

    joined: int
    dense_keys: tuple[Ints, ...]
    capacities: tuple[int, ...]
    largest_other: tuple[float, ...]
    largest_product: float
    probability: float
    nbytes: float
    predicted: Predicted
    steps: tuple[Step, ...] = ()
    vertices: tuple[int, ...] = ()
    beyond: tuple[Beyond, ...] = ()


def key_sample(figures: Figures, budget_bytes: float, *, regressed: bool = True) -> SamplePlan:
    """A key sample of each table of a one-class tree, the bytes split evenly; `regressed` on the tables' totals."""
    tables = len(figures.relations)
    each = int(budget_bytes) // tables
    capacity = (each - TOTAL_BYTES) // ENTRY_BYTES
    if capacity < 1:
        raise ValueError(f"{budget_bytes:,.0f} bytes hold no sampled key in each of {tables} tables")
    contributions = figures.contributions(0)
    p = [min(1.0, capacity / max(figures.attribute(v, 0).distinct, 1.0)) for v in range(tables)]
    certain = np.repeat(np.array(p)[:, np.newaxis] == 1.0, contributions.cells.counts.size, axis=1)
    variance, _ = sample_variance(contributions, certain, p, (regressed,) * tables)
    unseen = figures.largest_unseen(0, NO_DENSE)
    used = sum(min(capacity, figures.attribute(v, 0).distinct) for v in range(tables))
    return SamplePlan(
        0,
        (NO_DENSE,) * tables,
        (capacity,) * tables,
        tuple(figures.heaviest(v, 0) for v in range(tables)),
        unseen,
        min(p),
        ENTRY_BYTES * used + TOTAL_BYTES * tables,
        Predicted(figures.total, variance, unseen / min(p)),
    )


def two_level_alone(figures: Figures, budget_bytes: float, *, regressed: bool = True) -> SamplePlan:
    """Two-level synopses whose dense keys each table chooses by itself: nothing of another table is known."""
    tables = len(figures.relations)
    each = int(budget_bytes) // tables
    contributions = figures.contributions(0)
    splits, p, certain = [], [], np.zeros((tables, contributions.cells.counts.size), bool)
    for v in range(tables):
        own = figures.attribute(v, 0)
        split = split_by_itself(own.heavy, own.distinct, own.self_join_size, each)
        splits.append(split)
        p.append(min(1.0, split.capacity / max(own.distinct - split.dense_keys.size, 1.0)))
        certain[v] = is_dense(contributions, split.dense_keys) | (p[v] == 1.0)
    variance, _ = sample_variance(contributions, certain, p, (regressed,) * tables)
    unseen = figures.largest_unseen(0, NO_DENSE)
    used = sum(min(each, ENTRY_BYTES * figures.attribute(v, 0).distinct + TOTAL_BYTES) for v in range(tables))
    return SamplePlan(
        0,
        tuple(s.dense_keys for s in splits),
        tuple(s.capacity for s in splits),
        tuple(s.largest_other for s in splits),
        unseen,
        min(p),
        used,
        Predicted(figures.total, variance, unseen / min(p)),
    )


def two_level_joint(figures: Figures, budget_bytes: float, *, regressed: bool = True) -> SamplePlan:
    """Two-level synopses with the same dense keys in all tables: those of the largest expected contributions."""
    tables = len(figures.relations)
    each = int(budget_bytes) // tables
    entries = (each - TOTAL_BYTES) // ENTRY_BYTES
    if entries < 1:
        raise ValueError(f"{budget_bytes:,.0f} bytes hold no sampled key in each of {tables} tables")
    contributions = figures.contributions(0)
    known = figures.dense(0)
    found = []
    for share in DENSE_SHARES:
        dense = min(int(share * entries), entries - 1, known.order.size)
        if share and not dense:
            continue
        left = entries - dense
        distinct = [figures.attribute(v, 0).distinct - known.present(v, dense) for v in range(tables)]
        p = [min(1.0, left / max(keys, 1.0)) for keys in distinct]
        certain = np.repeat(known.known(dense)[np.newaxis], tables, axis=0)
        certain |= np.array(p)[:, np.newaxis] == 1.0
        variance, _ = sample_variance(contributions, certain, p, (regressed,) * tables)
        unseen = known.unseen(dense)
        predicted = Predicted(figures.total, variance, unseen / min(p))
        found.append((predicted, dense, left, min(p), unseen))
    predicted, dense, left, probability, unseen = least_of(found, lambda f: f[0].half_width(0.95))
    used = sum(min(each, ENTRY_BYTES * figures.attribute(v, 0).distinct + TOTAL_BYTES) for v in range(tables))
    keys = np.sort(known.order[:dense])
    largest = tuple(known.heaviest(v, dense) for v in range(tables))
    return SamplePlan(0, (keys,) * tables, (left,) * tables, largest, unseen, probability, used, predicted)


def _bounds(figures: Figures, residual: Residual, joined: int, dense: int) -> tuple[float, ...]:
    """For each member a bound on the weight of a key that is not dense, with all messages that it receives."""
    found = []
    for v in residual.members(joined):
        folded = [f.sender for f in residual.folds if f.receiver == v and f.joined == joined]
        factors = [figures.dense(joined).heaviest(u, dense) for u in (v, *folded)]
        factors += [figures.received(u, joined).largest for u in (v, *folded)]
        found.append(0.0 if 0.0 in factors else math.prod(factors))
    return tuple(found)


def scan_steps(figures: Figures, residual: Residual, joined: int) -> tuple[Step, ...]:
    """The scans of sampled messages: the relation of fewest keys first, then those without further classes.

    A relation's other classes are scanned right behind it, restricted to the keys that its wanted tuples have.
    """

    def by_size(vertices: Sequence[int], shared: int) -> list[int]:
        return sorted(
            vertices,
            key=lambda v: (
                len(residual.classes_of(v)) > 1,
                float(rounded(figures.attribute(v, shared).distinct)),
                v,
            ),
        )

    def behind(vertex: int, shared: int) -> list[Step]:
        steps = []
        for other in residual.classes_of(vertex):
            if other != shared:
                for v in by_size([v for v in residual.members(other) if v != vertex], other):
                    steps += [Step(v, other), *behind(v, other)]
        return steps

    members = residual.members(joined)
    first = min(members, key=lambda v: (float(rounded(figures.attribute(v, joined).distinct)), v))
    steps = [Step(first, joined), *behind(first, joined)]
    for v in by_size([v for v in members if v != first], joined):
        steps += [Step(v, joined), *behind(v, joined)]
    return tuple(steps)


class SampledMessages:
    """A sample of one class of a residual tree, joined exactly with all other tables in scan order.

    Parameters
    ----------
    figures : Figures
    residual : Residual
    joined : int
        The class.
    regressed : bool
        Whether the total of the first relation is known.
    """

    def __init__(self, figures: Figures, residual: Residual, joined: int, *, regressed: bool = True) -> None:
        self.figures, self.residual, self.joined, self.regressed = figures, residual, joined, regressed
        self.steps = scan_steps(figures, residual, joined)
        self.first = self.steps[0].vertex
        self.known = figures.dense(joined)
        self.contributions = figures.contributions(joined)
        cells, vertices = self.contributions.cells, figures.tree.classes[joined].vertices
        self._place = vertices.index(self.first)
        present = cells.counts * np.minimum(cells.weights[self._place], 1.0)
        self._keys = self.known.cumulated(present), float(present.sum())
        # What has no further class holds nothing.
        self._tuples = [
            (v, self.known.cumulated(each), float(each.sum()))
            for v in residual.members(joined)
            if len(residual.classes_of(v)) > 1
            for each in [present * cells.weights[vertices.index(v)]]
        ]

    def plan(self, budget_bytes: float) -> SamplePlan:
        """The sample of a size.

        Raises
        ------
        ValueError
            If the bytes hold no sampled key.
        """
        figures, joined = self.figures, self.joined
        keys = max(figures.attribute(self.first, joined).distinct, 1.0)
        found = []
        for share in DENSE_SHARES:
            entries = self._most_entries(share, keys, budget_bytes)
            if entries < 1:
                continue
            dense = min(int(share * entries), entries - 1, self.known.order.size)
            if share and (not dense or entries >= keys):
                continue
            p = min(1.0, (entries - dense) / max(keys - dense, 1.0))
            unseen = self.known.unseen(dense) if p < 1.0 else 0.0
            predicted = Predicted(figures.total, self.variance(dense, p), unseen / p)
            found.append((predicted, dense, entries - dense, p, unseen, self.nbytes(dense, p)))
        if not found:
            raise ValueError(
                f"{budget_bytes:,.0f} bytes hold no key of class {figures.tree.classes[joined].name}"
            )
        predicted, dense, left, probability, unseen, held = least_of(found, lambda f: f[0].half_width(0.95))
        return SamplePlan(
            joined,
            (np.sort(self.known.order[:dense]),),
            (left,),
            _bounds(figures, self.residual, joined, dense),
            unseen,
            probability,
            held,
            predicted,
            self.steps,
        )

    def variance(self, dense: int, probability: float) -> float:
        """That of the total, regressed on the first relation's where that is known."""
        if probability == 1.0:
            return 0.0
        certain = self.known.known(dense)
        tables = len(self.contributions.cells.weights)
        totals = tuple(self.regressed and t == self._place for t in range(tables))
        certain = np.broadcast_to(certain, (tables, certain.size))
        return sample_variance(self.contributions, certain, (probability,) * tables, totals)[0]

    def nbytes(self, dense: int, probability: float) -> float:
        """The entries themselves, and the most that the scan of any relation holds beside them."""

        def taken(cumulated: npt.NDArray[np.float64], total: float) -> float:
            certain = float(cumulated[dense])
            return certain + probability * max(total - certain, 0.0)

        entries = min(taken(*self._keys), self.figures.attribute(self.first, self.joined).distinct)
        most = 0.0
        for v, cumulated, total in self._tuples:
            tuples = min(taken(cumulated, total), self.figures.relations[v].tuples)
            most = max(most, self._behind(v, self.joined, tuples))
        return MESSAGE_ENTRY_BYTES * entries + ROOM * most + TOTAL_BYTES

    def _behind(self, vertex: int, shared: int, tuples: float) -> float:
        """Bytes of a vertex's wanted tuples and of what its other classes send to them."""
        others = [j for j in self.residual.classes_of(vertex) if j != shared]
        if not others:
            return 0.0
        held = 8.0 * (2 + len(others)) * tuples
        most = 0.0
        for j in others:
            keys = min(tuples, self.figures.attribute(vertex, j).distinct)
            below = 0.0
            for v in self.residual.members(j):
                if v != vertex:
                    own = self.figures.attribute(v, j)
                    below = max(
                        below,
                        self._behind(v, j, keys * self.figures.relations[v].tuples / max(own.distinct, 1.0)),
                    )
            most = max(most, ENTRY_BYTES * keys + below)
        return held + most

    def _most_entries(self, share: float, keys: float, budget_bytes: float) -> int:
        """Most entries (dense and sampled) that fit."""

        def fits(entries: int) -> bool:
            dense = min(int(share * entries), entries - 1, self.known.order.size)
            p = min(1.0, (entries - dense) / max(keys - dense, 1.0))
            return self.nbytes(dense, p) <= budget_bytes

        low, high = 0, min(int(keys) + 1, int(budget_bytes) // MESSAGE_ENTRY_BYTES)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low
