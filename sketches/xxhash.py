"""XXH64 of 64-bit integers, as Spark computes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

BLOCK = 1 << 14  # values hashed at a time: temporaries stay in the cache
_SPARK_SEED = 42
_P5 = 0x27D4EB2F165667C5
_XXH_P1, _XXH_P2, _XXH_P3, _XXH_P4 = (
    np.uint64(p) for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63)
)


def spark_xxhash64(seed: int | NDArray[np.int64], keys: NDArray[np.int64]) -> Words:
    """Spark's ``xxhash64(seed, key)`` of BIGINTs, as uint64 (view as int64 for Spark's sign).

    Parameters
    ----------
    seed : int or ndarray of int64, shape (n,)
        Spark's first argument; an array gives ``xxhash64(a, b)``, the fingerprint of a composite key.
    keys : ndarray of int64, shape (n,)
    """
    first = np.atleast_1d(np.asarray(seed, dtype=np.int64))
    start = xxh64_of_long(first, np.uint64(_SPARK_SEED))
    return xxh64_of_long(keys, start[0] if len(start) == 1 else start)


def xxh64_of_long(values: NDArray[np.int64], seed: np.uint64 | NDArray[np.uint64]) -> Words:
    """XXH64 of the eight little-endian bytes of each value, under a seed or a seed for each."""
    out = np.empty(len(values), dtype=np.uint64)
    whole = np.broadcast_to(np.asarray(seed, dtype=np.uint64), out.shape)
    for start in range(0, len(values), BLOCK):
        x = values[start : start + BLOCK].view(np.uint64) * _XXH_P2
        x = _rotate(x, 31) * _XXH_P1
        x ^= whole[start : start + BLOCK] + np.uint64((_P5 + 8) % (1 << 64))
        x = _rotate(x, 27) * _XXH_P1 + _XXH_P4
        x ^= x >> np.uint64(33)
        x *= _XXH_P2
        x ^= x >> np.uint64(29)
        x *= _XXH_P3
        x ^= x >> np.uint64(32)
        out[start : start + BLOCK] = x
    return out


def _rotate(x: Words, left: int) -> Words:
    return (x << np.uint64(left)) | (x >> np.uint64(64 - left))
