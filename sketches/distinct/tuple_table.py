"""Recover the tuples of a small table from a linear sketch: an s-sparse recovery table over pairs.

Every pair is added to one cell in each of three rows, with its weight. Cells that hold a single pair give it
away (count signatures); the pair is taken out of its other cells, which frees further ones, and so on. While
the table holds at most about its capacity this recovers everything, and it says so when it does not.

References
----------
.. [1] M. T. Goodrich, M. Mitzenmacher, "Invertible Bloom lookup tables", Allerton 2011: with three rows
   peeling succeeds up to 0.818 pairs a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hashing.xi import Family, xxh64_of_long
from .count_signature import SINGLETON, CountSignatures, Ints, Places, Words, make_prints

ROWS = 3
CELLS_PER_TUPLE = 1.35  # 1/0.818 is the threshold of [1]; the rest is for tables of a few dozen pairs
SPARE_CELLS = 40
MOST_ROUNDS = 1000
_START = np.uint64(0)


@dataclass(frozen=True, slots=True)
class TupleTable:
    """Layout of a table of pairs; the cells themselves are a `CountSignatures`.

    Parameters
    ----------
    family : Family
        Chooses cells and prints. The two columns of a pair are hashed to one 64-bit value before.
    capacity : int
        Distinct pairs that are recovered with near certainty.
    """

    family: Family
    capacity: int

    @property
    def row_cells(self) -> int:
        """Cells in each of the three rows."""
        return -(-int(CELLS_PER_TUPLE * self.capacity + SPARE_CELLS) // ROWS)

    def zeros(self) -> CountSignatures:
        """An empty table."""
        return CountSignatures.zeros(ROWS * self.row_cells, columns=2)

    def locate(self, columns: Sequence[Ints]) -> tuple[NDArray[np.intp], Words]:
        """Cells, shape (3, n), and prints, shape (n,), of pairs given as two columns of shape (n,)."""
        whole = xxh64_of_long(columns[1], xxh64_of_long(columns[0], _START))
        *places, random = self.family.values(whole.view(np.int64), ROWS + 1, 32)
        cells = (np.stack(places) * np.uint64(self.row_cells)) >> np.uint64(32)
        cells += (np.arange(ROWS, dtype=np.uint64) * np.uint64(self.row_cells))[:, None]
        return cells.astype(np.intp), make_prints(columns, random)

    def add(self, table: CountSignatures, columns: Sequence[Ints], weights: Ints) -> None:
        """Add pairs to a table, in place, without checking for overflow."""
        cells, prints = self.locate(columns)
        for row in cells:
            table.add(row, columns, prints, weights)

    def recover(self, table: CountSignatures) -> tuple[list[Ints], Ints] | None:
        """All pairs of non-zero net weight with their weights, or None if there are too many.

        Returns
        -------
        columns : list of two ndarrays of int64, shape (n,)
        weights : ndarray of int64, shape (n,)

        Notes
        -----
        O(cells) for each of a few dozen rounds of peeling. Weights with a factor of 2^17 or more are not
        read.
        """
        rest = table.copy()
        found: list[list[Ints]] = []
        for _ in range(MOST_ROUNDS):
            kinds, columns = rest.decode(self._verify)
            single = np.flatnonzero(kinds == SINGLETON)
            if not len(single):
                break
            # A pair may be alone in two of its cells: take it once.
            pairs = np.stack([column[single] for column in columns])
            pairs, first = np.unique(pairs, axis=1, return_index=True)
            weights = rest.counts[single[first]]
            self.add(rest, list(pairs), -weights)
            found.append([*pairs, weights])
        if rest.occupied().any():
            return None
        if not found:
            return [np.zeros(0, np.int64), np.zeros(0, np.int64)], np.zeros(0, np.int64)
        one, other, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return [one, other], weights

    def _verify(self, cells: Places, columns: Sequence[Ints]) -> tuple[NDArray[np.bool_], Words]:
        located, prints = self.locate(columns)
        return np.asarray((located == cells).any(axis=0)), prints
