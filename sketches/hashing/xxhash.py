"""XXH64 of integers and bytes, as Spark computes it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

BLOCK = 1 << 14  # values hashed at a time: temporaries stay in the cache
SPARK_SEED = np.uint64(42)
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
    start = xxh64_of_long(first, SPARK_SEED)
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


def xxh64_of_int(values: NDArray[np.int32], seed: Words) -> Words:
    """XXH64 of the four little-endian bytes of each value, under a seed for each: Spark's hash of an INT."""
    x = seed + np.uint64((_P5 + 4) % (1 << 64))
    return _mixed(_four(x, values.astype("<i4").view("<u4").astype(np.uint64)))


def xxh64_of_bytes(data: bytes, lengths: NDArray[np.int64], seed: Words) -> Words:
    """XXH64 of byte strings that stand one after the other in `data`, under a seed for each."""
    octets = np.frombuffer(data, np.uint8)
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    cuts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(ordered)]
    out = np.empty(len(lengths), np.uint64)
    for first, last in pairwise(cuts):
        if first == last:
            continue
        length = int(ordered[first])
        step = max(1, BLOCK * 8 // max(length, 8))
        for begin in range(first, last, step):
            rows = order[begin : min(begin + step, last)]
            strings = octets[starts[rows][:, np.newaxis] + np.arange(length)]
            out[rows] = _of_equal_length(strings, seed[rows])
    return out


def _of_equal_length(strings: NDArray[np.uint8], seed: Words) -> Words:
    """XXH64 of each row of bytes."""
    count, length = strings.shape
    whole = length // 8
    words = np.ascontiguousarray(strings[:, : 8 * whole]).view("<u8").astype(np.uint64).reshape(count, whole)
    at = 0
    if length >= 32:
        lanes = [seed + _XXH_P1 + _XXH_P2, seed + _XXH_P2, seed.copy(), seed - _XXH_P1]
        while at + 4 <= whole:
            for lane in range(4):
                lanes[lane] = _rotate(lanes[lane] + words[:, at + lane] * _XXH_P2, 31) * _XXH_P1
            at += 4
        x = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
        for part in lanes:
            x = (x ^ (_rotate(part * _XXH_P2, 31) * _XXH_P1)) * _XXH_P1 + _XXH_P4
    else:
        x = seed + np.uint64(_P5)
    x = x + np.uint64(length)
    for place in range(at, whole):
        x ^= _rotate(words[:, place] * _XXH_P2, 31) * _XXH_P1
        x = _rotate(x, 27) * _XXH_P1 + _XXH_P4
    rest = 8 * whole
    if length - rest >= 4:
        x = _four(x, np.ascontiguousarray(strings[:, rest : rest + 4]).view("<u4").astype(np.uint64)[:, 0])
        rest += 4
    for place in range(rest, length):
        x = _rotate(x ^ (strings[:, place].astype(np.uint64) * np.uint64(_P5)), 11) * _XXH_P1
    return _mixed(x)


def _four(x: Words, values: Words) -> Words:
    """Take in four bytes."""
    return _rotate(x ^ (values * _XXH_P1), 23) * _XXH_P2 + _XXH_P3


def _mixed(x: Words) -> Words:
    """The last step of XXH64."""
    x = (x ^ (x >> np.uint64(33))) * _XXH_P2
    x = (x ^ (x >> np.uint64(29))) * _XXH_P3
    return x ^ (x >> np.uint64(32))


def _rotate(x: Words, left: int) -> Words:
    return (x << np.uint64(left)) | (x >> np.uint64(64 - left))
