"""The keys of a class in the order in which they become dense, and what any number of them leaves to chance.

A planner tries many sizes, each with another number of dense keys: all that depends on that number is cumulated
once over the order, and looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...sketches.samples.two_level_plan import Candidates
from .cells import KeyCells

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(eq=False)
class DenseKeys:
    """Dense keys of one class: the first so many of an order, the same in all tables.

    Parameters
    ----------
    order : ndarray of int64
        The keys, those of the largest expected squared contribution first.
    cells : KeyCells
        Of the class.
    bounds : tuple
        Keys, ascending, bounds on their contributions, and one on that of any other key.
    heavy : mapping
        Vertex to the heavy keys of its attribute in the class.
    """

    order: Ints
    cells: KeyCells
    bounds: tuple[Ints, Floats, float]
    heavy: Mapping[int, Candidates]
    _heaviest: dict[int, Floats] = field(default_factory=dict)
    _present: dict[int, Ints] = field(default_factory=dict)

    @cached_property
    def places(self) -> Ints:
        """Place of each cell's key in the order, its size where the key is never dense."""
        return np.where(self.cells.heavy, self._places_of(self.cells.keys), self.order.size)

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        by_key = np.argsort(self.order, kind="stable")
        return self.order[by_key], by_key

    def _places_of(self, keys: Ints) -> Ints:
        ordered, by_key = self._sorted
        if not ordered.size:
            return np.zeros(keys.size, np.int64)
        at = np.minimum(np.searchsorted(ordered, keys), ordered.size - 1)
        return np.where(ordered[at] == keys, by_key[at], ordered.size)

    def known(self, dense: int) -> Bools:
        """Which cells are among the first `dense` keys."""
        return np.asarray(self.places < dense)

    def cumulated(self, values: Floats) -> Floats:
        """For every number of dense keys the sum of a value of the cells over their cells, shape (order.size + 1,)."""
        sums = np.bincount(self.places, values, self.order.size + 1)[:-1]
        return np.concatenate([[0.0], np.cumsum(sums)])

    def present(self, vertex: int, dense: int) -> int:
        """How many of the first `dense` keys occur in a vertex's table, as far as its heavy keys tell."""
        if vertex not in self._present:
            heavy = self.heavy[vertex]
            places = self._places_of(heavy.keys[heavy.weights != 0])
            found = np.bincount(places, minlength=self.order.size + 1)[:-1]
            self._present[vertex] = np.concatenate([[0], np.cumsum(found)])
        return int(self._present[vertex][dense])

    def unseen(self, dense: int) -> float:
        """Bound on the contribution of any key but the first `dense`; infinite without bounds."""
        return float(self._unseen[dense])

    @cached_property
    def _unseen(self) -> Floats:
        return self._left_of(*self.bounds)

    def heaviest(self, vertex: int, dense: int) -> float:
        """Bound on the weight in a vertex's table of any key but the first `dense`."""
        if vertex not in self._heaviest:
            heavy = self.heavy[vertex]
            self._heaviest[vertex] = self._left_of(heavy.keys, np.abs(heavy.weights), heavy.largest_other)
        return float(self._heaviest[vertex][dense])

    def _left_of(self, keys: Ints, values: npt.NDArray[np.float64 | np.int64], least: float) -> Floats:
        """For every number of dense keys the largest value of the others, `least` at the least."""
        left = np.full(self.order.size + 1, float(least))
        np.maximum.at(left, self._places_of(keys), values)
        return np.maximum.accumulate(left[::-1])[::-1]
