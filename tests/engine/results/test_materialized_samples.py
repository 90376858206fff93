"""Sums, averages and exact values over kept samples of one class."""

import math

import numpy as np
import pytest

from skimql.engine.results.materialized_samples import MaterializedSampleJoin, SampledWeight, times
from skimql.optimizer.plan import PlannedTerm
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate, exact
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec

RNG = np.random.default_rng(4)
FAMILY = make_family("tabulation", 3)
LEFT, RIGHT = RNG.integers(0, 400, 2_000), RNG.integers(0, 400, 1_500)
PAID = RNG.integers(1, 9, 1_500)
COUNT, SUM = (PlannedTerm(1.0, (0, 1)),), (PlannedTerm(1.0, (0, 2)),)
EACH = np.bincount(LEFT, minlength=400)[RIGHT]
TRUTHS = int(EACH.sum()), float(EACH @ PAID) / 10


def joined(capacity):
    left = KeySample(KeySampleSpec(FAMILY, capacity))
    left.update(LEFT, np.ones((1, LEFT.size), np.int64))
    right = KeySample(KeySampleSpec(FAMILY, capacity, ("count", "weight 1")))
    right.update(RIGHT, np.stack([np.ones_like(PAID), PAID]))
    return MaterializedSampleJoin(
        {
            0: SampledWeight(left, "count", 1.0, False),
            1: SampledWeight(right, "count", 1.0, False),
            2: SampledWeight(right, "weight 1", 10.0, False),
        }
    )


def test_samples_that_have_lost_no_key_are_exact():
    own, (count, total) = joined(1_000), TRUTHS
    assert own.known(COUNT) == count
    assert own.total(COUNT, 0.95) == exact(count)
    assert float(own.known(SUM)) == pytest.approx(total)
    assert float(own.ratio(SUM, COUNT, 0.95).value) == pytest.approx(total / count)
    assert math.isnan(own.ratio(SUM, (PlannedTerm(0.0, (0, 1)),), 0.95).value)


def test_a_sample_of_half_the_keys_covers():
    own, (count, total) = joined(200), TRUTHS
    assert own.known(COUNT) is None
    found = (
        own.total(COUNT, 0.95),
        own.total(SUM, 0.95),
        own.ratio(SUM, COUNT, 0.95),
        own.total([*COUNT, *SUM], 0.95),
    )
    for estimate, truth in zip(found, (count, total, total / count, count + total), strict=True):
        slack = (estimate.high - estimate.low) / 2
        assert estimate.low - slack <= truth <= estimate.high + slack
        assert estimate.value == pytest.approx(truth, rel=0.2)
        assert not estimate.exact


def test_bytes_of_a_sample_with_several_columns_are_counted_once():
    own = joined(200)
    assert own.nbytes == own.weights[0].sample.nbytes + own.weights[1].sample.nbytes


def test_a_negative_factor_turns_the_ends():
    found = times(Estimate(2.0, 1.0, 5.0, 0.95, True, "measured"), -2.0)
    assert (found.value, found.low, found.high) == (-4.0, -10.0, -2.0)


def test_distinct_values_are_not_asked_of_it():
    with pytest.raises(ValueError, match="not counted"):
        joined(200).distinct(None, 0.95)
