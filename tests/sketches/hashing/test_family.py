"""What a hash family is."""

import numpy as np
import pytest

from skimql.sketches.hashing.family import (
    SEED_LIMIT,
    as_keys,
    check_families,
    derive_seed,
    pack_bits,
    slice_words,
)
from skimql.sketches.hashing.xi import make_family


def test_derived_seeds_are_the_same_everywhere_and_differ_by_label():
    seeds = {derive_seed(7, label) for label in ("a", "b", "c")}
    assert len(seeds) == 3
    assert all(0 <= s < SEED_LIMIT for s in seeds)
    assert derive_seed(7, "a") == derive_seed(7, "a")


def test_bits_are_packed_lowest_first():
    bits = np.zeros((70, 2), np.uint64)
    bits[0, 0] = bits[65, 1] = 1
    assert pack_bits(bits).tolist() == [[1, 0], [0, 2]]


def test_words_are_cut_into_functions():
    words = slice_words(lambda n: np.array([[0xABCD]] * n, np.uint64), 4, 4)
    assert words.ravel().tolist() == [0xD, 0xC, 0xB, 0xA]


def test_keys_are_64_bit_integers_in_one_dimension():
    assert as_keys([1, 2]).dtype == np.int64
    with pytest.raises((ValueError, TypeError)):
        as_keys([[1.5]])


def test_only_families_pass_for_families():
    check_families("spec", (make_family("tabulation", 1),))
    with pytest.raises(TypeError):
        check_families("spec", ("tabulation",))
