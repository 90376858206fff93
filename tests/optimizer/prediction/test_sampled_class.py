"""The class of a sample by statistics: what its tables have, what hangs from them, how heavy a key may be."""

import math

import numpy as np
import pytest
from support.column_figures import chain, counted, exact_relation, figures_of

from skimql.optimizer.messages import JoinClass, JoinTree
from skimql.optimizer.prediction.figures import PerTuple
from skimql.optimizer.prediction.relation import Attribute
from skimql.optimizer.prediction.sampled_class import (
    behind,
    by_statistics,
    heaviest_known,
    heaviest_of_all,
)
from skimql.sketches.samples.known_keys import KnownKeys
from skimql.sketches.samples.two_level_plan import Candidates

FIRST, LEFT, RIGHT, LAST = np.array([[5, 0, 2, 1], [1, 4, 3, 2], [2, 2, 2, 4], [7, 1, 0, 3]])
NONE = np.empty(0, np.int64)


def test_every_table_hangs_from_the_table_of_the_class_on_its_way():
    assert behind(chain(5), 1) == {1: 0, 2: 1, 0: 0, 3: 1, 4: 1}
    star = JoinTree(5, (JoinClass("a", (0, 1, 3)), JoinClass("b", (2, 3)), JoinClass("c", (2, 4))))
    assert behind(star, 0) == {0: 0, 1: 1, 3: 2, 2: 2, 4: 2}
    assert behind(star, 2) == {2: 0, 4: 1, 3: 0, 0: 0, 1: 0}


def test_where_all_is_counted_the_class_has_its_moments():
    figures = figures_of(chain(3), [exact_relation(FIRST), exact_relation(LEFT, RIGHT), exact_relation(LAST)])
    found = by_statistics(figures, 0, (2, 0, 99), {})
    assert (found.vertices, found.behind) == ((0, 1), {0: 0, 1: 1, 2: 1})
    assert (found.tuples, found.heaviest) == ((8.0, 10.0), (5.0, 4.0))
    order = np.argsort(figures.cells(0).keys)
    assert found.keys.tuples[:, order].tolist() == [FIRST.tolist(), LEFT.tolist()]
    assert found.keys.squares[:, order].tolist() == [(FIRST**2).tolist(), (LEFT**2).tolist()]
    assert found.keys.dense[order].tolist() == [True, False, True, False]
    alone, joined = found.keys.messages
    assert alone == PerTuple(1.0, 1.0, 1.0)
    assert joined.mean == pytest.approx((RIGHT * LAST).sum() / RIGHT.sum())
    assert joined.square == pytest.approx((RIGHT * LAST**2).sum() / RIGHT.sum())
    assert joined.largest == 7.0


def test_without_a_bound_a_tuple_receives_at_most_what_the_heaviest_keys_on_the_way_make():
    sizes = counted(1000, 100), counted(500, 100, 500), counted(600, 600, 50), counted(400, 40)
    figures = figures_of(chain(4), sizes)
    assert figures.received(1, 0).largest == math.inf
    message = by_statistics(figures, 0, (), {}).keys.messages[1]
    # The table next to it has a key for each tuple; of the last, 400 tuples fall on 40 keys.
    assert message.largest == most_by_chance(40, 10.0)
    assert (message.mean, message.square) == (figures.received(1, 0).mean, figures.received(1, 0).square)


def most_by_chance(keys, mean):
    """The most tuples of one key that one in so many keys has more than, if their numbers are Poisson."""
    chances = np.array([math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(200)])
    return float(np.flatnonzero(1.0 - chances.cumsum() <= 1.0 / (keys + 1))[0])


@pytest.mark.parametrize(
    ("largest_other", "met", "probability", "fraction", "most"),
    [
        (6.0, (3, 90), 0.1, 1.0, 9.0),  # bounded: the listed key is heavier
        (12.0, (3, 90), 0.1, 1.0, 12.0),
        (math.inf, (3, 20), 0.1, 1.0, 21.0),
        (math.inf, (3, 20), 0.1, 0.5, 41.0),
        (math.inf, (3, 20), 1.0, 1.0, 20.0),  # all keys are met
        (math.inf, (3, 4), 0.1, 1.0, 9.0),
        (math.inf, (), 0.1, 1.0, most_by_chance(100, 10.0)),
    ],
)
def test_the_heaviest_key_is_bounded_listed_met_or_by_chance(largest_other, met, probability, fraction, most):
    pilot = None
    if met:
        size = len(met)
        pilot = KnownKeys(
            np.arange(size),
            np.array([met]),
            np.zeros(size, bool),
            probability,
            np.array([[0.0, math.inf]]),
            np.full(size, 0.01),
            np.array([math.nan]),
        )
    listed = Candidates(np.array([7]), np.array([-9]), largest_other)
    assert heaviest_known(Attribute(100.0, 1e4, listed, None, pilot, fraction), 1000.0) == most


def test_keys_that_are_met_once_each_are_taken_to_be_unique():
    pilot = KnownKeys(
        np.arange(3),
        np.ones((1, 3)),
        np.zeros(3, bool),
        0.1,
        np.array([[0.0, math.inf]]),
        np.full(3, 0.01),
        np.array([math.nan]),
    )
    unlisted = Candidates(NONE, NONE, math.inf)
    assert heaviest_known(Attribute(30.0, 30.0, unlisted, None, pilot), 30.0) == 1.0


def test_of_the_keys_that_a_pilot_has_not_met_one_may_be_heavier():
    met = np.r_[np.ones(80), np.full(16, 2), np.full(8, 3), np.full(4, 4)]
    pilot = KnownKeys(
        np.arange(met.size),
        met[np.newaxis],
        np.zeros(met.size, bool),
        1 / 16,
        np.array([[0.0, math.inf]]),
        np.full(met.size, 0.01),
        np.array([math.nan]),
    )
    unlisted = Candidates(NONE, NONE, math.inf)
    own = Attribute(1728.0, 2500.0, unlisted, None, pilot)
    # From the sixteen heaviest on a third has one tuple more than the others: of 16 times as many keys two to three.
    assert heaviest_known(own, 2000.0) == 5.0
    assert 5.0 < heaviest_of_all(own, 2000.0) < 8.0
    bounded = Attribute(1728.0, 2500.0, Candidates(NONE, NONE, 4.0), None, pilot)
    assert heaviest_of_all(bounded, 2000.0) == 4.0
    assert heaviest_of_all(Attribute(10.0, 10.0, unlisted, None, None), 10.0) == 1.0
