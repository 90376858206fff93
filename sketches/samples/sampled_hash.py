"""The hashes that decide which keys and tuples are in a sample: the same in Spark and in numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..hashing.family import Keys, Seeded, Values, slice_words
from ..hashing.xi import derive_seed
from ..hashing.xxhash import SPARK_SEED, xxh64_of_long

# Of a hash that are compared with a rate.
HASH_BITS = 40


@dataclass(frozen=True, slots=True)
class SampleHash(Seeded):
    """The bits of Spark's ``xxhash64(key XOR seed)`` for a BIGINT key.

    One round of XXH64, where a seed that is hashed along takes two: a fifth of the cost of a sample. Nothing is proven
    about it. Keys that follow one another become other blocks of such keys, of which XXH64 makes other words.
    """

    name: ClassVar[str] = "sample"
    independence: ClassVar[int] = 0
    basis: ClassVar[str] = "measured"

    __str__ = Seeded.__str__

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        return slice_words(lambda words: self._hash_words(keys, words), functions, bits)

    def _hash_words(self, keys: Keys, words: int) -> Values:
        seeds = [self.seed, *(derive_seed(self.seed, f"word {w}") for w in range(1, words))]
        return np.stack([xxh64_of_long(keys ^ np.int64(s), SPARK_SEED) for s in seeds])

    def text(self, key: str) -> str:
        """The first word as SQL over a BIGINT column.

        The seed is the element of an array, which Spark compiles as a parameter, so that another seed needs no new
        code; a number would be part of the code, and an element at a constant place becomes a number.
        """
        return f"xxhash64({key} ^ array({self.seed}L)[CAST({key} & 0L AS INT)])"


def sample_family(seed: int, class_name: str) -> SampleHash:
    """The hash that decides which keys of a class are sampled."""
    return SampleHash(derive_seed(seed, f"sample {class_name}"))


def draw_family(seed: int, class_name: str, draw: int) -> SampleHash:
    """The hash of the numbers of tuples that decides which are drawn, another for each draw."""
    return sample_family(seed, f"{class_name} tuples {draw}")


def value_family(seed: int, class_name: str, number: int) -> SampleHash:
    """The hash of the numbers of tuples that decides which are drawn for their values, another for each draw."""
    return sample_family(seed, f"{class_name} values {number}")
