"""An easy start: one call for a sketch of named keys.

Two sketches can be joined, merged or compared if they were made with the same seed, the same name of the key and the
same sizes, on whatever machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from .distinct.level import LevelSpec
from .distinct.sparse_level import SparseLevelSketch
from .hashing.family import Family
from .hashing.xi import make_family
from .joins.agms import AgmsSketch, AgmsSpec
from .joins.convolution import ConvolutionSketch, ConvolutionSpec
from .joins.sparse import SparseFirstSketch
from .samples.key_sample import KeySample, KeySampleSpec


def make_hash_sketch(
    key: str = "key", *, seed: int = 0, rows: int = 11, buckets: int = 4096, dtype: str = "int64"
) -> ConvolutionSketch:
    """An empty hash sketch (Fast-AGMS) of one join key: join sizes, self-joins, frequencies.

    Parameters
    ----------
    key : str
        What the keys are, say "user": sketches to be joined name it alike.
    seed : int
        In [0, 2**63).
    rows, buckets : int
        11 rows or more for a certified interval of 95 %; the error falls with the square root of the buckets.
    dtype : str
        "int64": exact counters, for COUNT and sums of integers; "float64": for sums of doubles.

    Examples
    --------
    >>> make_hash_sketch("user", seed=7, buckets=1024)
    ConvolutionSketch(11 x 1024 int64 over tabulation(seed=7, key='user'), 0 tuples, 90,112 bytes)
    """
    return ConvolutionSpec((_family(seed, key),), rows, buckets, dtype).empty()


def make_convolution_sketch(
    keys: Sequence[str], *, seed: int = 0, rows: int = 11, buckets: int = 4096, dtype: str = "int64"
) -> ConvolutionSketch:
    """An empty sketch of a relation with several join keys, which stands between others in a chain or star of joins.

    Parameters
    ----------
    keys : sequence of str
        One name for each, all different; `update` takes an array for each, in this order.
    seed, rows, buckets, dtype
        As for `make_hash_sketch`; equal for all sketches of one query.
    """
    return ConvolutionSpec(_families(seed, keys), rows, buckets, dtype).empty()


def make_agms_sketch(
    keys: str | Sequence[str], *, seed: int = 0, s1: int = 512, s2: int = 11, dtype: str = "int64"
) -> AgmsSketch:
    """An empty AGMS sketch: `s2` averages of `s1` atomic sketches; slower to update than a hash sketch.

    Parameters
    ----------
    keys, seed, dtype
        As for `make_convolution_sketch`; one name may stand alone.
    s1, s2 : int
        64 averaged and 11 averages, or more, for a certified interval.
    """
    return AgmsSpec(_families(seed, [keys] if isinstance(keys, str) else keys), s1, s2, dtype).empty()


def make_exact_first(spec: ConvolutionSpec | AgmsSpec) -> SparseFirstSketch[ConvolutionSpec | AgmsSpec]:
    """An empty sketch that is an exact map of its keys until counters of this spec would be smaller."""
    return SparseFirstSketch(spec)


def make_level_sketch(key: str = "key", *, seed: int = 0, buckets: int = 1024) -> SparseLevelSketch:
    """An empty distinct count with deletions, exact while that is smaller.

    Parameters
    ----------
    key, seed
        As for `make_hash_sketch`; equal for sketches that meet in a set expression.
    buckets : int
        The relative standard error is 0.48 / sqrt(buckets).
    """
    return SparseLevelSketch(LevelSpec(_family(seed, key), buckets))


def make_key_sample(
    key: str = "key", *, seed: int = 0, capacity: int = 1024, columns: Sequence[str] = ("count",)
) -> KeySample:
    """An empty sample of keys with their exact weights, coordinated between relations.

    Parameters
    ----------
    key, seed
        As for `make_hash_sketch`.
    capacity : int
        Most keys kept.
    columns : sequence of str
        Names of the weights kept with each.
    """
    return KeySample(KeySampleSpec(_family(seed, key), capacity, tuple(columns)))


def _families(seed: int, keys: Sequence[str]) -> tuple[Family, ...]:
    return tuple(_family(seed, key) for key in keys)


def _family(seed: int, key: str) -> Family:
    return make_family("tabulation", seed).derive(key)
