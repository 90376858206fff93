"""Sketches of join keys that are exact maps until counters would be smaller; see `sparse_first`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Keys
from .accumulate import Weights, sliced
from .exact_map import ExactMap
from .linear import LinearSketch, SketchSpec, both_tuples, check_batch, described, update_many
from .sparse_first import BLOCK, SparseFirst, add_block


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


class SparseFirstSketch(SparseFirst[SpecT, LinearSketch[Any]]):
    """An exact map of net weights, or the counters it has turned into.

    Parameters
    ----------
    spec : ConvolutionSpec or AgmsSpec
        Of the counters.
    limit_bytes : int, optional
        Size of the map above which it turns into counters; by default that of the counters. 0 keeps no map.

    Attributes
    ----------
    tuples : int or None
        See `LinearSketch`.
    """

    __slots__ = ("tuples",)

    def __init__(self, spec: SpecT, limit_bytes: int | None = None) -> None:
        super().__init__(spec, spec.nbytes if limit_bytes is None else limit_bytes)
        self.tuples: int | None = 0
        if self.limit_bytes <= 0:
            self._turn_dense()

    @classmethod
    def from_state(
        cls, spec: SpecT, state: Mapping[str, NDArray[Any]], limit_bytes: int | None = None
    ) -> Self:
        """The sketch whose `state` was taken; raises ValueError if the arrays do not fit `spec`."""
        found = super().from_state(spec, state, limit_bytes)
        found.tuples = None
        return found

    def __repr__(self) -> str:
        kind = "exact" if self._map is not None else "counters"
        return f"{described(self)[:-1]}, {kind})"

    def update(self, keys: Sequence[ArrayLike], weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples; see `LinearSketch.update`."""
        update_sparse_first([self], keys, [weights])

    def copy(self) -> Self:
        """An independent sketch of the same contents."""
        twin = super().copy()
        twin.tuples = self.tuples
        return twin

    def _combine(self, other: Self, sign: int) -> None:
        tuples = both_tuples(self.tuples, other.tuples)
        super()._combine(other, sign)
        self.tuples = tuples

    def _empty_map(self) -> ExactMap:
        return ExactMap.empty(len(self.spec.families), self.spec.dtype)

    def _new_dense(self) -> LinearSketch[Any]:
        return self.spec.empty()

    @staticmethod
    def _feed(
        dense: Sequence[LinearSketch[Any]], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        update_many(dense, columns, weights)


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
        at = slice(start, start + BLOCK)
        add_block(sketches, [c[at] for c in columns], sliced(checked, at))
        for sketch in sketches:
            sketch.tuples = None if sketch.tuples is None else sketch.tuples + min(BLOCK, length - start)
