"""JD sketches and the JDEstimator: Join-Distinct in space that does not grow with the number of join values.

Every outer copy sends a to level k with probability 2^-(k+1); the level summarises the b of its tuples in
several inner copies of a 2-level hash sketch over b. Two streams with the same inner functions are composed:
levels k of A and l of C join if some inner copy has the same single b in the same cell of both.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005, Section 3 and Figures 3 to 5.

Notes
-----
A reference. With 100 outer and 40 inner copies the error is 23 to 60 %, because the bitmap level that Figure
5 picks rests on a few hits and because inner copies miss intersections; `join_distinct` has a tenth of it in
less space. For pi_{A,B} or pi_{A,B,C} sketch b, or fingerprints of (a, b) and (b, c), in the place of c or a.

Departs from [1]: count signatures of three words instead of 1 + log M counters; outer functions that are just
independent (see `composed`); and a common single b counts on any inner level, where the intersection
estimator of [1] looks at one. None of these can set a bit that should be clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distinct.count_signature import (
    SINGLETON,
    WORDS_PER_CELL,
    CountSignatures,
    Ints,
    Places,
    Words,
    make_prints,
)
from ..distinct.level import integer_weights
from ..hashing.xi import Family, as_keys, check_families, make_family
from ..joins.accumulate import absolute_mass
from .composed import Bits, window_size
from .fm import MAX_LEVELS, hash_levels

PRINT_BITS = 24  # two functions make a print


@dataclass(frozen=True, slots=True)
class JDSpec:
    """Size and hash functions of one side.

    Parameters
    ----------
    outer : Family
        Of the projected attribute; another family for the other side.
    inner : Family
        Of the join attribute; the same for both sides.
    copies : int
        Outer copies, s2 in [1].
    inner_copies : int
        Inner copies of each, s1 in [1]. An update touches copies * inner_copies cells.
    outer_levels, inner_levels : int
        2 to 33 each; log2 of the numbers of distinct values and a few more.
    """

    outer: Family = field(default_factory=lambda: make_family().derive("outer"))
    inner: Family = field(default_factory=lambda: make_family().derive("inner"))
    copies: int = 20
    inner_copies: int = 10
    outer_levels: int = 24
    inner_levels: int = 24

    def __post_init__(self) -> None:
        check_families("JDSpec", (self.outer, self.inner))
        if min(self.copies, self.inner_copies) < 1:
            raise ValueError(f"a JD sketch has at least one copy, not {self.copies} x {self.inner_copies}")
        if not 2 <= min(self.outer_levels, self.inner_levels) <= MAX_LEVELS >= self.outer_levels:
            raise ValueError(
                f"a JD sketch has 2 to {MAX_LEVELS} levels, not {self.outer_levels} x {self.inner_levels}"
            )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Cells: (copies, outer_levels, inner_copies, inner_levels)."""
        return self.copies, self.outer_levels, self.inner_copies, self.inner_levels

    @property
    def words(self) -> int:
        """8-byte words of the counters."""
        return WORDS_PER_CELL * int(np.prod(self.shape))

    @property
    def shared(self) -> tuple[object, ...]:
        """What both sides of a query must have in common."""
        return self.inner, self.shape

    def __str__(self) -> str:
        size = " x ".join(str(n) for n in self.shape)
        return f"JD sketch of {size} cells, outer {self.outer}, inner {self.inner}"

    def prints(self, keys: Ints) -> Words:
        """Prints of join values."""
        high, low = self.inner.derive("print").values(keys, 2, PRINT_BITS)
        return make_prints([keys], high << np.uint64(PRINT_BITS) | low)


class JDSketch:
    """One side of a Join-Distinct query.

    Parameters
    ----------
    spec : JDSpec

    Notes
    -----
    Linear: what was inserted and deleted again leaves no trace.
    """

    def __init__(self, spec: JDSpec | None = None) -> None:
        self.spec = spec or JDSpec()
        self._cells = CountSignatures.zeros(int(np.prod(self.spec.shape)))

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return self._cells.nbytes

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
        Within a batch, tuples that fall on one outer level with one b are added up first, so large batches
        cost less than copies * inner_copies * 10 ns a tuple.
        """
        values, keys = as_keys(values), as_keys(keys)
        if len(values) != len(keys):
            raise ValueError(f"tuples need as many join values as values: {len(keys)} and {len(values)}")
        signs = integer_weights(weights, len(values))
        self._cells.reserve(absolute_mass(signs, len(signs)))
        copies, outer_levels, inner_copies, inner_levels = self.spec.shape
        known, at = np.unique(keys, return_inverse=True)
        prints = self.spec.prints(known)
        outer = hash_levels(self.spec.outer, values, copies, outer_levels)
        inner = hash_levels(self.spec.inner, known, copies * inner_copies, inner_levels)
        for copy in range(copies):
            net = np.zeros(outer_levels * len(known), np.int64)
            np.add.at(net, outer[copy] * len(known) + at, signs)
            level, which = np.divmod(np.flatnonzero(net), max(len(known), 1))
            first = (copy * outer_levels + level) * inner_copies
            rows = inner[copy * inner_copies : (copy + 1) * inner_copies, which]
            cells = (first[None, :] + np.arange(inner_copies)[:, None]) * inner_levels + rows
            columns = [np.tile(known[which], inner_copies)]
            weight = np.tile(net[net != 0], inner_copies)
            self._cells.add(cells.ravel(), columns, np.tile(prints[which], inner_copies), weight)

    def merge(self, other: JDSketch) -> None:
        """Add the other's tuples, in place; ValueError naming both if the specs differ; OverflowError."""
        self._combine(other, +1)

    def subtract(self, other: JDSketch) -> None:
        """Take the other's tuples out, in place; errors as in `merge`."""
        self._combine(other, -1)

    def copy(self) -> JDSketch:
        """An independent copy."""
        twin = JDSketch.__new__(JDSketch)
        twin.spec, twin._cells = self.spec, self._cells.copy()
        return twin

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The counters as arrays; with `spec` they are the whole sketch."""
        return self._cells.copy().arrays()

    @classmethod
    def from_state(cls, spec: JDSpec, state: Mapping[str, NDArray[np.generic]]) -> JDSketch:
        """The sketch whose `state` this is; ValueError if the arrays do not fit `spec`."""
        sketch = cls.__new__(cls)
        sketch.spec = spec
        sketch._cells = CountSignatures.from_arrays(state, int(np.prod(spec.shape)))
        return sketch

    def singles(self) -> tuple[Bits, Ints]:
        """Which cells hold a single b, and which; both of shape `spec.shape`."""
        kinds, (keys,) = self._cells.decode(self._verify)
        return (kinds == SINGLETON).reshape(self.spec.shape), keys.reshape(self.spec.shape)

    def _verify(self, cells: Places, columns: Sequence[Ints]) -> tuple[NDArray[np.bool_], Words]:
        # The print alone decides: looking up the level would need as many functions as there are inner
        # copies.
        return np.ones(len(cells), np.bool_), self.spec.prints(columns[0])

    def _combine(self, other: JDSketch, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine a {self.spec} with a {other.spec}")
        self._cells.reserve(other._cells.bound)
        self._cells.combine(other._cells, sign)


def composed_bitmaps(r: JDSketch, s: JDSketch) -> Bits:
    """Compose (Figure 4 of [1]) for every outer copy: shape (copies, outer_levels - 1).

    Raises
    ------
    ValueError
        If the sides differ in size or inner functions, or share the outer family; both are named.
    """
    if r.spec.shared != s.spec.shared:
        raise ValueError(f"both sides need the same size and inner functions: {r.spec} and {s.spec}")
    if r.spec.outer == s.spec.outer:
        raise ValueError(f"both sides are hashed with {r.spec.outer}; derive an outer family for each")
    (r_single, r_keys), (s_single, s_keys) = r.singles(), s.singles()
    levels = r.spec.outer_levels
    out = np.zeros((r.spec.copies, levels - 1), np.bool_)
    for k in range(levels):
        # Level k of R against all levels of S, in all copies at once.
        same = r_single[:, k, None] & s_single & (r_keys[:, k, None] == s_keys)
        joined = same.any(axis=(2, 3))
        for other in range(levels):
            if other != k:
                out[:, min(k, other)] |= joined[:, other]
    return out


def jd_size(r: JDSketch, s: JDSketch, epsilon: float = 0.25) -> float:
    """Number of distinct (a, c) in the join of R(a, b) and S(b, c), by Figure 5 of [1].

    Raises
    ------
    ValueError
        If no level lies in the window (the paper's failure), or the sketches do not fit together.
    """
    return window_size(composed_bitmaps(r, s), epsilon)
