"""Arithmetic in the two finite fields, against Python's integers."""

import numpy as np

from skimql.sketches.hashing.fields import P61, cubes, fold61, multiply61, multiply_gf2

RNG = np.random.default_rng(5)
A, B = RNG.integers(0, P61, (2, 200), dtype=np.uint64)


def test_products_modulo_the_mersenne_prime():
    assert fold61(multiply61(A, B)).tolist() == [int(a) * int(b) % P61 for a, b in zip(A, B, strict=True)]
    assert fold61(np.array([P61, P61 + 3, 0], np.uint64)).tolist() == [0, 3, 0]


def test_products_without_carries_commute_distribute_and_stay_within_the_field():
    a, b, c = RNG.integers(0, 1 << 8, (3, 50), dtype=np.uint64)
    assert (multiply_gf2(a, b, 8) == multiply_gf2(b, a, 8)).all()
    assert (multiply_gf2(a, b ^ c, 8) == multiply_gf2(a, b, 8) ^ multiply_gf2(a, c, 8)).all()
    assert (multiply_gf2(a, b, 8) < 256).all()


def test_cubes_are_products_of_three():
    i = np.arange(256, dtype=np.uint64)
    assert (cubes(8) == multiply_gf2(multiply_gf2(i, i, 8), i, 8)).all()
