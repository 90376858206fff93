"""Which tuples are drawn for their values: none where footers bound them well, few where a few carry the sum."""

from dataclasses import replace

import numpy as np
import pytest

from skimql.optimizer.candidates.tuple_draws import tuple_draws
from skimql.optimizer.candidates.value_draws import Summed, is_bounded, value_draws

TUPLES, LEFT, ERROR, RATE = (1e7, 5e6), 1e7, 0.05, 0.01
DRAWS = tuple_draws(TUPLES, 5e6, LEFT, ERROR)
RNG = np.random.default_rng(1)
FLAT, PARETO = RNG.normal(100, 15, 16_384), 100 * (1 + RNG.pareto(1.1, 16_384))


def draws(values, largest, error=ERROR, vertex=3):
    summed = Summed(vertex, "x", values, 0.0, largest)
    return summed, [d for _, d in value_draws([summed], (3, 5), TUPLES, LEFT, error, RATE, DRAWS)]


def test_values_that_footers_bound_near_their_mean_have_no_draw():
    assert draws(FLAT, 180.0)[1] == []


@pytest.mark.parametrize("largest", [1e9, np.inf])
def test_where_no_value_is_large_nothing_is_drawn_and_the_bound_is_a_part_of_the_asked_error(largest):
    summed, (draw,) = draws(FLAT, largest)
    assert summed.drawn(draw, TUPLES[0]) == 0.0
    unseen = max(draw.least * DRAWS.largest(RATE), draw.unit * DRAWS.largest_beside(0))
    assert unseen <= 0.26 * ERROR * LEFT * FLAT.mean()


def test_of_heavy_tails_no_more_are_drawn_than_can_be_read_and_the_bound_is_a_part_of_the_asked_error():
    summed, (draw,) = draws(PARETO, 1e12)
    assert 100 < summed.drawn(draw, TUPLES[0]) < 250_000
    unseen = max(draw.least * DRAWS.largest(RATE), draw.unit * DRAWS.largest_beside(0))
    assert unseen <= 0.13 * ERROR * LEFT * PARETO.mean()


def test_one_large_value_among_those_looked_at_changes_no_draw():
    alone = draws(PARETO, np.inf)[1]
    with_one = draws(np.r_[PARETO, 1e12], np.inf)[1]
    assert with_one[0].least == pytest.approx(alone[0].least, rel=0.1)


def test_what_nothing_is_known_of_and_tables_beyond_the_class_have_no_draw():
    assert draws(np.zeros(100), np.inf)[1] == []
    assert draws(FLAT[:0], np.inf)[1] == []
    assert draws(PARETO, np.inf, vertex=4)[1] == []


def test_a_sum_is_bounded_by_footers_or_by_what_is_drawn_for_it_alone():
    open_ended, drawn = draws(FLAT, np.inf)
    assert is_bounded([draws(FLAT, 180.0)[0]], (3, 5), [])
    assert is_bounded([open_ended], (3, 5), drawn)
    assert not is_bounded([open_ended], (3, 5), [])
    assert not is_bounded([replace(open_ended, vertex=5)], (3, 5), drawn)
    assert not is_bounded([replace(open_ended, alone=False)], (3, 5), drawn), "times what nothing bounds"


def test_values_of_which_a_part_is_no_double_have_no_draw():
    assert draws(PARETO * 1e-300, np.inf)[1] != []
    assert draws(PARETO * 1e-316, np.inf)[1] == []


def test_values_have_squares_or_are_told_to_have_none():
    assert draws(FLAT, 1e12)[0].has_squares
    assert draws(np.zeros(9), np.inf)[0].has_squares
    for scale in (1e-200, 1e200):
        assert not draws(FLAT * scale, np.inf)[0].has_squares
    assert not draws(FLAT, 1e200)[0].has_squares
