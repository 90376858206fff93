"""The keys that stand most often in a batch of tuples: candidates for the dense keys of a hash sketch.

A hash sketch knows what a key weighs, and not which keys there are. Whoever sees the tuples keeps the most frequent of
a systematic sample; which of them are dense the sketch says itself (`skim`), so that nothing hangs on the sample but
how much skimming gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hashing.xi import Keys
from ..ranking import by_weight
from .accumulate import Weights

METHOD = "heavy_keys"
EVERY = 8  # tuples of which one is looked at
LEAST_SEEN = 2  # in the sample: of a batch without heavy keys nothing is kept
KEPT = 4  # times as many keys as are asked for, until all is added up
_PENDING = 1 << 17

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HeavyKeysSpec:
    """How many keys are asked for."""

    most: int

    def empty(self) -> HeavyKeys:
        """Of no tuples."""
        return HeavyKeys(self)


class HeavyKeys:
    """Counts of the keys that stand most often in every eighth tuple.

    Parameters
    ----------
    spec : HeavyKeysSpec

    Notes
    -----
    About 10 ns a tuple. What is kept depends on how the tuples come in batches, and on which task has which of them.
    """

    def __init__(self, spec: HeavyKeysSpec) -> None:
        self.spec = spec
        self._keys: Ints = np.empty(0, np.int64)
        self._counts: Ints = np.empty(0, np.int64)
        self._pending: list[Ints] = []

    @property
    def nbytes(self) -> int:
        """Bytes of keys and counts."""
        return int(self._keys.nbytes + self._counts.nbytes)

    @property
    def keys(self) -> Ints:
        """The most frequent keys, ascending, `spec.most` of them at most."""
        self._compress()
        often = self._counts >= LEAST_SEEN
        keys, counts = self._keys[often], self._counts[often]
        return np.sort(keys[by_weight(counts, self.spec.most)])

    def update(self, keys: Keys, weights: Weights | None = None) -> None:
        """Add a batch of tuples; what they weigh is not asked: the sketch beside it says that."""
        self._pending.append(np.asarray(keys, np.int64)[::EVERY])
        if sum(len(p) for p in self._pending) >= _PENDING:
            self._compress()

    def merge(self, other: HeavyKeys) -> None:
        """Add the tuples that another has seen."""
        other._compress()
        self._compress()
        self._add(other._keys, other._counts)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Keys and counts; copies."""
        self._compress()
        return {"heavy": self._keys.copy(), "counts": self._counts.copy()}

    @classmethod
    def from_state(cls, spec: HeavyKeysSpec, state: Mapping[str, NDArray[Any]]) -> HeavyKeys:
        """That whose `state` was taken."""
        found = cls(spec)
        found._keys = np.asarray(state["heavy"], np.int64)
        found._counts = np.asarray(state["counts"], np.int64)
        return found

    def _compress(self) -> None:
        if self._pending:
            keys, counts = np.unique(np.concatenate(self._pending), return_counts=True)
            self._pending = []
            self._add(keys, counts)

    def _add(self, keys: Ints, counts: Ints) -> None:
        every, place = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.zeros(len(every), np.int64)
        np.add.at(sums, place, np.concatenate([self._counts, counts]))
        kept = np.sort(by_weight(sums, KEPT * self.spec.most))
        self._keys, self._counts = every[kept], sums[kept]
