"""The first sample of large tables: its class, its rate, and when the exact run is cheaper."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.optimizer.candidates.first_sample import (
    MOST_RATE,
    NEEDED,
    RESERVE,
    UNSURE,
    UNSURE_BEYOND,
    UNSURE_FILTER,
    WORTH,
    Size,
    Together,
    enlarged,
    first_sample,
    is_large,
    is_worth_while,
    more_keys,
)
from skimql.optimizer.candidates.tuple_draws import PART, tuple_draws
from skimql.optimizer.candidates.value_draws import Summed
from skimql.optimizer.prediction.cost import Cost
from skimql.sketches.samples.dual_frame import DualFrame

SCHEMA = schema(
    table("l", ok="bigint", sk="bigint"), table("o", ok="bigint", ck="bigint"), table("c", ck="bigint")
)
GRAPH = query("SELECT APPROXIMATE COUNT(*) FROM c JOIN o ON c.ck = o.ck JOIN l ON o.ok = l.ok", SCHEMA).graph
TUPLES = (1.5e6, 15e6, 60e6)
KEYS = 15e6 * (1 - math.exp(-4))  # that 60M joined tuples have, of 15M


def sample(c=1.0, o=1.0, last=1.0, scale=1.0, error=0.05, values=math.inf, more=1.0):
    shares = (c, o, last)
    sizes = [Size(t * scale, s) for t, s in zip(TUPLES, shares, strict=True)]
    return first_sample(GRAPH, sizes, error, values, more=more)


def assert_enough(keys, needed):
    """As many keys as are needed, or some times twice as many, so that unseen ones may add less."""
    doubled = math.log2(keys / needed)
    assert doubled == pytest.approx(round(doubled), abs=0.35)
    assert -0.1 < doubled < 3.5


def test_the_class_of_the_two_largest_tables_is_sampled_for_the_keys_that_are_needed_and_a_reserve():
    found = sample()
    assert found.joined == 1
    assert found.rate * KEYS == pytest.approx(UNSURE * NEEDED * more_keys(1 / 8))
    assert len(found.row_rates) == 2


@pytest.mark.parametrize("tuples", [(0.0, 15e6, 60e6), (1.5e6, 0.0, 60e6), (0.0, 0.0, 1e6)])
def test_an_empty_table_asks_for_no_sample_or_a_whole_one(tuples):
    found = first_sample(GRAPH, [Size(t) for t in tuples], 0.05)
    assert found is None or 0.0 < found.rate <= MOST_RATE


def test_a_join_of_next_to_nothing_is_run_exactly():
    assert first_sample(GRAPH, [Size(t, 0.0) for t in TUPLES], 0.05) is None
    assert sample(values=1.0) is None


def test_half_the_error_takes_four_times_the_sample_until_the_exact_run_is_cheaper():
    assert sample(error=0.025).rate == pytest.approx(4 * sample().rate)
    assert sample(error=0.0001) is None


def test_what_a_filter_keeps_makes_the_rate_higher():
    left = 15e6 * 0.5
    keys = left * (1 - math.exp(-4))
    assert_enough(sample(o=0.5).rate * keys, UNSURE * NEEDED)


def test_fewer_distinct_keys_than_tuples_make_the_rate_higher():
    assert_enough(sample(values=1e6).rate * 1e6, UNSURE * NEEDED)
    assert sample(values=1e9).rate == sample().rate


def test_several_filters_may_be_correlated_so_that_the_first_sample_is_larger():
    one, two = sample(o=0.5), sample(o=0.5, last=0.5)
    keys = [7.5e6 * (1 - math.exp(-n)) for n in (4, 2)]
    assert two.rate * keys[1] > one.rate * keys[0]
    assert_enough(two.rate * keys[1], UNSURE * UNSURE_FILTER * NEEDED)
    assert_enough(sample(o=0.5, c=0.5).rate * keys[1], UNSURE * UNSURE_BEYOND * NEEDED)


def test_the_reserve_ends_where_it_costs_more_than_the_chance_that_it_is_needed():
    """Three correlated filters would ask for twenty times the keys: more than scanning once more is worth."""
    found = sample(c=0.9, o=0.9, last=0.9, error=0.01)
    keys = 13.5e6 * (1 - math.exp(-4 * 0.9**2))
    assert 25 * NEEDED < found.rate * keys < 0.9 * 25 * NEEDED * UNSURE * UNSURE_FILTER * UNSURE_BEYOND


def test_filters_that_leave_little_get_a_higher_rate_and_those_that_leave_less_the_exact_run():
    assert MOST_RATE >= sample(c=0.5, o=0.2).rate > 10 * sample().rate
    assert sample(c=0.05, o=0.01) is None, "what unmet keys may add would be too much"
    assert sample(c=0.002, o=0.01) is None


def test_a_count_draws_fewer_tuples_than_a_sum_to_which_an_unseen_key_may_add_more():
    sizes = [Size(0.0), Size(3e6), Size(6e6)]
    values = np.linspace(0.0, 200.0, 1000)
    count = first_sample(GRAPH, sizes, 0.05)
    summed = first_sample(GRAPH, sizes, 0.05, summed=(Summed(2, "x", values, 0.0, 200.0),))
    assert not summed.value_draws
    assert max(count.row_rates) < 0.8 * max(summed.row_rates)
    assert count.rate <= summed.rate


def test_the_less_sure_it_is_how_much_joins_the_less_is_left_to_unseen_keys():
    """Of fewer tuples it would be too large a part, and the exact run follow."""

    def part(found, joined):
        frame = DualFrame(found.rate, found.row_rates, found.hits, 3e6)
        return frame.largest_product() / (0.05 * joined)

    one, two = sample(o=0.5), sample(o=0.5, last=0.5)
    assert part(two, 15e6) < 0.7 * part(one, 30e6)
    assert two.over_exact > one.over_exact


def test_a_table_that_a_filter_leaves_little_of_is_drawn_as_a_whole_where_each_of_its_tuples_has_a_key_of_its_own():
    sizes = [Size(0.0), Size(15e6, 0.04), Size(60e6, 0.25)]
    found = first_sample(GRAPH, sizes, 0.05, told={1: 15e6, 2: 15e6})
    assert found.row_rates[0] == 1.0
    assert found.row_rates[1] < 0.15
    assert first_sample(GRAPH, sizes, 0.05) is None


def test_a_sample_of_more_keys_is_asked_for_where_what_they_add_varies_more():
    assert sample(more=2.0).rate == pytest.approx(2.0 * sample().rate)
    assert sample(more=2.0).over_exact > sample().over_exact
    assert sample(more=1e6) is None


@pytest.mark.parametrize("alone", [True, False])
def test_of_what_an_unseen_key_adds_to_sums_of_uneven_values_a_part_of_the_error_is_left(alone):
    """The largest product of the values of two tables is four times the mean one, or 400 times."""
    sizes = [Size(0.0), Size(3e7), Size(6e7)]
    even = Summed(1, "y", np.ones(100), 1.0, 1.0, alone)
    uneven = Summed(2, "x", np.linspace(0.0, 200.0, 1000), 0.0, 400.0, alone)
    found = first_sample(GRAPH, sizes, 0.05, summed=(even, uneven))
    frame = DualFrame(found.rate, found.row_rates, found.hits, 3e6)
    if alone:
        assert found.value_draws
    else:
        assert 4.0 * frame.largest_product() < 0.2 * 0.05 * 6e7
        flat = first_sample(GRAPH, sizes, 0.05, summed=(even,))
        assert max(found.row_rates) > 1.3 * max(flat.row_rates)
    # No draw of tuples is enough: of a product nothing else helps.
    far = first_sample(GRAPH, sizes, 0.05, summed=(even, replace(uneven, high=40_000.0)))
    assert far.value_draws if alone else far is None


def test_the_more_is_left_to_unseen_keys_the_more_keys_are_needed():
    assert more_keys(1 / 16) == 1.0
    assert more_keys(1 / 8) == pytest.approx(1.225, abs=0.01)
    assert more_keys(1 / 4) == pytest.approx(2.68, abs=0.02)
    assert more_keys(0.4) == more_keys(2.0) == math.inf


def test_tables_for_which_starting_jobs_is_dear_are_run_exactly():
    graph = query("SELECT APPROXIMATE COUNT(*) FROM o JOIN l ON o.ok = l.ok", SCHEMA).graph

    def least(**asked):
        sizes = ([Size(n), Size(2 * n)] for n in np.geomspace(3e5, 3e6, 200))
        return next(s[0].tuples for s in sizes if first_sample(graph, s, 0.05, **asked) is not None)

    assert least(jobs_count=False) <= least() < 1.5e6
    sizes = [Size(1.2e6), Size(2.4e6)]
    expected = first_sample(graph, sizes, 0.05).over_exact
    assert first_sample(graph, sizes, 0.05, jobs_count=False).over_exact < expected <= WORTH


@pytest.mark.parametrize(
    ("tuples", "large"), [([1e6, 5.0], True), ([9e5, 9e5], False), ([None, 1e9], False), ([], False)]
)
def test_large(tuples, large):
    assert is_large(tuples) is large


def test_enlarged():
    assert enlarged(0.01, 2.0) == pytest.approx(0.01 * 4 * RESERVE)
    assert enlarged(0.1, 2.0) is None
    assert enlarged(0.01, float("inf")) is None


def test_listing_groups_counts_where_a_large_table_is_grouped():
    def taken(scale, *grouped):
        sizes = [Size(t * scale) for t in TUPLES]
        return first_sample(GRAPH, sizes, 0.1, groups=3.0, grouped=grouped) is not None

    least = next(s for s in np.geomspace(0.01, 1, 60) if taken(s))
    assert taken(2.0 * least, 0)
    assert not taken(least, 0, 1)


def test_other_tables_are_asked_for_the_keys_of_large_values_and_that_costs(monkeypatch):
    values = 1 + np.random.default_rng(1).pareto(1.1, 16_384)
    summed, asked = [Summed(2, "x", values)], []

    def dear(tables):
        asked.append([t.tuples for t in tables])
        return Cost(1e6)

    found = first_sample(GRAPH, [Size(t) for t in TUPLES], 0.05, summed=summed)
    assert [d.member for d in found.value_draws] == [1]
    assert found.row_rates == sample().row_rates
    monkeypatch.setattr("skimql.optimizer.candidates.first_sample.asked_for_keys", dear)
    assert first_sample(GRAPH, [Size(t) for t in TUPLES], 0.05, summed=summed) is None
    assert asked[0] == [15e6]
    assert sample() is not None


def test_what_a_sample_is_expected_to_cost_grows_with_what_is_unsure_and_stays_below_the_exact_run():
    """A filter on a table beyond leaves it unsure how many keys contribute: more of them, or the scans once more."""
    sure, unsure = sample(), sample(c=0.9999)
    assert 0.0 < sure.over_exact < unsure.over_exact <= 1.0


@pytest.mark.parametrize(
    ("cost", "predicted", "taken"),
    [
        (0.3, 0.02, True),
        (0.3, 0.05, True),  # as likely as not to miss, and the exact run is three times as dear
        (0.6, 0.05, False),
        (0.3, 0.2, False),
        (0.3, math.inf, False),
        (0.95, 0.02, True),
        (0.95, 0.03, False),
        (0.95, math.nan, True),  # nothing speaks against it
        (math.nan, 0.2, True),
    ],
)
def test_a_sample_that_is_likely_to_be_followed_by_the_exact_run_is_not_taken(cost, predicted, taken):
    assert is_worth_while(replace(sample(), over_exact=cost), predicted, 0.05) is taken


def test_filters_that_are_known_to_go_together_leave_less_to_be_unsure_of():
    sizes = [Size(t, s) for t, s in zip(TUPLES, (1.0, 0.5, 0.3), strict=True)]
    blind = first_sample(GRAPH, sizes, 0.05)
    known = first_sample(GRAPH, sizes, 0.05, together=Together(1.0, 0.01))
    assert known.rate < 0.5 * blind.rate
    assert known.over_exact < 0.8 * blind.over_exact
    doubtful = first_sample(GRAPH, sizes, 0.05, together=Together(1.0, 5.0))
    assert doubtful == blind, "no surer than a factor of five each way"
    fewer = first_sample(GRAPH, sizes, 0.05, together=Together(0.5, 0.01))
    assert fewer.rate > 1.4 * known.rate
    assert sum(fewer.row_rates) > sum(known.row_rates)


def test_keys_are_counted_where_that_costs_less_than_drawing_tuples():
    sizes = [Size(t, s) for t, s in zip(TUPLES, (1.0, 0.5, 0.3), strict=True)]
    blind = first_sample(GRAPH, sizes, 0.05)
    one = first_sample(GRAPH, sizes, 0.05, countable={1: 1.0})
    assert one.counted == (1.0, math.inf)
    assert one.row_rates[0] == 0.0
    assert 0.0 < one.row_rates[1] < 0.1 * blind.row_rates[1]
    assert one.over_exact < 0.6 * blind.over_exact
    rare = [Size(t, s) for t, s in zip(TUPLES, (1.0, 0.2, 0.05), strict=True)]
    both = first_sample(GRAPH, rare, 0.05, countable={1: 1.0, 2: 8.0})
    assert both.over_exact <= min(
        f.over_exact for c in ({}, {1: 1.0}) if (f := first_sample(GRAPH, rare, 0.05, countable=c))
    )
    # Where a key has very many tuples, knowing how many is of no use.
    assert first_sample(GRAPH, sizes, 0.05, countable={1: 1e7, 2: 1e7}) == blind


def test_more_keys_are_sampled_where_what_unseen_ones_may_add_would_be_too_much():
    """That costs less than more draws where tables are filtered: few tuples are left to be sent."""
    sizes = [Size(t, s) for t, s in zip(TUPLES, (1.0, 0.2, 0.3), strict=True)]
    found = first_sample(GRAPH, sizes, 0.05)
    left = TUPLES[2] * 0.2 * 0.3
    draws = tuple_draws([TUPLES[1] * 0.2, TUPLES[2] * 0.3], TUPLES[1] * 0.2, left, 0.05, part=PART / 4.0)
    assert draws.largest(found.rate) < draws.largest(found.rate / 2.0)
    assert found.over_exact < 0.7
