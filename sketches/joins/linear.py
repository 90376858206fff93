"""What every linear sketch of fixed size can do: update, merge, subtract, copy, and leave as plain arrays.

A spec says what is computed (families, sizes, type of the counters) and how a batch is added to an array; a
`LinearSketch` keeps the array, and keeps integers exact: a batch that takes a counter beyond 64 bits is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Family, Keys, as_keys
from .accumulate import (
    INT64_END,
    Counters,
    Weights,
    absolute_mass,
    absolute_peak,
    as_weights,
    check_not_wrapped,
)

State = dict[str, NDArray[np.generic]]


class SketchSpec(Protocol):
    """What identifies a linear sketch. Frozen, compared by value."""

    @property
    def families(self) -> tuple[Family, ...]:
        """One for each join attribute."""

    @property
    def dtype(self) -> str:
        """Type of the counters: int64 or float64."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters."""

    @property
    def layout(self) -> tuple[object, ...]:
        """Equal for specs that hash alike, whatever the type of their counters and the number of their rows."""

    def add_batch(
        self, targets: Sequence[Counters], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        """Add checked columns with weights[i] to targets[i], hashing once; integers modulo 2^64.

        No target has more rows than `shape`.
        """


SpecT = TypeVar("SpecT", bound=SketchSpec)


class Described(Protocol):
    """A sketch that can be told in a line."""

    @property
    def spec(self) -> object:
        """What it is."""

    @property
    def tuples(self) -> int | None:
        """What it was given."""

    @property
    def nbytes(self) -> int:
        """What it takes."""


class LinearSketch(Generic[SpecT]):
    """A linear sketch of a weighted relation by its join attributes.

    Parameters
    ----------
    spec : SketchSpec

    Attributes
    ----------
    counters : ndarray of `spec.dtype`, shape `spec.shape`
    tuples : int or None
        How many it has been given since it was made, deletions among them; None for one restored from its counters.

    Notes
    -----
    Integer counters are exact, and the same for every order, partition and detour of the data: inserting and
    deleting anything leaves them bit for bit as they were.
    """

    __slots__ = ("_bound", "counters", "spec", "tuples")

    def __init__(self, spec: SpecT) -> None:
        self.spec: SpecT = spec
        self.counters: Counters = np.zeros(spec.shape, dtype=spec.dtype)
        self._bound = 0  # at least the largest absolute counter; an integer of any size
        self.tuples: int | None = 0

    @classmethod
    def from_state(cls, spec: SpecT, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """The sketch whose `state` was taken; raises ValueError if the arrays do not fit `spec`."""
        if set(state) != {"counters"}:
            raise ValueError(f"the state of a sketch is its counters, not {sorted(state)}")
        counters = np.asarray(state["counters"])
        if counters.shape != spec.shape or counters.dtype != np.dtype(spec.dtype):
            raise ValueError(f"counters of {counters.dtype} {counters.shape} do not belong to {spec}")
        sketch = cls(spec)
        sketch._replace(counters.astype(spec.dtype))
        sketch.tuples = None
        return sketch

    def __repr__(self) -> str:
        return described(self)

    def state(self) -> State:
        """Everything but the spec: ``{"counters": ...}``, a copy."""
        return {"counters": self.counters.copy()}

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return self.counters.nbytes

    def update(self, keys: Sequence[ArrayLike], weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples.

        Parameters
        ----------
        keys : sequence of arrays of shape (n,), or one such array
            One for each attribute, of int64, or of text or bytes, which become their `fingerprint`; a sketch of one
            attribute takes its array alone as well. ``[]`` with `weights` for a sketch without attributes.
        weights : ndarray of int64 or float64, shape (n,), optional
            +1 for an insert (the default), -1 for a delete, or the argument of SUM.

        Raises
        ------
        OverflowError
            If a counter leaves int64. The sketch is unchanged then.
        ValueError
            If the arrays have other lengths or types than the sketch takes.
        """
        update_many([self], keys, [weights])

    def merge(self, other: LinearSketch[SpecT]) -> None:
        """Add the tuples of `other`, in place; OverflowError if a counter leaves int64."""
        self._combine(other, np.add)

    def subtract(self, other: LinearSketch[SpecT]) -> None:
        """Remove the tuples of `other`, in place; OverflowError if a counter leaves int64."""
        self._combine(other, np.subtract)

    def copy(self) -> Self:
        """An independent sketch with the same counters."""
        twin = type(self)(self.spec)
        twin._replace(self.counters.copy())
        twin.tuples = self.tuples
        return twin

    def _combine(self, other: LinearSketch[SpecT], combine: np.ufunc) -> None:
        if self.spec != other.spec:
            raise ValueError(f"sketches of different specs cannot be combined: {self.spec} and {other.spec}")
        if self._has_room(other._bound):
            combine(self.counters, other.counters, out=self.counters)
            self.tuples = both_tuples(self.tuples, other.tuples)
            return
        total = combine(self.counters, other.counters)
        shadow = combine(self.counters.astype(np.float64), other.counters.astype(np.float64))
        check_not_wrapped(total, shadow, "a sketch")
        self._replace(total)
        self.tuples = both_tuples(self.tuples, other.tuples)

    def _has_room(self, mass: int) -> bool:
        """Whether every counter can surely change by `mass`; if so, the bound grows by it.

        The bound is not part of the state: counters alone say how much room there is, and what was inserted
        and deleted again leaves no trace.
        """
        if self._bound + mass >= INT64_END:
            self._bound = absolute_peak(self.counters)
        if self._bound + mass >= INT64_END:
            return False
        self._bound += mass
        return True

    def _replace(self, counters: Counters) -> None:
        self.counters = counters
        self._bound = absolute_peak(counters)


def update_many(
    sketches: Sequence[LinearSketch[SpecT]],
    keys: Sequence[ArrayLike],
    weights: Sequence[ArrayLike | None],
) -> None:
    """Add one batch to several sketches of the same families, hashing once.

    Parameters
    ----------
    sketches : sequence of LinearSketch
        Of equal layout; the types of the counters may differ (COUNT and SUM of a double), and of convolution sketches
        the number of rows.
    keys : sequence of ndarray of int64, shape (n,)
        One array for each attribute.
    weights : sequence of (ndarray of shape (n,) or None)
        One for each sketch, see `LinearSketch.update`. Arrays where there is no attribute.

    Raises
    ------
    OverflowError, ValueError
        As `LinearSketch.update`; all sketches are unchanged then.
    """
    if len(sketches) != len(weights):
        raise ValueError(f"{len(sketches)} sketches need as many weights, not {len(weights)}")
    if not sketches:
        return
    first = max((s.spec for s in sketches), key=lambda spec: spec.shape[0])
    for other in sketches:
        if other.spec.layout != first.layout:
            raise ValueError(f"sketches of different layouts cannot share hashes: {first} and {other.spec}")
    if len({id(s) for s in sketches}) < len(sketches):
        raise ValueError("a sketch is listed twice in one batch; add up its weights instead")
    columns, checked = check_batch([s.spec for s in sketches], keys, weights)
    masses = [absolute_mass(w, len(columns[0]) if columns else 0) for w in checked]
    length = next((len(c) for c in (*columns, *checked) if c is not None), 0)
    if all(s._has_room(mass) for s, mass in zip(sketches, masses, strict=True)):
        first.add_batch([s.counters for s in sketches], columns, checked)
        _count(sketches, length)
        return
    # Rare: the sum of absolute weights does not fit, the counters may. Add to copies, and look.
    totals = [s.counters.copy() for s in sketches]
    shadows: list[NDArray[np.float64]] = [s.counters.astype(np.float64) for s in sketches]
    first.add_batch(totals, columns, checked)
    first.add_batch(shadows, columns, [w if w is None else w.astype(np.float64) for w in checked])
    for total, shadow in zip(totals, shadows, strict=True):
        check_not_wrapped(total, shadow, "a batch")
    for sketch, total in zip(sketches, totals, strict=True):
        sketch._replace(total)
    _count(sketches, length)


def _count(sketches: Sequence[LinearSketch[SpecT]], tuples: int) -> None:
    for sketch in sketches:
        sketch.tuples = None if sketch.tuples is None else sketch.tuples + tuples


def both_tuples(one: int | None, other: int | None) -> int | None:
    """What two sketches were given together, if that is known of both."""
    return None if one is None or other is None else one + other


def described(sketch: Described) -> str:
    """One line for people: kind, size and hash functions, tuples, bytes."""
    seen = "" if sketch.tuples is None else f", {sketch.tuples:,} tuples"
    return f"{type(sketch).__name__}({sketch.spec}{seen}, {sketch.nbytes:,} bytes)"


def _is_one_column(keys: object) -> bool:
    """Whether something is an array of keys, rather than a sequence of such arrays."""
    if isinstance(keys, (list, tuple)):
        return len(keys) > 0 and isinstance(keys[0], (int, str, bytes, np.integer))
    return getattr(keys, "ndim", 1) == 1 and not isinstance(keys, (str, bytes))


def check_batch(
    specs: Sequence[SketchSpec],
    keys: Sequence[ArrayLike],
    weights: Sequence[ArrayLike | None],
) -> tuple[list[Keys], list[Weights | None]]:
    """Keys as int64 columns and weights in the type of each spec; ValueError if they do not fit together."""
    arrays: Sequence[Any] = [keys] if _is_one_column(keys) else keys
    if len(arrays) != len(specs[0].families):
        raise ValueError(
            f"{len(arrays)} key arrays for the {len(specs[0].families)} attributes of {specs[0]}; "
            "update takes one array for each: update([users, items])"
        )
    columns = [as_keys(column) for column in arrays]
    if not columns and any(w is None for w in weights):
        raise ValueError("a sketch without attributes is updated with weights: nothing else says how many")
    checked = [as_weights(w, spec.dtype) for w, spec in zip(weights, specs, strict=True)]
    lengths = {len(c) for c in columns} | {len(w) for w in checked if w is not None}
    if len(lengths) > 1:
        raise ValueError(f"keys and weights of one batch have different lengths: {sorted(lengths)}")
    return columns, checked
