"""The parts into which the keys of a join are split, each with sketches of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class DomainPartition:
    """How the keys of one join are routed: those from `lows[i]` up to the next low go to part `labels[i]`.

    The first range also takes all smaller keys, the last all greater ones.
    """

    lows: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of parts."""
        return max(self.labels) + 1

    def part_of(self, keys: ArrayLike) -> NDArray[np.int64]:
        """The part of every key, by binary search; keys are int64 of any shape."""
        ranges = np.searchsorted(np.array(self.lows[1:], dtype=np.int64), np.asarray(keys), side="right")
        return np.asarray(np.array(self.labels, dtype=np.int64)[ranges])
