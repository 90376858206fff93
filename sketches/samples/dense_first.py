"""Hash sketches that are exact maps first, and then beside dense keys that stay counted exactly.

What `sparse` is for counters alone; for tables beyond a sampled one, where a few heavy keys would fill every bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Keys
from ..joins.accumulate import Weights
from ..joins.convolution import ConvolutionSpec
from ..joins.exact_map import ExactMap
from ..joins.linear import check_batch
from ..joins.sparse import SparseFirstSketch
from ..joins.sparse_first import BLOCK, SparseFirst, State, add_block
from .packed import PackedColumn
from .two_level import TwoLevel, TwoLevelSpec, update_sketched

KEY_BYTES = 16  # a dense key and its weight

Ints = NDArray[np.int64]


class PackedMap(ExactMap):
    """An exact map of keys of one attribute in as few bits as they take, unpacked whenever they are asked for."""

    __slots__ = ("_keys", "_weights")

    def __init__(self, exact: ExactMap) -> None:
        self._keys = PackedColumn(np.ascontiguousarray(exact.keys[:, 0]), ascending=True)
        self._weights: PackedColumn | NDArray[np.float64] = (
            PackedColumn(exact.weights.astype(np.int64))
            if exact.weights.dtype == np.int64
            else exact.weights.astype(np.float64)
        )

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> Ints:  # type: ignore[override]  # nobody changes those of a map
        """See `ExactMap`."""
        return self._keys.values()[:, np.newaxis]

    @property
    def weights(self) -> Weights:  # type: ignore[override]
        """See `ExactMap`."""
        return self._weights.values() if isinstance(self._weights, PackedColumn) else self._weights

    @property
    def nbytes(self) -> int:
        """Bytes of what is held."""
        return self._keys.nbytes + self._weights.nbytes

    def copy(self) -> ExactMap:
        """Itself: it does not change."""
        return self


class DenseFirstSketch(SparseFirst[ConvolutionSpec, TwoLevel]):
    """An exact map of net weights, or dense keys with their exact weights and a hash sketch of the others.

    Parameters
    ----------
    spec : ConvolutionSpec
        Of the counters, by one attribute.
    dense_keys : ndarray of int64, shape (d,)
        Distinct keys that stay exact, in any order. They are fixed before the data is read.
    limit_bytes : int, optional
        Size of the map above which it turns into the other form; by default that of the other form. 0 keeps no map.

    Notes
    -----
    Linear in all of it: a dense key whose tuples are deleted again has the exact weight that is left of it.
    The map is held packed (`PackedMap`): keys of a small range take a byte or two, not two words.
    """

    __slots__ = ("dense_keys",)

    def __init__(self, spec: ConvolutionSpec, dense_keys: Ints, limit_bytes: int | None = None) -> None:
        self.dense_keys: Ints = np.unique(np.asarray(dense_keys, np.int64))
        whole = spec.nbytes + KEY_BYTES * self.dense_keys.size
        super().__init__(spec, whole if limit_bytes is None else limit_bytes)
        if self.limit_bytes <= 0:
            self._turn_dense()

    @classmethod
    def from_state(
        cls, spec: ConvolutionSpec, state: Mapping[str, NDArray[Any]], limit_bytes: int | None = None
    ) -> Self:
        """The sketch whose `state` was taken; raises ValueError if the arrays do not fit `spec`."""
        keys = np.asarray(state["dense_keys"])
        if keys.dtype != np.int64 or keys.ndim != 1 or np.any(keys[1:] <= keys[:-1]):
            raise ValueError(f"the stored dense keys are not in ascending order, so not a state of {spec}")
        found = cls(spec, keys, limit_bytes)
        if "dense_weights" in state:
            found._dense, found._map = TwoLevel.from_state(TwoLevelSpec(spec), state), None
        else:
            found._dense = None
            found._map = PackedMap(ExactMap.from_arrays(state["keys"], state["weights"], 1, spec.dtype))
        return found

    def state(self) -> State:
        """``{"dense_keys": ..., "keys": ..., "weights": ...}`` while exact, then the state of `TwoLevel`; copies."""
        return {"dense_keys": self.dense_keys.copy(), **super().state()}

    @property
    def nbytes(self) -> int:
        """Bytes of the map, or of both parts of the other form."""
        return super().nbytes + (self.dense_keys.nbytes if self._map is not None else 0)

    def update(self, keys: Sequence[ArrayLike], weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples; see `LinearSketch.update`."""
        update_dense_first([self], keys, [weights])

    def copy(self) -> Self:
        """An independent sketch of the same contents."""
        twin = type(self)(self.spec, self.dense_keys, self.limit_bytes)
        twin._map = None if self._map is None else self._map.copy()
        twin._dense = None if self._dense is None else self._dense.copy()
        return twin

    def plain(self) -> SparseFirstSketch[ConvolutionSpec]:
        """The same tuples in the counters of a hash sketch alone, which is joined with any other of its hashes."""
        if self._map is not None:
            state: Mapping[str, NDArray[Any]] = {"keys": self._map.keys, "weights": self._map.weights}
        else:
            beside = self._turned()
            counters = beside.sketch.copy()
            counters.update([beside.dense_keys], beside.dense_weights[0])
            state = counters.state()
        return SparseFirstSketch.from_state(self.spec, state, self.limit_bytes)

    def _combine(self, other: Self, sign: int) -> None:
        if not np.array_equal(self.dense_keys, other.dense_keys):
            raise ValueError(
                "hash sketches of different dense keys do not add up: "
                f"{self.dense_keys.size} and {other.dense_keys.size} of them"
            )
        super()._combine(other, sign)

    def _empty_map(self) -> ExactMap:
        return ExactMap.empty(1, self.spec.dtype)

    def _take(self, exact: ExactMap) -> None:
        super()._take(PackedMap(exact))

    def _new_dense(self) -> TwoLevel:
        return TwoLevel(TwoLevelSpec(self.spec), self.dense_keys)

    @staticmethod
    def _feed(dense: Sequence[TwoLevel], columns: Sequence[Keys], weights: Sequence[Weights | None]) -> None:
        update_sketched(dense, columns[0], weights)


def update_dense_first(
    sketches: Sequence[DenseFirstSketch], keys: Sequence[ArrayLike], weights: Sequence[ArrayLike | None]
) -> None:
    """Add one batch to several sketches of the same family and dense keys; see `update_sparse_first`."""
    columns, checked = check_batch([s.spec for s in sketches], keys, weights)
    for start in range(0, len(columns[0]), BLOCK):
        at = slice(start, start + BLOCK)
        add_block(sketches, [columns[0][at]], [None if w is None else w[at] for w in checked])
