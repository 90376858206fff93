"""Hash sketches (Fast-AGMS): the convolution sketch of one attribute, and what only one attribute allows.

With a single attribute a sketch also answers *how often does this key occur*: the counter of its bucket
times its sign, the count sketch of [1], which is what skimming reads dense frequencies from.

References
----------
.. [1] M. Charikar, K. Chen, M. Farach-Colton, "Finding frequent items in data streams", ICALP 2002.
.. [2] S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170: the hash sketch and its frequency estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Family, as_keys
from .convolution import ConvolutionSketch, ConvolutionSpec, join_rows

HashSketch = ConvolutionSketch


def hash_spec(family: Family, rows: int = 11, buckets: int = 4096, dtype: str = "int64") -> ConvolutionSpec:
    """The spec of a hash sketch: a convolution sketch of one attribute."""
    return ConvolutionSpec((family,), rows, buckets, dtype)


def join_size_rows(left: ConvolutionSketch, right: ConvolutionSketch) -> NDArray[np.float64]:
    """Estimate ``sum_k f(k) * g(k)`` in each row: shape (rows,). A self-join if both are the same object."""
    return join_rows([left, right], [(0, 1, 0, 0)])


def frequency_rows(sketch: ConvolutionSketch, keys: ArrayLike) -> NDArray[np.float64]:
    """Estimate the total weight of each key in each row.

    Parameters
    ----------
    sketch : ConvolutionSketch
        Of one attribute.
    keys : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (rows, n)
        ``sign(key) * counter[bucket(key)]``. Each entry has the net weight of the key as its mean and at most
        ``F2 / buckets`` as its variance; take the median over the rows.
    """
    if len(sketch.spec.families) != 1:
        raise ValueError(f"frequencies are read from a sketch of one attribute, not from {sketch.spec}")
    slots = sketch.spec.slots([as_keys(keys)])
    found = np.take_along_axis(sketch.counters, slots >> 1, axis=1).astype(np.float64)
    return np.where(slots & 1, -found, found)
