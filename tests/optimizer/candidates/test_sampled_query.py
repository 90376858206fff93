"""Whether a sample of keys is worth its scan, before one is drawn."""

import math

import pytest

from skimql.optimizer.candidates.sampled_query import (
    Expected,
    Part,
    Work,
    expected_keys,
    first_rate,
    half_width,
    rate_for,
    work_of,
)
from skimql.optimizer.candidates.spending import MOST_RATE, MOST_SPENT

ORDERS = Part(1.5e6, keys=6e6, numbers=3)
LINES = Part(6e6, keys=6e6, numbers=4)


def sized(keys, error=0.1, unsure=2.0, work=None, least=1 / 32):
    return first_rate(Expected(keys, unsure), work or Work(), error, 0.97, least)


def test_as_many_keys_are_drawn_as_an_interval_takes_and_none_where_that_costs_more_than_all():
    assert sized(1e8).rate == 1 / 32
    some = sized(2e4)
    assert 1 / 32 < some.needed < some.rate <= MOST_RATE
    assert half_width(2e4, some.needed, 0.97) == pytest.approx(0.1)
    assert some.half_width < 0.1
    assert sized(2e3).rate == 1.0
    assert sized(2e4, error=0.02).rate == 1.0
    # The less is known of how many there are, the more are drawn, or all.
    rates = [sized(1e5, unsure=u).rate for u in (2.0, 8.0, 20.0, 1000.0)]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1] == 1.0
    # A scan that takes as long as the exact run is not begun.
    assert sized(1e8, work=Work(1.0, 0.1, 1.0)).rate == 1.0
    # Where few tuples are there each sample would be large.
    assert sized(1e8, least=0.5).rate == 1.0


def test_a_rate_gives_the_width_that_it_is_for():
    for keys in (10.0, 1e3, 1e6):
        for error in (0.01, 0.2):
            assert half_width(keys, rate_for(keys, error, 0.95), 0.95) == pytest.approx(error)
    assert half_width(100.0, 1.0, 0.95) == 0.0


def test_samples_take_little_more_than_the_exact_run_together():
    for work in (Work(), work_of((ORDERS, LINES)), Work(0.7, 0.3, 1.0)):
        for tried in ((1 / 32,), (0.2,), (1 / 32, 0.1)):
            following = work.most_next(tried)
            spent = sum(map(work.over_exact, (*tried, *((following,) if following else ()))))
            assert spent <= MOST_SPENT or not following
    assert Work().most_next((1 / 32,)) > 1 / 32
    assert Work(0.7, 0.3, 1.0).most_next((1 / 32,)) == 0.0


def test_a_scan_of_what_filters_leave_out_is_most_of_the_exact_run():
    kept = Part(6e6, share=0.005, keys=6e6, numbers=4, texts=1)
    assert work_of((ORDERS, kept)).over_exact(1 / 32) > 0.7
    assert work_of((ORDERS, LINES)).over_exact(1 / 32) < 0.5
    # Of one table that is filtered there is nothing to be saved, and its key is read beside.
    alone = Part(6e6, share=0.02, keys=6e6, numbers=4, key_beside=True)
    assert work_of((alone,)).over_exact(1 / 32) > 1.1
    # What is read as a whole is joined as a whole.
    assert work_of((ORDERS, Part(6e6, numbers=4))).over_exact(1 / 32) > 0.8


def test_keys_are_expected_by_what_tables_keep_of_their_tuples():
    assert expected_keys((ORDERS, LINES)).keys == 1.5e6
    # A filter on tuples of which a key has four leaves out few keys, one on those that are keys themselves its share.
    assert expected_keys((ORDERS, Part(6e6, share=0.5, keys=6e6))).keys == pytest.approx(1.5e6 * (1 - 0.5**4))
    assert expected_keys((Part(1.5e6, share=0.1, keys=6e6), LINES)).keys == pytest.approx(1.5e5)
    nation = Part(25, group=1 / 25)
    assert expected_keys((ORDERS, LINES, nation)).keys == pytest.approx(1.5e6 * (1 - (24 / 25) ** 4))
    assert expected_keys((nation,)) is None
    # The least group of what an outer join may leave out.
    outer = Part(6e6, group=0.1, keys=6e6, counts=False)
    assert expected_keys((ORDERS, outer)).keys == pytest.approx(1.5e5)
    assert expected_keys((Part(1e6, share=0.0, keys=1e6),)).keys == pytest.approx(100.0)
    known, beside = expected_keys((ORDERS, LINES)), expected_keys((ORDERS, LINES), unread=2)
    assert (beside.keys, beside.unsure) == (known.keys, 4 * known.unsure)
    assert math.isfinite(expected_keys((ORDERS,), unread_groups=1).keys)
