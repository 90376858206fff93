"""Quantiles of clustered values: 500 seeds within the binomial bound, open ends where nothing was met beyond."""

import math

import numpy as np
import pytest
from scipy import stats

from skimql.sketches.samples.cluster_quantiles import ClusteredValues

SEEDS = 500
SHARES = (0.5, 0.95)
VALUES = {
    "flat": lambda rng, own: rng.uniform(0.0, 100.0, len(own)),
    "zipf": lambda rng, own: rng.zipf(1.5, len(own)).astype(float),
    "heavy-tailed": lambda rng, own: rng.pareto(1.1, len(own)),
    "of each key": lambda rng, own: np.exp(own + 0.3 * rng.normal(size=len(own))),
}
KEYS, RATE = 600, 0.1
BOUND = stats.binom.isf(0.01 / (len(SHARES) * len(VALUES)), SEEDS, 0.05)


@pytest.mark.parametrize(
    ("values", "sizes"),
    [("flat", "alike"), ("zipf", "zipf"), ("heavy-tailed", "alike"), ("of each key", "zipf")],
)
def test_intervals_cover_as_they_promise(values, sizes):
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 6, KEYS) if sizes == "alike" else np.minimum(rng.zipf(2.0, KEYS), 100)
    key = np.repeat(np.arange(KEYS), counts)
    x = VALUES[values](rng, rng.normal(size=KEYS)[key])
    truths = [np.quantile(x, s, method="inverted_cdf") for s in SHARES]
    misses, known = np.zeros(len(SHARES)), 0
    for seed in range(SEEDS):
        kept = np.random.default_rng(seed).random(KEYS) < RATE
        met = kept[key]
        owners = np.cumsum(kept)[key[met]] - 1
        sample = ClusteredValues(x[met], owners, np.full(kept.sum(), RATE))
        found = [sample.quantile(s, 0.95, discrete=True) for s in SHARES]
        misses += [not e.low <= t <= e.high for e, t in zip(found, truths, strict=True)]
        known += math.isfinite(found[0].half_width)
    assert (misses <= BOUND).all(), misses
    assert known > 0.5 * SEEDS or (values, sizes) == ("of each key", "zipf")


def test_that_values_of_a_key_come_together_is_seen():
    """The planted bug: each value as if it had been drawn by itself."""
    rng = np.random.default_rng(4)
    key = np.repeat(np.arange(KEYS), rng.integers(1, 6, KEYS))
    x = VALUES["of each key"](rng, rng.normal(size=KEYS)[key])
    truth, misses = np.quantile(x, 0.5, method="inverted_cdf"), 0
    for seed in range(SEEDS):
        met = (np.random.default_rng(seed).random(KEYS) < RATE)[key]
        number = np.count_nonzero(met)
        found = ClusteredValues(x[met], np.arange(number), np.full(number, RATE)).quantile(0.5, 0.95)
        misses += not found.low <= truth <= found.high
    assert misses > BOUND


def test_a_quantile_beyond_what_was_met_has_no_end():
    sample = ClusteredValues(np.arange(40.0), np.arange(40), np.full(40, 0.1))
    assert sample.quantile(0.99, 0.95).high == math.inf
    assert sample.quantile(0.01, 0.95).low == -math.inf
    middle = sample.quantile(0.5, 0.95)
    assert middle.value == pytest.approx(19.5)
    assert middle.low < middle.value < middle.high
    assert not middle.certified


def test_values_that_are_known_stand_for_themselves_and_drawn_ones_for_others():
    values, owners = np.array([1.0, 2.0, 3.0, 100.0]), np.array([0, 0, 0, 1])
    sample = ClusteredValues(values, owners, np.array([1.0, 0.1]))
    assert sample.quantile(0.5, 0.95, discrete=True).value == 100.0
    assert ClusteredValues(values, owners, np.ones(2)).quantile(0.5, 0.95).value == 2.5


def test_nothing_that_was_met_tells_nothing():
    found = ClusteredValues(np.zeros(0), np.zeros(0, int), np.zeros(0)).quantile(0.5, 0.95)
    assert math.isnan(found.value)
    assert found.high == math.inf
