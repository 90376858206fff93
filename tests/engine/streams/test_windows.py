"""Windows as numbers: what WITH says, which panes there are, what a watermark closes."""

from __future__ import annotations

import pytest
from support.continuous import stream_of

from skimql.engine.streams.windows import MOST_PANES, Windows, check_windows, windows_of, zone_of
from skimql.errors import StreamError

MINUTE = 60_000_000
GIVEN = {"window": "1 hour", "time": "ts"}


def test_panes_are_the_common_divisor_and_windows_are_whole_numbers_of_them():
    windows = Windows("ts", 15 * MINUTE, 10 * MINUTE, 0, MINUTE)
    assert windows.pane == 5 * MINUTE
    assert list(windows.starts(2)) == [10 * MINUTE, 0]
    assert list(windows.starts(3)) == [10 * MINUTE]
    # Before 1970 too.
    assert list(windows.starts(-1)) == [-10 * MINUTE]
    assert list(windows.panes(-10 * MINUTE)) == [-2, -1, 0]


@pytest.mark.parametrize("latest", [*range(-40, 200, 7)])
@pytest.mark.parametrize(("length", "slide", "delay"), [(15, 10, 0), (10, 10, 3), (12, 4, 30)])
def test_what_is_kept_are_the_panes_of_windows_that_closed_within_the_length_of_one(
    length, slide, delay, latest
):
    windows = Windows("ts", length, slide, delay, 1)
    low = windows.lowest(latest) * windows.pane
    shown = [s for s in range(-200 * slide, 100 * slide, slide) if s + length > latest - delay - length]
    assert low == min(shown)


def test_settings_are_spelled_in_one_way():
    found = check_windows({**GIVEN, "window": " 1  HOUR", "slide": "5 minutes", "sink": "x"}, "")
    assert found == {
        "window": "1 hour",
        "slide": "5 minutes",
        "watermark": "0 seconds",
        "ahead": "30 days",
        "time": "ts",
    }
    assert check_windows({"sink": "x"}, "") == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"window": "1 hour"},
        {"time": "ts"},
        {"slide": "5 minutes"},
        {**GIVEN, "window": "1 month"},
        {**GIVEN, "window": "0 seconds"},
        {**GIVEN, "window": "-1 hours"},
        {**GIVEN, "window": "101 years"},
        {**GIVEN, "window": "36526 days"},
        {**GIVEN, "slide": "2 hours"},
        {**GIVEN, "watermark": "soon"},
        {**GIVEN, "slide": "7 milliseconds"},
        {**GIVEN, "window": "1 second", "watermark": "30 days"},
    ],
)
def test_what_is_no_window_is_refused_with_a_way_out(settings):
    with pytest.raises(StreamError) as fault:
        check_windows(settings, "CREATE ...")
    assert (fault.value.code, bool(fault.value.hint)) == ("SKIMQL_BAD_SETTING", True)


def test_time_is_a_column_of_every_stream_or_one_of_each():
    a = stream_of("a", "k BIGINT, Ts TIMESTAMP")
    b = stream_of("b", "k BIGINT, at TIMESTAMP, ts BIGINT")
    c = stream_of("c", "ts TIMESTAMP_NTZ")
    settings = check_windows(GIVEN, "")
    assert windows_of(settings, a).time == "Ts"
    both = check_windows({**GIVEN, "time": "a.ts, B.at"}, "")
    assert (windows_of(both, a).time, windows_of(both, b).time) == ("Ts", "at")
    for stream, given in (
        (b, settings),
        (c, both),
        (a, {**settings, "time": "k"}),
        (b, {**settings, "time": "at, b.ts"}),
    ):
        with pytest.raises(StreamError) as fault:
            windows_of(given, stream)
        assert (fault.value.code, bool(fault.value.hint)) == ("SKIMQL_BAD_SETTING", True)
    assert zone_of({"a": windows_of(settings, a)}, [a]) == "UTC"
    assert zone_of({"c": windows_of(settings, c)}, [c]) is None
    with pytest.raises(StreamError, match="TIMESTAMP_NTZ"):
        zone_of({"a": windows_of(settings, a), "c": windows_of(settings, c)}, [a, c])


def test_there_may_be_as_many_panes_as_two_windows_and_the_delay_take():
    seconds = MOST_PANES // 4
    check_windows({"time": "ts", "window": f"{seconds} seconds", "slide": "1 second"}, "")
    with pytest.raises(StreamError):
        check_windows({"time": "ts", "window": f"{seconds + 1} seconds", "slide": "1 second"}, "")
