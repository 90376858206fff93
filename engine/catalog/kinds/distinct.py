"""Synopses of distinct values: level sketches, and samples of the values of one attribute with their partners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kind import Arrays, Described, Kind, Size, Weights, check_arrays, check_map, joined_keys, split_keys

# A level sketch counts to about its buckets * 2^31, a pair sample serves up to its values * 2^32.
LEVELS = 32


class Level(Kind):
    """A level sketch: how many distinct keys, under deletions."""

    method = "distinct"
    weighted = False
    doubles = False

    def spec(self, size: Size) -> Any:
        from ....sketches.distinct.level import LevelSpec

        return LevelSpec(size.families[0].derive("level"), size.buckets, size.rows)

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        from ....sketches.distinct.sparse_level import SparseLevelSketch

        return SparseLevelSketch(self.spec(size), size.limit_bytes)

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        synopses[0].update(*keys, weights[0])

    def arrays(self, synopsis: Any) -> dict[str, NDArray[Any]]:
        return split_keys(synopsis.state())

    def restored(self, size: Size, arrays: Arrays) -> Any:
        from ....sketches.distinct.sparse_level import SparseLevelSketch

        state = _cells_state(joined_keys(arrays, 1))
        return SparseLevelSketch.from_state(self.spec(size), state, size.limit_bytes)

    def exact(self, synopsis: Any) -> bool:
        return synopsis.exact_keys is not None

    def most_bytes(self, size: Size) -> int:
        return 8 * int(self.spec(size).words)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        if exact:
            check_map(arrays, 1, "int64")
        else:
            check_arrays(arrays, _cells_shapes("", size.rows * size.buckets, 1))


class Pairs(Level):
    """A sample of the values of one attribute, each with all its partners in the other."""

    method = "join_distinct"
    attributes = (2, 2)

    def spec(self, size: Size) -> Any:
        from ....sketches.distinct.pair_sample import PairSampleSpec

        return PairSampleSpec(size.families[0].derive("pairs"), size.rows, size.buckets, LEVELS)

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        from ....sketches.distinct.sparse_pairs import SparsePairSample

        return SparsePairSample(self.spec(size), size.limit_bytes)

    def restored(self, size: Size, arrays: Arrays) -> Any:
        from ....sketches.distinct.sparse_pairs import SparsePairSample

        state = _cells_state(joined_keys(arrays, 2))
        return SparsePairSample.from_state(self.spec(size), state, size.limit_bytes)

    def exact(self, synopsis: Any) -> bool:
        # An empty one is a map, or tables of which none is there.
        return "keys" in synopsis.state()

    def most_bytes(self, size: Size) -> int:
        return int(self.spec(size).most_bytes)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        if exact:
            check_map(arrays, 2, "int64")
            return
        from ....sketches.distinct.tuple_table import ROWS

        cells = ROWS * self.spec(size).table.row_cells
        levels = {name.partition("/")[0] for name in arrays}
        if not levels <= {str(n) for n in range(LEVELS)}:
            raise ValueError("it has levels that a pair sample has not")
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {}
        for level in levels:
            shapes |= _cells_shapes(f"{level}/", cells, 2)
        check_arrays(arrays, shapes)


def _cells_state(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The sums of count signatures as the unsigned numbers that they are."""
    return {n: a.view(np.uint64) if n.endswith("_sums") else a for n, a in arrays.items()}


def _cells_shapes(prefix: str, cells: int, columns: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {
        f"{prefix}counts": ("int64", (cells,)),
        f"{prefix}key_sums": ("int64", (columns, cells)),
        f"{prefix}print_sums": ("int64", (cells,)),
    }
