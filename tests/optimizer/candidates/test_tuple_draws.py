"""How many tuples are drawn beside a sample of keys."""

from __future__ import annotations

import math

import pytest

from skimql.optimizer.candidates.tuple_draws import (
    LEAST_HITS,
    MOST_HITS,
    MOST_RATE,
    MOST_WHOLE,
    PART,
    tuple_draws,
)


def test_what_is_not_met_is_a_small_part_of_the_asked_error():
    draws = tuple_draws([15e6, 60e6], 15e6, 60e6, 0.05)
    assert draws.largest(0.01) == pytest.approx(PART * 0.05 * 60e6, rel=0.2)
    assert draws.drawn == pytest.approx(15e6 * draws.rates[0] + 60e6 * draws.rates[1])
    assert draws.drawn < 0.05 * 75e6


def test_a_smaller_error_and_a_smaller_result_take_more_draws():
    usual = tuple_draws([15e6, 60e6], 15e6, 60e6, 0.05)
    assert tuple_draws([15e6, 60e6], 15e6, 60e6, 0.01).drawn > 2 * usual.drawn
    assert tuple_draws([15e6, 60e6], 15e6, 6e6, 0.05).drawn > 2 * usual.drawn


def test_small_tables_are_drawn_as_a_whole_and_of_others_a_quarter_at_most():
    draws = tuple_draws([MOST_WHOLE, 2e6], MOST_WHOLE, 2e6, 0.001)
    assert draws.rates[0] == 1.0
    assert draws.rates[1] <= MOST_RATE
    assert draws.caps[0] < draws.caps[1]


def test_where_one_table_cannot_have_as_many_draws_the_others_have_more():
    draws = tuple_draws([1.2e6, 60e6], 1.2e6, 60e6, 0.05)
    assert draws.rates[0] == MOST_RATE
    assert draws.largest(0.01) == pytest.approx(PART * 0.05 * 60e6, rel=0.2)


def test_keys_that_are_told_are_met_by_chance_as_often_as_their_tuples_are_drawn():
    """300,000 of 60 million tuples join 15 million: those of which nothing is known may be of as many keys."""
    blind = tuple_draws([15e6, 3e5], 3e5, 3e5, 0.05)
    told = tuple_draws([15e6, 3e5], 3e5, 3e5, 0.05, told=[15e6, 15e6], heaviest=[1.0, 16.0])
    assert told.hits < 0.7 * blind.hits
    assert told.caps[1] == 16.0


def test_keys_of_the_usual_number_of_tuples_are_not_met_often_enough_by_chance():
    few, many = tuple_draws([1e6, 1e6], 1e6, 1e6, 0.05), tuple_draws([1e6, 1e6], 1e4, 1e8, 0.05)
    assert LEAST_HITS <= few.hits < many.hits
    assert tuple_draws([1e6, 1e6], 1e4, 1e6, 0.05).hits > many.hits, (
        "the more are drawn, the more hits it takes"
    )


def test_empty_tables_are_no_error():
    assert tuple_draws([0.0, 0.0], 0.0, 0.0, 0.05).largest(0.25) > 0


def test_keys_of_many_tuples_are_evaluated_rather_than_reckoned_with_for_minutes():
    # Twenty keys of one table have a thousand tuples each: hits by the thousand took hours to be planned with.
    found = tuple_draws(
        [20_000.0, 14_000.0], 8_000.0, 20_000.0, 0.2, told=[17.0, math.inf], heaviest=[5e3, math.inf]
    )
    assert found.hits == MOST_HITS
    assert math.isfinite(found.largest(0.1))


def test_of_tables_whose_keys_are_counted_none_are_drawn():
    blind = tuple_draws([15e6, 60e6], 15e6, 1e6, 0.05)
    one = tuple_draws([15e6, 60e6], 15e6, 1e6, 0.05, counted=[1.0, math.inf])
    assert one.rates[0] == 0.0
    assert 0.0 < one.rates[1] < 0.1 * blind.rates[1]
    assert one.largest(0.1) <= PART * 0.05 * 1e6 * 1.2
    both = tuple_draws([15e6, 60e6], 15e6, 1e6, 0.05, counted=[1.0, 7.0])
    assert (both.rates, both.drawn, both.caps) == ((0.0, 0.0), 0.0, (1.0, 7.0))
    assert both.largest(0.01) == pytest.approx(700.0)
    small = tuple_draws([1e5, 60e6], 1e5, 1e6, 0.05, counted=[2.0, math.inf])
    assert (small.rates[0], small.caps[0]) == (0.0, 2.0), "not drawn as a whole either"
