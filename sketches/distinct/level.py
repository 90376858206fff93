"""Level sketch: the number of distinct keys of a stream with deletions, from a fixed amount of memory.

Each key falls on level j with probability 2^-(j+1) and there into one of `buckets` cells, each holding a
count signature. Cells are empty, hold one key, or more; the likelihood of what is seen gives the number of
keys, and the single keys are a uniform random sample of them.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005, Section 2.2: the 2-level hash sketch, whose levels and signatures these are.

Notes
-----
Departs from [1]: one table with many buckets a level takes the place of many independent copies, so an update
touches one cell instead of one in every copy. The estimate is maximum likelihood over all levels, with
relative standard error 0.479 / sqrt(buckets), where reading occupancy alone has 0.649.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Family, as_keys, check_families, make_family
from ..intervals.interval import Estimate
from ..joins.accumulate import absolute_mass, as_weights
from .count_signature import (
    AMBIGUOUS,
    EMPTY,
    MULTIPLE,
    SINGLETON,
    WORDS_PER_CELL,
    CountSignatures,
    Ints,
    Kinds,
    Places,
    Words,
    make_prints,
)
from .occupancy import TERNARY_INFORMATION, Occupancy, level_probabilities
from .witness import estimate_keys, estimate_share

MAX_LEVELS = 33  # levels are read from the position of the highest one in 32 hash bits
BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """Size and hash functions of a level sketch; sketches of equal spec can be combined.

    Parameters
    ----------
    family : Family
        Hash functions; the level, the bucket and the print of a key come from four of its functions.
    buckets : int
        Cells of each level, at least 16. The relative standard error is 0.479 / sqrt(buckets).
    levels : int
        2 to 33. About buckets * 2**(levels - 1) keys can be counted, 2 * 10**12 with the default sizes.
    """

    family: Family = field(default_factory=make_family)
    buckets: int = 1024
    levels: int = 32

    def __post_init__(self) -> None:
        check_families("LevelSpec", self.family)
        if not 16 <= self.buckets <= 1 << 24:
            raise ValueError(f"a level sketch has 16 to 2**24 buckets a level, not {self.buckets}")
        if not 2 <= self.levels <= MAX_LEVELS:
            raise ValueError(f"a level sketch has 2 to {MAX_LEVELS} levels, not {self.levels}")

    @classmethod
    def for_error(
        cls, relative_error: float, confidence: float = 0.95, family: Family | None = None, levels: int = 32
    ) -> LevelSpec:
        """The smallest sketch whose relative error stays below the target with the given confidence.

        Raises
        ------
        ValueError
            If either argument is not strictly between 0 and 1.
        """
        from scipy.special import ndtri  # slow to import, and seldom needed

        if not (0.0 < relative_error < 1.0 and 0.0 < confidence < 1.0):
            raise ValueError(f"error {relative_error} and confidence {confidence} must lie between 0 and 1")
        quantile = float(ndtri((1 + confidence) / 2))
        buckets = math.ceil((quantile / relative_error) ** 2 / TERNARY_INFORMATION)
        return cls(family or make_family(), max(buckets, 16), levels)

    @property
    def words(self) -> int:
        """8-byte words of the counters."""
        return WORDS_PER_CELL * self.buckets * self.levels

    @property
    def capacity(self) -> int:
        """About as many keys can be counted: one for each bucket of the last level."""
        return self.buckets << (self.levels - 1)

    @property
    def relative_error(self) -> float:
        """Standard error of the distinct count, relative to it, for many keys a bucket."""
        return 1 / math.sqrt(TERNARY_INFORMATION * self.buckets)

    def __str__(self) -> str:
        return f"level sketch of {self.buckets} buckets x {self.levels} levels, {self.family}"

    def locate(self, keys: Ints) -> tuple[NDArray[np.intp], Words]:
        """Flat cell (level * buckets + bucket) and print of each key; shapes (n,)."""
        depth, bucket, first, second = self.family.values(keys, 4, 32)
        # frexp's exponent of a 32-bit number is its length in bits: 32 with probability 1/2, and so on.
        levels = np.minimum(32 - np.frexp(depth.astype(np.float64))[1], self.levels - 1)
        buckets = (bucket * np.uint64(self.buckets)) >> np.uint64(32)
        cells = levels * np.intp(self.buckets) + buckets.astype(np.intp)
        return cells, make_prints([keys], first << np.uint64(32) | second)


@dataclass(frozen=True, slots=True)
class Cells:
    """What the cells of a sketch hold, level by level.

    Parameters
    ----------
    kinds : ndarray of int8, shape (levels, buckets)
        EMPTY, SINGLETON, MULTIPLE or AMBIGUOUS of `count_signature`.
    keys : ndarray of int64, shape (levels, buckets)
        The key of each singleton.
    throws : int
        How often each key is thrown into the cells; see `Occupancy`.
    """

    kinds: Kinds
    keys: Ints
    throws: int = 1

    def singles(self) -> Ints:
        """The keys seen by themselves, shape (n,)."""
        singles: Ints = self.keys[self.kinds == SINGLETON]
        return singles

    def occupancy(self) -> Occupancy:
        """Numbers of cells of each kind on each level."""
        empty, single, multiple, ambiguous = (
            (self.kinds == kind).sum(axis=1) for kind in (EMPTY, SINGLETON, MULTIPLE, AMBIGUOUS)
        )
        probabilities = level_probabilities(len(self.kinds))
        tally = Occupancy(probabilities, empty, single, multiple, ambiguous, self.throws)
        # Whether a cell is ambiguous depends on the weights in it, so the others are a biased choice: blur
        # all.
        return tally.blurred() if tally.occupied.any() else tally


class LevelSketch:
    """Distinct count of the keys whose net weight is not zero.

    Parameters
    ----------
    spec : LevelSpec
        Size and hash functions.

    Notes
    -----
    Linear: the counters after any sequence of updates depend only on the net weight of each key, bit for bit.
    About 40 ns a tuple (tabulation, one core).
    """

    def __init__(self, spec: LevelSpec | None = None) -> None:
        self.spec = spec or LevelSpec()
        self._signatures = CountSignatures.zeros(self.spec.buckets * self.spec.levels)

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return self._signatures.nbytes

    @property
    def exact_keys(self) -> None:
        """Never known as a whole; see `set_expression.CellSketch`."""
        return

    def update(self, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples, in place.

        Parameters
        ----------
        keys : array of int64, shape (n,)
        weights : array of int64, shape (n,), optional
            Multiplicities, negative for deletions, in any order; 1 by default.

        Raises
        ------
        ValueError
            If keys or weights are not int64, or their numbers differ.
        OverflowError
            If a counter could leave int64. Nothing has been added then.
        """
        keys = as_keys(keys)
        signs = integer_weights(weights, len(keys))
        # Reserved as a whole, so that a refused batch leaves no part of itself behind.
        self._signatures.reserve(absolute_mass(signs, len(keys)))
        for start in range(0, len(keys), BLOCK):
            block = keys[start : start + BLOCK]
            cells, prints = self.spec.locate(block)
            self._signatures.add(cells, [block], prints, signs[start : start + BLOCK])

    def merge(self, other: LevelSketch) -> None:
        """Add the other sketch's stream, in place.

        Raises
        ------
        ValueError
            If the sketches differ in size or hash functions; both are named.
        OverflowError
            If a counter could leave int64.
        """
        self._combine(other, +1)

    def subtract(self, other: LevelSketch) -> None:
        """Take the other sketch's stream out, in place; errors as in `merge`."""
        self._combine(other, -1)

    def copy(self) -> LevelSketch:
        """An independent copy."""
        twin = LevelSketch.__new__(LevelSketch)
        twin.spec, twin._signatures = self.spec, self._signatures.copy()
        return twin

    def cells(self) -> Cells:
        """What each cell holds. O(cells), plus hashing the single keys once."""
        kinds, (keys,) = self._signatures.decode(self._verify)
        shape = (self.spec.levels, self.spec.buckets)
        return Cells(kinds.reshape(shape), keys.reshape(shape))

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Number of distinct keys of non-zero net weight.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        Estimate
            Exact and of zero width while every key has a cell to itself. Not certified, and `high` infinite,
            if the stream exceeds the sketch's `LevelSpec.capacity` so far that all cells are full.
        """
        return estimate_keys(self.cells().occupancy(), confidence)

    def sample(self) -> Ints:
        """Distinct keys drawn uniformly, about 2.9 * buckets of them once there are many; shape (n,), int64.

        Which keys are drawn depends on the hash functions only, not on how often a key occurs.
        """
        return self.cells().singles()

    def estimate_where(
        self, predicate: Callable[[Ints], NDArray[np.bool_]], confidence: float = 0.95
    ) -> Estimate:
        """Number of distinct keys that satisfy a predicate.

        Parameters
        ----------
        predicate : callable
            Takes keys, int64 of shape (n,), and returns a bool for each.
        confidence : float
            In (0, 1).
        """
        cells = self.cells()
        keys = cells.singles()
        hits = int(np.count_nonzero(predicate(keys)))
        return estimate_share(cells.occupancy(), hits, len(keys), confidence)

    def __repr__(self) -> str:
        return f"LevelSketch({self.spec}, {self.nbytes:,} bytes)"

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The counters as arrays; with `spec` they are the whole sketch."""
        return self._signatures.copy().arrays()

    @classmethod
    def from_state(cls, spec: LevelSpec, state: Mapping[str, NDArray[np.generic]]) -> LevelSketch:
        """The sketch whose `state` this is; ValueError if the arrays do not fit `spec`."""
        sketch = cls(spec)
        sketch._signatures = CountSignatures.from_arrays(state, spec.buckets * spec.levels)
        return sketch

    def _verify(self, cells: Places, columns: Sequence[Ints]) -> tuple[NDArray[np.bool_], Words]:
        located, prints = self.spec.locate(columns[0])
        return np.asarray(located == cells), prints

    def _combine(self, other: LevelSketch, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine a {self.spec} with a {other.spec}")
        self._signatures.reserve(other._signatures.bound)
        self._signatures.combine(other._signatures, sign)


def integer_weights(weights: ArrayLike | None, tuples: int) -> Ints:
    """Weights as int64 of shape (tuples,), all ones for None; ValueError if there are too few or too many."""
    checked = as_weights(weights, "int64")
    if checked is None:
        return np.ones(tuples, np.int64)
    if len(checked) != tuples:
        raise ValueError(f"{tuples} keys need as many weights, not {len(checked)}")
    return checked.astype(np.int64, copy=False)
