"""Sketches from one grouping: sums of signs in fine buckets, folded into independent rows.

An engine that groups a table only once (``GROUP BY fine bucket``, one sum of signed weights for every row)
cannot give every row its own buckets. It need not: with many more fine buckets than buckets, each row merges
them by a map of its own, afterwards and at no cost. The result equals, bit for bit, a hash or convolution
sketch of the family `Folded`. Signs are counted three to an integer, see `unpack`.

Notes
-----
Measured, not proven: with 16 fine buckets for every bucket the error is that of independent rows within
noise at Zipf exponents up to 1, and up to 4 times it at 1.5, where frequent keys share a fine bucket in all
rows at once; sharing one map among the rows instead is several times worse. Coverage stayed above 97 %.
"""

from __future__ import annotations

from functools import reduce
from operator import xor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.spark_families import FIELD_BITS, FIELDS, Folded
from ..hashing.xi import Keys, as_keys, spark_xxhash64
from .accumulate import as_weights, check_not_wrapped, integer_sums
from .convolution import ConvolutionSketch, ConvolutionSpec

FINE_PER_BUCKET = 16
FIELD_END = 1 << FIELD_BITS  # fields count up to below it


def fine_bits_for(buckets: int) -> int:
    """Bits of the fine buckets that rows of `buckets` ask for: 16 fine buckets each, rounded up."""
    return min(24, max(8, (FINE_PER_BUCKET * buckets - 1).bit_length()))


def packed_sums(rows: int) -> int:
    """Integers that the counts of `rows` signs and of the tuples take, three to an integer."""
    return rows // FIELDS + 1


def unpack(packed: NDArray[np.int64], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sign sums and numbers of tuples from counts of negative signs, packed three to an integer.

    Parameters
    ----------
    packed : ndarray of int64, shape (packed_sums(rows), n)
        Field j of integer s, `FIELD_BITS` wide, counts the tuples whose sign ``3 s + j`` is negative; the
        highest field of the last integer counts all tuples. Every count is below `FIELD_END`.

    Returns
    -------
    sums : ndarray of int64, shape (rows, n)
    tuples : ndarray of int64, shape (n,)
    """
    mask = np.int64(FIELD_END - 1)
    tuples = packed[-1] >> np.int64((FIELDS - 1) * FIELD_BITS) & mask
    negative = [packed[r // FIELDS] >> np.int64(r % FIELDS * FIELD_BITS) & mask for r in range(rows)]
    return np.stack([tuples - 2 * counted for counted in negative]), tuples


def fold(spec: ConvolutionSpec, fine_sums: ArrayLike) -> ConvolutionSketch:
    """The sketch that these sums of fine buckets fold into.

    Parameters
    ----------
    spec : ConvolutionSpec
        Of attributes whose families are `Folded`, with equally many fine buckets.
    fine_sums : ndarray of int64 or float64, shape (rows, fine buckets)
        Entry [r, b] is the sum over the tuples in fine bucket b of weight times sign r, see
        `Folded.sign_place`. With several attributes both come from the exclusive or of their words.

    Returns
    -------
    ConvolutionSketch
        Equal to one of the same spec that was updated with the tuples.

    Raises
    ------
    ValueError
        If the family is another, or the sums have another shape or type.
    OverflowError
        If a counter leaves int64.
    """
    family = _folded_family(spec)
    sums = np.asarray(fine_sums)
    if sums.shape != (spec.rows, 1 << family.fine_bits):
        raise ValueError(
            f"sums of shape {sums.shape} do not belong to {spec}: one for each row and fine bucket"
        )
    sketch = spec.empty()
    for row in range(spec.rows):
        weights = as_weights(sums[row], spec.dtype)
        assert weights is not None, "an array was given"
        buckets = spec.buckets_of(family.bucket_bits(row, spec.slot_bits) << np.uint64(1))
        shadow = np.bincount(buckets, weights=weights, minlength=spec.buckets).astype(np.float64)
        if spec.dtype == "int64":
            counters = integer_sums(buckets, weights.astype(np.int64, copy=False), spec.buckets)
            check_not_wrapped(counters, shadow, "folded sums")
            sketch.counters[row] = counters
        else:
            sketch.counters[row] = shadow
    return ConvolutionSketch.from_state(spec, sketch.state())


def fine_sums(spec: ConvolutionSpec, *keys: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.int64]:
    """The sums that `fold` takes, in numpy: what an engine is to compute, for tests and for checking engines.

    Parameters
    ----------
    spec : ConvolutionSpec
        Of int64 counters, of attributes whose families are `Folded`.
    *keys : ndarray of int64, shape (n,)
        One array for each attribute.
    weights : ndarray of int64, shape (n,), optional

    Returns
    -------
    ndarray of int64, shape (rows, fine buckets)
    """
    family, columns = _folded_family(spec), [as_keys(column) for column in keys]
    given = as_weights(weights, "int64")
    ones = np.ones(len(columns[0]), dtype=np.int64) if given is None else given.astype(np.int64, copy=False)
    places = [family.sign_place(f) for f in range(spec.rows)]
    words = []
    for number in range(1 + max(word for word, _ in places)):
        seeds = [f.word_seeds(number + 1)[number] for f in spec.families if isinstance(f, Folded)]
        hashed = [spark_xxhash64(seed, column) for seed, column in zip(seeds, columns, strict=True)]
        words.append(reduce(xor, hashed))
    fine: Keys = (words[0] >> np.uint64(64 - family.fine_bits)).view(np.int64)
    signs = [1 - 2 * (words[word] >> np.uint64(bit) & np.uint64(1)).view(np.int64) for word, bit in places]
    return np.stack([integer_sums(fine, sign * ones, 1 << family.fine_bits) for sign in signs])


def _folded_family(spec: ConvolutionSpec) -> Folded:
    if not spec.families or not isinstance(spec.families[0], Folded):
        raise ValueError(f"only sketches of folded families can be folded, not {spec}")
    return spec.families[0]
