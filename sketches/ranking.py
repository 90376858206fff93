"""Choices by rank that come out alike on every processor.

Sorts and partitions that are not stable leave equal values in an order that depends on the processor's vector
width, and sums of floats made by BLAS differ in their last bits. So equals are chosen in the order in which they
stand (which is the order of their keys wherever this is used), and sums count as equal if rounding may have told
them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

KEPT_BITS = 36  # of the 53 of a float64; sums of millions of terms differ in the last twenty at most

Floats = npt.NDArray[np.float64]
Choice = TypeVar("Choice")


def by_weight(weights: npt.NDArray[Any], count: int | None = None) -> npt.NDArray[np.intp]:
    """Positions of the largest absolute weights, largest first, equals in the order in which they stand.

    Parameters
    ----------
    weights : ndarray of int64 or float64, shape (n,)
        In ascending order of their keys, so that the key breaks ties. Sums of floats are `rounded` first.
    count : int, optional
        At most so many; default: all.
    """
    sizes = np.abs(weights.astype(np.float64))
    places = np.arange(sizes.size)
    if count is not None and count < sizes.size:
        # A partition says what the least of them is, whatever it does with equals.
        cut = -np.partition(-sizes, count - 1)[count - 1] if count > 0 else np.inf
        above, equal = np.flatnonzero(sizes > cut), np.flatnonzero(sizes == cut)
        places = np.sort(np.concatenate([above, equal[: max(count, 0) - above.size]]))
    return places[np.argsort(-sizes[places], kind="stable")]


def rounded(values: npt.ArrayLike) -> Floats:
    """The values with the bits left out that differ between processors: equal where sums are equal but for rounding."""
    parts, exponents = np.frexp(np.asarray(values, np.float64))
    return np.asarray(np.ldexp(np.rint(parts * float(1 << KEPT_BITS)), exponents - KEPT_BITS))


def least(values: npt.ArrayLike) -> int:
    """Position of the least of some sums of floats, the first of those that are equal but for rounding."""
    return int(np.argmin(rounded(values)))


def least_of(choices: Iterable[Choice], value: Callable[[Choice], float]) -> Choice:
    """The choice of least value, the first of those that are equal but for rounding."""
    return min(choices, key=lambda choice: float(rounded(value(choice))))
