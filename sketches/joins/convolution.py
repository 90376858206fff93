"""Convolution count sketches: one counter per row and update for any number of join attributes.

A tuple with join values (a, b, ...) adds ``weight * xi1(a) * xi2(b) * ...`` to bucket
``(h1(a) + h2(b) + ...) mod buckets`` of each row. (Families that Spark computes add buckets up by exclusive or;
the transform is then that of Walsh and Hadamard.) With one attribute this is the hash sketch (Fast-AGMS, count
sketch); without attributes it is an exact total. The size of any acyclic join is the cyclic cross-correlation
of its vertices' sketches at lag zero, taken by FFT; see `join_rows`.

References
----------
.. [1] M. Charikar, K. Chen, M. Farach-Colton, "Finding frequent items in data streams", ICALP 2002: the
   sketch of one attribute.
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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hashing.xi import Family, Keys, Values, check_families
from .accumulate import Counters, Weights, add_columns, add_signed
from .join_tree import Edges, check_join
from .linear import LinearSketch
from .linear import update_many as update_many

BLOCK = 1 << 15  # tuples; smaller blocks spend their time clearing bins, larger ones leave the cache
FREE_BUCKET_BITS = 31  # hash bits behind a bucket when the number of buckets is not a power of two
MOST_BUCKETS = 1 << 30


@dataclass(frozen=True, slots=True)
class ConvolutionSpec:
    """What identifies a convolution sketch; equal specs can be merged.

    Parameters
    ----------
    families : tuple of Family
        One for each join attribute, in the order of the keys; all different. The two ends of an edge share
    one. rows : int
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
        check_families("ConvolutionSpec", self.families)
        if self.rows < 1:
            raise ValueError(f"a sketch has at least one row, not {self.rows}")
        if not 2 <= self.buckets <= MOST_BUCKETS:
            raise ValueError(f"a row has 2 to {MOST_BUCKETS} buckets, not {self.buckets}")
        check_families_and_dtype(self.families, self.dtype)
        if len(self.families) > 1:
            _check_group(self.families, self.buckets)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters: a single one if there is no attribute."""
        return (self.rows, self.buckets) if self.families else (1, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def layout(self) -> tuple[object, ...]:
        """Equal for specs that hash alike: row r of all of them has the same buckets and signs."""
        return self.families, self.buckets

    @property
    def basis(self) -> str:
        """What an interval rests on: "theorem", or "measured" if one of the families has no proof."""
        return "measured" if any(f.basis == "measured" for f in self.families) else "theorem"

    def __str__(self) -> str:
        names = " x ".join(str(f) for f in self.families) or "total"
        return f"{self.rows} x {self.buckets} {self.dtype} over {names}"

    def empty(self) -> ConvolutionSketch:
        """A new sketch of this spec."""
        return ConvolutionSketch(self)

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
        total: NDArray[np.int64] | None = None
        for family, column in zip(self.families, keys, strict=True):
            values = family.values(column, self.rows, self.slot_bits)
            slots = values.view(np.int64)
            if not self.power_of_two:
                for row, hashed in zip(slots, values, strict=True):  # row by row for the cache
                    row[:] = self.buckets_of(hashed) << 1 | (row & 1)
            if total is None:
                total = slots
            elif self.group == "xor":
                total ^= slots
            else:
                total = _add_slots(total, slots, self.buckets, self.power_of_two)
        assert total is not None, "a sketch without attributes has no buckets"
        return total

    @property
    def group(self) -> str:
        """In which the buckets of several attributes add up: "cyclic" (modulo `buckets`) or "xor"."""
        return self.families[0].group if self.families else "cyclic"

    @property
    def power_of_two(self) -> bool:
        """Whether buckets are simply bits of the hash."""
        return self.buckets & (self.buckets - 1) == 0

    @property
    def slot_bits(self) -> int:
        """Hash bits that a bucket and a sign take."""
        return self.buckets.bit_length() if self.power_of_two else FREE_BUCKET_BITS + 1

    def buckets_of(self, values: Values) -> NDArray[np.int64]:
        """Buckets of hash values of `slot_bits` bits, the sign in the lowest."""
        high = values.view(np.int64) >> 1
        return high if self.power_of_two else (high * self.buckets) >> FREE_BUCKET_BITS

    def add_batch(
        self, targets: Sequence[Counters], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        """See `SketchSpec.add_batch`.

        Time per tuple: hashing (see `xi`) plus about 3 ns for each row and target, up to 4,096 buckets.
        """
        if not self.families:
            for target, column in zip(targets, weights, strict=True):
                assert column is not None, "checked before"
                add_signed(target[0], np.zeros(len(column), dtype=np.int64), column)
            return
        alike: dict[int, tuple[Weights | None, list[Counters]]] = {}
        for target, column in zip(targets, weights, strict=True):
            alike.setdefault(id(column), (column, []))[1].append(target)
        length = len(columns[0])
        step = -(-length // max(1, -(-length // BLOCK)))  # blocks of one size, none of them a small rest
        for start in range(0, length, max(1, step)):
            block = slice(start, start + step)
            slots = self.slots([column[block] for column in columns])
            add_columns([(None if c is None else c[block], own) for c, own in alike.values()], slots)


class ConvolutionSketch(LinearSketch[ConvolutionSpec]):
    """A `LinearSketch` of rows of buckets; see the module for what a tuple adds to which."""

    __slots__ = ()


def join_rows(sketches: Sequence[ConvolutionSketch], edges: Edges) -> NDArray[np.float64]:
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
    The colouring belongs to the query, not to the sketch. Where buckets add up by exclusive or, the transform
    is that of Walsh and Hadamard, and its own conjugate. Time O(vertices * rows * buckets * log(buckets)).
    """
    white = check_join([s.spec for s in sketches], edges)
    if not edges:
        return sketches[0].counters.astype(np.float64)[:, 0]
    rows, buckets = sketches[0].spec.shape
    if len(sketches) == 2:
        left, right = (s.counters.astype(np.float64) for s in sketches)
        return np.asarray(np.einsum("rb,rb->r", left, right), dtype=np.float64)
    if sketches[0].spec.group == "xor":
        return _xor_rows(sketches)
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
    estimates = np.asarray(np.sum(product.real * twice, axis=1) / buckets, dtype=np.float64)
    # Integer counters make integer rows; what the transform leaves behind the point is rounding.
    return np.rint(estimates) if all(s.spec.dtype == "int64" for s in sketches) else estimates


def _xor_rows(sketches: Sequence[ConvolutionSketch]) -> NDArray[np.float64]:
    """`join_rows` where buckets add up by exclusive or."""
    transforms: dict[int, NDArray[np.float64]] = {}
    product = np.ones(sketches[0].spec.shape)
    for sketch in sketches:
        if id(sketch) not in transforms:
            transforms[id(sketch)] = walsh_hadamard(sketch.counters.astype(np.float64))
        product *= transforms[id(sketch)]
    estimates = np.asarray(product.mean(axis=1), dtype=np.float64)
    return np.rint(estimates) if all(s.spec.dtype == "int64" for s in sketches) else estimates


def walsh_hadamard(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Walsh-Hadamard transform of each row: entry w is the sum over b of ``(-1)^popcount(w & b) * row[b]``.

    Parameters
    ----------
    rows : ndarray of float64, shape (rows, buckets)
        `buckets` a power of two. Time O(rows * buckets * log(buckets)).
    """
    count, buckets = rows.shape
    transformed, half = rows, 1
    while half < buckets:
        pairs = transformed.reshape(count, buckets // (2 * half), 2, half)
        transformed = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        half *= 2
    return transformed.reshape(count, buckets)


def check_families_and_dtype(families: tuple[Family, ...], dtype: str) -> None:
    """Raise ValueError unless the families of a spec are all different and its counters int64 or float64."""
    if not isinstance(families, tuple):
        raise TypeError(f"families are a tuple, one for each attribute: ({families},)")
    if dtype not in ("int64", "float64"):
        raise ValueError(f"counters are int64 or float64, not {dtype}")
    if len(set(families)) < len(families):
        names = " and ".join(str(f) for f in families)
        raise ValueError(
            f"two attributes of one sketch share a family: {names}; derive one for each attribute"
        )


def _check_group(families: tuple[Family, ...], buckets: int) -> None:
    """Raise ValueError unless the buckets of these families add up in one group that has `buckets` elements."""
    kinds = {(f.group, *(f.parameters.items() if f.group == "xor" else ())) for f in families}
    if len(kinds) > 1:
        names = " and ".join(str(f) for f in families)
        raise ValueError(f"buckets of different groups cannot be added up: {names}")
    if families[0].group == "xor" and buckets & (buckets - 1):
        raise ValueError(f"buckets that add up by exclusive or are a power of two in number, not {buckets}")


def _add_slots(
    a: NDArray[np.int64], b: NDArray[np.int64], buckets: int, power_of_two: bool
) -> NDArray[np.int64]:
    """Add the buckets and multiply the signs of two arrays of slots, into `a`; row by row for the cache."""
    for row, other in zip(a, b, strict=True):
        sign = (row ^ other) & 1
        row &= ~1
        row += other & ~1
        if power_of_two:
            row &= 2 * buckets - 1
        else:
            np.subtract(row, 2 * buckets, out=row, where=row >= 2 * buckets)
        row |= sign
    return a
