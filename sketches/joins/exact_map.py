"""Exact maps from join keys to net weights, and the exact join of such maps over a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hashing.xi import Keys
from .accumulate import Weights, check_not_wrapped, integer_sums
from .join_tree import Edges, check_tree, children_first

Message = tuple[Keys, NDArray[Any]]  # sorted keys of one edge, and the weight of each
IndexArray = NDArray[np.int64]


class ExactMap:
    """Net weight of every key tuple seen, without those whose weights cancel out.

    Attributes
    ----------
    keys : ndarray of int64, shape (entries, attributes)
        Distinct, in lexicographic order. The same for every order and partition of the data.
    weights : ndarray of int64 or float64, shape (entries,)
        None is zero.
    """

    __slots__ = ("keys", "weights")

    def __init__(self, keys: Keys, weights: Weights) -> None:
        self.keys = keys
        self.weights = weights

    @classmethod
    def empty(cls, attributes: int, dtype: str) -> ExactMap:
        """A map of nothing."""
        return cls(np.empty((0, attributes), dtype=np.int64), np.empty(0, dtype=dtype))

    @classmethod
    def from_batch(cls, columns: Sequence[Keys], groups: Groups, weights: Weights) -> ExactMap:
        """Net weights of a batch whose tuples are already grouped by `group_tuples`."""
        keys = np.stack([c[groups.first] for c in columns], axis=1) if columns else _no_keys(groups.count)
        return cls(keys, weights)._summed(groups, weights)

    @classmethod
    def from_arrays(cls, keys: NDArray[Any], weights: NDArray[Any], attributes: int, dtype: str) -> ExactMap:
        """A map from stored arrays; ValueError unless they are what `keys` and `weights` can be."""
        if keys.shape != (len(weights), attributes) or keys.dtype != np.int64 or weights.dtype != dtype:
            raise ValueError(
                f"keys of {keys.dtype} {keys.shape} and weights of {weights.dtype} {weights.shape} "
                f"are no map of {attributes} attributes with {dtype} weights"
            )
        if weights.ndim != 1 or not weights.all() or not _strictly_increasing(keys):
            raise ValueError("the keys of a map are distinct and sorted, and its weights not zero")
        return cls(keys.copy(), weights.copy())

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and weights."""
        return self.keys.nbytes + self.weights.nbytes

    @property
    def columns(self) -> list[Keys]:
        """The keys as one array for each attribute."""
        return [np.ascontiguousarray(self.keys[:, i]) for i in range(self.keys.shape[1])]

    def copy(self) -> ExactMap:
        """An independent map."""
        return ExactMap(self.keys.copy(), self.weights.copy())

    def plus(self, other: ExactMap, sign: int = 1) -> ExactMap:
        """The map of both together, `other` taken away where `sign` is -1; OverflowError beyond 64 bits."""
        keys = np.concatenate([self.keys, other.keys])
        groups = group_tuples([keys[:, i] for i in range(keys.shape[1])], len(keys))
        # Subtract sums, not weights: the negative of the smallest int64 is no int64.
        mine, theirs = groups.split(len(self.keys))
        union = ExactMap(keys[groups.first], np.empty(0))
        return union._combined(mine.sums(self.weights), theirs.sums(other.weights), sign)

    def _summed(self, groups: Groups, weights: Weights) -> ExactMap:
        total = groups.sums(weights)
        if total.dtype == np.int64:
            check_not_wrapped(total, groups.sums(weights.astype(np.float64)).astype(np.float64), "a batch")
        return ExactMap(self.keys, total)._without_zeros()

    def _combined(self, mine: Weights, theirs: Weights, sign: int) -> ExactMap:
        combine = np.add if sign > 0 else np.subtract
        total = combine(mine, theirs)
        if total.dtype == np.int64:
            check_not_wrapped(total, combine(mine.astype(np.float64), theirs.astype(np.float64)), "a map")
        return ExactMap(self.keys, total)._without_zeros()

    def _without_zeros(self) -> ExactMap:
        kept = self.weights != 0
        return self if kept.all() else ExactMap(self.keys[kept], self.weights[kept])


class Groups:
    """Tuples grouped by equal keys.

    Attributes
    ----------
    count : int
        Number of groups, in lexicographic order of their keys.
    first : ndarray of int64, shape (count,)
        Position of a tuple of each group.
    member : ndarray of int64, shape (n,)
        Group of each tuple.
    """

    __slots__ = ("count", "first", "member")

    def __init__(self, count: int, first: IndexArray, member: IndexArray) -> None:
        self.count = count
        self.first = first
        self.member = member

    def sums(self, weights: Weights) -> Weights:
        """Sum of the weights in each group, integers modulo 2^64."""
        if weights.dtype == np.int64:
            return integer_sums(self.member, weights.astype(np.int64, copy=False), self.count)
        # Of no tuples at all, bincount gives integers whatever the weights are.
        sums = np.bincount(self.member, weights=weights, minlength=self.count)
        return sums.astype(np.float64, copy=False)

    def split(self, position: int) -> tuple[Groups, Groups]:
        """The same groups over the tuples before `position`, and over the others."""
        before, after = self.member[:position], self.member[position:]
        return Groups(self.count, self.first, before), Groups(self.count, self.first, after)


def group_tuples(columns: Sequence[Keys], length: int) -> Groups:
    """Group `length` tuples by their keys: O(n log n); all in one group if there are no attributes."""
    if length == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Groups(0, nothing, nothing)
    if not columns:
        return Groups(1, np.zeros(1, dtype=np.int64), np.zeros(length, dtype=np.int64))
    order = (
        np.lexsort(tuple(reversed(columns))) if len(columns) > 1 else np.argsort(columns[0], kind="stable")
    )
    new = np.zeros(length, dtype=bool)
    new[0] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    member = np.empty(length, dtype=np.int64)
    member[order] = np.cumsum(new) - 1
    return Groups(int(new.sum()), order[new].astype(np.int64), member)


def exact_join(maps: Sequence[ExactMap], edges: Edges) -> int | float:
    """The exact join aggregate of maps over a tree.

    Parameters
    ----------
    maps : sequence of ExactMap
        One for each vertex; the same one may serve several.
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v; see `join_tree.check_tree`.

    Returns
    -------
    int or float
        The sum over joining tuples of the products of their weights: an int of any size if all weights are
        integers.

    Notes
    -----
    Message passing from the leaves (Yannakakis): every vertex sends (key -> summed weight) along its one edge
    towards the root. Time O(entries * log(entries)), never the size of the join.
    """
    check_tree([m.keys.shape[1] for m in maps], edges)
    integers = all(m.weights.dtype == np.int64 for m in maps)
    received: dict[int, list[tuple[int, Message]]] = {v: [] for v in range(len(maps))}
    for child, parent, mine, theirs in children_first(edges):
        rows, weights = _scaled(maps[child], received[child], integers)
        received[parent].append((theirs, _message(maps[child].keys[rows, mine], weights)))
    _, weights = _scaled(maps[0], received[0], integers)
    total = weights.sum() if len(weights) else 0
    return int(total) if integers else float(total)


def _scaled(
    exact: ExactMap, messages: Sequence[tuple[int, Message]], integers: bool
) -> tuple[IndexArray, NDArray[Any]]:
    """Rows that every message knows, and their weights times its own; integers as Python objects."""
    rows = np.arange(len(exact), dtype=np.int64)
    weights: NDArray[Any] = exact.weights.astype(object if integers else np.float64)
    for axis, (keys, values) in messages:
        wanted = exact.keys[rows, axis]
        place = np.searchsorted(keys, wanted)
        found = place < len(keys)
        found[found] = keys[place[found]] == wanted[found]
        rows, weights = rows[found], weights[found] * values[place[found]]
    return rows, weights


def _message(keys: Keys, weights: NDArray[Any]) -> Message:
    """Sum the weights of equal keys."""
    if len(keys) == 0:
        return keys, weights
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.add.reduceat(weights[order], starts)


def _no_keys(count: int) -> Keys:
    return np.empty((count, 0), dtype=np.int64)


def _strictly_increasing(keys: Keys) -> bool:
    """Whether the rows are distinct and in lexicographic order."""
    if keys.shape[1] == 0:
        return len(keys) <= 1
    groups = group_tuples([keys[:, i] for i in range(keys.shape[1])], len(keys))
    return bool(groups.count == len(keys) and (groups.member == np.arange(len(keys))).all())
