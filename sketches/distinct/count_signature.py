"""Count signatures: three sums per cell that tell an empty cell, a single key and a mixture apart.

A cell sums over its tuples the weight, weight times key (each column of it), and weight times a random
*print* of the key. The count signature of [1] keeps a total and one counter for each bit of the key (65 words
for 64-bit keys); three words do the same and are as linear.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005, Section 2.2 (count signatures of 2-level hash sketches).

Notes
-----
Departs from [1]: key and print sums are taken modulo 2^64. Sums modulo 2^64 are a group, so the sketch
stays linear and its bytes do not depend on the order of updates. The counts are ordinary int64 and never
wrap: an update that could make one do so is refused before anything changes.

A cell with one key of net weight c holds (c, c * key, c * print). If 2^t is the largest power of two in c,
division leaves the key modulo 2^(64 - t); the highest 16 bits of the key are therefore repeated as the lowest
16 bits of its print, and the key comes back whole while t <= 16. What is left over, and the key's own cell
number, verify it.

A cell is taken for empty when all three sums are zero, and for a single key when all three are that key's.
The 48 random bits of each print make either false with probability at most 2^(t - 48), where 2^t divides the
weight of all keys that should not be there: about 3e-15 for ordinary weights, nothing to rely on beyond 2^40.
With two columns 32 random bits are left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..joins.accumulate import INT64_END, absolute_peak

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Kinds = NDArray[np.int8]
Places = NDArray[np.intp]

EMPTY, SINGLETON, MULTIPLE, AMBIGUOUS = range(4)
WORDS_PER_CELL = 3  # with one key column; one more for each further column
REPEATED_BITS = 16  # of the key, in its print; also the largest power of two a decodable weight may hold

_ONE = np.uint64(1)
_LOW16 = np.uint64(0xFFFF)
_LOW48 = np.uint64((1 << 48) - 1)
_SHIFT48 = np.uint64(48)


def make_prints(columns: Sequence[Ints], random: Words) -> Words:
    """Prints of keys: random bits above the 16 highest bits of each column.

    Parameters
    ----------
    columns : sequence of one or two ndarrays of int64, shape (n,)
    random : ndarray of uint64, shape (n,)
        A hash of each key with as many random bits as are free, 48 or 32; the lowest are used.
    """
    prints = random
    for column in columns:
        prints = (prints << np.uint64(REPEATED_BITS)) | (column.view(np.uint64) >> _SHIFT48)
    return prints


@dataclass(slots=True)
class CountSignatures:
    """A flat array of cells.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,)
        Net weight of each cell.
    key_sums : ndarray of uint64, shape (columns, cells)
        Sums of weight * key modulo 2^64, for each column of the keys.
    print_sums : ndarray of uint64, shape (cells,)
        Sum of weight * print modulo 2^64.
    bound : int
        At least the largest absolute count; decides whether one could overflow, and is no part of the state.
    """

    counts: Ints
    key_sums: Words
    print_sums: Words
    bound: int = 0

    @classmethod
    def zeros(cls, cells: int, columns: int = 1) -> CountSignatures:
        """Empty cells for keys of one or two columns."""
        key_sums = np.zeros((columns, cells), np.uint64)
        return cls(np.zeros(cells, np.int64), key_sums, np.zeros(cells, np.uint64))

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.generic]], cells: int, columns: int = 1
    ) -> CountSignatures:
        """Cells from the arrays `counts`, `key_sums` and `print_sums`; ValueError if they do not fit."""
        if set(arrays) != {"counts", "key_sums", "print_sums"}:
            raise ValueError(f"count signatures are counts, key_sums and print_sums, not {sorted(arrays)}")
        cell = cls.zeros(cells, columns)
        for name, into in cell.arrays().items():
            array = arrays[name]
            if array.shape != into.shape or array.dtype != into.dtype:
                raise ValueError(
                    f"{name} are {into.dtype} of shape {into.shape}, not {array.dtype} of shape {array.shape}"
                )
            into[...] = array
        cell.bound = absolute_peak(cell.counts)
        return cell

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The three arrays by name, not copied."""
        return {"counts": self.counts, "key_sums": self.key_sums, "print_sums": self.print_sums}

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return int(self.counts.nbytes + self.key_sums.nbytes + self.print_sums.nbytes)

    def copy(self) -> CountSignatures:
        """An independent copy."""
        return CountSignatures(self.counts.copy(), self.key_sums.copy(), self.print_sums.copy(), self.bound)

    def add(self, cells: Places, columns: Sequence[Ints], prints: Words, weights: Ints) -> None:
        """Add tuples to their cells, in place.

        Parameters
        ----------
        cells : ndarray of intp, shape (n,)
        columns : sequence of ndarray of int64, shape (n,)
            The keys.
        prints : ndarray of uint64, shape (n,)
            From `make_prints`.
        weights : ndarray of int64, shape (n,)

        Notes
        -----
        The caller must have made room for the whole batch with `reserve`.
        """
        factors = weights.view(np.uint64)
        np.add.at(self.counts, cells, weights)
        for sums, column in zip(self.key_sums, columns, strict=True):
            np.add.at(sums, cells, factors * column.view(np.uint64))
        np.add.at(self.print_sums, cells, factors * prints)

    def reserve(self, mass: int) -> None:
        """Make room for `mass` more absolute weight in any one cell.

        Raises
        ------
        OverflowError
            If a count could leave int64, should all of it meet in the fullest cell.
        """
        if self.bound + mass >= INT64_END:
            self.bound = absolute_peak(self.counts)  # deletions lower the counts, not the bound
        if self.bound + mass >= INT64_END:
            raise OverflowError(
                f"a count of up to {self.bound} cannot take a batch of total weight {mass} within 64 bits; "
                "use smaller batches or weights"
            )
        self.bound += mass

    def combine(self, other: CountSignatures, sign: int) -> None:
        """Add (`sign` +1) or subtract (-1) the cells of another, in place, once room is reserved."""
        operation = np.add if sign > 0 else np.subtract
        operation(self.counts, other.counts, out=self.counts)
        operation(self.key_sums, other.key_sums, out=self.key_sums)
        operation(self.print_sums, other.print_sums, out=self.print_sums)

    def occupied(self) -> NDArray[np.bool_]:
        """Which cells hold a key of net weight other than zero; shape (cells,)."""
        union = self.counts.view(np.uint64) | self.print_sums
        for sums in self.key_sums:
            union |= sums
        return np.asarray(union != 0)

    def decode(
        self, verify: Callable[[Places, Sequence[Ints]], tuple[NDArray[np.bool_], Words]]
    ) -> tuple[Kinds, list[Ints]]:
        """Classify the cells and read the keys of those that hold exactly one.

        Parameters
        ----------
        verify : callable
            Takes cells and the columns of the keys they may hold, shape (m,) each; returns whether the key
            belongs into the cell, and its print.

        Returns
        -------
        kinds : ndarray of int8, shape (cells,)
            EMPTY, SINGLETON, MULTIPLE (two keys or more, certainly), or AMBIGUOUS: one key or more, of
            weights with a factor above 2^16.
        columns : list of ndarray of int64, shape (cells,)
            The key of each singleton, 0 elsewhere.
        """
        occupied = np.flatnonzero(self.occupied())
        kinds = np.zeros(len(self.counts), np.int8)
        columns = [np.zeros(len(kinds), np.int64) for _ in self.key_sums]
        kinds[occupied] = MULTIPLE
        counts = self.counts[occupied]
        twos = trailing_zeros(counts)
        # One key of weight c makes all sums multiples of the power of two in c; most mixtures fail here.
        mask = (_ONE << np.minimum(twos, 63).astype(np.uint64)) - _ONE
        remainder = self.print_sums[occupied] & mask
        for sums in self.key_sums:
            remainder |= sums[occupied] & mask
        divisible = (remainder == 0) & (counts != 0)
        kinds[occupied[divisible & (twos > REPEATED_BITS)]] = AMBIGUOUS
        at = occupied[divisible & (twos <= REPEATED_BITS)]
        candidates = self._divide(at)
        correct, prints = verify(at, candidates)
        factors = self.counts[at].view(np.uint64)
        correct = correct & (factors * prints == self.print_sums[at])
        for sums, candidate in zip(self.key_sums, candidates, strict=True):
            correct &= factors * candidate.view(np.uint64) == sums[at]
        kinds[at[correct]] = SINGLETON
        for column, candidate in zip(columns, candidates, strict=True):
            column[at[correct]] = candidate[correct]
        return kinds, columns

    def _divide(self, cells: Places) -> list[Ints]:
        """The key of every cell, were it the only one there; counts hold at most 2^16 as a factor."""
        twos = trailing_zeros(self.counts[cells])
        inverse = inverse_odd((self.counts[cells] >> twos).view(np.uint64))
        shift = twos.view(np.uint64)
        # make_prints puts the last column lowest.
        high = (self.print_sums[cells] >> shift) * inverse
        columns = []
        for sums in self.key_sums[::-1]:
            low = (sums[cells] >> shift) * inverse & _LOW48
            columns.append(((high & _LOW16) << _SHIFT48 | low).view(np.int64))
            high = high >> np.uint64(REPEATED_BITS)
        return columns[::-1]


def trailing_zeros(values: Ints) -> NDArray[np.int64]:
    """Exponent of the largest power of two that divides each value; 64 for zero."""
    lowest = (values & -values).view(np.uint64)
    # A power of two is exact in float64; frexp of zero is 0, which becomes 64.
    exponent = np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1
    return np.where(lowest == 0, np.int64(64), exponent)


def inverse_odd(odd: Words) -> Words:
    """Inverses modulo 2^64 of odd numbers, by Newton's iteration."""
    inverse = odd * np.uint64(3) ^ np.uint64(2)  # right in the lowest 5 bits; each step doubles that
    for _ in range(4):
        inverse *= np.uint64(2) - odd * inverse
    return inverse
