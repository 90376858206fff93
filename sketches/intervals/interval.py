"""Estimates with intervals: order statistics of a sketch's rows, and what may be claimed about them.

References
----------
.. [1] H. A. David, H. N. Nagaraja, "Order Statistics", 3rd edition 2003, section 7.1: the distribution-free
   confidence interval of a median.
.. [2] E. C. Fieller, "Some problems in interval estimation", JRSS B 16 (1954): intervals of ratios as the
   set of values that a test does not reject.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST_ROWS = 11  # with fewer, measured coverage sinks below the nominal one
LEAST_BUCKETS = 64
MOST_SHIFT = 0.2  # averaged rows for each bucket behind one of them; see `averaged`
COLLAPSE = 0.5  # share of the fullest row's buckets below which another row's keys have collapsed
FEW_BUCKETS_SEEN = 16
TOO_FEW = "too few matching rows to tell"
USELESS = "the interval is wider than the value"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval. A bare number is never returned.

    Parameters
    ----------
    value : float or int
        The estimate; an int (or a Fraction) only where it is exact. NaN if nothing can be said.
    low, high : float or int
        The interval, `low` <= `high`.
    confidence : float
        Nominal chance that the interval covers the truth, in (0, 1); 1.0 where it is exact.
    certified : bool
        Whether the assumptions behind `confidence` hold.
    basis : str
        "exact", "theorem" (independent hash families) or "measured" (calibrated by trials).
    notes : tuple of str
        Why it is not certified, and what else the reader should know.
    """

    value: float
    low: float
    high: float
    confidence: float
    certified: bool
    basis: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.basis not in ("exact", "theorem", "measured"):
            raise ValueError(f"an estimate rests on exact, theorem or measured, not {self.basis!r}")
        if self.low > self.high:
            raise ValueError(f"an interval runs from low to high, not from {self.low} to {self.high}")

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    @property
    def exact(self) -> bool:
        """Whether the value is no estimate at all."""
        return self.basis == "exact"


def exact(value: float | Fraction) -> Estimate:
    """A value known exactly, with an interval of no width."""
    number = cast(float, value)  # a Fraction computes with floats as an int does
    return Estimate(number, number, number, 1.0, True, "exact")


def order_rank(rows: int, confidence: float) -> int:
    """Largest k with P[Binomial(rows, 1/2) < k] <= (1 - confidence) / 2; 0 if there is none.

    The interval from the k-th smallest to the k-th largest of `rows` independent values covers their common
    median with at least this confidence, whatever their distribution [1].
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    tail = (1 - confidence) / 2
    k, below = 0, 1  # of the 2^rows equally likely outcomes, those with at most k successes
    while k < (rows + 1) // 2 and below / (1 << rows) <= tail:
        k += 1
        below += math.comb(rows, k)
    return k


def rows_for(confidence: float) -> int:
    """Smallest odd number of rows, 11 or more, whose order statistics reach `confidence`."""
    rows = LEAST_ROWS
    while order_rank(rows, confidence) == 0:
        rows += 2
    return rows


def averaged(rows: NDArray[np.float64], buckets: int, confidence: float) -> NDArray[np.float64]:
    """Row estimates averaged down to so few that their median, for which the interval is, is close to their mean.

    Parameters
    ----------
    rows : ndarray of float64, shape (R,)
        One estimate from each row of a sketch.
    buckets : int
        Buckets of a row, or atomic sketches that it averages.
    confidence : float
        In (0, 1); as many rows are left as it takes, 11 at least.

    Notes
    -----
    The rows of a self-join of m buckets are at worst chi-square variables of m degrees of freedom: their median lies
    0.47 / sqrt(m) standard deviations below their mean, and the interval of R rows reaches 2.5 / sqrt(R) far. Means of
    g rows have g m degrees of freedom; with R / g <= 0.2 g m the shift is at most a twelfth of the half-width.
    """
    least = rows_for(confidence)
    if len(rows) < 2 * least:
        return rows
    return in_rows(rows, min(len(rows), max(least, math.isqrt(int(MOST_SHIFT * len(rows) * buckets)) | 1)))


def in_rows(values: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Average row estimates down to `rows`: entry r is the mean of the rows r, r + `rows`, r + 2 `rows`, ...

    Two sums that are brought to equal lengths this way use the same functions in entry r and none of them in any
    other, however many rows each had: entries of their sum are independent.
    """
    if len(values) == rows:
        return values
    return np.array([values[r::rows].mean() for r in range(rows)])


def median_interval(rows: ArrayLike, confidence: float = 0.95, basis: str = "theorem") -> Estimate:
    """The median of independent row estimates, between two of them.

    Parameters
    ----------
    rows : ndarray of float64, shape (R,)
        One estimate from each row of a sketch.
    confidence : float
        In (0, 1).
    basis : str
        What the independence of the rows rests on: "theorem" or "measured".

    Returns
    -------
    Estimate
        ``[Y(k), Y(R + 1 - k)]`` with k from `order_rank`. Not certified with fewer than 11 rows, or if R rows
        cannot reach the confidence; then the interval spans all rows, and a note says what that is worth.

    Notes
    -----
    The interval is one for the *median* of the row distribution, while the truth is its mean. For products of
    hash sketches the two lie close together (measured: 47 to 56 % of the rows below the truth); many rows are
    `averaged` before, lest the interval become narrower than the distance.
    """
    values = np.sort(np.asarray(rows, dtype=np.float64))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"rows are a non-empty one-dimensional array, not of shape {values.shape}")
    k, notes = _rank_and_notes(len(values), confidence)
    estimate = Estimate(
        _median(values),
        float(values[max(k, 1) - 1]),
        float(values[len(values) - max(k, 1)]),
        confidence,
        not notes,
        basis,
        notes,
    )
    return note_useless(estimate)


def ratio_interval(
    numerator: ArrayLike, denominator: ArrayLike, confidence: float = 0.95, basis: str = "theorem"
) -> Estimate:
    """The ratio of two aggregates estimated on the same hashes: AVG = SUM / COUNT.

    Parameters
    ----------
    numerator, denominator : ndarray of float64, shape (R,)
        Row r of both comes from the same hash functions, so that most of the error cancels.
    confidence : float
        In (0, 1).
    basis : str
        "theorem" or "measured".

    Returns
    -------
    Estimate
        The interval is the hull of all mu that the rows do not reject [2], i.e. for which
        k <= #{r: S_r - mu * C_r > 0} <= R - k. With positive denominators these are the order statistics of
        the ratios. If denominators change sign in k rows or more, no mu however large is rejected: the value
        is NaN and the interval infinite.

    Notes
    -----
    Each S_r - mu * C_r is itself the row estimate of one weighted sum, with mean zero at the true mu; that
    makes the coverage the same as that of `median_interval`.
    """
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    if top.shape != bottom.shape or top.ndim != 1 or len(top) == 0:
        raise ValueError(f"a ratio needs as many numerators as denominators: {top.shape} and {bottom.shape}")
    k, notes = _rank_and_notes(len(top), confidence)
    k = max(k, 1)
    wrong = int(min((bottom <= 0).sum(), (bottom >= 0).sum()))
    if wrong >= k:
        return Estimate(math.nan, -math.inf, math.inf, confidence, False, basis, (*notes, TOO_FEW))
    low, high = _unrejected(top, bottom, k)
    value = _median(top / bottom) if wrong == 0 else _median(top) / _median(bottom)
    value = min(max(value, low), high)
    return note_useless(Estimate(value, low, high, confidence, not notes, basis, notes))


def clip(estimate: Estimate, low_bound: float = -math.inf, high_bound: float = math.inf) -> Estimate:
    """Move the value and both ends into [low_bound, high_bound], bounds that hold for certain.

    If the whole interval lies outside, it has missed: it becomes the nearer bound, is no longer certified,
    and says so.
    """
    if low_bound > high_bound:
        raise ValueError(f"the lower bound {low_bound} is above the upper bound {high_bound}")
    value, low, high = (
        x if math.isnan(x) else min(max(x, low_bound), high_bound)
        for x in (estimate.value, estimate.low, estimate.high)
    )
    clipped = replace(estimate, value=value, low=low, high=high)
    if estimate.high < low_bound or estimate.low > high_bound:
        return uncertified(clipped, "the whole interval lay outside what is possible")
    return clipped


def uncertified(estimate: Estimate, *reasons: str) -> Estimate:
    """The same estimate, no longer certified, for these reasons; unchanged without reasons."""
    if not reasons:
        return estimate
    return replace(estimate, certified=False, notes=(*estimate.notes, *reasons))


def note_useless(estimate: Estimate) -> Estimate:
    """Add a note if the interval is so wide that the value says nothing."""
    if math.isfinite(estimate.half_width) and estimate.half_width > abs(estimate.value) > 0:
        return replace(estimate, notes=(*estimate.notes, USELESS))
    return estimate


def collapse_notes(counters: Sequence[NDArray[np.generic]]) -> tuple[str, ...]:
    """Why rows of these counters may not be trusted as independent repetitions.

    Parameters
    ----------
    counters : sequence of ndarray, shape (rows, buckets)
        One for each vertex of the query.

    Returns
    -------
    tuple of str
        Empty if all is well. A note if there are fewer than 64 buckets, so that single collisions decide a
        row; and one if the keys fill less than half as many buckets in one row as in another: hashes that do
        so have an affinity to these keys, and other rows may have it as well.
    """
    notes = []
    for array in counters:
        rows, buckets = array.shape
        if rows == 1 and buckets == 1:
            continue
        if buckets < LEAST_BUCKETS:
            notes.append(f"{buckets} buckets in a row; certified intervals need {LEAST_BUCKETS} or more")
        occupied = np.count_nonzero(array, axis=1)
        if occupied.max() >= FEW_BUCKETS_SEEN and occupied.min() < COLLAPSE * occupied.max():
            notes.append(
                f"keys collapse: {occupied.min()} buckets filled in one row, {occupied.max()} in another"
            )
    return tuple(dict.fromkeys(notes))


def _median(values: NDArray[np.float64]) -> float:
    """The median; np.median, as np.unique, imports masked arrays, which takes longer than an answer."""
    ordered = np.sort(values)
    low, high = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
    return low if low == high else (low + high) / 2


def _rank_and_notes(rows: int, confidence: float) -> tuple[int, tuple[str, ...]]:
    k = order_rank(rows, confidence)
    notes = []
    if rows < LEAST_ROWS:
        notes.append(f"{rows} rows; certified intervals need {LEAST_ROWS} or more")
    if k == 0:
        reached = 1 - 2.0 ** (1 - rows)
        notes.append(f"{rows} rows reach {reached:.2%}; {confidence:.2%} takes {rows_for(confidence)} rows")
    return k, tuple(notes)


def _unrejected(top: NDArray[np.float64], bottom: NDArray[np.float64], k: int) -> tuple[float, float]:
    """Hull of the mu with k <= #{r: top_r - mu * bottom_r > 0} <= R - k, which is known to be bounded."""
    usable = bottom != 0
    ratios = np.sort(top[usable] / bottom[usable])
    breaks = ratios[np.append(True, ratios[1:] != ratios[:-1])]
    if len(breaks) == 1:
        return float(breaks[0]), float(breaks[0])
    # The count is constant between neighbouring breaks; look in the middle of each gap.
    middles = breaks[:-1] + (breaks[1:] - breaks[:-1]) / 2
    above = (top[:, None] - middles[None, :] * bottom[:, None] > 0).sum(axis=0)
    inside = np.flatnonzero((above >= k) & (above <= len(top) - k))
    if len(inside) == 0:
        # All ratios that matter coincide: the median break is the only candidate left.
        middle = _median(top[usable] / bottom[usable])
        return middle, middle
    return float(breaks[inside[0]]), float(breaks[inside[-1] + 1])
