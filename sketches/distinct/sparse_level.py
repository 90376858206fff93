"""A level sketch that is an exact map of keys until its counters would be smaller.

Small tables and columns of few values come out exact, also in set expressions, and a stream that outgrows
its map goes on in the counters of a level sketch. Those are the same as if it had never been sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import as_keys
from ..intervals.interval import Estimate, exact
from ..joins.exact_map import ExactMap, group_tuples
from .count_signature import Ints
from .level import Cells, LevelSketch, LevelSpec, integer_weights

BLOCK = 1 << 16  # tuples grouped at a time: how far a map may outgrow its limit before it is noticed


class SparseLevelSketch:
    """Distinct count of the keys whose net weight is not zero, exact while that is cheaper.

    Parameters
    ----------
    spec : LevelSpec
        Of the counters.
    limit_bytes : int, optional
        Size of the map, 16 bytes a key, above which it turns into counters; by default theirs.

    Notes
    -----
    When the change happens depends on the order of the data. Once made it stays, even if most keys are
    deleted.
    """

    def __init__(self, spec: LevelSpec | None = None, limit_bytes: int | None = None) -> None:
        self.spec = spec or LevelSpec()
        self.limit_bytes = 8 * self.spec.words if limit_bytes is None else limit_bytes
        self._map: ExactMap | None = ExactMap.empty(1, "int64")
        self._dense: LevelSketch | None = None

    @property
    def exact_keys(self) -> Ints | None:
        """All keys, ascending, while they are known."""
        return None if self._map is None else self._map.columns[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the map or of the counters."""
        return self._map.nbytes if self._map is not None else self._counters().nbytes

    def update(self, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples, in place; see `LevelSketch.update`.

        Batches of up to 65,536 tuples are added as a whole or refused; of longer ones that overflow, earlier
        blocks may have been added.
        """
        keys = as_keys(keys)
        signs = integer_weights(weights, len(keys))
        for start in range(0, len(keys), BLOCK):
            block, piece = keys[start : start + BLOCK], signs[start : start + BLOCK]
            if self._map is None:
                self._counters().update(keys[start:], signs[start:])
                return
            groups = group_tuples([block], len(block))
            self._take(self._map.plus(ExactMap.from_batch([block], groups, piece)))

    def merge(self, other: SparseLevelSketch) -> None:
        """Add the other's stream, in place; ValueError naming both if the specs differ; OverflowError."""
        self._combine(other, +1)

    def subtract(self, other: SparseLevelSketch) -> None:
        """Take the other's stream out, in place; errors as in `merge`."""
        self._combine(other, -1)

    def copy(self) -> SparseLevelSketch:
        """An independent copy."""
        twin = SparseLevelSketch(self.spec, self.limit_bytes)
        twin._map = None if self._map is None else self._map.copy()
        twin._dense = None if self._dense is None else self._dense.copy()
        return twin

    def dense(self) -> LevelSketch:
        """The counters: those it has, not to be changed, or those the map would turn into."""
        if self._map is None:
            return self._counters()
        sketch = LevelSketch(self.spec)
        sketch.update(self._map.columns[0], self._map.weights)
        return sketch

    def cells(self) -> Cells:
        """What the cells of the counters hold, or would hold."""
        return self.dense().cells()

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Number of distinct keys; exact while the map is there."""
        return exact(len(self._map)) if self._map is not None else self._counters().estimate(confidence)

    def sample(self) -> Ints:
        """Distinct keys drawn uniformly: all of them while they are known."""
        keys = self.exact_keys
        return self._counters().sample() if keys is None else keys

    def estimate_where(
        self, predicate: Callable[[Ints], NDArray[np.bool_]], confidence: float = 0.95
    ) -> Estimate:
        """Number of distinct keys that satisfy a predicate; see `LevelSketch.estimate_where`."""
        keys = self.exact_keys
        if keys is None:
            return self._counters().estimate_where(predicate, confidence)
        return exact(int(np.count_nonzero(predicate(keys))))

    def __repr__(self) -> str:
        kind = "counters" if self._map is None else f"exact, {len(self._map):,} keys"
        return f"SparseLevelSketch({self.spec}, {self.nbytes:,} bytes, {kind})"

    def state(self) -> dict[str, NDArray[np.generic]]:
        """``{"keys": ..., "weights": ...}`` while exact, then the state of the counters; copies."""
        if self._map is None:
            return self._counters().state()
        return {"keys": self._map.keys.copy(), "weights": self._map.weights.copy()}

    @classmethod
    def from_state(
        cls, spec: LevelSpec, state: Mapping[str, NDArray[np.generic]], limit_bytes: int | None = None
    ) -> SparseLevelSketch:
        """The sketch whose `state` this is; ValueError if the arrays do not fit `spec`."""
        sketch = cls(spec, limit_bytes)
        if set(state) == {"keys", "weights"}:
            sketch._map = ExactMap.from_arrays(state["keys"], state["weights"], 1, "int64")
        else:
            sketch._map, sketch._dense = None, LevelSketch.from_state(spec, state)
        return sketch

    def _combine(self, other: SparseLevelSketch, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine a {self.spec} with a {other.spec}")
        if self._map is not None and other._map is not None:
            self._take(self._map.plus(other._map, sign))
            return
        mine = self.dense()
        if sign > 0:
            mine.merge(other.dense())
        else:
            mine.subtract(other.dense())
        self._map, self._dense = None, mine

    def _take(self, grown: ExactMap) -> None:
        """Adopt a map, or turn it into counters if it is too large."""
        self._map = grown
        if grown.nbytes > self.limit_bytes:
            self._dense = self.dense()
            self._map = None

    def _counters(self) -> LevelSketch:
        assert self._dense is not None, "a sketch is a map or counters"
        return self._dense
