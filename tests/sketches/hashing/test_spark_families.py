"""Families that Spark computes itself: uniform enough, and their parts consistent."""

import numpy as np
import pytest

from skimql.sketches.hashing.spark_families import CountMin, Folded, XxHash64, java_integers

KEYS = np.arange(20_000, dtype=np.int64)


@pytest.mark.parametrize("family", [XxHash64(3), Folded(3), CountMin(3)])
def test_buckets_are_even_and_signs_balanced(family):
    values = family.values(KEYS, 3, 11)
    assert values.shape == (3, KEYS.size)
    assert (values < 1 << 11).all()
    for row in values:
        counts = np.bincount((row >> np.uint64(1)).astype(int), minlength=1024)
        assert abs(counts - KEYS.size / 1024).max() < 8 * (KEYS.size / 1024) ** 0.5
        assert abs(int((row & np.uint64(1)).sum()) - KEYS.size / 2) < 6 * (KEYS.size / 4) ** 0.5


def test_maps_of_the_fine_buckets_are_permutations():
    family = Folded(9, fine_bits=10)
    maps = family.maps(2)
    assert (np.sort(maps, axis=1) == np.arange(1 << 10)).all()
    assert ((family.fine_buckets(KEYS) >= 0) & (family.fine_buckets(KEYS) < 1 << 10)).all()


def test_java_draws_the_same_integers():
    # new Random(42).nextInt(10), five times
    assert java_integers(42, 5, 10) == [0, 3, 8, 4, 0]
