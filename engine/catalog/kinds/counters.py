"""Counters that add up: hash and convolution sketches, totals, AGMS; and hash sketches that find their dense keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....sketches.hashing.xi import Family
from ....sketches.joins.agms import AgmsSpec
from ....sketches.joins.convolution import ConvolutionSpec
from ....sketches.joins.sparse import SparseFirstSketch, update_sparse_first
from .kind import Arrays, Described, Kind, Size, Weights, check_arrays, check_map, joined_keys, split_keys

# Of the coarser levels of a skimmed sketch: rows, buckets, and the bits of its keys.
LEVEL_ROWS, LEVEL_BUCKETS, DOMAIN_BITS = 5, 512, 64


class Linear(Kind):
    """Counters that are an exact map first: hash sketches, convolution sketches, totals, AGMS."""

    def __init__(self, method: str, least: int, most: int) -> None:
        self.method, self.attributes = method, (least, most)

    def spec(self, size: Size) -> Any:
        if self.method == "agms":
            return AgmsSpec(size.families, size.buckets, size.rows, size.dtype)
        return ConvolutionSpec(size.families, size.rows, size.buckets, size.dtype)

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        return SparseFirstSketch(self.spec(size), size.limit_bytes)

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        update_sparse_first(synopses, keys, weights)

    def arrays(self, synopsis: Any) -> dict[str, NDArray[Any]]:
        return split_keys(synopsis.state())

    def restored(self, size: Size, arrays: Arrays) -> Any:
        state = joined_keys(arrays, len(size.families))
        return SparseFirstSketch.from_state(self.spec(size), state, size.limit_bytes)

    def dtype(self, synopsis: Any) -> str:
        return str(synopsis.spec.dtype)

    def families(self, synopsis: Any) -> tuple[Family, ...]:
        found: tuple[Family, ...] = synopsis.spec.families
        return found

    def most_bytes(self, size: Size) -> int:
        return int(self.spec(size).nbytes)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        if exact:
            check_map(arrays, len(size.families), size.dtype)
        else:
            check_arrays(arrays, {"counters": (size.dtype, self.spec(size).shape)})


class Hash(Linear):
    """Hash sketches; those for use beside samples have dense keys, none or more, and hold their maps packed."""

    optional: ClassVar[Mapping[str, tuple[int, int]]] = {"dense": (0, 1 << 24)}

    def __init__(self) -> None:
        super().__init__("hash", 1, 1)

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        if "dense" not in size.named:
            return super().empty(size)
        from ....sketches.samples.dense_first import DenseFirstSketch

        keys = np.empty(0, np.int64) if dense is None else dense
        return DenseFirstSketch(self.spec(size), keys, size.limit_bytes)

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        if isinstance(synopses[0], SparseFirstSketch):
            super().update(synopses, keys, weights)
            return
        from ....sketches.samples.dense_first import update_dense_first

        update_dense_first(synopses, keys, weights)

    def restored(self, size: Size, arrays: Arrays) -> Any:
        if "dense" not in size.named:
            return super().restored(size, arrays)
        from ....sketches.samples.dense_first import DenseFirstSketch

        state = {**joined_keys(arrays, 1), "dense_keys": arrays["dense_keys"]}
        return DenseFirstSketch.from_state(self.spec(size), state, size.limit_bytes)

    def packed(self, size: Size) -> bool:
        return "dense" in size.named

    def most_bytes(self, size: Size) -> int:
        return super().most_bytes(size) + 16 * size.named.get("dense", 0)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        if "dense" not in size.named:
            super().check(size, exact, arrays)
            return
        dense = size.named["dense"]
        check_arrays({"dense_keys": arrays["dense_keys"]}, {"dense_keys": ("int64", (dense,))})
        if exact:
            check_map({n: a for n, a in arrays.items() if n != "dense_keys"}, 1, size.dtype)
            return
        counted: dict[str, tuple[str, tuple[int, ...]]] = {
            "dense_keys": ("int64", (dense,)),
            "dense_weights": (size.dtype, (1, dense)),
            "rest.counters": (size.dtype, self.spec(size).shape),
        }
        check_arrays(arrays, counted)


class Skimmed(Kind):
    """A hash sketch with the hierarchy by which it finds its own dense keys."""

    method = "skimmed"
    doubles = False
    parameters: ClassVar[Mapping[str, tuple[int, int]]] = {
        "domain_bits": (1, 64),
        "level_rows": (1, 1 << 10),
        "level_buckets": (2, 1 << 20),
    }
    states = ("counters", "counters")

    def defaults(self) -> dict[str, int]:
        return {"domain_bits": DOMAIN_BITS, "level_rows": LEVEL_ROWS, "level_buckets": LEVEL_BUCKETS}

    def spec(self, size: Size) -> Any:
        from ....sketches.joins.dyadic import DyadicSpec

        leaf = ConvolutionSpec(size.families, size.rows, size.buckets, size.dtype)
        return DyadicSpec(leaf, **size.named)

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        from ....sketches.joins.dyadic import DyadicSketch

        return DyadicSketch(self.spec(size))

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        for synopsis, weight in zip(synopses, weights, strict=True):
            synopsis.update(keys[0], weight)

    def restored(self, size: Size, arrays: Arrays) -> Any:
        from ....sketches.joins.dyadic import DyadicSketch

        return DyadicSketch.from_state(self.spec(size), arrays)

    def exact(self, synopsis: Any) -> bool:
        return False

    def most_bytes(self, size: Size) -> int:
        return 8 * sum(rows * buckets for _, (rows, buckets) in self._shapes(size).values())

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        if exact:
            raise ValueError("a skimmed sketch is no exact map")
        check_arrays(arrays, self._shapes(size))

    def _shapes(self, size: Size) -> dict[str, tuple[str, tuple[int, int]]]:
        spec = self.spec(size)
        levels = {f"level {shift}": ("int64", spec.level(shift).shape) for shift in spec.shifts[1:]}
        return {"leaf": ("int64", spec.leaf.shape), "top": ("int64", spec.top.shape), **levels}
