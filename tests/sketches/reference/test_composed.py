"""Composed bitmaps: what composing does, and what the levels say, against direct computation."""

import itertools
import math

import numpy as np
import pytest

from skimql.sketches.reference.composed import (
    _mean_clear,
    _mean_clear_given_both,
    compose,
    likely_size,
    likely_size_by_levels,
    pair_probability,
    window_size,
)


def test_composing_is_the_minimum_over_unequal_levels():
    # Every pair of bitmaps of three levels.
    every = np.array(list(itertools.product([False, True], repeat=3)))
    for a, c in itertools.product(every, every):
        expected = np.zeros(2, bool)
        for k, m in itertools.product(range(3), range(3)):
            if k != m and a[k] and c[m]:
                expected[min(k, m)] = True
        assert np.array_equal(compose(a, c), expected)


def test_chance_of_a_pair_and_of_two_with_a_common_value():
    # Levels below 40 of independent functions, added up. The paper's Theorem 3.1(2) claims independence of
    # pairs; two pairs with a common a meet on level j with 2^j times the product.
    chance = np.exp2(-np.arange(1.0, 41.0))
    above = np.cumsum(chance[::-1])[::-1] - chance
    for j in range(6):
        one = 2 * chance[j] * above[j]
        assert math.isclose(one, pair_probability(6)[j], rel_tol=1e-9)
        both = chance[j] * above[j] ** 2 + above[j] * chance[j] ** 2
        assert math.isclose(both / one**2, 2.0**j, rel_tol=1e-9)


def test_the_window_takes_the_highest_level_in_it_and_never_an_empty_one():
    bits = np.zeros((100, 5), bool)
    bits[:90, 0] = bits[:20, 1] = bits[:5, 2] = True
    assert window_size(bits, 0.25) == pytest.approx(0.05 / (2 * 4.0**-3))
    assert window_size(bits, 0.9) == pytest.approx(0.05 / (2 * 4.0**-3))
    with pytest.raises(ValueError, match="100 copies are too few"):
        window_size(bits[:, :1], 0.25)
    assert window_size(np.zeros((3, 4), bool), 0.25) == 0
    with pytest.raises(ValueError, match="epsilon"):
        window_size(bits, 1.0)


@pytest.mark.parametrize(("one", "other"), [(0.01, 3.0), (0.7, 0.9), (40.0, 2.0), (30_000.0, 1e-3)])
def test_chance_of_a_clear_bit(one, other):
    # Against the sum over both Poisson numbers, for the second one in closed form where the first is large.
    keep = np.array([0.999, 0.7, 0.1])
    n = np.arange(400) if one < 100 else np.arange(28_000, 32_000)
    log_p = n * math.log(one) - one - np.array([math.lgamma(x + 1) for x in n])
    direct = np.exp(log_p) / np.exp(log_p).sum() @ np.exp(-other * (1 - keep[None, :] ** n[:, None]))
    assert np.allclose(_mean_clear(one, other, keep), direct, rtol=1e-6)
    no_one, no_other = math.exp(-one), math.exp(-other)
    conditional = (direct - no_one - no_other + no_one * no_other) / ((1 - no_one) * (1 - no_other))
    assert np.allclose(_mean_clear_given_both(one, other, keep), conditional, rtol=1e-4, atol=1e-9)


def levels(n, copies, rng):
    return np.minimum(rng.geometric(0.5, (copies, n)) - 1, 11)


# 400 x 300 pairs of which 10 % join at random; 12 draws of 100 copies. Seen to fail: one order of levels
# only in `likely_size` (+60 %), the probabilities of empty levels left in by levels. Bounds: three times the
# measured mean error (6 % and 4 %).
def test_both_likelihoods_find_the_share_of_joining_pairs():
    rng = np.random.default_rng(4)
    errors = np.zeros((2, 12))
    for trial in range(12):
        joins = rng.random((400, 300)) < 0.1
        truth = joins.sum()
        by_a, by_c = levels(400, 100, rng), levels(300, 100, rng)
        grid = np.zeros((100, 12, 12), bool)
        for copy in range(100):
            a, c = np.nonzero(joins)
            grid[copy, by_a[copy, a], by_c[copy, c]] = True
        composed = np.zeros((100, 11), bool)
        for k, m in itertools.permutations(range(12), 2):
            composed[:, min(k, m)] |= grid[:, k, m]
        present = [np.stack([(by == j).any(axis=1) for j in range(12)], axis=1) for by in (by_a, by_c)]
        errors[0, trial] = likely_size(composed, 400, 300) / truth - 1
        errors[1, trial] = likely_size_by_levels(grid, *present, 400, 300) / truth - 1
    assert np.abs(errors[0]).mean() < 0.18
    assert np.abs(errors[1]).mean() < 0.12


def test_no_bit_no_pair_and_sizes_are_checked():
    nothing = np.zeros((4, 6), bool)
    assert likely_size(nothing, 10, 10) == 0
    assert likely_size_by_levels(np.zeros((4, 6, 6), bool), nothing, nothing, 10, 10) == 0
    for call in (
        lambda: likely_size(nothing, 0, 10),
        lambda: likely_size_by_levels(np.zeros((4, 6, 6), bool), nothing, nothing, 10, 0),
    ):
        with pytest.raises(ValueError, match="positive"):
            call()
