"""A hierarchy of hash sketches over dyadic intervals, for finding dense values in domains too large to scan.

Level s counts the intervals of 2**s keys that share all but their lowest s bits. A dense key lies in a dense
interval on every level, so the search starts with the few intervals of the coarsest level and follows the
dense ones down: a few hundred estimates instead of one for each value of the domain.

References
----------
.. [1] S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170, "Processing data-stream join aggregates using
   skimmed sketches": paragraphs [0059]-[0062], the optimised SKIMDENSE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ..hashing.xi import Family, Keys, as_keys
from .accumulate import INT64_END, Counters, Weights, absolute_mass, add_signed, as_weights
from .convolution import ConvolutionSketch, ConvolutionSpec
from .linear import LinearSketch, State
from .skim import ROUNDS, Skimmed, can_skim, counter_sigma, frequencies, skim

Ints = npt.NDArray[np.int64]

BRANCH_BITS = 3
EXACT_NODES = 512
SEARCH_SIGMAS = 4.0
SLACK = 2.0 / 3.0
MOST_INTERVALS = 4096


@dataclass(frozen=True, slots=True)
class DyadicSpec:
    """What identifies a dyadic sketch.

    Parameters
    ----------
    leaf : ConvolutionSpec
        The hash sketch of the keys themselves: one attribute, int64.
    domain_bits : int
        Keys lie in [0, 2**domain_bits); with 64 any int64 is allowed.
    level_rows, level_buckets : int
        Size of the sketch of each coarser level. Levels of at most 512 intervals are counted exactly.
    """

    leaf: ConvolutionSpec
    domain_bits: int = 64
    level_rows: int = 5
    level_buckets: int = 512

    def __post_init__(self) -> None:
        if len(self.leaf.families) != 1 or self.leaf.dtype != "int64":
            raise ValueError(
                f"the leaf of a dyadic sketch is an int64 hash sketch of one attribute, not {self.leaf}"
            )
        if not 1 <= self.domain_bits <= 64:
            raise ValueError(f"domain_bits lie in 1 to 64, not {self.domain_bits}")

    @property
    def shifts(self) -> tuple[int, ...]:
        """Bits dropped on each coarser level, the coarsest first; empty for a domain of 512 keys or fewer."""
        exact_bits = EXACT_NODES.bit_length() - 1
        return tuple(range(BRANCH_BITS, self.domain_bits - exact_bits + BRANCH_BITS, BRANCH_BITS))[::-1]

    def level(self, shift: int) -> ConvolutionSpec:
        """The spec of one coarser level, with hash functions of its own."""
        family = self.leaf.families[0].derive(f"dyadic level {shift}")
        return ConvolutionSpec((family,), self.level_rows, self.level_buckets)

    @property
    def top(self) -> IntervalCounts:
        """The spec of the coarsest level."""
        shift = self.shifts[0] if self.shifts else 0
        bits = self.domain_bits - shift
        lowest = -(1 << (bits - 1)) if self.domain_bits == 64 else 0
        return IntervalCounts(shift, 1 << bits, lowest, self.leaf.families[0])


@dataclass(frozen=True, slots=True)
class IntervalCounts:
    """Spec of the coarsest level: one exact counter for each interval.

    Parameters
    ----------
    shift : int
        Bits dropped from a key.
    intervals : int
        Number of counters.
    lowest : int
        Number of the first interval: 0, or negative where keys may be.
    family : Family
        That of the leaf; not used for hashing, but counters of different classes are not to be merged.
    """

    shift: int
    intervals: int
    lowest: int
    family: Family
    dtype: str = "int64"

    @property
    def families(self) -> tuple[Family, ...]:
        """One attribute."""
        return (self.family,)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters."""
        return 1, self.intervals

    @property
    def layout(self) -> tuple[object, ...]:
        """Equal for specs that count alike."""
        return self.shift, self.intervals, self.lowest

    def add_batch(
        self, targets: Sequence[Counters], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        """See `SketchSpec.add_batch`."""
        places = (columns[0] >> self.shift) - self.lowest
        for target, column in zip(targets, weights, strict=True):
            signed = 2 * places  # even: no sign of its own
            add_signed(target[0], signed, column)


class DyadicSketch:
    """A hash sketch that can name its own dense keys.

    Parameters
    ----------
    spec : DyadicSpec

    Attributes
    ----------
    leaf : ConvolutionSketch
        The hash sketch of the keys, to be joined as any other.

    Notes
    -----
    Linear, in place: insert, delete, merge and subtract are exact in the counters. Space: the leaf, at most
    4 KB for the exact level and ``8 * level_rows * level_buckets`` bytes for each level between, one for
    every 3 bits of the domain beyond 12. Time of an update: that of ``1 + len(shifts)`` hash sketches.

    The search needs non-negative net weights: an interval's weight is the sum of its keys' weights, in which
    opposite signs cancel.
    """

    def __init__(self, spec: DyadicSpec) -> None:
        self.spec = spec
        self.leaf = ConvolutionSketch(spec.leaf)
        self._top = LinearSketch(spec.top)
        self._levels = [ConvolutionSketch(spec.level(shift)) for shift in spec.shifts[1:]]
        self._weight_seen = 0  # absolute weights since the sketch was made; while small, nothing can overflow

    @property
    def nbytes(self) -> int:
        """Bytes of all counters."""
        return self.leaf.nbytes + self._top.nbytes + sum(level.nbytes for level in self._levels)

    def update(self, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples.

        Parameters
        ----------
        keys : ndarray of int64, shape (batch,)
            In the domain of the spec.
        weights : ndarray of int64, shape (batch,), optional
            Default: +1.

        Raises
        ------
        ValueError
            If a key is outside the domain; the message has the key and its position.
        OverflowError
            If a counter leaves int64; the sketch is unchanged then.
        """
        keys = as_keys(keys)
        bits = self.spec.domain_bits
        outside = np.flatnonzero(keys >> bits) if bits < 64 else np.empty(0, np.intp)
        if outside.size:
            at = int(outside[0])
            raise ValueError(f"key {keys[at]} at position {at} is outside the domain [0, {1 << bits})")
        checked = as_weights(weights, "int64")
        changed = self.copy() if absolute_mass(checked, len(keys)) + self._weight_seen >= INT64_END else self
        changed._top.update([keys], checked)
        changed.leaf.update([keys], checked)
        for shift, level in zip(self.spec.shifts[1:], changed._levels, strict=True):
            level.update([keys >> shift], checked)
        self._top, self.leaf, self._levels = changed._top, changed.leaf, changed._levels
        self._weight_seen += absolute_mass(checked, len(keys))

    def merge(self, other: DyadicSketch) -> None:
        """Add the tuples of another sketch of the same spec."""
        for mine, theirs in self._pairs(other):
            mine.merge(theirs)
        self._weight_seen += other._weight_seen

    def subtract(self, other: DyadicSketch) -> None:
        """Remove the tuples of another sketch of the same spec."""
        for mine, theirs in self._pairs(other):
            mine.subtract(theirs)
        self._weight_seen += other._weight_seen

    def copy(self) -> DyadicSketch:
        """An independent sketch with the same counters."""
        twin = DyadicSketch(self.spec)
        twin.leaf, twin._top = self.leaf.copy(), self._top.copy()
        twin._levels = [level.copy() for level in self._levels]
        twin._weight_seen = self._weight_seen
        return twin

    def state(self) -> State:
        """Counters by level: ``leaf``, ``top``, and ``level 3`` ... by the bits dropped."""
        levels = zip(self.spec.shifts[1:], self._levels, strict=True)
        named = {f"level {shift}": level.counters.copy() for shift, level in levels}
        return {"leaf": self.leaf.counters.copy(), "top": self._top.counters.copy(), **named}

    @classmethod
    def from_state(cls, spec: DyadicSpec, state: Mapping[str, npt.NDArray[np.generic]]) -> DyadicSketch:
        """The sketch whose `state` was taken; ValueError if the arrays do not fit the spec."""
        names = {"leaf", "top", *(f"level {shift}" for shift in spec.shifts[1:])}
        if set(state) != names:
            raise ValueError(f"the state of this dyadic sketch is {sorted(names)}, not {sorted(state)}")
        sketch = cls(spec)
        sketch.leaf = ConvolutionSketch.from_state(spec.leaf, {"counters": state["leaf"]})
        sketch._top = LinearSketch.from_state(spec.top, {"counters": state["top"]})
        sketch._levels = [
            ConvolutionSketch.from_state(spec.level(shift), {"counters": state[f"level {shift}"]})
            for shift in spec.shifts[1:]
        ]
        sketch._weight_seen = INT64_END  # unknown
        return sketch

    def dense_candidates(self, threshold: float | None = None) -> Ints:
        """Keys that may weigh the threshold or more, in ascending order.

        Parameters
        ----------
        threshold : float, optional
            Default: four standard deviations of a leaf counter.

        Returns
        -------
        ndarray of int64, shape (n,)
            All keys of the finest dense intervals, not yet judged by the leaf. An interval is followed while
            its estimate reaches two thirds of the threshold, at most 4,096 intervals on a level.

        Notes
        -----
        Measured on Zipf data: every key of 1.5 thresholds or more is found, among 24 to 530 candidates of
        262,144. Time O(candidates * rows).
        """
        if threshold is None:
            threshold = max(SEARCH_SIGMAS * counter_sigma(self.leaf), 1.0)
        if not self.spec.shifts:
            return np.arange(1 << self.spec.domain_bits, dtype=np.int64)
        heavy = np.flatnonzero(self._top.counters[0] >= SLACK * threshold)
        intervals = heavy.astype(np.int64) + self.spec.top.lowest
        for level in self._levels:
            intervals = _children(intervals)
            estimates = frequencies(level, [intervals])
            most = np.argsort(-estimates, kind="stable")[:MOST_INTERVALS]
            intervals = np.sort(intervals[most[estimates[most] >= SLACK * threshold]])
        return _children(intervals)

    def skim(self, rounds: int = ROUNDS) -> Skimmed:
        """Find the dense keys and take them out of the leaf, as `skim.skim` does over a whole domain.

        In each round the hierarchy is searched again without the keys found so far, which lowers the noise on
        every level.
        """
        rest, found = self, np.empty(0, np.int64)
        skimmed = skim(self.leaf, [found])
        if not can_skim(self.leaf):
            return skimmed
        for _ in range(rounds):
            found = np.union1d(found, rest.dense_candidates())
            skimmed = skim(self.leaf, [found], rounds=rounds)
            rest = self.copy()
            rest.update(skimmed.keys[0], -skimmed.weights)
        return skimmed

    def _pairs(self, other: DyadicSketch) -> list[tuple[LinearSketch[Any], LinearSketch[Any]]]:
        if self.spec != other.spec:
            raise ValueError(f"dyadic sketches of different specs do not add up: {self.spec}, {other.spec}")
        return list(zip(self._sketches(), other._sketches(), strict=True))

    def _sketches(self) -> list[LinearSketch[Any]]:
        sketches: list[LinearSketch[Any]] = [self._top, self.leaf]
        sketches.extend(self._levels)
        return sketches


def _children(intervals: Ints) -> Ints:
    """The intervals of the next finer level, in order."""
    return ((intervals << BRANCH_BITS)[:, np.newaxis] + np.arange(1 << BRANCH_BITS)).ravel()
