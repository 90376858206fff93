"""LinearJDEstimator: a Flajolet-Martin sketch of the partners of each join value, in space of order |B|.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005, Section 5 ("An Alternative, Theta(|B|)-Space Join-Distinct Estimator").

Notes
-----
Sketch R(a, b) and S(b, c) with different families of equal size; the numbers of distinct (a, c) come from the
bitmaps of those b that both know, composed and united. The window of [1] is there as it is; maximum
likelihood is several times as accurate. For pi_{A,B} or pi_{A,B,C} sketch b, or fingerprints of
(a, b) and (b, c), in the place of c or a. Sampling both sides (`join_distinct`) needs less space unless b
has few values.

Net frequencies must not be negative, as in [1]: a counter is taken for empty when it is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distinct.count_signature import Ints
from ..distinct.level import integer_weights
from ..hashing.xi import Family, as_keys, check_families, make_family
from ..joins.accumulate import INT64_END, absolute_mass, absolute_peak
from .composed import Bits, compose, likely_size, likely_size_by_levels, window_size
from .fm import MAX_LEVELS, hash_levels

BLOCK = 1 << 12
BLOCK_ROWS = 1 << 10


@dataclass(frozen=True, slots=True)
class LinearJDSpec:
    """Size and hash functions of one side.

    Parameters
    ----------
    family : Family
        Of the projected attribute, one function for each copy; another family for the other side.
    copies : int
        Independent repetitions.
    levels : int
        2 to 33; log2 of the number of distinct values and a few more.
    """

    family: Family = field(default_factory=make_family)
    copies: int = 100
    levels: int = 24

    def __post_init__(self) -> None:
        check_families("LinearJDSpec", self.family)
        if self.copies < 1:
            raise ValueError(f"a LinearJD sketch has at least one copy, not {self.copies}")
        if not 2 <= self.levels <= MAX_LEVELS:
            raise ValueError(f"a LinearJD sketch has 2 to {MAX_LEVELS} levels, not {self.levels}")

    def __str__(self) -> str:
        return f"LinearJD sketch of {self.copies} copies x {self.levels} levels, {self.family}"


class LinearJDSketch:
    """One side of a Join-Distinct query, by join value.

    Parameters
    ----------
    spec : LinearJDSpec
    """

    def __init__(self, spec: LinearJDSpec | None = None) -> None:
        self.spec = spec or LinearJDSpec()
        self._keys: Ints = np.zeros(0, np.int64)
        self._counters: Ints = np.zeros((0, self.spec.copies, self.spec.levels), np.int64)
        self._bound = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the join values and their counters."""
        return int(self._keys.nbytes + self._counters.nbytes)

    def update(self, values: ArrayLike, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples, in place.

        Parameters
        ----------
        values, keys : array of int64, shape (n,)
            Projected attribute and join attribute.
        weights : array of int64, shape (n,), optional
            Multiplicities, negative for deletions; 1 by default.

        Raises
        ------
        ValueError
            If the arrays are not int64 or differ in length.
        OverflowError
            If a counter could leave int64. Nothing has been added then.

        Notes
        -----
        Time O(n * copies), about 10 ns each.
        """
        values, keys = as_keys(values), as_keys(keys)
        if len(values) != len(keys):
            raise ValueError(f"tuples need as many join values as values: {len(keys)} and {len(values)}")
        signs = integer_weights(weights, len(values))
        self._reserve(absolute_mass(signs, len(signs)))
        known, rows = np.unique(keys, return_inverse=True)
        rows = self._rows(known)[rows]
        copies, levels = self.spec.copies, self.spec.levels
        flat = self._counters.reshape(-1)
        for start in range(0, len(values), BLOCK):
            block = slice(start, start + BLOCK)
            on = hash_levels(self.spec.family, values[block], copies, levels)
            cells = (rows[block][None, :] * copies + np.arange(copies)[:, None]) * levels + on
            np.add.at(flat, cells.ravel(), np.tile(signs[block], copies))

    def merge(self, other: LinearJDSketch) -> None:
        """Add the other's tuples, in place; ValueError naming both if the specs differ."""
        self._combine(other, +1)

    def subtract(self, other: LinearJDSketch) -> None:
        """Take the other's tuples out, in place; errors as in `merge`."""
        self._combine(other, -1)

    def copy(self) -> LinearJDSketch:
        """An independent copy."""
        twin = LinearJDSketch(self.spec)
        twin._keys, twin._counters, twin._bound = self._keys.copy(), self._counters.copy(), self._bound
        return twin

    def bits(self) -> tuple[Ints, Bits]:
        """Join values, ascending, and which of their counters are not zero, shape (n, copies, levels)."""
        return self._keys, np.asarray(self._counters != 0)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Join values that still have tuples, and their counters; with `spec` the whole sketch."""
        used = self._counters.any(axis=(1, 2))
        return {"keys": self._keys[used], "counters": self._counters[used]}

    @classmethod
    def from_state(cls, spec: LinearJDSpec, state: Mapping[str, NDArray[np.generic]]) -> LinearJDSketch:
        """The sketch whose `state` this is; ValueError if the arrays do not fit `spec`."""
        sketch = cls(spec)
        if set(state) != {"keys", "counters"}:
            raise ValueError(f"a LinearJD sketch consists of keys and counters, not {sorted(state)}")
        keys, counters = as_keys(state["keys"]), state["counters"]
        if counters.shape != (len(keys), spec.copies, spec.levels) or counters.dtype != np.int64:
            raise ValueError(f"counters of {counters.dtype} {counters.shape} do not belong to {spec}")
        if np.any(keys[1:] <= keys[:-1]):
            raise ValueError("the join values of a LinearJD sketch are stored in ascending order, each once")
        sketch._keys, sketch._counters = keys.copy(), counters.astype(np.int64)
        sketch._bound = absolute_peak(sketch._counters)
        return sketch

    def _rows(self, keys: Ints) -> Ints:
        """Rows of these join values, ascending and unique; new ones are inserted."""
        union = np.union1d(self._keys, keys)
        if len(union) > len(self._keys):
            counters = np.zeros((len(union), self.spec.copies, self.spec.levels), np.int64)
            counters[np.searchsorted(union, self._keys)] = self._counters
            self._keys, self._counters = union, counters
        return np.searchsorted(self._keys, keys)

    def _reserve(self, mass: int) -> None:
        if self._bound + mass >= INT64_END:
            self._bound = absolute_peak(self._counters)
        if self._bound + mass >= INT64_END:
            raise OverflowError(
                f"a counter of up to {self._bound} cannot take a batch of total weight {mass} within 64 bits"
            )
        self._bound += mass

    def _combine(self, other: LinearJDSketch, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine a {self.spec} with a {other.spec}")
        self._reserve(other._bound)
        rows = self._rows(other._keys)  # may replace the counters by more of them
        self._counters[rows] += sign * other._counters


def composed_bitmaps(r: LinearJDSketch, s: LinearJDSketch) -> Bits:
    """Bitmaps over (a, c), united over the join values that both sides have; shape (copies, levels - 1).

    Raises
    ------
    ValueError
        If the sides differ in size, or share a family; both are named.
    """
    r_bits, s_bits = _common_bits(r, s)
    out = np.zeros((r.spec.copies, r.spec.levels - 1), np.bool_)
    for start in range(0, len(r_bits), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        out |= compose(r_bits[block], s_bits[block]).any(axis=0)
    return out


def linear_jd_size(r: LinearJDSketch, s: LinearJDSketch, epsilon: float = 0.25) -> float:
    """Number of distinct (a, c) as in [1]; ValueError if no level lies in the window."""
    return window_size(composed_bitmaps(r, s), epsilon)


def linear_jd_composed_likely_size(
    r: LinearJDSketch, s: LinearJDSketch, size_a: float, size_c: float
) -> float:
    """Number of distinct (a, c) by maximum likelihood over the bitmaps of [1]; see `likely_size`."""
    return likely_size(composed_bitmaps(r, s), size_a, size_c)


def linear_jd_likely_size(r: LinearJDSketch, s: LinearJDSketch, size_a: float, size_c: float) -> float:
    """Number of distinct (a, c) by maximum likelihood; see `likely_size_by_levels`."""
    r_bits, s_bits = _common_bits(r, s)
    joined = np.zeros((r.spec.copies, r.spec.levels, r.spec.levels), np.bool_)
    for start in range(0, len(r_bits), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        left = r_bits[block].transpose(1, 2, 0).astype(np.float32)
        right = s_bits[block].transpose(1, 0, 2).astype(np.float32)
        joined |= left @ right > 0
    a_bits, c_bits = (np.asarray(side.bits()[1].any(axis=0)) for side in (r, s))
    return likely_size_by_levels(joined, a_bits, c_bits, size_a, size_c)


def _common_bits(r: LinearJDSketch, s: LinearJDSketch) -> tuple[Bits, Bits]:
    """Bits of the join values that both sides have."""
    if (r.spec.copies, r.spec.levels) != (s.spec.copies, s.spec.levels):
        raise ValueError(f"both sides need the same size: {r.spec} and {s.spec}")
    if r.spec.family == s.spec.family:
        raise ValueError(f"both sides are hashed with {r.spec.family}; derive a family for each")
    (r_keys, r_bits), (s_keys, s_bits) = r.bits(), s.bits()
    _, in_r, in_s = np.intersect1d(r_keys, s_keys, assume_unique=True, return_indices=True)
    return r_bits[in_r], s_bits[in_s]
