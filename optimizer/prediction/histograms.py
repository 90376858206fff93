"""What is known of the data before any sketch is built: histograms of single columns, and what follows.

All predictions here make two assumptions. *Attribute value independence*: within a relation, the values of
one join attribute say nothing about those of another [1]_. *Even spread*: the distinct values of a bucket
have equal frequencies and lie evenly over its range, and where two buckets overlap, the values of the one
with fewer are among those of the other (containment). Correlated columns and frequencies that vary inside a
bucket break them; the maintained sketches make neither assumption.

Functions take and return arrays; gathering them is the engine's business.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, "Processing Complex Aggregate Queries over Data
   Streams", SIGMOD 2002, Sections 4.2 and 4.3 (histograms, independence, Theorem 4.6).
.. [2] The same, EDBT 2004, Section 3.2 (the weights W_Q) and 6.1 (weights from histograms).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Buckets of a column of int64 keys, in order and disjoint.

    `lows` and `highs` (int64, both inclusive), `counts` (float64, tuples) and `distinct` (float64, distinct
    values) have shape (buckets,). An empty column has no buckets.
    """

    lows: Keys
    highs: Keys
    counts: Floats
    distinct: Floats

    def __post_init__(self) -> None:
        if not self.lows.shape == self.highs.shape == self.counts.shape == self.distinct.shape:
            raise ValueError("the four arrays of a histogram have one length")
        if np.any(self.highs < self.lows) or np.any(self.lows[1:] <= self.highs[:-1]):
            raise ValueError("buckets must be in order and must not overlap")
        if np.any(self.counts < 0) or np.any(self.distinct <= 0):
            raise ValueError("a bucket has no negative count, and at least part of a distinct value")

    @property
    def tuples(self) -> float:
        """Number of tuples, NULLs excluded."""
        return float(self.counts.sum())

    @property
    def distinct_count(self) -> float:
        """Estimate of the number of distinct values."""
        return float(self.distinct.sum())

    @property
    def self_join_size(self) -> float:
        """Estimate of F2, the sum of squared frequencies; not above it if counts and distinct are exact."""
        return float(np.sum(self.counts**2 / self.distinct))


def equi_depth(values: ArrayLike, frequencies: ArrayLike, buckets: int) -> Histogram:
    """The equi-depth histogram of a column.

    Parameters
    ----------
    values : array of int64, shape (distinct,)
        Distinct values, in any order.
    frequencies : array of numbers, shape (distinct,)
        Tuples of each value; values of frequency 0 are left out.
    buckets : int
        Greatest number of buckets. A value is never split over two; one that would fill several leaves
        fewer.

    Notes
    -----
    O(distinct log distinct).
    """
    keys, weights = np.asarray(values, dtype=np.int64), np.asarray(frequencies, dtype=np.float64)
    if buckets < 1:
        raise ValueError(f"a histogram has at least one bucket, not {buckets}")
    order = np.argsort(keys, kind="stable")
    order = order[weights[order] > 0]
    keys, weights = keys[order], weights[order]
    # A value belongs where the middle of its tuples lies, so frequent ones stand apart from rare ones.
    middle = np.cumsum(weights) - weights / 2
    bucket = np.minimum((middle * buckets / max(weights.sum(), 1e-300)).astype(np.int64), buckets - 1)
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    ends = np.append(starts[1:], len(keys))
    if not len(keys):
        return Histogram(keys, keys, weights, weights)
    return Histogram(
        keys[starts], keys[ends - 1], np.add.reduceat(weights, starts), (ends - starts).astype(float)
    )


def from_bins(lows: ArrayLike, highs: ArrayLike, counts: ArrayLike, distinct: ArrayLike) -> Histogram:
    """A histogram from bins that may touch or repeat a value, as Spark's column statistics have them.

    Parameters
    ----------
    lows, highs : arrays of int64, shape (bins,)
        Ascending; a bin begins where the one before ends. A frequent value fills several bins with
        low = high.
    counts, distinct : arrays of numbers, shape (bins,)
        Tuples and distinct values of each bin.

    Notes
    -----
    Bins of one and the same value become one bucket; every other bin gives a shared lower end to the bin
    before. O(bins).
    """
    low, high = np.asarray(lows, dtype=np.int64), np.asarray(highs, dtype=np.int64)
    count, values = np.asarray(counts, dtype=np.float64), np.asarray(distinct, dtype=np.float64)
    kept: list[list[float]] = []
    for first, last, tuples, different in zip(
        low.tolist(), high.tolist(), count.tolist(), values.tolist(), strict=True
    ):
        if kept and first <= kept[-1][1]:
            if last == kept[-1][1]:  # nothing beyond the bucket before: more tuples of its last value
                kept[-1][2] += tuples
                continue
            first = int(kept[-1][1]) + 1
        kept.append([first, last, tuples, min(max(different, 1.0), last - first + 1.0)])
    if not kept:
        return Histogram(low, high, count, values)
    columns = list(zip(*kept, strict=True))
    return Histogram(
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.int64),
        np.array(columns[2], dtype=np.float64),
        np.array(columns[3], dtype=np.float64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Two histograms over one domain, cut at the ends of all buckets of both.

    Segment i begins at `lows[i]` and ends before the next; the first also takes all smaller keys, the last
    all greater ones. `counts` and `distinct` have shape (2, segments).
    """

    lows: Keys
    counts: Floats
    distinct: Floats

    @property
    def squares(self) -> Floats:
        """Sum of squared frequencies of each side in each segment, shape (2, segments)."""
        return _ratio(self.counts**2, self.distinct)

    @property
    def products(self) -> Floats:
        """Sum of f(i) g(i) in each segment: the join size."""
        return _ratio(self.counts.prod(axis=0), self.distinct.max(axis=0))

    @property
    def squared_products(self) -> Floats:
        """Sum of (f(i) g(i))^2 in each segment."""
        each: Floats = _ratio(self.counts, self.distinct).prod(axis=0)
        common: Floats = self.distinct.min(axis=0)
        return common * each**2


def _ratio(above: Floats, below: Floats) -> Floats:
    """Quotients, 0 where the divisor is 0."""
    quotient: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return quotient


def overlap(left: Histogram, right: Histogram) -> Overlap:
    """Cut two histograms at each other's bucket ends, spreading every bucket evenly over its range.

    Notes
    -----
    Exact over the whole range of int64. O(buckets log buckets).
    """
    greatest = np.iinfo(np.int64).max
    # Bucket [low, high] ends before high + 1, which the greatest key does not have.
    ends = [h.highs[h.highs < greatest] + 1 for h in (left, right)]
    cuts = np.unique(np.concatenate((left.lows, right.lows, *ends)))
    if not len(cuts):
        return Overlap(np.zeros(1, dtype=np.int64), np.zeros((2, 1)), np.zeros((2, 1)))
    widths = _width(cuts, np.append(cuts[1:] - 1, greatest))
    counts, distinct = np.zeros((2, len(cuts))), np.zeros((2, len(cuts)))
    for side, histogram in enumerate((left, right)):
        if not len(histogram.lows):
            continue
        bucket = np.clip(np.searchsorted(histogram.lows, cuts, side="right") - 1, 0, None)
        inside = (cuts >= histogram.lows[bucket]) & (cuts <= histogram.highs[bucket])
        part = np.where(inside, widths / _width(histogram.lows, histogram.highs)[bucket], 0.0)
        counts[side], distinct[side] = histogram.counts[bucket] * part, histogram.distinct[bucket] * part
    return Overlap(cuts, counts, distinct)


def refined(histogram: Histogram, cuts: Keys) -> Histogram:
    """The histogram with its buckets cut before each of the keys `cuts` (ascending), spread evenly."""
    starts = np.unique(np.concatenate((histogram.lows, cuts)))
    bucket = np.clip(np.searchsorted(histogram.lows, starts, side="right") - 1, 0, None)
    if not len(histogram.lows):
        return histogram
    starts, bucket = starts[starts >= histogram.lows[0]], bucket[starts >= histogram.lows[0]]
    inside = starts <= histogram.highs[bucket]
    starts, bucket = starts[inside], bucket[inside]
    last = np.append(bucket[1:] != bucket[:-1], True)
    ends = np.where(last, histogram.highs[bucket], np.append(starts[1:], starts[-1:]) - 1)
    part = _width(starts, ends) / _width(histogram.lows, histogram.highs)[bucket]
    return Histogram(starts, ends, histogram.counts[bucket] * part, histogram.distinct[bucket] * part)


def _width(lows: Keys, highs: Keys) -> Floats:
    """Numbers of keys from low to high; the difference is taken modulo 2^64, so it cannot overflow."""
    return (highs.astype(np.uint64) - lows.astype(np.uint64)).astype(np.float64) + 1


@dataclass(frozen=True, slots=True, eq=False)
class JoinStatistics:
    """One equi-join of a query: its two vertices and the histograms of their join columns."""

    left: int
    right: int
    left_histogram: Histogram
    right_histogram: Histogram


@dataclass(frozen=True, slots=True)
class Prediction:
    """Expected result of a COUNT and variance of one atomic sketch (or one counter's worth of space)."""

    join_size: float
    variance: float


def predict(joins: Sequence[JoinStatistics]) -> Prediction:
    """Join size and atomic-sketch variance of an acyclic query, under the assumptions of this module.

    Parameters
    ----------
    joins : sequence of JoinStatistics
        The edges of the query's join tree.

    Notes
    -----
    Under independence f_k(i, j) = f_k(i) f_k(j) / |R_k|, so that join size and second moment are products
    over the joins: with f and g the frequencies of one join, J = sum f g and
    T = F2(f) F2(g) + 2 J^2 - 2 sum f^2 g^2 are multiplied, and divided by |R_k| (|R_k|^2) once for every
    join of a vertex beyond its first. The variance is then exact for 4-wise independent families.
    """
    cuts = [overlap(join.left_histogram, join.right_histogram) for join in joins]
    sizes = np.array([cut.products.sum() for cut in cuts])
    moments = np.array([second_moment(cut) for cut in cuts])
    scale = shrinkage(joins)
    size = float(sizes.prod() * scale)
    return Prediction(size, max(float(moments.prod() * scale**2) - size**2, 0.0))


def second_moment(cut: Overlap, chosen: NDArray[np.bool_] | slice = slice(None)) -> float:
    """E[X^2] of a join's atomic sketch over the chosen segments: [1], Equation (1), plus the squared mean."""
    squares = cut.squares[:, chosen].sum(axis=1).prod()
    size = cut.products[chosen].sum()
    # Sums of squares over segments and a containment estimate of J need not respect Cauchy-Schwarz exactly.
    return float(max(squares + 2 * size**2 - 2 * cut.squared_products[chosen].sum(), size**2))


def shrinkage(joins: Sequence[JoinStatistics]) -> float:
    """The product over vertices of 1 / |R_k|^(joins - 1), by which products of marginals are divided."""
    tuples: dict[int, float] = {}
    uses: Counter[int] = Counter()
    for join in joins:
        for vertex, histogram in ((join.left, join.left_histogram), (join.right, join.right_histogram)):
            tuples[vertex] = max(histogram.tuples, 1.0)
            uses[vertex] += 1
    return prod(tuples[vertex] ** (1 - count) for vertex, count in uses.items())


def query_weight(joins: Sequence[JoinStatistics]) -> float:
    """W_Q = 8 Var / E^2 of [2]: what the query's squared error would be with one word per sketch.

    A predicted join size below one tuple is taken as one, so that weights stay finite.
    """
    prediction = predict(joins)
    return 8 * prediction.variance / max(prediction.join_size, 1.0) ** 2
