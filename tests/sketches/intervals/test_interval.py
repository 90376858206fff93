"""Intervals: ranks, clipping, ratios, and when an interval may not be called certified."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import theory

from skimql.sketches.intervals.interval import (
    TOO_FEW,
    Estimate,
    clip,
    collapse_notes,
    exact,
    median_interval,
    order_rank,
    ratio_interval,
    rows_for,
    uncertified,
)

ELEVEN = np.array([10.0, 1, 9, 2, 8, 3, 7, 4, 6, 5, 11])


@pytest.mark.parametrize(
    ("rows", "confidence", "k"), [(11, 0.95, 2), (11, 0.99, 1), (11, 0.9999, 0), (5, 0.95, 0), (30, 0.95, 10)]
)
def test_ranks_of_the_order_statistics(rows, confidence, k):
    assert order_rank(rows, confidence) == k


@given(st.integers(1, 60), st.floats(0.5, 0.999))
def test_the_rank_is_the_largest_that_keeps_the_confidence(rows, confidence):
    k = order_rank(rows, confidence)
    assert 0 <= k <= (rows + 1) // 2
    if k:
        assert theory.order_statistic_miss(rows, k) <= 1 - confidence + 1e-12
    if 2 * k < rows:
        assert theory.order_statistic_miss(rows, k + 1) > 1 - confidence - 1e-12


def test_eleven_rows_give_second_and_tenth():
    estimate = median_interval(ELEVEN)
    assert (estimate.value, estimate.low, estimate.high) == (6, 2, 10)
    assert estimate.certified
    assert estimate.basis == "theorem"
    assert estimate.notes == ()


def test_too_few_rows_are_not_certified_and_say_so():
    estimate = median_interval([3.0, 1, 2, 5, 4])
    assert (estimate.value, estimate.low, estimate.high) == (3, 1, 5)
    assert not estimate.certified
    assert any("5 rows" in note for note in estimate.notes)
    assert any("93.75%" in note and "takes 11 rows" in note for note in estimate.notes)
    certain = median_interval(ELEVEN, confidence=0.9995)
    assert (certain.low, certain.high, certain.certified) == (1, 11, False)
    assert f"takes {rows_for(0.9995)} rows" in certain.notes[0]


def test_even_numbers_of_rows_work():
    estimate = median_interval(np.arange(1.0, 13))
    assert (estimate.value, estimate.low, estimate.high) == (6.5, 3, 10)


def test_nonsense_is_refused():
    for confidence in (0.0, 1.0, -1.0, 95.0):
        with pytest.raises(ValueError, match="confidence"):
            median_interval(ELEVEN, confidence)
    with pytest.raises(ValueError, match="non-empty"):
        median_interval([])
    with pytest.raises(ValueError, match="as many"):
        ratio_interval([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="rests on"):
        Estimate(1, 0, 2, 0.95, True, "hope")
    with pytest.raises(ValueError, match="low to high"):
        Estimate(1, 2, 0, 0.95, True, "theorem")
    with pytest.raises(ValueError, match="above"):
        clip(exact(1), 2, 1)


def test_a_useless_width_is_noted():
    assert any("wider than the value" in n for n in median_interval(ELEVEN * 10 - 59).notes)
    assert median_interval(ELEVEN * 10 - 59).certified, "useless, and yet true"


def test_exact_values_keep_their_digits():
    estimate = exact(2**60 + 1)
    assert estimate.value == 2**60 + 1
    assert estimate.exact
    assert estimate.half_width == 0
    assert estimate.certified


def test_clipping_moves_what_is_impossible():
    clipped = clip(median_interval(ELEVEN - 6), 0.0, 3.0)
    assert (clipped.value, clipped.low, clipped.high, clipped.certified) == (0, 0, 3, True)
    missed = clip(median_interval(ELEVEN - 100), 0.0)
    assert (missed.value, missed.low, missed.high, missed.certified) == (0, 0, 0, False)
    assert "outside what is possible" in missed.notes[-1]
    nothing = clip(ratio_interval(ELEVEN, ELEVEN - 6), 0.0, 5.0)
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0, 5)


def test_reasons_take_the_certificate_away():
    estimate = median_interval(ELEVEN)
    assert uncertified(estimate) is estimate
    assert uncertified(estimate, "cyclic").notes == ("cyclic",)
    assert not uncertified(estimate, "cyclic").certified


def test_ratios_with_positive_denominators_are_order_statistics():
    estimate = ratio_interval(ELEVEN * 3.0, np.full(11, 3.0))
    assert (estimate.value, estimate.low, estimate.high) == (6, 2, 10)
    negative = ratio_interval(ELEVEN * -3.0, np.full(11, -3.0))
    assert (negative.value, negative.low, negative.high) == (6, 2, 10)


def test_denominators_that_change_sign_tell_nothing():
    denominator = np.where(np.arange(11) < 2, -1.0, 1.0)
    estimate = ratio_interval(ELEVEN, denominator)
    assert math.isnan(estimate.value)
    assert (estimate.low, estimate.high, estimate.certified) == (-math.inf, math.inf, False)
    assert TOO_FEW in estimate.notes
    assert math.isnan(ratio_interval(np.zeros(11), np.zeros(11)).value)


def test_equal_ratios_give_one_value():
    estimate = ratio_interval(ELEVEN * 2.0, ELEVEN)
    assert (estimate.value, estimate.low, estimate.high) == (2, 2, 2)


# The interval must hold exactly the mu that the rows do not reject: checked on a fine grid around it.
@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0.5, 5)), min_size=11, max_size=11),
    st.integers(0, 1),
)
def test_the_ratio_interval_is_the_hull_of_what_is_not_rejected(pairs, flips):
    top, bottom = (np.array(x) for x in zip(*pairs, strict=True))
    bottom[:flips] *= -1
    estimate, k = ratio_interval(top, bottom), 2
    grid = np.linspace(-12, 12, 4001)
    above = (top[:, None] - grid * bottom[:, None] > 0).sum(axis=0)
    kept = grid[(above >= k) & (above <= 11 - k)]
    if len(kept):
        assert estimate.low - 0.01 <= kept[0]
        assert kept[-1] <= estimate.high + 0.01
        assert estimate.low >= kept[0] - 0.01
        assert estimate.high <= kept[-1] + 0.01
    assert estimate.low <= estimate.value <= estimate.high


def test_collapsed_keys_and_few_buckets_are_noted():
    good = np.ones((11, 64))
    assert collapse_notes([good, np.ones((1, 1))]) == ()
    bad = good.copy()
    bad[4, 20:] = 0
    assert "20 buckets filled in one row, 64 in another" in collapse_notes([good, bad])[0]
    assert "8 buckets" in collapse_notes([np.ones((11, 8))])[0]
