"""What a kept sketch may be of."""

from dataclasses import replace

import pytest
from support.kept_kinds import of_kind

from skimql import UnsupportedQuery
from skimql.engine.materialized.definition import (
    both,
    changes,
    columns_read,
    is_zoned,
    refuse_unstable,
    unstable,
    weights_for,
)
from skimql.parser.join_graph import Column


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`d` < current_date", "current_date"),
        ("mine(`n`) > 1", "mine()"),
        ("`n` IN (SELECT 1)", "SELECT"),
        ("`now` > 'current_date'", None),
        ("`t` < current_time()", "current_time"),
        ("`d` < DATE 'today'", "'today'"),
        ("`d` = CAST(' Yesterday UTC' AS DATE)", "' Yesterday UTC'"),
        ("to_timestamp('now') > `at` AND `tomorrow` = 'it''s today'", "'now'"),
        ('`d` < DATE "today"', '"today"'),
        ("`s` = r'\\' AND `d` < current_date AND `t` = 'x'", "current_date"),
        ('`s` = "the user now"', None),
        ("`w` IN ('todays', 'it is today', 'epoch')", None),
        ("lower(`w`) = 'a'", None),
    ],
)
def test_what_has_another_value_tomorrow_is_found(text, found):
    assert unstable([None, text], lambda: ["mine"]) == found
    if found:
        with pytest.raises(UnsupportedQuery):
            refuse_unstable(text, [text], lambda: ["mine"])


def test_the_columns_that_a_sketch_reads_are_those_of_all_its_expressions():
    head = of_kind("s", "hash", groups=2).head
    head = replace(head, filter="`A``b` > '`x`' AND lower(`c d`) = 'y'")
    assert columns_read(head) == {"a`b", "c d", "k", "v", "g", "h"}


def test_the_time_zone_matters_to_dates_and_times():
    columns = [Column("at", "timestamp"), Column("n", "int")]
    assert is_zoned(["to_date(`at`)"], [], columns)
    assert not is_zoned(["`n` > 3"], ["int"], columns)


def test_filters_are_anded_and_schemas_compared():
    assert (both(None, "a"), both("a", None), both(None, None)) == ("a", "a", None)
    assert both("a OR b", "c") == "(a OR b) AND (c)"
    assert changes([Column("a", "int")], [Column("a", "int")]) == ()
    assert (
        len(changes([Column("a", "int"), Column("b", "int")], [Column("a", "bigint"), Column("c", "int")]))
        == 3
    )


def test_a_sum_takes_three_synopses_and_a_count_one():
    assert [len(weights_for(s)) for s in (None, "`v`")] == [1, 3]
