"""Sparse first: a sketch that is an exact map until counters would be smaller.

Small tables and keys of few values come out exact, with intervals of no width; nothing has to be known about
the data in advance. Once a map has turned into counters it stays so: later deletions do not bring back what
was dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Keys
from .accumulate import Weights
from .exact_map import ExactMap, Groups, group_tuples
from .linear import LinearSketch, SketchSpec, State, both_tuples, check_batch, described, update_many

BLOCK = 1 << 16  # tuples grouped at a time: how far a map may outgrow its limit before it is noticed


class ConvertibleSpec(SketchSpec, Protocol):
    """A spec that knows its sketch, so that a map can turn into one."""

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""

    @property
    def basis(self) -> str:
        """What an interval rests on: "theorem" or "measured"."""

    def empty(self) -> LinearSketch[Any]:
        """A new sketch of this spec."""


SpecT = TypeVar("SpecT", bound=ConvertibleSpec)


class SparseFirstSketch(Generic[SpecT]):
    """An exact map of net weights, or the counters it has turned into.

    Parameters
    ----------
    spec : ConvolutionSpec or AgmsSpec
        Of the counters.
    limit_bytes : int, optional
        Size of the map above which it turns into counters; by default that of the counters. 0 keeps no map.

    Notes
    -----
    When the change happens depends on the order of the data, what the counters are does not: they equal
    those of a sketch that was never sparse.
    """

    __slots__ = ("_dense", "_map", "_shadow", "limit_bytes", "spec", "tuples")

    def __init__(self, spec: SpecT, limit_bytes: int | None = None) -> None:
        self.spec: SpecT = spec
        self.limit_bytes = spec.nbytes if limit_bytes is None else limit_bytes
        self._map: ExactMap | None = ExactMap.empty(len(spec.families), spec.dtype)
        self._dense: LinearSketch[Any] | None = None
        self.tuples: int | None = 0
        self._shadow: LinearSketch[Any] | None = None  # what the map would turn into, once somebody has asked
        if self.limit_bytes <= 0:
            self._turn_dense()

    @classmethod
    def from_state(
        cls, spec: SpecT, state: Mapping[str, NDArray[np.generic]], limit_bytes: int | None = None
    ) -> Self:
        """The sketch whose `state` was taken; raises ValueError if the arrays do not fit `spec`."""
        sketch = cls(spec, limit_bytes)
        sketch.tuples = None
        if set(state) == {"keys", "weights"}:
            sketch._map = ExactMap.from_arrays(
                np.asarray(state["keys"]), np.asarray(state["weights"]), len(spec.families), spec.dtype
            )
            sketch._dense = None
            return sketch
        sketch._dense = type(spec.empty()).from_state(spec, state)
        sketch._map = None
        return sketch

    def __repr__(self) -> str:
        kind = "exact" if self._map is not None else "counters"
        return f"{described(self)[:-1]}, {kind})"

    def state(self) -> State:
        """``{"keys": ..., "weights": ...}`` while exact, then ``{"counters": ...}``; copies."""
        if self._map is not None:
            return {"keys": self._map.keys.copy(), "weights": self._map.weights.copy()}
        return self._counters().state()

    @property
    def exact(self) -> ExactMap | None:
        """The map while there is one. Not to be changed."""
        return self._map

    @property
    def nbytes(self) -> int:
        """Bytes of the map or of the counters."""
        return self._map.nbytes if self._map is not None else self._counters().nbytes

    def dense(self) -> LinearSketch[Any]:
        """The counters: those it has, or those that the map would turn into. Not to be changed.

        The latter are hashed once and kept, until the map changes; `nbytes` does not count them.
        """
        if self._map is None:
            return self._counters()
        if self._shadow is None:
            self._shadow = self._converted(self._map)
        return self._shadow

    def update(self, keys: Sequence[ArrayLike], weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples; see `LinearSketch.update`."""
        update_sparse_first([self], keys, [weights])

    def merge(self, other: SparseFirstSketch[SpecT]) -> None:
        """Add the tuples of `other`, in place; OverflowError if a weight or counter leaves int64."""
        self._combine(other, 1)

    def subtract(self, other: SparseFirstSketch[SpecT]) -> None:
        """Remove the tuples of `other`, in place; OverflowError if a weight or counter leaves int64."""
        self._combine(other, -1)

    def copy(self) -> Self:
        """An independent sketch of the same contents."""
        twin = type(self)(self.spec, self.limit_bytes)
        twin._map = None if self._map is None else self._map.copy()
        twin._dense = None if self._dense is None else self._dense.copy()
        twin.tuples = self.tuples
        return twin

    def _combine(self, other: SparseFirstSketch[SpecT], sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"sketches of different specs cannot be combined: {self.spec} and {other.spec}")
        tuples = both_tuples(self.tuples, other.tuples)
        if self._map is not None and other._map is not None:
            self._take(self._map.plus(other._map, sign))
            self.tuples = tuples
            return
        mine = self._converted(self._map) if self._map is not None else self._counters()
        if sign > 0:
            mine.merge(other.dense())
        else:
            mine.subtract(other.dense())
        self._map, self._dense, self._shadow = None, mine, None
        self.tuples = tuples

    def _take(self, exact: ExactMap) -> None:
        """Adopt a map, or turn into its counters if it is too large."""
        self._map, self._shadow = exact, None
        if exact.nbytes > self.limit_bytes:
            self._turn_dense()

    def _turn_dense(self) -> None:
        assert self._map is not None, "only a map turns into counters"
        self._dense, self._map, self._shadow = self._converted(self._map), None, None

    def _converted(self, exact: ExactMap) -> LinearSketch[Any]:
        sketch = self.spec.empty()
        sketch.update(exact.columns, exact.weights)
        return sketch

    def _counters(self) -> LinearSketch[Any]:
        assert self._dense is not None, "a sketch is a map or counters"
        return self._dense


def update_sparse_first(
    sketches: Sequence[SparseFirstSketch[SpecT]],
    keys: Sequence[ArrayLike],
    weights: Sequence[ArrayLike | None],
) -> None:
    """Add one batch to several sketches of the same families, grouping and hashing once.

    Parameters
    ----------
    sketches : sequence of SparseFirstSketch
        Of equal layout, some exact and some not; the types of the weights and the numbers of rows may differ.
    keys : sequence of ndarray of int64, shape (n,)
        One array for each attribute.
    weights : sequence of (ndarray of shape (n,) or None)
        One for each sketch, see `LinearSketch.update`.

    Raises
    ------
    OverflowError
        If a weight or counter leaves int64. Batches of up to 65,536 tuples are added to all sketches or
        none; of longer ones, earlier blocks may have been added.
    ValueError
        If the arrays or sketches do not fit together; nothing is added then.

    Notes
    -----
    While exact, a block costs a sort of its tuples and one of the map: about 100 ns a tuple.
    """
    if len(sketches) != len(weights):
        raise ValueError(f"{len(sketches)} sketches need as many weights, not {len(weights)}")
    if not sketches:
        return
    for other in sketches[1:]:
        if other.spec.layout != sketches[0].spec.layout:
            raise ValueError(
                f"sketches of different layouts cannot share hashes: {sketches[0].spec} and {other.spec}"
            )
    if len({id(s) for s in sketches}) < len(sketches):
        raise ValueError("a sketch is listed twice in one batch; add up its weights instead")
    columns, checked = check_batch([s.spec for s in sketches], keys, weights)
    length = len(columns[0]) if columns else len(checked[0]) if checked[0] is not None else 0
    for start in range(0, length, BLOCK):
        block = slice(start, start + BLOCK)
        _add_block(sketches, [c[block] for c in columns], [None if w is None else w[block] for w in checked])


def _add_block(
    sketches: Sequence[SparseFirstSketch[SpecT]], columns: Sequence[Keys], weights: Sequence[Weights | None]
) -> None:
    still_exact = [(s, w) for s, w in zip(sketches, weights, strict=True) if s.exact is not None]
    maps = _grown_maps(still_exact, columns)
    counted = [(s._counters(), w) for s, w in zip(sketches, weights, strict=True) if s.exact is None]
    update_many([sketch for sketch, _ in counted], columns, [w for _, w in counted])
    for (sketch, _), grown in zip(still_exact, maps, strict=True):
        sketch._take(grown)
    length = next((len(c) for c in (*columns, *weights) if c is not None), 0)
    for sketch in sketches:
        sketch.tuples = None if sketch.tuples is None else sketch.tuples + length


def _grown_maps(
    sketches: Sequence[tuple[SparseFirstSketch[SpecT], Weights | None]], columns: Sequence[Keys]
) -> list[ExactMap]:
    """The map of each sketch after a block, without changing any."""
    maps: list[ExactMap] = []
    groups: Groups | None = None
    for sketch, weight in sketches:
        assert sketch.exact is not None, "chosen so"
        length = len(columns[0]) if columns else len(weight) if weight is not None else 0
        values = np.ones(length, dtype=sketch.spec.dtype) if weight is None else weight
        groups = group_tuples(columns, length) if groups is None else groups
        maps.append(sketch.exact.plus(ExactMap.from_batch(columns, groups, values)))
    return maps
