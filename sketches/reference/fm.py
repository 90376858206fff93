"""The Flajolet-Martin sketch with counters instead of bits, so that tuples can be deleted.

Every copy sends a key to level j with probability 2^-(j+1) by a hash function of its own. The level of the
first empty counter is about log2 of the number of distinct keys. A reference: from the same memory the level
sketch is about as accurate, touches one cell a tuple instead of one in every copy, knows single keys, and
allows negative frequencies.

References
----------
.. [1] P. Flajolet, G. N. Martin, "Probabilistic counting algorithms for data base applications", JCSS 31,
   1985, as described in S. Ganguly et al., "Join-Distinct Aggregate Estimation over Update Streams", PODS
   2005, Sections 2.2 and 5 ("FM synopses using counters instead of bits").

Notes
-----
A counter is taken for empty when it is zero. That is right for streams whose net frequencies are not
negative, which is what the paper assumes; use the level sketch for others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..distinct.occupancy import Occupancy, level_probabilities
from ..distinct.witness import estimate_keys
from ..hashing.xi import Family, Keys, check_families, make_family
from ..intervals.interval import Estimate, exact
from ..joins.accumulate import Counters, Weights
from ..joins.linear import LinearSketch

LEVEL_BITS = 32
MAX_LEVELS = LEVEL_BITS + 1
BLOCK = 1 << 12
# Mean and standard deviation of the first empty level of n keys are log2(FIRST_EMPTY * n) and SPREAD; a test
# computes both from the distribution.
FIRST_EMPTY = 0.77351
SPREAD = 1.12127


@dataclass(frozen=True, slots=True)
class FMSpec:
    """Size and hash functions of a Flajolet-Martin sketch.

    Parameters
    ----------
    family : Family
        One function for each copy.
    copies : int
        Independent repetitions; the relative standard error is 0.78 / sqrt(copies).
    levels : int
        2 to 33. Counts up to about 2**levels keys.
    """

    family: Family = field(default_factory=make_family)
    copies: int = 64
    levels: int = 32

    dtype = "int64"

    def __post_init__(self) -> None:
        check_families("FMSpec", self.family)
        if self.copies < 1:
            raise ValueError(f"a Flajolet-Martin sketch has at least one copy, not {self.copies}")
        if not 2 <= self.levels <= MAX_LEVELS:
            raise ValueError(f"a Flajolet-Martin sketch has 2 to {MAX_LEVELS} levels, not {self.levels}")

    @classmethod
    def for_error(
        cls, relative_error: float, confidence: float = 0.95, family: Family | None = None
    ) -> FMSpec:
        """The smallest sketch whose relative error, by the first empty level, stays below the target."""
        if not (0.0 < relative_error < 1.0 and 0.0 < confidence < 1.0):
            raise ValueError(f"error {relative_error} and confidence {confidence} must lie between 0 and 1")
        quantile = float(ndtri((1 + confidence) / 2))
        copies = math.ceil((quantile * SPREAD * math.log(2) / relative_error) ** 2)
        return cls(family or make_family(), copies)

    @property
    def families(self) -> tuple[Family, ...]:
        """The one family."""
        return (self.family,)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters: (copies, levels)."""
        return self.copies, self.levels

    @property
    def layout(self) -> tuple[object, ...]:
        """Everything: there is one type of counter."""
        return self.family, self.copies, self.levels

    def __str__(self) -> str:
        return f"Flajolet-Martin sketch of {self.copies} copies x {self.levels} levels, {self.family}"

    def levels_of(self, keys: Keys) -> NDArray[np.int64]:
        """Level of each key in each copy; shape (copies, n)."""
        return hash_levels(self.family, keys, self.copies, self.levels)

    def add_batch(
        self, targets: Sequence[Counters], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        """See `SketchSpec`. About 10 ns a tuple and copy."""
        (keys,) = columns
        rows = np.arange(self.copies)[:, None] * self.levels
        for start in range(0, len(keys), BLOCK):
            block = slice(start, start + BLOCK)
            cells = (rows + self.levels_of(keys[block])).ravel()
            for target, column in zip(targets, weights, strict=True):
                size = len(keys[block])
                piece = np.ones(size, target.dtype) if column is None else column[block]
                np.add.at(target.reshape(-1), cells, np.tile(piece.astype(target.dtype), self.copies))


def hash_levels(family: Family, keys: Keys, functions: int, levels: int) -> NDArray[np.int64]:
    """Level of each key under each function: j with probability 2^-(j+1); shape (functions, n)."""
    words = family.values(keys, functions, LEVEL_BITS)
    # frexp's exponent of a 32-bit number is its length in bits: 32 with probability 1/2, and so on.
    lengths = np.frexp(words.astype(np.float64))[1].astype(np.int64)
    return np.minimum(LEVEL_BITS - lengths, np.int64(levels - 1))


class FMSketch(LinearSketch[FMSpec]):
    """Distinct count by the Flajolet-Martin method. Update with one column: ``update([keys], weights)``."""

    __slots__ = ()

    def bits(self) -> NDArray[np.bool_]:
        """Which counters are not zero; shape (copies, levels)."""
        return np.asarray(self.counters != 0)

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Number of distinct keys, from the first empty level of each copy.

        The mean level m over the copies gives 2^m / 0.77351, its standard error the interval. Too large for
        fewer than about twenty keys, as the method is.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie strictly between 0 and 1, not {confidence}")
        bits = self.bits()
        if not bits.any():
            return exact(0)
        first = np.where(bits.all(axis=1), self.spec.levels, np.argmin(bits, axis=1))
        mean = float(first.mean())
        reach = float(ndtri((1 + confidence) / 2)) * SPREAD / math.sqrt(self.spec.copies)
        value, low, high = (2**level / FIRST_EMPTY for level in (mean, mean - reach, mean + reach))
        return Estimate(value, low, high, confidence, True, "measured")

    def estimate_by_likelihood(self, confidence: float = 0.95) -> Estimate:
        """The same from all levels of all copies: relative standard error 0.649 / sqrt(copies)."""
        return estimate_keys(self.occupancy(), confidence)

    def occupancy(self) -> Occupancy:
        """Copies whose counter is empty or occupied, on each level."""
        occupied = self.bits().sum(axis=0)
        zero = np.zeros_like(occupied)
        copies = self.spec.copies
        return Occupancy(
            level_probabilities(self.spec.levels), copies - occupied, zero, zero, occupied, throws=copies
        )
