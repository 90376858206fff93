"""Deviations and correlations of clustered values: 500 seeds within the binomial bound, heavy tails unknown."""

import math

import numpy as np
import pytest
from scipy import stats

from skimql.sketches.samples.cluster_moments import Moments, estimate_moment

SEEDS = 500
FUNCTIONS = ("var_samp", "stddev_pop", "covar_samp", "corr")
VALUES = {
    "flat": lambda rng, n: rng.uniform(0.0, 100.0, n),
    "far from 0": lambda rng, n: 1e6 + rng.normal(size=n),
    "lognormal(1)": lambda rng, n: np.exp(rng.normal(size=n)),
    "lognormal(2)": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "pareto(1.5)": lambda rng, n: rng.pareto(1.5, n),
}
KEYS, RATE = 10_000, 0.1
# One of these cells fails by chance once in a hundred times.
BOUND = stats.binom.isf(0.01 / (len(FUNCTIONS) * len(VALUES)), SEEDS, 0.05)


def clustered(values, seed=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, KEYS)
    key = np.repeat(np.arange(KEYS), sizes)
    x = VALUES[values](rng, len(key))
    return sizes.astype(float), key, x, 0.5 * x + VALUES[values](rng, len(key))


def moments(sizes, key, x, y):
    means = np.array([np.bincount(key, x) / sizes, np.bincount(key, y) / sizes])
    dx, dy = x - means[0][key], y - means[1][key]
    squares = np.array([np.bincount(key, dx * dx), np.bincount(key, dy * dy), np.bincount(key, dx * dy)])
    return means, squares


@pytest.mark.parametrize("values", VALUES)
def test_intervals_cover_as_they_promise(values):
    sizes, key, x, y = clustered(values)
    means, squares = moments(sizes, key, x, y)
    truths = (x.var(ddof=1), x.std(), np.cov(x, y)[0, 1], np.corrcoef(x, y)[0, 1])
    misses, known = np.zeros(4), 0
    for seed in range(SEEDS):
        kept = np.random.default_rng(seed).random(KEYS) < RATE
        sample = Moments(sizes[kept], means[:, kept], squares[:, kept], np.full(kept.sum(), RATE))
        found = [estimate_moment(f, sample, 0.95) for f in FUNCTIONS]
        misses += [not e.low <= t <= e.high for e, t in zip(found, truths, strict=True)]
        known += math.isfinite(found[0].high)
    assert (misses <= BOUND).all(), misses
    # Of light tails a sample tells something, of tails without a variance nothing.
    assert (known > 0.1 * SEEDS) if values in list(VALUES)[:3] else (known < 0.02 * SEEDS)


def test_that_values_of_a_key_come_together_is_seen():
    """The planted bug: each value as if it had been drawn by itself, where those of a key are alike."""
    rng = np.random.default_rng(3)
    key = np.repeat(np.arange(KEYS), 5)
    x = rng.normal(size=KEYS)[key] + 0.3 * rng.normal(size=key.size)
    misses = 0
    for seed in range(SEEDS // 5):
        met = (np.random.default_rng(seed).random(KEYS) < RATE)[key]
        values, number = x[met], np.count_nonzero(met)
        apart = Moments(
            np.ones(number), np.array([values, values]), np.zeros((3, number)), np.full(number, RATE)
        )
        found = estimate_moment("var_pop", apart, 0.95)
        misses += not found.low <= x.var() <= found.high
    assert misses > stats.binom.isf(0.01, SEEDS // 5, 0.05)


def test_all_keys_in_the_sample_leave_the_value_as_it_is():
    sizes, key, x, y = clustered("flat")
    means, squares = moments(sizes, key, x, y)
    every = Moments(sizes, means, squares, np.full(KEYS, 1 - 1e-12))
    for function, truth in zip(FUNCTIONS, (x.var(ddof=1), x.std(), np.cov(x, y)[0, 1]), strict=False):
        assert estimate_moment(function, every, 0.95).value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_few_keys_and_values_without_a_spread_tell_nothing(function):
    few = Moments(np.ones(3), np.arange(6.0).reshape(2, 3), np.zeros((3, 3)), np.full(3, 0.5))
    same = Moments(np.ones(50), np.ones((2, 50)), np.zeros((3, 50)), np.full(50, 0.5))
    for moments_ in (few, same):
        found = estimate_moment(function, moments_, 0.95)
        assert (found.low, found.high) == (-math.inf, math.inf)
        assert not found.certified


def test_a_large_cluster_that_is_certain_says_nothing_of_tails():
    rng = np.random.default_rng(2)
    sizes, key = np.array([500.0, *np.ones(300)]), np.array([0] * 500 + list(range(1, 301)))
    x = rng.uniform(0, 10, 800)
    means, squares = moments(sizes, key, x, x + rng.uniform(0, 10, 800))
    sample = Moments(sizes, means, squares, np.array([1.0, *np.full(300, 0.1)]))
    assert all(math.isfinite(estimate_moment(f, sample, 0.95).high) for f in FUNCTIONS)
    assert estimate_moment("corr", sample, 0.95).low > 0
