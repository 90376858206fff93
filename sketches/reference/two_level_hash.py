"""The 2-level hash sketch with bit counters, as published: a reference for the level sketch.

Every copy sends a key to level j with probability 2^-(j+1); the level keeps a *count signature*: the total
weight and, for each bit of the key, the weight of the keys that have it set. If every bit counter is zero or
equal to the total, there is one key, and the counters spell it.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005, Section 2.2 and Figure 2.

Notes
-----
Right for streams whose net frequencies are not negative, as in the paper: weights of both signs can cancel
in all counters of a cell. An update touches 1 + key_bits counters in every copy, and a cell takes 65 words
for 64-bit keys, where the level sketch takes three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..distinct.count_signature import EMPTY, MULTIPLE, SINGLETON
from ..distinct.level import Cells
from ..distinct.witness import estimate_keys
from ..hashing.xi import Family, Keys, check_families, make_family
from ..intervals.interval import Estimate
from ..joins.accumulate import Counters, Weights
from ..joins.linear import LinearSketch
from .fm import MAX_LEVELS, hash_levels

BLOCK = 1 << 12


@dataclass(frozen=True, slots=True)
class TwoLevelHashSpec:
    """Size and hash functions of a 2-level hash sketch.

    Parameters
    ----------
    family : Family
        One function for each copy.
    copies : int
        Independent sketches, s1 in [1].
    levels : int
        First-level buckets, 2 to 33.
    key_bits : int
        1 to 64, log M in [1]. Keys lie in [0, 2**key_bits); 64 stands for any int64.
    """

    family: Family = field(default_factory=make_family)
    copies: int = 64
    levels: int = 32
    key_bits: int = 64

    dtype = "int64"

    def __post_init__(self) -> None:
        check_families("TwoLevelHashSpec", self.family)
        if self.copies < 1:
            raise ValueError(f"a 2-level hash sketch has at least one copy, not {self.copies}")
        if not 2 <= self.levels <= MAX_LEVELS:
            raise ValueError(f"a 2-level hash sketch has 2 to {MAX_LEVELS} levels, not {self.levels}")
        if not 1 <= self.key_bits <= 64:
            raise ValueError(f"keys have 1 to 64 bits, not {self.key_bits}")

    @property
    def families(self) -> tuple[Family, ...]:
        """The one family."""
        return (self.family,)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters: the total and each bit, by copies * levels cells."""
        return 1 + self.key_bits, self.copies * self.levels

    @property
    def layout(self) -> tuple[object, ...]:
        """Everything: there is one type of counter."""
        return self.family, self.copies, self.levels, self.key_bits

    def __str__(self) -> str:
        size = f"{self.copies} copies x {self.levels} levels x {self.key_bits} bits"
        return f"2-level hash sketch of {size}, {self.family}"

    def add_batch(
        self, targets: Sequence[Counters], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        """See `SketchSpec`. Time O(n * copies * key_bits)."""
        (keys,) = columns
        if len(keys) and self.key_bits < 64 and not 0 <= keys.min() <= keys.max() < 1 << self.key_bits:
            outside = int(np.flatnonzero((keys < 0) | (keys >= 1 << self.key_bits))[0])
            raise ValueError(f"key {keys[outside]} at position {outside} is outside [0, 2**{self.key_bits})")
        rows = np.arange(self.copies)[:, None] * self.levels
        for start in range(0, len(keys), BLOCK):
            block = keys[start : start + BLOCK]
            cells = rows + hash_levels(self.family, block, self.copies, self.levels)
            for target, column in zip(targets, weights, strict=True):
                piece = np.ones(len(block), target.dtype) if column is None else column[start : start + BLOCK]
                piece = piece.astype(target.dtype)
                np.add.at(target[0], cells.ravel(), np.tile(piece, self.copies))
                for bit in range(self.key_bits):
                    has = np.flatnonzero((block >> np.int64(bit)) & 1)
                    np.add.at(target[1 + bit], cells[:, has].ravel(), np.tile(piece[has], self.copies))


class TwoLevelHashSketch(LinearSketch[TwoLevelHashSpec]):
    """Distinct count, and set expressions over several streams, from count signatures with bit counters.

    Update with one key column, ``update([keys], weights)``; a key outside the domain is a ValueError.
    """

    __slots__ = ()

    @property
    def exact_keys(self) -> None:
        """Never known as a whole; see `set_expression.CellSketch`."""
        return

    def cells(self) -> Cells:
        """What each cell holds, shape (levels, copies): the form that `set_expression.estimate` reads."""
        total, bits = self.counters[0], self.counters[1:]
        kinds = np.where((self.counters != 0).any(axis=0), MULTIPLE, EMPTY).astype(np.int8)
        single = (total != 0) & ((bits == 0) | (bits == total)).all(axis=0)
        kinds[single] = SINGLETON
        keys = np.zeros(len(total), np.uint64)
        for bit in range(self.spec.key_bits):
            keys |= np.where(single & (bits[bit] != 0), np.uint64(1 << bit), np.uint64(0))
        shape = (self.spec.copies, self.spec.levels)
        return Cells(kinds.reshape(shape).T, keys.view(np.int64).reshape(shape).T, throws=self.spec.copies)

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Number of distinct keys, by maximum likelihood over all levels and copies.

        Departs from [1], which estimates from one chosen level: the same cells, all of them.
        """
        return estimate_keys(self.cells().occupancy(), confidence)
