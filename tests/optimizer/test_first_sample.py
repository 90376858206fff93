"""The first sample of large tables: its class, its rate, and when the exact run is cheaper."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.optimizer.first_sample import (
    MOST_RATE,
    MOST_RESERVED,
    WANTED,
    Size,
    enlarged,
    first_sample,
    is_large,
)

SCHEMA = schema(
    table("l", ok="bigint", sk="bigint"), table("o", ok="bigint", ck="bigint"), table("c", ck="bigint")
)
GRAPH = query("SELECT APPROXIMATE COUNT(*) FROM c JOIN o ON c.ck = o.ck JOIN l ON o.ok = l.ok", SCHEMA).graph
TUPLES = (1.5e6, 15e6, 60e6)
LARGEST = TUPLES[-1]


def sample(c=1.0, o=1.0, scale=1.0, error=0.05):
    shares = (c, o, 1.0)
    return first_sample(GRAPH, [Size(t * scale, s) for t, s in zip(TUPLES, shares, strict=True)], error)


def test_the_class_of_the_two_largest_tables_is_sampled_for_so_many_joined_tuples():
    found = sample()
    assert found.joined == 1
    assert found.rate * LARGEST == pytest.approx(WANTED)
    assert len(found.row_rates) == 2


def test_half_the_error_takes_four_times_the_sample_until_the_exact_run_is_cheaper():
    assert sample(error=0.025).rate == pytest.approx(4 * sample().rate)
    assert sample(error=0.0001) is None


def test_one_filter_makes_the_rate_higher_by_what_it_keeps():
    assert sample(o=0.5).rate == pytest.approx(2 * sample().rate)


def test_several_filters_may_be_correlated_so_that_the_first_sample_is_larger():
    alone = WANTED / (LARGEST * 0.2 * 0.5)
    assert alone < sample(c=0.2, o=0.5).rate <= MOST_RESERVED * alone


def test_a_reserve_is_for_large_tables_only():
    """Of small ones it would cost more than a tenth of the scans."""
    small = sample(c=0.5, o=0.5, scale=0.02)
    assert small.rate == pytest.approx(WANTED / (0.02 * LARGEST * 0.25))


def test_filters_that_leave_little_get_the_highest_rate_and_those_that_leave_nothing_the_exact_run():
    assert sample(c=0.05, o=0.01).rate == MOST_RATE
    assert sample(c=0.002, o=0.01) is None


@pytest.mark.parametrize(
    ("tuples", "large"), [([1e6, 5.0], True), ([9e5, 9e5], False), ([None, 1e9], False), ([], False)]
)
def test_large(tuples, large):
    assert is_large(tuples) is large


def test_enlarged():
    assert enlarged(0.01, 2.0) == pytest.approx(0.01 * 4 * 1.4)
    assert enlarged(0.1, 2.0) is None
    assert enlarged(0.01, float("inf")) is None
