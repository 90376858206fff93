"""Convolution count sketches: one counter per row and update for any number of join attributes.

A tuple with join values (a, b, ...) adds ``weight * xi1(a) * xi2(b) * ...`` to bucket
``(h1(a) + h2(b) + ...) mod buckets`` of each row. With one attribute this is the hash sketch (Fast-AGMS,
count sketch); without attributes it is an exact total. The size of any acyclic join is the cyclic
cross-correlation of its vertices' sketches at lag zero, taken by FFT; see `join_rows`.

References
----------
.. [1] M. Charikar, K. Chen, M. Farach-Colton, "Finding frequent items in data streams", ICALP 2002: one
   attribute.
.. [2] G. Cormode, M. Garofalakis, "Sketching streams through the net: distributed approximate query
   tracking", VLDB 2005: the inner product of two such sketches.
.. [3] N. Pham, R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps", KDD 2013: buckets
   that add up, multiplied by FFT.

Notes
-----
Row by row the estimate is unbiased, because lag zero keeps exactly the combinations of tuples whose bucket
sums cancel: those that join always do, and all others carry a product of signs with mean zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accumulate import (
    INT64_END,
    Counters,
    Weights,
    absolute_mass,
    absolute_peak,
    add_signed,
    as_weights,
    check_not_wrapped,
)
from .xi import Family, Keys, as_keys

BLOCK = 1 << 16  # tuples; smaller blocks spend their time clearing bins, larger ones leave the cache
FREE_BUCKET_BITS = 31  # hash bits behind a bucket when the number of buckets is not a power of two
MOST_BUCKETS = 1 << 30


@dataclass(frozen=True, slots=True)
class ConvolutionSpec:
    """What two sketches must have in common to be merged, apart from nothing.

    Parameters
    ----------
    families : tuple of Family
        One for each join attribute, in the order of the keys; all different. The two ends of an edge share
        one.
    rows : int
        Independent repetitions, of which the median is taken.
    buckets : int
        Counters in a row; powers of two are faster.
    dtype : str
        "int64": exact, for COUNT and integer SUM; "float64": for SUM of doubles.
    """

    families: tuple[Family, ...]
    rows: int = 11
    buckets: int = 4096
    dtype: str = "int64"

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"a sketch has at least one row, not {self.rows}")
        if not 2 <= self.buckets <= MOST_BUCKETS:
            raise ValueError(f"a row has 2 to {MOST_BUCKETS} buckets, not {self.buckets}")
        if self.dtype not in ("int64", "float64"):
            raise ValueError(f"counters are int64 or float64, not {self.dtype}")
        if len(set(self.families)) < len(self.families):
            raise ValueError(
                f"two attributes of one sketch share a family: {self}; derive one for each attribute"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters: a single one if there is no attribute."""
        return (self.rows, self.buckets) if self.families else (1, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def basis(self) -> str:
        """What an interval rests on: "theorem", or "measured" if one of the families has no proof."""
        return "measured" if any(f.basis == "measured" for f in self.families) else "theorem"

    def __str__(self) -> str:
        names = " x ".join(str(f) for f in self.families) or "total"
        return f"{self.rows} x {self.buckets} {self.dtype} over {names}"

    def slots(self, keys: Sequence[Keys]) -> NDArray[np.int64]:
        """Bucket and sign of each tuple in each row.

        Parameters
        ----------
        keys : sequence of ndarray of int64, shape (n,)
            One array for each attribute.

        Returns
        -------
        ndarray of int64, shape (rows, n)
            ``2 * bucket + (1 if the sign is negative else 0)``: a number of one of 2 * buckets bins.
        """
        power_of_two = self.buckets & (self.buckets - 1) == 0
        bits = self.buckets.bit_length() if power_of_two else FREE_BUCKET_BITS + 1
        total: NDArray[np.int64] | None = None
        for family, column in zip(self.families, keys, strict=True):
            slots = family.values(column, self.rows, bits).view(np.int64)
            if not power_of_two:
                slots = (((slots >> 1) * self.buckets) >> FREE_BUCKET_BITS) << 1 | (slots & 1)
            total = slots if total is None else _add_slots(total, slots, self.buckets, power_of_two)
        assert total is not None, "a sketch without attributes has no buckets"
        return total


class ConvolutionSketch:
    """A linear sketch of a weighted relation by its join attributes.

    Parameters
    ----------
    spec : ConvolutionSpec

    Notes
    -----
    Integer counters are exact, and the same for every order, partition and detour of the data: inserting and
    deleting anything leaves them bit for bit as they were.
    """

    __slots__ = ("_bound", "counters", "spec")

    def __init__(self, spec: ConvolutionSpec) -> None:
        self.spec = spec
        self.counters: Counters = np.zeros(spec.shape, dtype=spec.dtype)
        self._bound = 0  # at least the largest absolute counter; an integer of any size

    @classmethod
    def from_state(cls, spec: ConvolutionSpec, state: Mapping[str, NDArray[np.generic]]) -> ConvolutionSketch:
        """The sketch whose `state` was taken; raises ValueError if the arrays do not fit `spec`."""
        if set(state) != {"counters"}:
            raise ValueError(f"the state of a sketch is its counters, not {sorted(state)}")
        counters = np.asarray(state["counters"])
        if counters.shape != spec.shape or counters.dtype != np.dtype(spec.dtype):
            raise ValueError(f"counters of {counters.dtype} {counters.shape} do not belong to {spec}")
        sketch = cls(spec)
        sketch.counters[...] = counters
        sketch._bound = absolute_peak(sketch.counters)
        return sketch

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything but the spec: a copy of the counters, shape `spec.shape`."""
        return {"counters": self.counters.copy()}

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return self.counters.nbytes

    def update(self, keys: Sequence[ArrayLike], weights: ArrayLike | None = None) -> None:
        """Add a batch of tuples.

        Parameters
        ----------
        keys : sequence of ndarray of int64, shape (n,)
            One array for each attribute; ``[]`` with `weights` for a sketch without attributes.
        weights : ndarray of int64 or float64, shape (n,), optional
            +1 for an insert (the default), -1 for a delete, or the argument of SUM.

        Raises
        ------
        OverflowError
            If a counter could leave int64. The sketch is unchanged then.
        ValueError
            If the arrays have other lengths or types than the sketch takes.
        """
        update_many([self], keys, [weights])

    def merge(self, other: ConvolutionSketch) -> None:
        """Add the tuples of `other`, in place; OverflowError if a counter could leave int64."""
        self._combine(other, 1)

    def subtract(self, other: ConvolutionSketch) -> None:
        """Remove the tuples of `other`, in place; OverflowError if a counter could leave int64."""
        self._combine(other, -1)

    def copy(self) -> ConvolutionSketch:
        """An independent sketch with the same counters."""
        twin = ConvolutionSketch(self.spec)
        twin.counters[...] = self.counters
        twin._bound = self._bound
        return twin

    def _combine(self, other: ConvolutionSketch, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"sketches of different specs cannot be combined: {self.spec} and {other.spec}")
        combine = np.add if sign > 0 else np.subtract
        if self._has_room(other._bound):
            combine(self.counters, other.counters, out=self.counters)
            return
        total = combine(self.counters, other.counters)
        shadow = combine(self.counters.astype(np.float64), other.counters.astype(np.float64))
        check_not_wrapped(total, shadow, "a sketch")
        self._replace(total)

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
    sketches: Sequence[ConvolutionSketch],
    keys: Sequence[ArrayLike],
    weights: Sequence[ArrayLike | None],
) -> None:
    """Add one batch to several sketches of the same families and sizes, hashing once.

    Parameters
    ----------
    sketches : sequence of ConvolutionSketch
        Equal families, rows and buckets; the types of the counters may differ (COUNT and SUM of a double).
    keys : sequence of ndarray of int64, shape (n,)
        One array for each attribute.
    weights : sequence of (ndarray of shape (n,) or None)
        One for each sketch, see `ConvolutionSketch.update`. At least one array where there is no attribute.

    Raises
    ------
    OverflowError, ValueError
        As `ConvolutionSketch.update`; all sketches are unchanged then.

    Notes
    -----
    Time per tuple: hashing (see `xi`) plus about 4 ns for each row and sketch, up to 4,096 buckets.
    """
    if not sketches:
        return
    if len(sketches) != len(weights):
        raise ValueError(f"{len(sketches)} sketches need as many weights, not {len(weights)}")
    first = sketches[0].spec
    for other in sketches[1:]:
        if _layout(other.spec) != _layout(first):
            raise ValueError(f"sketches of different layouts cannot share hashes: {first} and {other.spec}")
    if len({id(s) for s in sketches}) < len(sketches):
        raise ValueError("a sketch is listed twice in one batch; add up its weights instead")
    columns, checked = _check_batch(sketches, keys, weights)
    masses = [absolute_mass(w, len(columns[0]) if columns else 0) for w in checked]
    if all(s._has_room(mass) for s, mass in zip(sketches, masses, strict=True)):
        _add_batch([s.counters for s in sketches], first, columns, checked)
        return
    # Rare: the sum of absolute weights does not fit, the counters may. Add to copies, and look.
    totals = [s.counters.copy() for s in sketches]
    shadows: list[Counters] = [s.counters.astype(np.float64) for s in sketches]
    _add_batch(totals, first, columns, checked)
    _add_batch(shadows, first, columns, checked)
    for total, shadow in zip(totals, shadows, strict=True):
        check_not_wrapped(total, shadow.astype(np.float64, copy=False), "a batch")
    for sketch, total in zip(sketches, totals, strict=True):
        sketch._replace(total)


def _add_batch(
    targets: Sequence[Counters],
    spec: ConvolutionSpec,
    columns: Sequence[Keys],
    weights: Sequence[Weights | None],
) -> None:
    """Add checked columns to arrays of counters, block by block."""
    if not spec.families:
        for target, column in zip(targets, weights, strict=True):
            assert column is not None, "checked before"
            add_signed(target[0], np.zeros(len(column), dtype=np.int64), column)
        return
    for start in range(0, len(columns[0]), BLOCK):
        block = slice(start, start + BLOCK)
        slots = spec.slots([column[block] for column in columns])
        for target, column in zip(targets, weights, strict=True):
            piece = None if column is None else column[block]
            for row in range(spec.rows):
                add_signed(target[row], slots[row], piece)


def join_rows(
    sketches: Sequence[ConvolutionSketch],
    edges: Sequence[tuple[int, int, int, int]],
) -> NDArray[np.float64]:
    """Estimate an acyclic join aggregate, once in each row.

    Parameters
    ----------
    sketches : sequence of ConvolutionSketch
        Entry v is the sketch of vertex v. The same object may stand for several vertices (a self-join).
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v. A tree: one edge fewer than vertices,
        connected, every attribute at the end of exactly one edge.

    Returns
    -------
    ndarray of float64, shape (rows,)
        Each entry has the sum over joining tuples of the product of their weights as its mean.

    Raises
    ------
    ValueError
        If the edges are no such tree, the ends of an edge have different families, two edges share a family,
        or the sizes differ; with both named.

    Notes
    -----
    Two vertices: a dot product of the counters in float64. More: with F_v the discrete Fourier transform of a
    row and the tree coloured white and black, ``sum_w prod_white F_v(w) prod_black conj(F_v(w)) / buckets``.
    The colouring belongs to the query, not to the sketch. Time O(vertices * rows * buckets * log(buckets)).
    """
    white = _check_tree(sketches, edges)
    if not edges:
        return sketches[0].counters.astype(np.float64)[:, 0]
    rows, buckets = sketches[0].spec.shape
    if len(sketches) == 2:
        left, right = (s.counters.astype(np.float64) for s in sketches)
        return np.asarray(np.einsum("rb,rb->r", left, right), dtype=np.float64)
    transforms: dict[int, NDArray[np.complex128]] = {}
    product = np.ones((rows, buckets // 2 + 1), dtype=np.complex128)
    for sketch, is_white in zip(sketches, white, strict=True):
        if id(sketch) not in transforms:
            transforms[id(sketch)] = np.fft.rfft(sketch.counters.astype(np.float64), axis=1)
        transform = transforms[id(sketch)]
        product *= transform if is_white else transform.conj()
    # Real input: frequencies w and buckets - w are conjugate, so the half spectrum counts twice but at its
    # ends.
    twice = np.full(product.shape[1], 2.0)
    twice[0] = 1.0
    if buckets % 2 == 0:
        twice[-1] = 1.0
    estimates = np.asarray(product.real @ twice / buckets, dtype=np.float64)
    # Integer counters make integer rows; what the transform leaves behind the point is rounding.
    return np.rint(estimates) if all(s.spec.dtype == "int64" for s in sketches) else estimates


def _layout(spec: ConvolutionSpec) -> tuple[tuple[Family, ...], int, int]:
    return spec.families, spec.rows, spec.buckets


def _add_slots(
    a: NDArray[np.int64], b: NDArray[np.int64], buckets: int, power_of_two: bool
) -> NDArray[np.int64]:
    """Add the buckets and multiply the signs of two slots, reusing `a`."""
    sign = (a ^ b) & 1
    a &= ~1
    a += b & ~1
    if power_of_two:
        a &= 2 * buckets - 1
    else:
        np.subtract(a, 2 * buckets, out=a, where=a >= 2 * buckets)
    a |= sign
    return a


def _check_batch(
    sketches: Sequence[ConvolutionSketch],
    keys: Sequence[ArrayLike],
    weights: Sequence[ArrayLike | None],
) -> tuple[list[Keys], list[Weights | None]]:
    spec = sketches[0].spec
    columns = [as_keys(column) for column in keys]
    if len(columns) != len(spec.families):
        raise ValueError(f"{len(columns)} key arrays for the {len(spec.families)} attributes of {spec}")
    if not columns and any(w is None for w in weights):
        raise ValueError("a sketch without attributes is updated with weights: nothing else says how many")
    checked = [as_weights(w, s.spec.dtype) for w, s in zip(weights, sketches, strict=True)]
    lengths = {len(c) for c in columns} | {len(w) for w in checked if w is not None}
    if len(lengths) > 1:
        raise ValueError(f"keys and weights of one batch have different lengths: {sorted(lengths)}")
    return columns, checked


def _check_tree(
    sketches: Sequence[ConvolutionSketch], edges: Sequence[tuple[int, int, int, int]]
) -> list[bool]:
    """Check that the query is a well-formed tree; returns its 2-colouring."""
    if len(edges) != len(sketches) - 1:
        raise ValueError(f"a tree of {len(sketches)} vertices has one edge fewer, not {len(edges)}")
    spec = sketches[0].spec
    for sketch in sketches[1:]:
        if sketch.spec.shape != spec.shape:
            raise ValueError(f"sketches of different sizes cannot be multiplied: {spec} and {sketch.spec}")
    families: set[Family] = set()
    ends: set[tuple[int, int]] = set()
    neighbours: list[list[int]] = [[] for _ in sketches]
    for u, v, i, j in edges:
        left, right = _end(sketches, u, i), _end(sketches, v, j)
        if left != right:
            raise ValueError(f"an edge joins attributes of different families: {left} and {right}")
        if left in families:
            raise ValueError(f"two edges of one query share {left}; give each edge its own family")
        families.add(left)
        ends |= {(u, i), (v, j)}
        neighbours[u].append(v)
        neighbours[v].append(u)
    attributes = sum(len(s.spec.families) for s in sketches)
    if len(ends) < 2 * len(edges) or len(ends) < attributes:
        raise ValueError(f"{len(ends)} of {attributes} attributes are joined; each needs exactly one edge")
    return _two_colours(neighbours)


def _end(sketches: Sequence[ConvolutionSketch], vertex: int, attribute: int) -> Family:
    if not 0 <= vertex < len(sketches):
        raise ValueError(f"an edge names vertex {vertex} of {len(sketches)}")
    families = sketches[vertex].spec.families
    if not 0 <= attribute < len(families):
        raise ValueError(f"an edge names attribute {attribute} of vertex {vertex}, which has {len(families)}")
    return families[attribute]


def _two_colours(neighbours: Sequence[Sequence[int]]) -> list[bool]:
    colour: list[bool | None] = [None] * len(neighbours)
    colour[0] = True
    waiting = [0]
    while waiting:
        vertex = waiting.pop()
        for other in neighbours[vertex]:
            if colour[other] is None:
                colour[other] = not colour[vertex]
                waiting.append(other)
    if None in colour:
        raise ValueError(f"vertex {colour.index(None)} is not connected to vertex 0: not a tree")
    return [bool(c) for c in colour]
