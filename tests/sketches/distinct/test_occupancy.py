"""The likelihood of how full a level sketch is: its maximum, its information, its interval."""

import math

import numpy as np
import pytest
from support.theory import most_misses

from skimql.sketches.distinct.occupancy import (
    BINARY_INFORMATION,
    TERNARY_INFORMATION,
    Occupancy,
    level_probabilities,
)

LEVELS = 24


def drawn(keys, buckets, rng, binary=False):
    """Occupancy of `keys` keys thrown at random."""
    probabilities = level_probabilities(LEVELS)
    tally = np.zeros((3, LEVELS), np.int64)
    for level, count in enumerate(rng.multinomial(keys, probabilities)):
        load = np.bincount(rng.integers(0, buckets, count), minlength=buckets)
        tally[:, level] = [(load == 0).sum(), (load == 1).sum(), (load > 1).sum()]
    seen = Occupancy(probabilities, *tally, np.zeros(LEVELS, np.int64))
    return seen.blurred() if binary else seen


def test_levels_take_all_keys():
    assert level_probabilities(24).sum() == 1
    assert level_probabilities(1).tolist() == [1]
    assert level_probabilities(4).tolist() == [0.5, 0.25, 0.125, 0.125]


def one_bucket(empty, single, multiple, occupied):
    return Occupancy(np.ones(1), *(np.array([n]) for n in (empty, single, multiple, occupied)))


@pytest.mark.parametrize("keys", [0.01, 0.7, 3.0, 12.0])
@pytest.mark.parametrize("binary", [False, True])
def test_information_is_the_mean_square_of_the_score(keys, binary):
    # All states of one bucket, exactly. The likelihood's slope is taken numerically, so formulas of score and
    # information are both checked against the probabilities themselves.
    p0, p1 = math.exp(-keys), keys * math.exp(-keys)
    states = [(p0, (1, 0, 0, 0)), (p1, (0, 1, 0, 0)), (1 - p0 - p1, (0, 0, 1, 0))]
    if binary:
        states = [(p0, (1, 0, 0, 0)), (1 - p0, (0, 0, 0, 1))]
    step = 1e-5
    mean_square = 0.0
    for probability, state in states:
        seen = one_bucket(*state)
        up, down = seen.log_likelihood(keys * math.exp(step)), seen.log_likelihood(keys * math.exp(-step))
        mean_square += probability * ((up - down) / (2 * step)) ** 2
        assert math.isclose(
            seen._scores(np.array([keys]))[0], (up - down) / (2 * step), rel_tol=1e-5, abs_tol=1e-8
        )
        assert math.isclose(seen.log_likelihood(keys), math.log(probability), rel_tol=1e-9)
    claimed = one_bucket(*states[-1][1]).information(keys)
    assert math.isclose(claimed, mean_square, rel_tol=1e-6)


def test_information_of_all_levels_is_the_stated_constant():
    # Sum over halving rates = integral over log2 of the rate, up to a ripple far below the tolerance.
    probabilities = np.exp2(-np.arange(1.0, 61.0))
    zeros = np.zeros(60, np.int64)
    ternary = Occupancy(probabilities, zeros + 1, zeros, zeros, zeros)
    binary = Occupancy(probabilities, zeros, zeros, zeros, zeros + 1)
    rates = np.exp2(20 + np.arange(32) / 32)
    assert math.isclose(np.mean([ternary.information(r) for r in rates]), TERNARY_INFORMATION, rel_tol=1e-5)
    assert math.isclose(np.mean([binary.information(r) for r in rates]), BINARY_INFORMATION, rel_tol=1e-5)
    assert math.isclose(1 / math.sqrt(BINARY_INFORMATION), 0.649, abs_tol=5e-4)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("keys", [40, 900, 30_000])
def test_maximum_is_where_no_other_number_is_likelier(keys, binary):
    seen = drawn(keys, 64, np.random.default_rng(keys), binary)
    best = seen.maximum_likelihood()
    top = seen.log_likelihood(best)
    for other in best * np.exp(np.linspace(-1, 1, 41)):
        assert seen.log_likelihood(other) <= top + 1e-9


def test_keys_seen_alone_are_counted_exactly():
    seen = one_bucket(50, 3, 0, 0)
    assert seen.exact
    assert seen.maximum_likelihood() == 3
    assert seen.interval(0.99) == (3, 3)


def test_full_cells_give_a_lower_end_only():
    full = one_bucket(0, 0, 64, 0)
    assert full.saturated
    low, high = full.interval(0.95)
    assert high == math.inf
    # 64 buckets all hold two keys or more with probability 2.5 %, if there are `low` keys.
    rate = low / 64
    assert math.isclose((1 - math.exp(-rate) * (1 + rate)) ** 64, 0.025, rel_tol=1e-6)
    assert full.maximum_likelihood() == math.inf


def test_confidence_is_checked():
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        one_bucket(1, 0, 1, 0).interval(1.0)


# 95 % intervals, 120 draws a case: a correct one misses more often than `most_misses` with chance 1e-6. Seen
# to fail with the likelihood over p_j = 2^-j. Leaving out the scaling of the deviance only widens the
# interval; the half-width of two to four standard errors in `test_interval_is_not_wide` holds that.
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("keys", [30, 250, 2_000, 40_000])
def test_interval_covers(keys, binary):
    rng = np.random.default_rng(17)
    misses = 0
    for _ in range(120):
        low, high = drawn(keys, 64, rng, binary).interval(0.95)
        misses += not low <= keys <= high
    assert misses <= most_misses(120, 0.05), f"{misses=}"


# Relative mean square error against 1 / information less the Poisson part. The square sum of 120 standard
# normal errors exceeds 1.74 * 120 with chance below 1e-6; a maximum over wrong probabilities (p_j = 2^-j) is
# off by a factor two and fails.
@pytest.mark.parametrize("binary", [False, True])
def test_error_is_what_the_information_says(binary):
    keys, buckets, rng = 40_000, 64, np.random.default_rng(5)
    estimates = np.array([drawn(keys, buckets, rng, binary).maximum_likelihood() for _ in range(120)])
    variance = 1 / drawn(keys, buckets, rng, binary).information(keys) - 1 / keys
    assert np.mean((estimates / keys - 1) ** 2) <= 1.74 * variance


# The median half-width of 60 draws, in standard errors of the estimate: 1.96 for a normal error. Without the
# scaling the case of 250 keys has 3.4 (seen).
@pytest.mark.parametrize("keys", [250, 40_000])
def test_interval_is_not_wide(keys):
    rng = np.random.default_rng(6)
    widths = []
    for _ in range(60):
        low, high = drawn(keys, 64, rng).interval(0.95)
        widths.append((high - low) / 2)
    error = keys * math.sqrt(1 / drawn(keys, 64, rng).information(keys) - 1 / keys)
    assert 1.7 < np.median(widths) / error < 2.4
