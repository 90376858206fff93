"""What was certified and covered too seldom: many rows of few counters, values with many partners, chosen groups."""

import math

import numpy as np
import pytest
from support.theory import fewest_hits

from skimql.sketches.distinct.join_distinct import HUBS, join_distinct
from skimql.sketches.distinct.pair_sample import PairSample, PairSampleSpec
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import averaged, exact, median_interval
from skimql.sketches.joins.agms import AgmsSpec
from skimql.sketches.joins.estimate import join_estimate
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.samples.known_keys import JoinTerms
from skimql.sketches.samples.sample_join import estimate_ratio, estimate_total

TRIALS = 1000
CONFIDENCE = 0.95


# The row of a self-join of many keys is a chi-square variable of as many degrees of freedom as it has counters. A
# correct 95 % interval holds fewer than `fewest_hits` of the truths with chance 1e-6 (916 of 1,000). Before: 0 to 65 %
# with 1,001 rows of 64 buckets and less; 0.92 with 101 and 220 rows of 64.
@pytest.mark.parametrize(
    ("rows", "buckets"), [(31, 64), (101, 64), (220, 64), (501, 64), (1001, 64), (1001, 256)]
)
def test_many_rows_of_few_buckets_cover(rows, buckets):
    x = np.random.default_rng(rows + buckets).chisquare(buckets, (TRIALS, rows)) / buckets
    found = [median_interval(averaged(row, buckets, CONFIDENCE), CONFIDENCE) for row in x]
    assert sum(f.low <= 1.0 <= f.high for f in found) >= fewest_hits(TRIALS, CONFIDENCE)
    # The value of very many rows errs no more than it is off at random; it did by 1 %.
    assert rows < 501 or abs(np.mean([f.value for f in found]) - 1) < 0.0035


@pytest.mark.parametrize(("rows", "buckets"), [(11, 64), (21, 64), (21, 4096), (101, 4096), (220, 8192)])
def test_usual_sizes_lose_nothing(rows, buckets):
    x = np.random.default_rng(1).random(rows)
    assert averaged(x, buckets, CONFIDENCE) is x


def test_rows_are_left_for_every_confidence():
    for confidence in (0.5, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9):
        found = median_interval(averaged(np.arange(2001.0), 64, confidence), confidence)
        assert found.certified


# Old code: covered 0.75 to 0.80 and certified (AGMS), 0.75 and certified (1,001 x 64).
def test_the_sketches_themselves_cover_where_they_are_certified():
    keys = np.arange(1000)
    seeds = 25
    for make, certified in (
        (lambda f: hash_spec(f, 1001, 64), True),
        (lambda f: AgmsSpec((f,), 2, 31), False),
        (lambda f: AgmsSpec((f,), 16, 101), False),
        (lambda f: AgmsSpec((f,), 64, 101), True),
    ):
        held = 0
        for seed in range(seeds):
            sketch = make(make_family("tabulation", seed).derive("k")).empty()
            sketch.update([keys])
            found = join_estimate([sketch, sketch], [(0, 1, 0, 0)])
            assert found.certified == certified, found
            held += found.low <= 1000 <= found.high
        assert held >= fewest_hits(seeds, CONFIDENCE), (make(make_family()), held)


def sample(values, partners, label, seed):
    made = PairSample(PairSampleSpec(make_family("tabulation", seed).derive(label), 64, 4096))
    made.update(values, partners)
    return made


# One in a hundred of 5,000 a has all 100 b, the others have one: a sample of 64 a without any such sees no sign of them.
def test_values_of_many_partners_are_no_surprise_to_a_certificate():
    a = np.arange(5000)
    hubs = np.arange(0, 5000, 100)
    values = np.concatenate([np.setdiff1d(a, hubs), np.repeat(hubs, 100)])
    partners = np.concatenate([np.setdiff1d(a, hubs) % 100, np.tile(np.arange(100), hubs.size)])
    c = np.arange(3000)
    truth = hubs.size * 3000 + (5000 - hubs.size) * 30
    found = [
        join_distinct(
            sample(values, partners, "a", seed), sample(c, c % 100, "c", seed), exact(5000), exact(3000)
        )
        for seed in range(30)
    ]
    # What was sampled alone covers in 12 of 30.
    assert sum(f.low <= truth <= f.high for f in found) >= fewest_hits(len(found), CONFIDENCE)
    assert all(f.certified for f in found)
    assert any(HUBS in f.notes for f in found)


def test_dense_joins_stay_certified():
    rng = np.random.default_rng(3)
    r, s = (np.nonzero(rng.random((2000, 30)) < 0.25) for _ in "rs")
    found = [
        join_distinct(sample(*r, "a", seed), sample(*s, "c", seed), exact(2000), exact(2000))
        for seed in range(10)
    ]
    assert sum(f.certified for f in found) >= 8


# Of one key, or of keys that all have the same average, the interval had no width: the average of others is unknown.
@pytest.mark.parametrize("tops", [[7.0], [0.0, 0.0, 0.0], [2.0, 4.0, 6.0]])
def test_an_average_that_no_key_differs_from_is_not_known_to_be_the_average_of_all(tops):
    bottoms = [max(t / 2, 1.0) for t in tops]
    sampled = np.full(len(tops), 0.1)
    unseen = np.array([[-math.inf, math.inf]] * 2)
    terms = JoinTerms(np.arange(len(tops)), np.array([tops, bottoms]), sampled, unseen)
    found = estimate_ratio(terms, CONFIDENCE)
    assert (found.low, found.high, found.certified) == (-math.inf, math.inf, False)
    terms = JoinTerms(np.arange(3), np.array([[2.0, 4.0, 5.0], [1.0, 2.0, 3.0]]), np.full(3, 0.1), unseen)
    assert math.isfinite(estimate_ratio(terms, CONFIDENCE).high)


# It was [0, 0], beside a COUNT of hundreds.
def test_a_sum_of_which_nothing_was_drawn_has_no_interval_of_no_width():
    sampled, unseen = np.full(3, 0.1), np.array([[-math.inf, math.inf]])
    found = estimate_total(JoinTerms(np.arange(3), np.zeros((1, 3)), sampled, unseen), CONFIDENCE)
    assert (found.low, found.high, found.certified) == (-math.inf, math.inf, False)
    bounded = JoinTerms(np.arange(3), np.zeros((1, 3)), sampled, np.array([[0.0, 50.0]]))
    found = estimate_total(bounded, CONFIDENCE)
    assert found.certified
    assert found.high > 50.0
