"""Keys that stand out of a sketch, what it weighs of them, and a sample that knows them."""

from __future__ import annotations

import numpy as np

from skimql.engine.streams.dense_apart import DenseApart, dense_in, weighed, without
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec

NONE = np.empty(0, np.int64)


def sketch_of(keys, weights):
    sketch = ConvolutionSketch(ConvolutionSpec((make_family("tabulation", 3),), 11, 60, "int64"))
    sketch.update([keys], weights)
    return sketch


def test_only_what_stands_far_out_of_a_sketch_is_apart():
    random = np.random.default_rng(2)
    flat = np.arange(3000)
    weights = random.integers(5, 15, 3000)
    sketch = sketch_of(flat, weights)
    assert dense_in(sketch, flat[:500]).size == 0
    assert dense_in(sketch, NONE).size == 0
    weights[[3, 40, 41]] = 60_000, -20_000, 7000
    assert dense_in(sketch_of(flat, weights), flat[:500]).tolist() == [3, 40, 41]
    found, error, left = weighed(sketch_of(flat, weights), np.array([3, 40, 41]))
    assert np.abs(found - weights[[3, 40, 41]]).max() < 4 * error < 2000
    assert np.abs(left.counters).max() < 5000
    assert np.count_nonzero(without(sketch, flat, weights[flat] * 0).counters - sketch.counters) == 0


def test_a_sample_with_keys_apart_knows_each_key_once():
    sample = KeySample(KeySampleSpec(make_family("tabulation", 1), 20, ("a", "b")))
    keys = np.arange(100)
    sample.update(keys, np.stack([keys + 1, 2 * keys]))
    apart = np.array([int(sample.keys[0]), int(np.setdiff1d(keys, sample.keys)[-1])])
    order = np.argsort(apart)
    known = DenseApart(sample, apart[order], np.stack([apart[order] + 1.0, apart[order] * 2.0])).known(["b"])
    assert known.keys.size == np.unique(known.keys).size == sample.keys.size + 1
    assert known.weights[0].tolist() == (2.0 * known.keys).tolist()
    assert known.keys[known.certain].tolist() == apart[order].tolist()
