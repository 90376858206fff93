"""Integers in as few bits as their range takes: how samples and maps that are counted in bytes are held.

A column is its smallest value and, for each entry, the bits of its distance from it (*frame of reference*). A column in
ascending order, as that of the keys, is held as Elias and Fano do: the lower bits of the distances as they are, the
higher ones in unary, about ``2 + log2(span / entries)`` bits an entry whatever the span. Nothing is lost, and fewer
entries within a smaller span never take more bytes: what fits in a size does not depend on how it came together.

References
----------
.. [1] P. Elias, "Efficient storage and retrieval by content and address of static files", JACM 21(2), 1974.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Spans = npt.NDArray[np.uint64]

_WORD = (1 << 64) - 1
WORD_BYTES = 8
# More bits than the rounding of two numbers to bytes, and one bit more for `entries`, may make up for.
ROUNDED_BITS = 18


class PackedColumn:
    """A column of integers.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
    ascending : bool
        Whether none is less than the one before.
    """

    __slots__ = ("_base", "_bits", "_high", "_low", "_size")

    def __init__(self, values: Ints, *, ascending: bool = False) -> None:
        self._size = values.size
        self._base = int(values.min()) if values.size else 0
        distances = values.view(np.uint64) - np.uint64(self._base & _WORD)
        span = int(distances.max()) if values.size else 0
        low = _low_bits(self._size, span) if ascending else span.bit_length()
        bits = np.empty((low, self._size), np.uint8)
        for bit, row in enumerate(bits):
            row[:] = (distances >> np.uint64(bit)).astype(np.uint8) & 1
        self._bits, self._low = low, np.packbits(bits)
        self._high: npt.NDArray[np.uint8] | None = None
        if low < span.bit_length():
            high = (distances >> np.uint64(low)).astype(np.int64)
            marks = np.zeros(self._size + (span >> low) + 1, np.uint8)
            marks[high + np.arange(self._size)] = 1
            self._high = np.packbits(marks)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self._low.nbytes + (0 if self._high is None else self._high.nbytes)

    def values(self) -> Ints:
        """The integers."""
        distances: Spans = np.zeros(self._size, np.uint64)
        if self._high is not None:
            marks = np.flatnonzero(np.unpackbits(self._high))
            distances |= (marks - np.arange(self._size)).astype(np.uint64) << np.uint64(self._bits)
        bits = np.unpackbits(self._low, count=self._bits * self._size).reshape(self._bits, self._size)
        for bit, row in enumerate(bits):
            distances |= row.astype(np.uint64) << np.uint64(bit)
        found: Ints = (distances + np.uint64(self._base & _WORD)).view(np.int64)
        return found


class PackedEntries:
    """Keys of shape (attributes, n) in lexicographic order, and their weights of shape (columns, n)."""

    __slots__ = ("_keys", "_weights")

    def __init__(self, keys: Ints, weights: Ints) -> None:
        self._keys = [PackedColumn(np.ascontiguousarray(k), ascending=not i) for i, k in enumerate(keys)]
        self._weights = [PackedColumn(np.ascontiguousarray(w)) for w in weights]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(c.nbytes for c in (*self._keys, *self._weights))

    def arrays(self) -> tuple[Ints, Ints]:
        """The keys and the weights."""
        return np.stack([c.values() for c in self._keys]), np.stack([c.values() for c in self._weights])


def column_bytes(entries: int, span: int, *, ascending: bool = False) -> int:
    """Bytes of a column of so many integers, the largest of which is so far from the smallest."""
    low = _low_bits(entries, span) if ascending else span.bit_length()
    high = 0 if low == span.bit_length() else _unary_bytes(entries, span >> low)
    return -(-low * entries // 8) + high


def entry_bytes(entries: int, spans: Sequence[int]) -> int:
    """Bytes of so many entries: the span of what they are in the order of, then those of all other columns."""
    first, *others = spans
    return column_bytes(entries, first, ascending=True) + sum(column_bytes(entries, s) for s in others)


def most_within(columns: Ints, size_bytes: int, words: int = 0) -> int:
    """How many entries, taken from the first on, fit in so many bytes once they are put in order.

    Parameters
    ----------
    columns : ndarray of int64, shape (k, n)
        In any order; the first is what they will be in the order of.
    size_bytes : int
    words : int
        How many of the last columns are reckoned in words of 8 bytes.
    """
    packed = len(columns) - words
    total: int = columns.shape[1]

    def size(count: int, spans: Sequence[int]) -> int:
        return entry_bytes(count, spans[:packed]) + WORD_BYTES * words * count

    if not total or size(total, _spans(columns.min(axis=1), columns.max(axis=1))) <= size_bytes:
        return total
    lows = np.minimum.accumulate(columns, axis=1)
    highs = np.maximum.accumulate(columns, axis=1)
    fits, other = 0, total
    while other - fits > 1:
        middle = (fits + other) // 2
        if size(middle, _spans(lows[:, middle - 1], highs[:, middle - 1])) <= size_bytes:
            fits = middle
        else:
            other = middle
    return fits


def _spans(lows: Ints, highs: Ints) -> list[int]:
    return [int(high) - int(low) for low, high in zip(lows, highs, strict=True)]


def _low_bits(entries: int, span: int) -> int:
    """How many bits of ascending integers are held as they are, the others in unary: all, or where less is smaller.

    With one bit less of each, unary takes ``span >> low`` bits more and the rest `entries` bits less, but for what is
    rounded to bytes: nowhere else than where these two are about the same may the least be.
    """
    bits = span.bit_length()
    most = max(bits - max(entries - ROUNDED_BITS, 1).bit_length(), 0)
    least = max(bits - (entries + ROUNDED_BITS).bit_length() - 1, 0)

    def nbytes(low: int) -> int:
        return -(-low * entries // 8) + (0 if low == bits else _unary_bytes(entries, span >> low))

    lows = range(most, least - 1, -1)
    best = min(lows, key=nbytes)
    return bits if nbytes(bits) <= nbytes(best) else best


def _unary_bytes(entries: int, span: int) -> int:
    return (entries + span + 8) // 8
