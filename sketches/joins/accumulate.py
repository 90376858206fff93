"""Adding signed weights to counters: exact in integers, never wrapped.

`np.bincount` sums weights in float64, exact only up to 2^53. Larger integer weights are split into a high
and a low part, each of which sums exactly within a block, and put together again in int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Counters = NDArray[np.int64] | NDArray[np.float64]
Weights = NDArray[np.int64] | NDArray[np.float64]

INT64_END = 1 << 63
EXACT_IN_FLOAT = 1 << 53
LOW_BITS = 32
PICKED = 0.25  # share of weights that are not 0 up to which picking them pays
# Sums of one column that stay below 2^25 in absolute value leave room for those of another, in one double.
PAIRED_BITS = 26
_HALF, _LOW = 1 << (PAIRED_BITS - 1), (1 << PAIRED_BITS) - 1


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


def add_columns(
    columns: Sequence[tuple[Weights | None, Sequence[Counters]]], slots: NDArray[np.int64]
) -> None:
    """Add columns of weights to the rows of sketches, as `add_signed` does to one row.

    Parameters
    ----------
    columns : sequence of (weights, targets)
        Weights of shape (n,), or None for all ones; the targets of a column, ndarray of its type and of shape
        (r, buckets), get the same sums.
    slots : ndarray of int64, shape (largest r or more, n)
        Of every row.

    Notes
    -----
    What the weights are like is looked at once for all rows. Two columns of small integers are summed at once, as the
    high and the low part of one. Where most are 0, of tuples that a filter leaves out and whose hashes others share,
    the others are picked.
    """
    small: list[tuple[Weights | None, Sequence[Counters]]] = []
    for weights, targets in columns:
        place = few(weights)
        if weights is not None and place is not None:
            _add([targets], [own.take(place) for own in slots], _sums(weights[place]))
        elif _peak(weights) * slots.shape[1] < _HALF:
            small.append((weights, targets))
        else:
            _add([targets], slots, _sums(weights))
    for (low, lows), (high, highs) in zip(small[0::2], small[1::2], strict=False):
        _add([lows, highs], slots, _paired_sums(low, high, slots.shape[1]))
    if len(small) % 2:
        _add([small[-1][1]], slots, _sums(small[-1][0]))


def _add(
    targets: Sequence[Sequence[Counters]],
    slots: Sequence[NDArray[np.int64]] | NDArray[np.int64],
    sums: Callable[[NDArray[np.int64], int], Sequence[NDArray[Any]]],
) -> None:
    """Add what `sums` gives for each row to the targets of each column."""
    every = [t for own in targets for t in own]
    for row in range(max(map(len, every))):
        for own, sum_of in zip(targets, sums(slots[row], every[0].shape[1]), strict=True):
            for target in own:
                if row < len(target):
                    target[row] += sum_of.astype(target.dtype, copy=False)


def _peak(weights: Weights | None) -> int:
    """Largest absolute integer weight; of others more than any sum of small ones."""
    if weights is None:
        return 1
    if weights.dtype != np.int64:
        return INT64_END
    return max(int(weights.max()), -int(weights.min()))


def _sums(weights: Weights | None) -> Callable[[NDArray[np.int64], int], Sequence[NDArray[Any]]]:
    """What sums weights by the buckets of slots."""
    if weights is None or weights.dtype != np.int64 or not len(weights):
        count: Callable[[NDArray[np.int64], int], NDArray[Any]] = lambda slots, bins: np.bincount(  # noqa: E731
            slots, weights=weights, minlength=bins
        )
    elif _peak(weights) * len(weights) >= EXACT_IN_FLOAT:
        count = lambda slots, bins: integer_sums(slots, weights.astype(np.int64, copy=False), bins)  # noqa: E731
    else:
        floats = weights.astype(np.float64)
        count = lambda slots, bins: np.bincount(slots, weights=floats, minlength=bins)  # noqa: E731

    def sums(slots: NDArray[np.int64], buckets: int) -> Sequence[NDArray[Any]]:
        counts = count(slots, 2 * buckets)
        return (counts[0::2] - counts[1::2],)

    return sums


def _paired_sums(
    low: Weights | None, high: Weights | None, length: int
) -> Callable[[NDArray[np.int64], int], Sequence[NDArray[Any]]]:
    """What sums two columns of small integer weights at once."""
    ones = np.ones(length)
    both = (ones if high is None else high) * float(1 << PAIRED_BITS) + (ones if low is None else low)

    def sums(slots: NDArray[np.int64], buckets: int) -> Sequence[NDArray[Any]]:
        counts = np.bincount(slots, weights=both, minlength=2 * buckets)
        total = (counts[0::2] - counts[1::2]).astype(np.int64)
        lower = ((total + _HALF) & _LOW) - _HALF
        return lower, (total - lower) >> PAIRED_BITS

    return sums


def sliced(weights: Sequence[Weights | None], at: slice) -> list[Weights | None]:
    """A slice of each array; what is one array several times stays one."""
    found = {id(w): None if w is None else w[at] for w in weights}
    return [found[id(w)] for w in weights]


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


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values, ascending: `numpy.unique` hashes integers before it sorts them, in twice the time."""
    found = np.sort(values)
    first = np.ones(found.size, np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first]
