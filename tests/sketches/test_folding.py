"""Folding: the sums of one grouping give the very sketch that updating with the tuples gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import streams, theory

from skimql.sketches import folding, hash_sketch
from skimql.sketches.convolution import ConvolutionSpec
from skimql.sketches.interval import median_interval
from skimql.sketches.xi import make_family, spark_xxhash64

FAMILY = make_family("folded", 5, fine_bits=10)
KEYS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**40), 2**40)), max_size=30)


@pytest.mark.parametrize("buckets", [64, 50])
@settings(max_examples=25, deadline=None)
@given(KEYS)
def test_folded_sums_are_the_sketch(buckets, rows):
    spec = ConvolutionSpec((FAMILY,), 5, buckets)
    keys, weights = (np.array([r[i] for r in rows], dtype=np.int64) for i in range(2))
    direct = spec.empty()
    direct.update([keys], weights)
    folded = folding.fold(spec, folding.fine_sums(spec, keys, weights))
    assert folded.counters.tobytes() == direct.counters.tobytes()
    folded.update([keys], -weights)
    assert not folded.counters.any()


def test_what_an_engine_computes_from_spark_s_hash_alone():
    """The recipe in the family's notes, word for word, beyond the bits of the first word."""
    family = make_family("folded", 9, fine_bits=20)
    keys = np.arange(-50, 50)
    word = spark_xxhash64(9, keys)
    assert (family.fine_buckets(keys) == (word & np.uint64(2**20 - 1)).view(np.int64)).all()
    signs = family.values(keys, 60, 1)
    for f in range(44):
        assert family.sign_place(f) == (9, 20 + f)
        assert (signs[f] == word >> np.uint64(20 + f) & np.uint64(1)).all()
    for f in range(44, 60):
        seed, bit = family.sign_place(f)
        assert seed != 9
        assert (signs[f] == spark_xxhash64(seed, keys) >> np.uint64(bit) & np.uint64(1)).all()


def test_float_sums_fold_and_strange_ones_are_refused():
    spec = ConvolutionSpec((FAMILY,), 3, 64, "float64")
    sums = np.random.default_rng(1).normal(size=(3, 1024))
    folded = folding.fold(spec, sums)
    assert folded.counters.sum() == pytest.approx(sums.sum())
    integers = ConvolutionSpec((FAMILY,), 3, 64)
    with pytest.raises(OverflowError, match="folded sums"):
        folding.fold(integers, np.full((3, 1024), 2**61))
    with pytest.raises(ValueError, match="one for each row and fine bucket"):
        folding.fold(integers, np.zeros((3, 64), dtype=np.int64))
    with pytest.raises(ValueError, match="int64 weights"):
        folding.fold(integers, sums)
    with pytest.raises(ValueError, match="folded family"):
        folding.fold(ConvolutionSpec((make_family("xxhash64", 1),), 3, 64), sums)


def test_fine_buckets_outnumber_buckets_by_sixteen():
    assert folding.fine_bits_for(4096) == 16
    assert folding.fine_bits_for(1000) == 14
    assert folding.fine_bits_for(2) == 8


# Of the 8,128 pairs among 128 fine buckets, those that meet in row 0 (about 508 at 16 buckets) meet in row 1
# with chance 1/16: a binomial, bounded by FALSE_FAIL. Planted bug: one map shared by all rows.
def test_every_row_folds_by_a_map_of_its_own():
    first, second = (make_family("folded", 3, fine_bits=8).maps(2)[:, :128] & np.uint32(15)).astype(int)
    left, right = np.triu_indices(128, 1)
    met = first[left] == first[right]
    again = int((second[left] == second[right])[met].sum())
    assert met.sum() > 300
    assert again <= theory.most_misses(int(met.sum()), 1 / 16), (again, met.sum())


# Misses of [2nd, 10th] over 100 seeds, bounded by FALSE_FAIL at the nominal 1.2 %. Planted bug: the first
# function in the place of all others, so that rows repeat each other.
@pytest.mark.parametrize(("z", "shift"), [(0.5, 10), (1.0, 30)])
def test_folded_rows_cover_the_join_size(z, shift):
    f, g = streams.zipf(4000, z, 100_000), streams.zipf(4000, z, 100_000, shift)
    keys, truth, misses = np.arange(4000), float(f @ g), 0
    for seed in range(100):
        spec = ConvolutionSpec((make_family("folded", seed, fine_bits=13),), 11, 512)
        left, right = spec.empty(), spec.empty()
        left.update([keys], f)
        right.update([keys], g)
        estimate = median_interval(hash_sketch.join_size_rows(left, right), basis=spec.basis)
        misses += not estimate.low <= truth <= estimate.high
        assert estimate.basis == "measured"
    assert misses <= theory.most_misses(100, theory.order_statistic_miss(11, 2)), misses
