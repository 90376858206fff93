"""A key sample with some keys apart that are known whether their hash is small or not: exactly where it is, else as the
sketch beside the sample weighs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...sketches.hashing.family import Family
from ...sketches.joins.convolution import ConvolutionSketch
from ...sketches.joins.skim import ROUNDS, frequencies
from ...sketches.samples.key_sample import KeySample
from ...sketches.samples.known_keys import KnownKeys

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Standard deviations of a counter, about eight of the estimate of a key, from which on it stands out.
SIGMAS = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class DenseApart:
    """A sample and the keys apart.

    Attributes
    ----------
    sample : KeySample
    keys : ndarray of int64, ascending
    weights : ndarray of float64, shape (columns, keys)
    """

    sample: KeySample
    keys: Ints
    weights: Floats

    @property
    def nbytes(self) -> int:
        """In-memory bytes of the sample."""
        return self.sample.nbytes

    @property
    def hashing(self) -> tuple[Family, int]:
        """See `KeySample.hashing`."""
        return self.sample.hashing

    def known(self, columns: Sequence[str]) -> KnownKeys:
        """The keys apart and the sampled ones with the weights of these columns, for `sample_join`."""
        rest = self.sample.known(columns)
        rows = [self.sample.spec.columns.index(c) for c in columns]
        other = ~np.isin(rest.keys, self.keys, assume_unique=True)
        keys = np.concatenate([self.keys, rest.keys[other]])
        order = np.argsort(keys, kind="stable")
        weights = np.concatenate([self.weights[rows], rest.weights[:, other]], axis=1)[:, order]
        certain = np.concatenate([np.ones(len(self.keys), bool), rest.certain[other]])[order]
        ranks = np.concatenate([self.sample.ranks(self.keys), rest.ranks[other]])[order]
        return KnownKeys(keys[order], weights, certain, rest.probability, rest.unseen, ranks, rest.totals)


def dense_in(sketch: ConvolutionSketch, candidates: Ints) -> Ints:
    """The candidates that stand out of a sketch, read again once the heaviest are taken out.

    Far out: of the many keys that a batch may tell, those whose estimates are too large would be taken before others.
    """
    residual, found = sketch.copy(), np.zeros(len(candidates), bool)
    while not found.all():
        estimates = frequencies(residual, [candidates])
        # Of few buckets one key alone may be most of what a counter is expected to hold.
        others = np.maximum(squares_in(residual) - np.square(estimates), 0.0)
        new = ~found & (np.abs(estimates) > SIGMAS * np.sqrt(others / residual.spec.buckets))
        if not new.any():
            break
        found |= new
        residual.update([candidates[new]], -np.rint(estimates[new]).astype(np.int64))
    return candidates[found]


def weighed(sketch: ConvolutionSketch, keys: Ints) -> tuple[Floats, float, ConvolutionSketch]:
    """Weights of keys by a sketch, their standard error, and the sketch without them."""
    residual, weights = sketch.copy(), np.zeros(len(keys), np.int64)
    for _ in range(ROUNDS if len(keys) else 0):
        change = np.rint(frequencies(residual, [keys])).astype(np.int64)
        residual.update([keys], -change)
        weights += change
    rows, buckets = residual.counters.shape
    error = math.sqrt(math.pi / 2 / rows * squares_in(residual) / buckets)
    return weights.astype(np.float64), error, residual


def squares_in(sketch: ConvolutionSketch) -> float:
    """The self-join size as the median of the rows tells it."""
    return float(np.median(np.square(sketch.counters.astype(np.float64)).sum(axis=1)))


def without(sketch: ConvolutionSketch, keys: Ints, weights: Ints) -> ConvolutionSketch:
    """A sketch without keys of known weights."""
    left, taken = sketch.copy(), type(sketch)(sketch.spec)
    taken.update([keys], weights)
    left.subtract(taken)
    return left
