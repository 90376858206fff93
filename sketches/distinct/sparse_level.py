"""A level sketch that is an exact map of keys until its counters would be smaller; see `sparse_first`.

Small tables and columns of few values come out exact, also in set expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Keys, as_keys
from ..intervals.interval import Estimate, exact
from ..joins.accumulate import Weights
from ..joins.exact_map import ExactMap
from ..joins.sparse_first import SparseFirst
from .count_signature import Ints
from .level import Cells, LevelSketch, LevelSpec, integer_weights


class SparseLevelSketch(SparseFirst[LevelSpec, LevelSketch]):
    """Distinct count of the keys whose net weight is not zero, exact while that is cheaper.

    Parameters
    ----------
    spec : LevelSpec, optional
        Of the counters.
    limit_bytes : int, optional
        Size of the map, 16 bytes a key, above which it turns into counters; by default theirs.
    """

    __slots__ = ()

    def __init__(self, spec: LevelSpec | None = None, limit_bytes: int | None = None) -> None:
        spec = spec or LevelSpec()
        super().__init__(spec, 8 * spec.words if limit_bytes is None else limit_bytes)

    @property
    def exact_keys(self) -> Ints | None:
        """All keys, ascending, while they are known."""
        return None if self._map is None else self._map.columns[0]

    def update(self, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples, in place; see `LevelSketch.update`.

        Batches of up to 65,536 tuples are added as a whole or refused; of longer ones that overflow, earlier
        blocks may have been added.
        """
        keys = as_keys(keys)
        self._add([keys], integer_weights(weights, len(keys)))

    def cells(self) -> Cells:
        """What the cells of the counters hold, or would hold."""
        return self.dense().cells()

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Number of distinct keys; exact while the map is there."""
        return exact(len(self._map)) if self._map is not None else self._turned().estimate(confidence)

    def sample(self) -> Ints:
        """Distinct keys drawn uniformly: all of them while they are known."""
        keys = self.exact_keys
        return self._turned().sample() if keys is None else keys

    def estimate_where(
        self, predicate: Callable[[Ints], NDArray[np.bool_]], confidence: float = 0.95
    ) -> Estimate:
        """Number of distinct keys that satisfy a predicate; see `LevelSketch.estimate_where`."""
        keys = self.exact_keys
        if keys is None:
            return self._turned().estimate_where(predicate, confidence)
        return exact(int(np.count_nonzero(predicate(keys))))

    def _empty_map(self) -> ExactMap:
        return ExactMap.empty(1, "int64")

    def _new_dense(self) -> LevelSketch:
        return LevelSketch(self.spec)

    @staticmethod
    def _feed(
        dense: Sequence[LevelSketch], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        for one, weight in zip(dense, weights, strict=True):
            one.update(columns[0], weight)
