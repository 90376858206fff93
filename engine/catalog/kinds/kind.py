"""What a catalog has to know of a kind of synopsis: what it takes in, and what it is as arrays of 64-bit numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ....sketches.hashing.xi import Family
from ....sketches.joins.convolution import ConvolutionSpec

Arrays = Mapping[str, NDArray[Any]]
Weights = Sequence[NDArray[Any] | None]


class Described(Protocol):
    """An array as a file declares it."""

    @property
    def dtype(self) -> str:
        """int64 or float64."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one or two dimensions."""


@dataclass(frozen=True, slots=True)
class Size:
    """What decides the form of one synopsis.

    Attributes
    ----------
    families : tuple of Family
        One for each attribute, by its join class.
    rows, buckets : int
        As in `optimizer.plan.Synopsis`: of a sample `buckets` are the keys it has room for.
    dtype : str
        Of the weights.
    columns : int
        Weights that one synopsis keeps with each key.
    limit_bytes : int or None
        Size up to which an exact map is kept; 0 keeps none, None as much as the counters take.
    parameters : tuple of (str, int)
        What else the kind has.
    """

    families: tuple[Family, ...]
    rows: int
    buckets: int
    dtype: str = "int64"
    columns: int = 1
    limit_bytes: int | None = None
    parameters: tuple[tuple[str, int], ...] = ()

    @property
    def slot_bits(self) -> int:
        """Bits of a hash that a hash or convolution sketch of it takes."""
        return ConvolutionSpec(self.families, 1, self.buckets).slot_bits

    @property
    def named(self) -> dict[str, int]:
        """The parameters by name."""
        return dict(self.parameters)


class Kind(ABC):
    """One kind of synopsis.

    Attributes
    ----------
    method : str
        Its name, as USING has it.
    attributes : tuple of int
        The fewest and the most join attributes.
    joint : bool
        Whether one synopsis keeps all weights of a key; else there is one for each weight.
    weighted : bool
        Whether weights other than the number of tuples are kept.
    doubles : bool
        Whether weights may be DOUBLE.
    parameters : mapping of str to (int, int)
        Names of further sizes, and between what they lie.
    optional : mapping of str to (int, int)
        The same of sizes that not every synopsis has; those that have one need a format version of their own.
    states : (str, str)
        What it is called while it has lost nothing, and after.
    """

    method = ""
    attributes = (1, 1)
    joint = False
    weighted = True
    doubles = True
    parameters: ClassVar[Mapping[str, tuple[int, int]]] = {}
    optional: ClassVar[Mapping[str, tuple[int, int]]] = {}
    states = ("key map", "counters")

    def defaults(self) -> dict[str, int]:
        """The parameters of a new synopsis."""
        return {}

    @abstractmethod
    def spec(self, size: Size) -> Any:
        """The spec of its synopsis; ValueError if there is none of that size."""

    @abstractmethod
    def empty(self, size: Size, dense: NDArray[np.int64] | None = None) -> Any:
        """A synopsis of no tuples; `dense` are the keys that one of two levels counts exactly."""

    @abstractmethod
    def update(self, synopses: Sequence[Any], keys: Sequence[NDArray[Any]], weights: Weights) -> None:
        """Add tuples: one synopsis for each weight, or one for all if `joint`. No weight is a weight of 1."""

    def arrays(self, synopsis: Any) -> dict[str, NDArray[Any]]:
        """All of its state as arrays of int64 or float64."""
        return dict(synopsis.state())

    @abstractmethod
    def restored(self, size: Size, arrays: Arrays) -> Any:
        """The synopsis of those arrays; ValueError if they are none."""

    def exact(self, synopsis: Any) -> bool:
        """Whether it has lost nothing."""
        return getattr(synopsis, "exact", None) is not None

    def dtype(self, synopsis: Any) -> str:
        """Type of its weights."""
        return "int64"

    def families(self, synopsis: Any) -> tuple[Family, ...]:
        """The hash families of the attributes, where it has them as they are; else none."""
        return ()

    def limit_bytes(self, synopsis: Any) -> int:
        """Size up to which it stays an exact map."""
        return int(getattr(synopsis, "limit_bytes", 0))

    def packed(self, size: Size) -> bool:
        """Whether it is held in fewer bytes than its arrays take in a file."""
        return False

    def nbytes(self, size: Size, synopsis: Any) -> int:
        """In-memory bytes of its arrays."""
        return int(synopsis.nbytes) if self.packed(size) else stored_in(self.arrays(synopsis))

    @abstractmethod
    def most_bytes(self, size: Size) -> int:
        """Bytes of the largest state."""

    @abstractmethod
    def check(self, size: Size, exact: bool, arrays: Mapping[str, Described]) -> None:
        """Raise ValueError unless arrays of these names, types and shapes can be a synopsis of that size."""


def stored_in(arrays: Arrays) -> int:
    """Bytes of arrays of 64-bit numbers."""
    return 8 * sum(a.size for a in arrays.values())


def split_keys(state: Arrays) -> dict[str, NDArray[Any]]:
    """The keys of a map one array for each attribute; unsigned numbers bit by bit."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in state.items():
        if name == "keys":
            arrays |= {f"keys.{i}": array[:, i] for i in range(array.shape[1])}
        else:
            arrays[name] = array.view(np.int64) if array.dtype == np.uint64 else array
    return arrays


def joined_keys(arrays: Arrays, attributes: int) -> dict[str, NDArray[Any]]:
    """The inverse of `split_keys` for a map; other arrays as they are."""
    if "weights" not in arrays:
        return dict(arrays)
    weights = arrays["weights"]
    columns = [arrays[f"keys.{i}"] for i in range(attributes)]
    keys = np.stack(columns, axis=1) if columns else np.empty((len(weights), 0), dtype=np.int64)
    return {"keys": keys, "weights": weights}


def check_map(arrays: Mapping[str, Described], attributes: int, dtype: str) -> None:
    entries = arrays["weights"].shape[0]
    keys = {f"keys.{i}": ("int64", (entries,)) for i in range(attributes)}
    check_arrays(arrays, {**keys, "weights": (dtype, (entries,))})


def check_arrays(arrays: Mapping[str, Described], wanted: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
    if set(arrays) != set(wanted):
        raise ValueError(f"its arrays are {sorted(arrays)[:9]}, not {sorted(wanted)[:9]}")
    for name, (dtype, shape) in wanted.items():
        found = arrays[name]
        if (found.dtype, tuple(found.shape)) != (dtype, tuple(shape)):
            raise ValueError(f"array {name} is {found.dtype} {found.shape}, not {dtype} {shape}")
