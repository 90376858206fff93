"""Sparse first: a synopsis that is an exact map of keys until its dense form would be smaller.

One container for all that is linear in its tuples: counters of join keys (`sparse`), level sketches (`sparse_level`),
pair samples (`sparse_pairs`). Small tables and keys of few values come out exact, with intervals of no width; nothing
has to be known about the data in advance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..hashing.xi import Keys
from .accumulate import Weights, few
from .exact_map import ExactMap, Groups, group_tuples

BLOCK = 1 << 16  # tuples grouped at a time: how far a map may outgrow its limit before it is noticed

State = dict[str, NDArray[np.generic]]


class Dense(Protocol):
    """What a map turns into."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""

    def state(self) -> State:
        """Its arrays by name; copies."""

    def merge(self, other: Self, /) -> None:
        """Add another, in place."""

    def subtract(self, other: Self, /) -> None:
        """Take another out, in place."""

    def copy(self) -> Self:
        """An independent one."""


SpecT = TypeVar("SpecT")
DenseT = TypeVar("DenseT", bound=Dense)


class SparseFirst(ABC, Generic[SpecT, DenseT]):
    """An exact map of net weights, or the dense form it has turned into.

    Parameters
    ----------
    spec
        Of the dense form.
    limit_bytes : int
        Size of the map above which it turns dense.

    Notes
    -----
    When the change happens depends on the order of the data, what the dense form is does not: it equals, bit for bit,
    one that was never sparse. Once made it stays, even if most keys are deleted: what was dropped does not come back.
    """

    __slots__ = ("_dense", "_map", "_shadow", "limit_bytes", "spec")

    def __init__(self, spec: SpecT, limit_bytes: int) -> None:
        self.spec: SpecT = spec
        self.limit_bytes = limit_bytes
        self._map: ExactMap | None = self._empty_map()
        self._dense: DenseT | None = None
        self._shadow: DenseT | None = None  # what the map would turn into, once somebody has asked

    @abstractmethod
    def _empty_map(self) -> ExactMap:
        """A map of as many attributes, and of weights of such type, as the spec has."""

    @abstractmethod
    def _new_dense(self) -> DenseT:
        """The dense form of nothing."""

    @staticmethod
    @abstractmethod
    def _feed(dense: Sequence[DenseT], columns: Sequence[Keys], weights: Sequence[Weights | None]) -> None:
        """Add the same tuples to dense forms, in place, each with weights of its own; None are ones."""

    @classmethod
    def from_state(
        cls, spec: SpecT, state: Mapping[str, NDArray[Any]], limit_bytes: int | None = None
    ) -> Self:
        """The synopsis whose `state` was taken; raises ValueError if the arrays do not fit `spec`."""
        found = cls(spec, limit_bytes)  # type: ignore[arg-type]  # each kind has a limit by default
        if set(state) == {"keys", "weights"}:
            nothing = found._empty_map()
            keys, weights = np.asarray(state["keys"]), np.asarray(state["weights"])
            found._dense = None
            found._map = ExactMap.from_arrays(
                keys, weights, nothing.keys.shape[1], nothing.weights.dtype.name
            )
        else:
            found._dense, found._map = type(found._new_dense()).from_state(spec, state), None  # type: ignore[attr-defined]
        return found

    def __repr__(self) -> str:
        kind = "dense" if self._map is None else f"exact, {len(self._map):,} keys"
        return f"{type(self).__name__}({self.spec}, {self.nbytes:,} bytes, {kind})"

    def state(self) -> State:
        """``{"keys": ..., "weights": ...}`` while exact, then the state of the dense form; copies."""
        if self._map is not None:
            return {"keys": self._map.keys.copy(), "weights": self._map.weights.copy()}
        return self._turned().state()

    @property
    def exact(self) -> ExactMap | None:
        """The map while there is one. Not to be changed."""
        return self._map

    @property
    def nbytes(self) -> int:
        """Bytes of the map or of the dense form."""
        return self._map.nbytes if self._map is not None else self._turned().nbytes

    def dense(self) -> DenseT:
        """The dense form: that which it has, or that which the map would turn into. Not to be changed.

        The latter is hashed once and kept, until the map changes; `nbytes` does not count it.
        """
        if self._map is None:
            return self._turned()
        if self._shadow is None:
            self._shadow = self._converted(self._map)
        return self._shadow

    def merge(self, other: Self) -> None:
        """Add the tuples of `other`, in place.

        Raises
        ------
        OverflowError
            If a weight or counter leaves int64.
        ValueError
            If the specs differ; both are named.
        """
        self._combine(other, 1)

    def subtract(self, other: Self) -> None:
        """Remove the tuples of `other`, in place; raises as `merge`."""
        self._combine(other, -1)

    def copy(self) -> Self:
        """An independent synopsis of the same contents."""
        twin = type(self)(self.spec, self.limit_bytes)
        twin._map = None if self._map is None else self._map.copy()
        twin._dense = None if self._dense is None else self._dense.copy()
        return twin

    def _combine(self, other: Self, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine sketches of different specs: {self.spec} and {other.spec}")
        if self._map is not None and other._map is not None:
            self._take(self._map.plus(other._map, sign))
            return
        mine = self._converted(self._map) if self._map is not None else self._turned()
        if sign > 0:
            mine.merge(other.dense())
        else:
            mine.subtract(other.dense())
        self._map, self._dense, self._shadow = None, mine, None

    def _add(self, columns: Sequence[Keys], weights: Weights) -> None:
        """Add checked tuples to this one alone, block by block."""
        for start in range(0, len(weights), BLOCK):
            at = slice(start, start + BLOCK)
            add_block([self], [c[at] for c in columns], [weights[at]])

    def _take(self, exact: ExactMap) -> None:
        """Adopt a map, or turn it dense if it is too large."""
        self._map, self._shadow = exact, None
        if exact.nbytes > self.limit_bytes:
            self._turn_dense()

    def _turn_dense(self) -> None:
        assert self._map is not None, "only a map turns dense"
        self._dense, self._map, self._shadow = self._converted(self._map), None, None

    def _converted(self, exact: ExactMap) -> DenseT:
        dense = self._new_dense()
        if len(exact):
            self._feed([dense], exact.columns, [exact.weights])
        return dense

    def _turned(self) -> DenseT:
        assert self._dense is not None, "a synopsis is a map or dense"
        return self._dense


def add_block(
    sketches: Sequence[SparseFirst[Any, DenseT]],
    columns: Sequence[Keys],
    weights: Sequence[Weights | None],
) -> None:
    """Add one block of tuples to several synopses of the same keys, all or none; the block is grouped once.

    Parameters
    ----------
    sketches : sequence of SparseFirst
        Of one kind, some exact and some not.
    columns : sequence of ndarray of int64, shape (n,)
        Checked keys, at most `BLOCK` of them.
    weights : sequence of (ndarray of shape (n,) or None)
        Checked weights, one array for each synopsis.
    """
    pairs = list(zip(sketches, weights, strict=True))
    still_exact = [(s, s._map, w) for s, w in pairs if s._map is not None]
    length = next((len(c) for c in (*columns, *weights) if c is not None), 0)
    maps: list[ExactMap] = []
    groups: Groups | None = None
    for _, exact, weight in still_exact:
        place = few(weight)
        if weight is not None and place is not None:
            own = [c[place] for c in columns]
            batch = ExactMap.from_batch(own, group_tuples(own, len(place)), weight[place])
            maps.append(exact.plus(batch))
            continue
        one = np.ones(length, np.float64) if exact.weights.dtype == np.float64 else np.ones(length, np.int64)
        values: Weights = one if weight is None else weight
        groups = group_tuples(columns, length) if groups is None else groups
        maps.append(exact.plus(ExactMap.from_batch(columns, groups, values)))
    turned = [(s._turned(), w) for s, w in pairs if s._map is None]
    sketches[0]._feed([dense for dense, _ in turned], columns, [w for _, w in turned])
    for (sketch, _, _), grown in zip(still_exact, maps, strict=True):
        sketch._take(grown)
