"""Samples of the keys of a join class: alone, beside dense keys that are exact, or with a table's other keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .kind import Arrays, Described, Kind, Size, Weights, check_arrays


class KeySample(Kind):
    """A coordinated sample of the keys of a class."""

    method = "key_sample"
    joint = True
    doubles = False
    states = ("all keys", "sample")

    def spec(self, size: Size) -> Any:
        from ....sketches.samples.key_sample import KeySampleSpec

        return KeySampleSpec(size.families[0].derive("key sample"), size.buckets, _columns(size))

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        from ....sketches.samples.key_sample import KeySample

        return KeySample(self.spec(size))

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        (synopsis,) = synopses
        synopsis.update(keys[0], _stacked(keys, weights))

    def arrays(self, synopsis: Any) -> dict[str, NDArray[Any]]:
        return self.signed(synopsis.state())

    def signed(self, state: Arrays) -> dict[str, NDArray[Any]]:
        """Thresholds and bounds as the signed numbers of their bits."""
        return {n: a if a.dtype == np.int64 else a.view(np.int64) for n, a in state.items()}

    def restored(self, size: Size, arrays: Arrays) -> Any:
        from ....sketches.samples.key_sample import KeySample

        return KeySample.from_state(self.spec(size), _sample_state(arrays, self.spec(size).everything))

    def exact(self, synopsis: Any) -> bool:
        return bool(synopsis.probability == 1.0)

    def most_bytes(self, size: Size) -> int:
        return 8 * (size.buckets * (1 + size.columns) + 3 * size.columns + 1)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        check_arrays(arrays, _sample_shapes(size, arrays, ""))


_SAMPLE = KeySample()


class TwoLevel(Kind):
    """Dense keys counted exactly, and a sample of the others."""

    method = "two_level"
    joint = True
    doubles = False
    parameters: ClassVar[Mapping[str, tuple[int, int]]] = {"dense": (0, 1 << 24)}
    states = ("all keys", "dense keys and sample")

    def defaults(self) -> dict[str, int]:
        return {"dense": 0}

    def spec(self, size: Size) -> Any:
        from ....sketches.samples.two_level import TwoLevelSpec

        return TwoLevelSpec(_SAMPLE.spec(size))

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        from ....sketches.samples.two_level import TwoLevel

        return TwoLevel(self.spec(size), np.empty(0, np.int64) if dense is None else dense)

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        _SAMPLE.update(synopses, keys, weights)

    def arrays(self, synopsis: Any) -> dict[str, NDArray[Any]]:
        return _SAMPLE.arrays(synopsis)

    def restored(self, size: Size, arrays: Arrays) -> Any:
        from ....sketches.samples.two_level import TwoLevel

        spec = self.spec(size)
        rest = {n[5:]: a for n, a in arrays.items() if n.startswith("rest.")}
        state = {f"rest.{n}": a for n, a in _sample_state(rest, spec.rest.everything).items()}
        dense = {n: a for n, a in arrays.items() if n.startswith("dense")}
        return TwoLevel.from_state(spec, {**dense, **state})

    def exact(self, synopsis: Any) -> bool:
        return bool(synopsis.sample.probability == 1.0)

    def most_bytes(self, size: Size) -> int:
        return _SAMPLE.most_bytes(size) + 8 * size.named["dense"] * (1 + size.columns)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        dense = size.named["dense"]
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {
            "dense_keys": ("int64", (dense,)),
            "dense_weights": ("int64", (size.columns, dense)),
        }
        check_arrays(arrays, shapes | _sample_shapes(size, arrays, "rest."))


class SampledTable(KeySample):
    """A sample of the keys of one class, each entry with the table's other keys: sample x sketch."""

    method = "sample_sketch"
    attributes = (1, 64)
    parameters: ClassVar[Mapping[str, tuple[int, int]]] = {"dense": (0, 1 << 24), "sampled": (0, 63)}

    def defaults(self) -> dict[str, int]:
        return {"dense": 0, "sampled": 0}

    def spec(self, size: Size) -> Any:
        from ....sketches.samples.sample_sketch import SampleSketchSpec

        # The hash of a key sample of the class: both keep the same keys.
        sampled = size.named["sampled"]
        if sampled >= len(size.families):
            raise ValueError(f"of {len(size.families)} attributes none has the number {sampled}")
        family = size.families[sampled].derive("key sample")
        return SampleSketchSpec(family, size.buckets, len(size.families), sampled, _columns(size))

    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        from ....sketches.samples.sample_sketch import SampleSketch

        return SampleSketch(self.spec(size), np.empty(0, np.int64) if dense is None else dense)

    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        (synopsis,) = synopses
        synopsis.update(keys, _stacked(keys, weights))

    def arrays(self, synopsis: Any) -> dict[str, NDArray[Any]]:
        state = synopsis.state()
        return self.signed({**state, "crowded": state["crowded"].astype(np.int64)})

    def restored(self, size: Size, arrays: Arrays) -> Any:
        from ....sketches.samples.sample_sketch import SampleSketch

        spec = self.spec(size)
        if arrays["crowded"][0] not in (0, 1):
            raise ValueError("a sample is crowded or not")
        return SampleSketch.from_state(spec, _sample_state(arrays, spec.everything))

    def exact(self, synopsis: Any) -> bool:
        return bool(synopsis.probability == 1.0)

    def packed(self, size: Size) -> bool:
        return True

    def most_bytes(self, size: Size) -> int:
        """Without the entries of dense keys: they are as many as the table has."""
        entries = size.buckets * (len(size.families) + size.columns)
        return 8 * (entries + size.named["dense"] + 3 * size.columns + 2)

    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        dense, kept = size.named["dense"], arrays["weights"].shape[-1]
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {
            "keys": ("int64", (len(size.families), kept)),
            "dense_keys": ("int64", (dense,)),
            "crowded": ("int64", (1,)),
        }
        check_arrays(arrays, {**_totals_shapes(size, kept), **shapes})


def _columns(size: Size) -> tuple[str, ...]:
    return ("count", *(f"weight {n}" for n in range(1, size.columns)))


def _stacked(keys: Sequence[NDArray[Any]], weights: Weights) -> NDArray[Any]:
    ones = np.ones(len(keys[0]), np.int64)
    return np.stack([ones if w is None else w for w in weights])


def _totals_shapes(size: Size, kept: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {
        "weights": ("int64", (size.columns, kept)),
        "last_hash": ("int64", (1,)),
        "totals": ("int64", (size.columns,)),
        "unseen": ("int64", (size.columns, 2)),
    }


def _sample_shapes(
    size: Size, arrays: Mapping[str, Described], prefix: str
) -> dict[str, tuple[str, tuple[int, ...]]]:
    kept = arrays[f"{prefix}keys"].shape[0]
    if kept > size.buckets:
        raise ValueError(f"a sample of {size.buckets:,} keys has {kept:,}")
    shapes = {"keys": ("int64", (kept,)), **_totals_shapes(size, kept)}
    return {f"{prefix}{n}": s for n, s in shapes.items()}


def _sample_state(arrays: Arrays, everything: int) -> dict[str, NDArray[Any]]:
    """The state of a key sample; ValueError for a threshold or bounds that none has."""
    last, unseen = arrays["last_hash"].view(np.uint64), arrays["unseen"].view(np.float64)
    if int(last[0]) >= everything:
        raise ValueError("its threshold is above every hash")
    if not (np.all(unseen[:, 0] <= 0.0) and np.all(unseen[:, 1] >= 0.0)):
        raise ValueError("its bounds of unseen weights do not enclose 0")
    return {**arrays, "last_hash": last, "unseen": unseen}
