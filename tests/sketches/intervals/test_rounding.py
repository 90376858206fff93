"""How far rounding moves sums of doubles, and when they are shown as exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skimql.sketches.intervals.interval import Estimate, exact
from skimql.sketches.intervals.rounding import (
    CANCELS,
    MANY,
    root_sum_square,
    rounded,
    shown,
    slack_of,
    widened,
)


def test_the_slack_holds_every_order_of_adding():
    draw = np.random.default_rng(4)
    for scale in (1.0, 1e17):
        values = np.concatenate([draw.normal(size=50) * scale, draw.normal(size=50), [scale, -scale]])
        slack = slack_of(len(values), float(np.abs(values).sum()))
        sums = [sum(draw.permutation(values).tolist()) for _ in range(50)]
        assert max(abs(s - math.fsum(values)) for s in sums) <= slack


@pytest.mark.parametrize(
    ("value", "slack", "exactly", "note"),
    [
        (5.0, 0.0, True, ""),
        (5.0, 4e-9, True, ""),
        (5.0, 6e-9, False, MANY),
        (5.0, 1e-3, False, CANCELS),
        (0.0, 1e-9, False, CANCELS),
    ],
)
def test_sums_are_shown_as_exact_where_nine_digits_stand(value, slack, exactly, note):
    found = shown(rounded(value, slack))
    assert found.exact == exactly
    assert found.notes == ((note,) if note else ())
    assert found.certified
    assert found.high - found.low == (0 if exactly else pytest.approx(2 * slack))


def test_estimates_are_widened_only_where_rounding_shows():
    estimate = Estimate(5.0, 4.0, 6.0, 0.95, True, "theorem")
    assert widened(estimate, 1e-9) is estimate
    assert (widened(estimate, 0.5).low, widened(estimate, 0.5).high) == (3.5, 6.5)
    assert shown(widened(estimate, 0.5)) == widened(estimate, 0.5)


@pytest.mark.parametrize("scale", [5e-324, 2.0**-1000, 1.0, 2.0**1000])
def test_squares_add_up_at_any_magnitude(scale):
    values = np.array([3.0, -4.0, 0.0]) * scale
    assert root_sum_square(values) == 5 * scale
    assert root_sum_square(values, np.array([0.0, 0.25, 1.0])) == 2 * scale
    assert root_sum_square(values[2:]) == root_sum_square(values[:0]) == 0.0


def test_an_infinite_estimate_is_none():
    found = shown(Estimate(math.inf, math.inf, math.inf, 0.95, True, "theorem"))
    assert math.isnan(found.value)
    assert (found.low, found.high, found.certified) == (-math.inf, math.inf, False)
    assert shown(exact(math.inf)) == exact(math.inf), "where Spark has added up what is infinite"
