"""Families that enumerate: row r of a sketch gets the r-th choice of bucket and sign for every key and
attribute.

With all choices as the rows of one sketch, the mean over the rows *is* the expectation of the estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skimql.sketches.hashing.xi import pack_bits


@dataclass(frozen=True)
class Enumerated:
    """All functions from `keys` keys to buckets and signs, for attribute `position` of `attributes`."""

    position: int
    attributes: int
    keys: int
    buckets: int
    seed: int = 0

    name: ClassVar[str] = "enumerated"
    independence: ClassVar[int] = 99
    basis: ClassVar[str] = "theorem"
    group: ClassVar[str] = "cyclic"

    @property
    def parameters(self):
        return {"position": self.position}

    @property
    def choices(self):
        """Number of functions for one attribute."""
        return (2 * self.buckets) ** self.keys

    @property
    def rows(self):
        return self.choices**self.attributes

    def values(self, keys, functions, bits):
        assert functions == self.rows
        digit = np.arange(functions) // self.choices**self.position % self.choices
        slot = digit[:, None] // (2 * self.buckets) ** np.asarray(keys)[None, :] % (2 * self.buckets)
        bucket, sign = slot >> 1, slot & 1
        if bits == 32:  # not a power of two: the sketch scales 31 bits down to a bucket
            bucket = (bucket * 2**31 + 2**30) // self.buckets
        return (bucket << 1 | sign).astype(np.uint64)

    def sign_words(self, keys, functions):
        return pack_bits(self.values(keys, functions, 2) & np.uint64(1))

    def derive(self, label):
        raise NotImplementedError(label)

    def __str__(self):
        return f"enumerated({self.position})"
