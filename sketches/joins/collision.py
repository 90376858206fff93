"""Rows of a hash sketch in which every key has a bucket of its own: their join sizes are exact.

With n distinct keys in m buckets a row is free of collisions with probability prod_{i<n} (1 - i/m), about
exp(-n^2 / 2m). Few keys (105 airports in 4,096 buckets: 26 %) leave several such rows among 11, and a sketch shows
which: a collision-free row fills as many buckets as there are keys, any other row fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def collision_free_rows(
    counters: Sequence[NDArray[np.generic]], confidence: float, shared_buckets: int | None = None
) -> NDArray[np.bool_] | None:
    """The rows in which no two keys share a bucket, where that can be known.

    Parameters
    ----------
    counters : sequence of ndarray, shape (rows, buckets)
        All sketches that the estimate multiplies; one join attribute, the same hashes in all.
    confidence : float
        In (0, 1).
    shared_buckets : int, optional
        Of a folded family, its fine buckets: two keys in one of them share a bucket in every row.

    Returns
    -------
    ndarray of bool, shape (rows,), or None
        The rows that fill most buckets. They are free of collisions unless *all* rows have one, and None is
        returned unless the chance of that is at most 1 - confidence: for 95 % and 11 rows, up to
        1.7 * sqrt(buckets) keys.

    Notes
    -----
    A bucket counts as filled if it is non-zero in any of the sketches; keys whose weights cancel in all of them
    add nothing to the estimate either. The chance is computed for independent uniform buckets and for one key more
    than were seen, the least number that would make this wrong.
    """
    filled = np.zeros(counters[0].shape, dtype=np.bool_)
    for array in counters:
        filled |= array != 0
    occupied = filled.sum(axis=1)
    most = int(occupied.max())
    rows = len(occupied)
    buckets = filled.size // rows
    if most >= buckets:
        return None
    free = _chance_of_none(most + 1, buckets)
    apart = 1.0 if shared_buckets is None else _chance_of_none(most + 1, shared_buckets)
    if 1 - apart + (1 - free) ** rows > 1 - confidence:
        return None
    return np.asarray(occupied == most)


def _chance_of_none(keys: int, buckets: int) -> float:
    """Chance that no two of `keys` keys share one of `buckets` independent uniform buckets."""
    return float(np.prod(1 - np.arange(keys) / buckets))
