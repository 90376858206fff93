"""What a join tree's relations contribute to a query, by class: moments of messages and of contributions.

For a class, the contribution of a key is the product over its member relations of the key's weight there, each
tuple weighted by the messages that it receives from its other classes. Between the attributes of one relation
independence is assumed: the message that a tuple receives over one class has nothing to do with its key in
another. Within a class nothing is assumed that the cells (`cells.key_cells`) know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...sketches.ranking import by_weight, rounded
from ..messages import Fold, JoinTree
from .cells import KeyCells, key_cells
from .dense import DenseKeys
from .relation import Attribute, Relation

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PerTuple:
    """What a tuple of a relation receives from its other classes: mean, mean square, and an upper bound."""

    mean: float = 1.0
    square: float = 1.0
    largest: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """Contributions of the keys of one class to the query's total.

    Parameters
    ----------
    cells : KeyCells
        Tables in the order of the class's vertices.
    means, squares : ndarray of float64, shape (n,)
        Mean of a key's contribution and of its square, for each cell.
    most : tuple of float
        For each table the largest factor by which messages multiply the weight of a tuple.
    """

    cells: KeyCells
    means: Floats
    squares: Floats
    most: tuple[float, ...]

    @property
    def total(self) -> float:
        """The predicted answer."""
        return self.cells.total(self.means)


@dataclass(eq=False)
class Figures:
    """A join tree with its relations' figures; what is derived from them is computed once.

    Parameters
    ----------
    tree : JoinTree
    relations : sequence of Relation
        One for each vertex, attributes in the order of `JoinTree.classes_of`.
    """

    tree: JoinTree
    relations: Sequence[Relation]
    _cells: dict[int, KeyCells] = field(default_factory=dict)
    _received: dict[tuple[int, int], PerTuple] = field(default_factory=dict)
    _over: dict[tuple[int, int], PerTuple] = field(default_factory=dict)
    _contributions: dict[int, Contributions] = field(default_factory=dict)
    _dense_order: dict[int, Ints] = field(default_factory=dict)
    _dense: dict[int, DenseKeys] = field(default_factory=dict)
    _bounds: dict[int, tuple[Ints, Floats, float]] = field(default_factory=dict)

    def attribute(self, vertex: int, joined: int) -> Attribute:
        """The figures of a vertex's attribute in a class."""
        return self.relations[vertex].attributes[self.tree.position(vertex, joined)]

    def cells(self, joined: int) -> KeyCells:
        """The keys of a class; tables in the order of its vertices."""
        if joined not in self._cells:
            members = self.tree.classes[joined].vertices
            self._cells[joined] = key_cells([(self.relations[v], self.attribute(v, joined)) for v in members])
        return self._cells[joined]

    def received(self, vertex: int, joined: int) -> PerTuple:
        """What a tuple of the vertex receives from all its classes but `joined`."""
        if (vertex, joined) not in self._received:
            mean = square = largest = 1.0
            for other in self.tree.classes_of(vertex):
                if other != joined:
                    part = self.over(vertex, other)
                    mean, square, largest = mean * part.mean, square * part.square, largest * part.largest
            self._received[vertex, joined] = PerTuple(mean, square, largest)
        return self._received[vertex, joined]

    def over(self, vertex: int, joined: int) -> PerTuple:
        """What a tuple of the vertex receives from one class."""
        if (vertex, joined) not in self._over:
            self._over[vertex, joined] = self._received_over(vertex, joined)
        return self._over[vertex, joined]

    def _received_over(self, vertex: int, joined: int) -> PerTuple:
        members = self.tree.classes[joined].vertices
        cells = self.cells(joined)
        mine = members.index(vertex)
        means, squares, most = self._products(joined, exclude=mine)
        tuples = cells.total(cells.weights[mine])
        if not tuples:
            return PerTuple(0.0, 0.0, 0.0)
        factors = [factor for number, factor in enumerate(most) if number != mine]
        factors += [self.heaviest(v, joined) for v in members if v != vertex]
        largest = 0.0 if 0.0 in factors else math.prod(factors)
        weights = cells.counts * cells.weights[mine]
        return PerTuple(float(weights @ means) / tuples, float(weights @ squares) / tuples, largest)

    def mean_square(self, fold: Fold) -> float:
        """Mean square of what an exact message multiplies the tuples of its receiver by."""
        members, cells = self.tree.classes[fold.joined].vertices, self.cells(fold.joined)
        sent, own = members.index(fold.sender), cells.weights[members.index(fold.receiver)]
        part = self.received(fold.sender, fold.joined)
        spread = max(part.square - part.mean**2, 0.0)
        squares = cells.squares[sent] * part.mean**2 + cells.weights[sent] * spread
        tuples = cells.total(own)
        return cells.total(own * squares) / tuples if tuples else 0.0

    def heaviest(self, vertex: int, joined: int) -> float:
        """Bound on the weight of any key of a vertex's attribute; infinite where nothing bounds it."""
        heavy = self.attribute(vertex, joined).heavy
        return max(float(np.abs(heavy.weights).max(initial=0)), heavy.largest_other)

    def _products(self, joined: int, exclude: int | None = None) -> tuple[Floats, Floats, tuple[float, ...]]:
        members, cells = self.tree.classes[joined].vertices, self.cells(joined)
        means, squares, most = np.ones(cells.counts.size), np.ones(cells.counts.size), []
        for number, vertex in enumerate(members):
            part = self.received(vertex, joined) if number != exclude else PerTuple()
            most.append(part.largest)
            if number != exclude:
                w = cells.weights[number]
                means = means * w * part.mean
                spread = max(part.square - part.mean**2, 0.0)
                squares = squares * (cells.squares[number] * part.mean**2 + w * spread)
        return means, squares, tuple(most)

    def contributions(self, joined: int) -> Contributions:
        """The contributions of the keys of a class."""
        if joined not in self._contributions:
            means, squares, most = self._products(joined)
            self._contributions[joined] = Contributions(self.cells(joined), means, squares, most)
        return self._contributions[joined]

    def dense_order(self, joined: int) -> Ints:
        """Heavy keys of a class by their expected squared contribution, largest first.

        Keys that cannot contribute are left out: they need no entry.
        """
        if joined not in self._dense_order:
            parts = self.contributions(joined)
            heavy = parts.cells.heavy
            keys, inverse = np.unique(parts.cells.keys[heavy], return_inverse=True)
            squares = np.bincount(inverse, (parts.cells.counts * parts.squares)[heavy], keys.size)
            order = by_weight(rounded(squares))
            self._dense_order[joined] = keys[order[squares[order] > 0.0]]
        return self._dense_order[joined]

    def dense(self, joined: int) -> DenseKeys:
        """What any number of dense keys of a class leaves."""
        if joined not in self._dense:
            heavy = {v: self.attribute(v, joined).heavy for v in self.tree.classes[joined].vertices}
            self._dense[joined] = DenseKeys(
                self.dense_order(joined), self.cells(joined), self.heavy_bounds(joined), heavy
            )
        return self._dense[joined]

    def largest_unseen(self, joined: int, dense: Ints) -> float:
        """Bound on the contribution of any key of a class that is not dense; infinite without bounds."""
        keys, bounds, rest = self.heavy_bounds(joined)
        return max(float(bounds[~np.isin(keys, dense)].max(initial=0.0)), rest)

    def heavy_bounds(self, joined: int) -> tuple[Ints, Floats, float]:
        """The heavy keys of a class, a bound on the contribution of each, and one on that of any other key."""
        if joined not in self._bounds:
            self._bounds[joined] = self._heavy_bounds(joined)
        return self._bounds[joined]

    def _heavy_bounds(self, joined: int) -> tuple[Ints, Floats, float]:
        vertices = self.tree.classes[joined].vertices
        factors = [self.received(v, joined).largest for v in vertices]
        factor = 0.0 if 0.0 in factors else math.prod(factors)
        named = [self.attribute(v, joined).heavy for v in vertices]
        keys = np.unique(np.concatenate([h.keys for h in named]))
        bounds = np.full(keys.size, factor)
        for heavy in named:
            own = np.full(keys.size, heavy.largest_other)
            own[np.searchsorted(keys, heavy.keys)] = np.abs(heavy.weights)
            none = (bounds == 0) | (own == 0)
            bounds = np.where(none, 0.0, np.where(none, 1.0, bounds) * np.where(none, 1.0, own))
        others = [factor, *(h.largest_other for h in named)]
        return keys, bounds, 0.0 if 0.0 in others else math.prod(others)

    @cached_property
    def total(self) -> float:
        """The predicted answer: of the class whose cells know most."""
        if not self.tree.classes:
            return self.relations[0].tuples
        best = max(range(len(self.tree.classes)), key=lambda j: int(self.cells(j).heavy.sum()))
        return self.contributions(best).total

    def sizes(self, order: Sequence[int]) -> tuple[float, ...]:
        """Predicted tuples of the join of the first two, three, ... of vertices that hang together all the way."""
        return tuple(self._size(frozenset(order[:n])) for n in range(2, len(order) + 1))

    def _size(self, vertices: frozenset[int]) -> float:
        """Predicted tuples of the join of some vertices."""
        if len(vertices) == self.tree.vertices:
            return self.total
        inside = [j for j, c in enumerate(self.tree.classes) if len(vertices.intersection(c.vertices)) > 1]
        best = max(inside, key=lambda j: int(self.cells(j).heavy.sum()))
        return self.cells(best).total(self._within(best, vertices))

    def _within(self, joined: int, vertices: frozenset[int], exclude: int | None = None) -> Floats:
        """Mean contribution of the keys of a class to the join of some vertices, one of them left out or none."""
        cells, product = self.cells(joined), np.ones(self.cells(joined).counts.size)
        for number, vertex in enumerate(self.tree.classes[joined].vertices):
            if vertex not in vertices or vertex == exclude:
                continue
            product = product * cells.weights[number]
            for other in self.tree.classes_of(vertex):
                if other != joined and len(vertices.intersection(self.tree.classes[other].vertices)) > 1:
                    far = self.cells(other)
                    own = far.counts * far.weights[self.tree.classes[other].vertices.index(vertex)]
                    tuples = float(own.sum())
                    product = product * (
                        own @ self._within(other, vertices, vertex) / tuples if tuples else 0.0
                    )
        return product

    def message_keys(self, vertex: int, joined: int, senders: Sequence[int] = ()) -> float:
        """Keys in the exact message of a vertex over a class, after the messages of `senders` over that class.

        A key that a sender does not have is not in the message, since its weight would be 0.
        """
        members, cells = self.tree.classes[joined].vertices, self.cells(joined)
        present = np.ones(cells.counts.size)
        for v in (vertex, *(s for s in senders if s in members)):
            present = present * np.minimum(cells.weights[members.index(v)], 1.0)
        return min(cells.total(present), self.attribute(vertex, joined).distinct)
