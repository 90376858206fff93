"""Windows of event time: what WITH says of them, which panes they are made of, and what a watermark closes.

A pane is the greatest common divisor of window and slide: every window is a whole number of panes. Times are
microseconds since 1970-01-01 00:00:00 in UTC, of TIMESTAMP_NTZ those of its wall clock; windows begin at multiples of
the slide, as those of Spark do. So neither time zones nor daylight saving time change which events are in one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import StreamError
from ..catalog.streams import StoredStream

# In WITH.
WINDOW, SLIDE, TIME, WATERMARK, AHEAD = "window", "slide", "time", "watermark", "ahead"
WORDS = (WINDOW, SLIDE, TIME, WATERMARK, AHEAD)
TYPES = ("timestamp", "timestamp_ntz")
# Panes that a stream may have at once for views of one kind of windows.
MOST_PANES = 4096
# Python's calendar, the years 1 to 9999: what is outside is no time of an event.
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999

_MICROSECONDS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_DURATION = re.compile(rf"(\d+) ({'|'.join(_MICROSECONDS)})s?")
_MOST = 36_525 * 86_400_000_000
_AHEAD = "30 days"


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one stream in a view; views of equal windows have their panes in common.

    Attributes
    ----------
    time : str
        The column with the time of an event, as the stream spells it.
    length, slide : int
        Microseconds; tumbling windows have a slide of their length.
    delay : int
        How far the watermark is behind the newest event.
    ahead : int
        How far an event may be ahead of all before it; what is further is of a wrong clock.
    """

    time: str
    length: int
    slide: int
    delay: int
    ahead: int

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return math.gcd(self.length, self.slide)

    def lowest(self, latest: int | None) -> int | None:
        """The first pane that is kept once events up to `latest` have come in: of open windows, and of those that
        have closed within the length of one; None for all."""
        if latest is None:
            return None
        closed = latest - self.delay - self.length
        return ((closed - self.length) // self.slide + 1) * self.slide // self.pane

    def highest(self, latest: int | None) -> int | None:
        """The last pane that an event may be in; None where nothing tells."""
        return None if latest is None else (latest + self.ahead) // self.pane

    def closed(self, latest: int | None) -> int | None:
        """The watermark: windows that end there or before are closed."""
        return None if latest is None else latest - self.delay

    def starts(self, pane: int) -> range:
        """The starts of the windows that have a pane, the last first."""
        at = pane * self.pane
        return range(at // self.slide * self.slide, at - self.length, -self.slide)

    def panes(self, start: int) -> range:
        """The panes of the window that starts there."""
        return range(start // self.pane, (start + self.length) // self.pane)


def check_windows(settings: Mapping[str, str], sql: str) -> dict[str, str]:
    """What WITH says of windows, spelled in one way; nothing where there are none.

    Raises
    ------
    StreamError
        ``SKIMQL_BAD_SETTING``.
    """
    given = {w: settings[w] for w in WORDS if w in settings}
    if not given:
        return {}
    for word, way_out in ((WINDOW, "window = '1 hour'"), (TIME, "time = ts, a column of type TIMESTAMP")):
        if word not in given:
            raise bad_setting(f"{', '.join(given)} without {word}", f"WITH (..., {way_out})", sql)
    found = {TIME: given[TIME]}
    for word in (WINDOW, SLIDE, WATERMARK, AHEAD):
        default = {SLIDE: given[WINDOW], WATERMARK: "0 seconds", AHEAD: _AHEAD}.get(word, "")
        text = " ".join(given.get(word, default).lower().split())
        least = 0 if word == WATERMARK else 1
        if not least <= _duration(text) <= _MOST:
            raise bad_setting(
                f"{word} cannot be {given.get(word, default)!r}",
                f"{word} = '10 minutes': milliseconds, seconds, minutes, hours, days or weeks, up to 100 years",
                sql,
            )
        found[word] = text
    windows = _of(found, "")
    if windows.slide > windows.length:
        raise bad_setting("a slide that is longer than the window", "slide = '5 minutes' or shorter", sql)
    panes = (2 * windows.length + windows.delay) // windows.pane
    if panes > MOST_PANES // 2:
        raise bad_setting(
            f"windows of {panes:,} panes, the common divisor of window and slide; there may be {MOST_PANES // 2:,}",
            "a longer slide, or a shorter window or watermark",
            sql,
        )
    return found


def windows_of(settings: Mapping[str, str], stream: StoredStream, sql: str = "") -> Windows | None:
    """The windows of a stream in a view of checked settings; None of a view without windows.

    `time` names a column that every stream has, or one for each of them: ``time = 'a.ts, b.at'``.

    Raises
    ------
    StreamError
        ``SKIMQL_BAD_SETTING`` where the stream has no such column, or it is no time.
    """
    if WINDOW not in settings:
        return None
    named = [part.strip().replace("`", "") for part in settings[TIME].split(",")]
    own = [p for n in named for s, _, p in [n.rpartition(".")] if s.lower() in ("", stream.name.lower())]
    columns = [c for c in stream.columns if c.name.lower() in {o.lower() for o in own}]
    if len(columns) != 1:
        what = "more than one column" if columns else "no column"
        raise bad_setting(
            f"time = {settings[TIME]!r} names {what} of stream {stream.name}",
            f"time = '{stream.name}.ts', one of "
            + (", ".join(c.name for c in stream.columns if c.type in TYPES) or "type TIMESTAMP"),
            sql,
        )
    if columns[0].type not in TYPES:
        raise bad_setting(
            f"column {columns[0].name} of stream {stream.name} is of type {columns[0].type.upper()}, which is no time",
            f"CREATE OR REPLACE STREAM {stream.name} ({columns[0].name} TIMESTAMP, ...)",
            sql,
        )
    return _of(settings, columns[0].name)


def zone_of(windows: Mapping[str, Windows], streams: Sequence[StoredStream], sql: str = "") -> str | None:
    """The time zone that windows are shown in; None for those of wall clocks, and where there are none.

    Raises
    ------
    StreamError
        ``SKIMQL_BAD_SETTING`` where one stream has a moment and another the time of a wall clock.
    """
    kinds = {
        next(c.type for c in s.columns if c.name == windows[s.name.lower()].time): s.time_zone
        for s in streams
        if s.name.lower() in windows
    }
    if len(kinds) > 1:
        raise bad_setting(
            "time is TIMESTAMP in one stream and TIMESTAMP_NTZ in another", "one type for both", sql
        )
    return kinds.get("timestamp")


def bad_setting(message: str, hint: str, sql: str) -> StreamError:
    """The error for what WITH cannot say."""
    return StreamError(message, "SKIMQL_BAD_SETTING", sql, hint=hint)


def _of(settings: Mapping[str, str], time: str) -> Windows:
    return Windows(time, *(_duration(settings[w]) for w in (WINDOW, SLIDE, WATERMARK, AHEAD)))


def _duration(text: str) -> int:
    """Microseconds; -1 of what is no duration."""
    found = _DURATION.fullmatch(text)
    return -1 if found is None else int(found[1]) * _MICROSECONDS[found[2]]
