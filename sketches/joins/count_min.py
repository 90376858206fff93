"""Hash sketches from count-min sketches: what Spark's ``count_min_sketch`` returns, read as signed counters.

A count-min sketch of 2 m columns whose rows hash independently holds a hash sketch of m buckets of the family
`CountMin`: column ``2 b + 1`` has the tuples of bucket b whose sign is negative, column ``2 b`` the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hashing.spark_families import CountMin
from .convolution import ConvolutionSketch, ConvolutionSpec

VERSION = 1  # of Spark's serialized form
MOST_ROWS = 40  # beyond, Spark's parameter "confidence" cannot tell one number of rows from the next


@dataclass(frozen=True, slots=True)
class CountMinTable:
    """A count-min sketch: `counts` has shape (rows, columns), `tuples` is the number of tuples."""

    tuples: int
    counts: NDArray[np.int64]

    @property
    def distinct(self) -> float:
        """Estimate of the number of keys, from the share of columns that are empty (linear counting)."""
        columns = self.counts.shape[1]
        empty = float((self.counts == 0).mean())
        return columns * math.log(1 / empty) if empty else math.inf

    def sketch(self, spec: ConvolutionSpec) -> ConvolutionSketch:
        """The hash sketch of the same tuples; `read` has checked that it is of these hashes."""
        counters = self.counts[:, 0::2] - self.counts[:, 1::2]
        return ConvolutionSketch.from_state(spec, {"counters": counters})


def parameters(rows: int, buckets: int) -> tuple[float, float]:
    """Spark's parameters eps and confidence of a count-min sketch that holds rows x buckets signed counters.

    Spark takes ``ceil(2 / eps)`` columns and ``ceil(-log2(1 - confidence))`` rows: half a unit less than wanted
    is rounded up to it, whatever the rounding of floats.
    """
    return 2 / (2 * buckets - 0.5), 1 - 2.0 ** (0.5 - rows)


def read(data: bytes, spec: ConvolutionSpec) -> CountMinTable:
    """Read Spark's serialized count-min sketch.

    Parameters
    ----------
    data : bytes
        Big-endian: version (int32), tuples (int64), rows, columns (int32), a multiplier for each row (int64), counts
        (int64, row by row).
    spec : ConvolutionSpec
        Of one attribute of the family `CountMin`.

    Raises
    ------
    ValueError
        If the version, the sizes or the multipliers are others.
    """
    family = spec.families[0]
    if not isinstance(family, CountMin):
        raise ValueError(f"a count-min sketch holds no sketch of {family}")
    head = np.frombuffer(data, ">i4", 1)
    if int(head[0]) != VERSION:
        raise ValueError(f"count-min sketches of version {int(head[0])} are unknown; known: {VERSION}")
    tuples = int(np.frombuffer(data, ">i8", 1, 4)[0])
    rows, columns = (int(x) for x in np.frombuffer(data, ">i4", 2, 12))
    if (rows, columns) != (spec.rows, 2 * spec.buckets):
        raise ValueError(f"a count-min sketch of {rows} x {columns} does not hold {spec}")
    multipliers = np.frombuffer(data, ">i8", rows, 20)
    if not np.array_equal(multipliers, family.multipliers(rows)):
        raise ValueError("this Spark draws other multipliers for its count-min sketch")
    counts = np.frombuffer(data, ">i8", rows * columns, 20 + 8 * rows).astype(np.int64)
    return CountMinTable(tuples, counts.reshape(rows, columns))
