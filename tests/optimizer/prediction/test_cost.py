"""Predicted CPU: joins know what they put out and on the way, groups what they keep."""

import pytest

from skimql.optimizer.prediction.cost import (
    BROADCAST_TUPLES,
    EXACT_JOIN_NS,
    MAP_ENTRY_NS,
    OUTPUT_NS,
    Input,
    distinct_synopses,
    duration_text,
    exact_groups,
    exact_join,
    listed_groups,
)

LARGE = Input(1e7, 1e7)
SMALL = Input(1e4, 1e4)


def seconds(*sizes, tables=(LARGE, LARGE)):
    return exact_join(tables, sizes).seconds


def test_a_join_costs_what_it_puts_out():
    assert seconds(1e12) - seconds(1e10) == pytest.approx(1e-9 * OUTPUT_NS * (1e12 - 1e10))


def test_a_join_costs_what_it_puts_out_on_the_way_and_joining_that_to_a_large_table():
    three = (LARGE, LARGE, LARGE)
    wide, narrow = seconds(1e9, 1e6, tables=three), seconds(1e6, 1e6, tables=three)
    assert wide - narrow == pytest.approx(1e-9 * (OUTPUT_NS + EXACT_JOIN_NS) * (1e9 - 1e6))


def test_small_tables_are_broadcast_whichever_side_they_are_on():
    for tables in ((LARGE, SMALL), (SMALL, LARGE)):
        assert seconds(1e7, tables=tables) < seconds(1e7) / 4
    # Spark looks at the table, not at what its filter keeps.
    assert seconds(1e7, tables=(LARGE, Input(1e4, 2 * BROADCAST_TUPLES))) > seconds(
        1e7, tables=(LARGE, SMALL)
    )


def test_a_table_whose_bytes_are_known_is_broadcast_by_these():
    few, many = (Input(SMALL.tuples, SMALL.scanned, nbytes) for nbytes in (1e6, 3e7))
    assert seconds(1e7, tables=(LARGE, few)) == seconds(1e7, tables=(LARGE, SMALL))
    assert seconds(1e7, tables=(LARGE, many)) > 4 * seconds(1e7, tables=(LARGE, few))
    long = Input(2 * BROADCAST_TUPLES, 2 * BROADCAST_TUPLES, 1e6)
    assert seconds(1e7, tables=(LARGE, long)) < seconds(1e7) / 4


def test_a_grouped_run_costs_more_than_its_join():
    assert exact_groups([LARGE, SMALL], [1e7], 100).seconds > exact_join([LARGE, SMALL], [1e7]).seconds
    assert exact_groups([LARGE], [], 100).seconds > listed_groups(LARGE, 100).seconds - 1e-9


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.25, "0.25 s"), (80.0, "80 s"), (3600.0, "60 minutes"), (9_000.0, "2.5 hours"), (4e7, "463 days")],
)
def test_durations_as_people_read_them(number, text):
    assert duration_text(number) == text


def test_what_exact_maps_hold_is_paid_for():
    without = distinct_synopses([LARGE], ["pairs"], 1)
    assert distinct_synopses([LARGE], ["pairs"], 1, 1e6).seconds == pytest.approx(
        without.seconds + 1e-3 * MAP_ENTRY_NS
    )
