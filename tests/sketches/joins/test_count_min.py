"""Hash sketches from what Spark's ``count_min_sketch`` returns."""

import struct

import numpy as np
import pytest

from skimql.sketches.hashing.spark_families import CountMin
from skimql.sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec
from skimql.sketches.joins.count_min import parameters, read

SPEC = ConvolutionSpec((CountMin(5),), 3, 64)


def serialized(counts, spec):
    """As Spark writes it: version, tuples, depth, width, a hash per row, the counts."""
    rows, columns = counts.shape
    head = struct.pack(">iqii", 1, int(counts[0].sum()), rows, columns)
    hashes = spec.families[0].multipliers(rows)
    return head + struct.pack(f">{rows}q", *hashes.tolist()) + counts.astype(">i8").tobytes()


def test_parameters_ask_for_a_counter_of_each_sign():
    eps, confidence = parameters(11, 4096)
    assert np.ceil(2 / eps) == 2 * 4096
    assert np.ceil(-np.log1p(-confidence) / np.log(2)) == 11


def test_bytes_of_other_hashes_or_sizes_are_refused():
    counts = np.zeros((3, 128), np.int64)
    with pytest.raises(ValueError):
        read(serialized(counts, SPEC)[:-3], SPEC)
    with pytest.raises(ValueError):
        read(serialized(np.zeros((2, 128), np.int64), SPEC), SPEC)


def test_the_sketch_is_that_of_the_same_tuples():
    keys = np.array([3, 3, 8, -1], np.int64)
    counts = np.zeros((3, 128), np.int64)
    for row, values in zip(counts, SPEC.families[0].values(keys, 3, 7), strict=True):
        np.add.at(row, values.astype(int), 1)
    told = read(serialized(counts, SPEC), SPEC)
    direct = ConvolutionSketch(SPEC)
    direct.update([keys])
    assert told.tuples == 4
    assert {n: a.tolist() for n, a in told.sketch(SPEC).state().items()} == {
        n: a.tolist() for n, a in direct.state().items()
    }
