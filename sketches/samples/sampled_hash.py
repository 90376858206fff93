"""The hashes that decide which keys and tuples are in a sample: the same in Spark and in numpy."""

from __future__ import annotations

from ..hashing.spark_families import XxHash64
from ..hashing.xi import derive_seed

# Of a hash that are compared with a rate.
HASH_BITS = 40


def sample_family(seed: int, class_name: str) -> XxHash64:
    """The hash that decides which keys of a class are sampled: the same in Spark and in numpy.

    Its seed is eight letters: XXH64 does not tell eight bytes of text from a BIGINT, and Spark compiles text as a
    parameter, so that another seed needs no new code.
    """
    digits = f"{derive_seed(seed, f'sample {class_name}'):016x}"[-8:]
    return XxHash64(int.from_bytes(digits.encode("ascii"), "little"))


def draw_family(seed: int, class_name: str, draw: int) -> XxHash64:
    """The hash of the numbers of tuples that decides which are drawn, another for each draw."""
    return sample_family(seed, f"{class_name} tuples {draw}")


def value_family(seed: int, class_name: str, number: int) -> XxHash64:
    """The hash of the numbers of tuples that decides which are drawn for their values, another for each draw."""
    return sample_family(seed, f"{class_name} values {number}")


def seed_text(family: XxHash64) -> str:
    """The letters of a seed of `sample_family`."""
    return family.seed.to_bytes(8, "little").decode("ascii")
