"""Adding signed weights to counters: exact in integers, never wrapped.

`np.bincount` sums weights in float64, exact only up to 2^53. Larger integer weights are split into a high
and a low part, each of which sums exactly within a block, and put together again in int64.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Counters = NDArray[np.int64] | NDArray[np.float64]
Weights = NDArray[np.int64] | NDArray[np.float64]

INT64_END = 1 << 63
EXACT_IN_FLOAT = 1 << 53
LOW_BITS = 32
PICKED = 0.25  # share of weights that are not 0 up to which picking them pays


def as_weights(weights: ArrayLike | None, dtype: str) -> Weights | None:
    """Weights in the type of the counters, or None for all ones.

    Raises
    ------
    ValueError
        If they are not numbers of that type, not one-dimensional, or not finite.
    """
    if weights is None:
        return None
    array = np.asarray(weights)
    if array.ndim != 1:
        raise ValueError(f"weights are a one-dimensional array, not of shape {array.shape}")
    if dtype == "int64":
        if array.size and (array.dtype.kind not in "iu" or array.dtype == np.uint64):
            raise ValueError(f"an int64 sketch takes int64 weights, not {array.dtype}; scale them first")
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.size and array.dtype.kind not in "iuf":
        raise ValueError(f"weights are int64 or float64, not {array.dtype}")
    floats = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(floats).all():
        position = int(np.flatnonzero(~np.isfinite(floats))[0])
        raise ValueError(f"weight {floats[position]} at position {position} is not finite")
    return floats


def absolute_mass(weights: Weights | None, length: int) -> int:
    """Sum of absolute integer weights, exactly; `length` where all are one, and 0 for floats."""
    if weights is None:
        return length
    if weights.dtype != np.int64:
        return 0
    magnitude = np.abs(weights).view(np.uint64)  # the most negative int64 becomes 2^63, as it should
    high = int((magnitude >> np.uint64(32)).sum())
    return (high << 32) + int((magnitude & np.uint64(0xFFFFFFFF)).sum())


def absolute_peak(counters: Counters) -> int:
    """Largest absolute counter as a Python integer; 0 for floats, which do not wrap."""
    if counters.dtype != np.int64 or counters.size == 0:
        return 0
    return max(int(counters.max()), -int(counters.min()))


def check_not_wrapped(counters: Counters, shadow: NDArray[np.float64], what: str) -> None:
    """Raise OverflowError if an int64 counter has wrapped.

    Parameters
    ----------
    counters : ndarray of int64
        Computed modulo 2^64.
    shadow : ndarray of float64, same shape
        The same sums in floating point. A wrapped counter differs from its shadow by 2^64, a rounding error
        by very much less.
    what : str
        What was added, for the message.
    """
    wrong = np.abs(counters.astype(np.float64) - shadow) > float(1 << 62)
    if wrong.any():
        raise OverflowError(
            f"adding {what} takes a counter to {shadow[wrong][0]:.4g}, beyond 64 bits; "
            "use a float64 sketch, or smaller units"
        )


def add_signed(row: Counters, slots: NDArray[np.int64], weights: Weights | None) -> None:
    """Add weights to the buckets of one row, in place.

    Parameters
    ----------
    row : ndarray of int64 or float64, shape (buckets,)
    slots : ndarray of int64, shape (n,)
        ``2 * bucket + (1 if negative else 0)``. The sign is the lowest bit, so that one count into twice as
        many bins replaces a multiplication for every tuple.
    weights : ndarray of the same type as `row`, shape (n,), or None for all ones
        Integers are summed modulo 2^64; the caller makes sure that they fit.
    """
    bins = 2 * len(row)
    if weights is None:
        counts: Counters = np.bincount(slots, minlength=bins)
    elif row.dtype == np.int64:
        counts = integer_sums(slots, weights.astype(np.int64, copy=False), bins)
    else:
        counts = np.bincount(slots, weights=weights, minlength=bins)
    row += (counts[0::2] - counts[1::2]).astype(row.dtype, copy=False)


def add_rows(
    rows: Sequence[Counters] | Counters,
    slots: Sequence[NDArray[np.int64]] | NDArray[np.int64],
    weights: Weights | None,
) -> None:
    """Add the same weights to several rows, each with slots of its own, as `add_signed` does to one.

    Parameters
    ----------
    rows : ndarray of int64 or float64, shape (r, buckets)
    slots : ndarray of int64, shape (r or more, n)
    weights : ndarray of the same type as `rows`, shape (n,), or None for all ones

    Notes
    -----
    What the weights are like is looked at once for all rows. Where most are 0, of tuples that a filter leaves out and
    whose hashes others share, the others are picked.
    """
    place = few(weights)
    if weights is not None and place is not None:
        slots, weights = [own.take(place) for own, _ in zip(slots, rows, strict=False)], weights[place]
    if weights is None or not len(weights) or weights.dtype != np.int64 or rows[0].dtype != np.int64:
        for row, own in zip(rows, slots, strict=False):
            add_signed(row, own, weights)
        return
    largest = max(int(weights.max()), -int(weights.min()))
    if largest * len(weights) >= EXACT_IN_FLOAT:
        for row, own in zip(rows, slots, strict=False):
            add_signed(row, own, weights)
        return
    floats = weights.astype(np.float64)
    for row, own in zip(rows, slots, strict=False):
        counts = np.bincount(own, weights=floats, minlength=2 * len(row))
        row += (counts[0::2] - counts[1::2]).astype(np.int64)


def few(weights: Weights | None) -> NDArray[np.int64] | None:
    """Where weights are not 0, if so few of them are not that picking these pays."""
    if weights is None or np.count_nonzero(weights) >= PICKED * len(weights):
        return None
    return np.flatnonzero(weights)


def integer_sums(slots: NDArray[np.int64], weights: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Sum of the integer weights in each of `bins` bins, exactly (modulo 2^64).

    Parameters
    ----------
    slots : ndarray of int64, shape (n,)
        In [0, bins).
    weights : ndarray of int64, shape (n,)
    """
    if len(weights) == 0:
        return np.zeros(bins, dtype=np.int64)
    largest = max(int(weights.max()), -int(weights.min()))
    if largest * len(weights) < EXACT_IN_FLOAT:
        return np.bincount(slots, weights=weights, minlength=bins).astype(np.int64)
    # Parts below 2^32 in absolute value sum exactly up to 2^21 weights at a time.
    total = np.zeros(bins, dtype=np.int64)
    step = EXACT_IN_FLOAT >> LOW_BITS
    for start in range(0, len(weights), step):
        part, at = weights[start : start + step], slots[start : start + step]
        low = np.bincount(at, weights=part & ((1 << LOW_BITS) - 1), minlength=bins).astype(np.int64)
        high = np.bincount(at, weights=part >> LOW_BITS, minlength=bins).astype(np.int64)
        total += (high << LOW_BITS) + low
    return total
