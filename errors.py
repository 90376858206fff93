"""What can go wrong, in the user's words.

Every error has a stable `code`, says what is wrong, where (line and caret) and what to do:

    error: join on '<' cannot be estimated; SkimQL joins on equality
      line 3:  WHERE o.key = l.key AND l.shipped < o.due
                                       ^^^^^^^^^^^^^^^^^
      try: EXACT SELECT ..., or filter one side in a view

`str(error)` is the whole message, caret included. Nothing here knows SQL or Spark.
"""

from __future__ import annotations

import os
import traceback
import unicodedata

TAB_WIDTH = 4
# Characters of a message that a terminal shows.
MOST_TOLD = 1500
# Control characters, halves of characters, line separators; and what turns the direction of the text around.
_UNPRINTABLE = frozenset(("Cc", "Cs", "Zl", "Zp"))
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class SkimqlError(Exception):
    """Base of all SkimQL errors.

    Parameters
    ----------
    message : str
        What is wrong, one sentence, no full stop.
    code : str
        Stable identifier such as ``SKIMQL_NON_EQUI_JOIN``; the class default if empty.
    sql : str
        The statement's text, if the mistake has a place in it.
    span : tuple of (int, int), optional
        Start and end offsets of the offending part in `sql`.
    hint : str
        The way out, shown behind ``try:``.
    """

    default_code = "SKIMQL_ERROR"

    def __init__(
        self,
        message: str,
        code: str = "",
        sql: str = "",
        span: tuple[int, int] | None = None,
        hint: str = "",
    ) -> None:
        message, hint = printable(message), printable(hint)
        super().__init__(message, code, sql, span, hint)
        self.message = message
        self.code = code or self.default_code
        self.sql = sql
        self.span = span
        self.hint = hint

    @property
    def line(self) -> int | None:
        """1-based line of the mistake in the statement, if it has a place."""
        if self.span is None or not self.sql:
            return None
        return self.sql.count("\n", 0, min(self.span[0], len(self.sql))) + 1

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message. The traceback is `__traceback__`, and shown with SKIMQL_DEBUG=1."""
        if os.environ.get("SKIMQL_DEBUG", "") not in ("", "0"):
            return "".join(traceback.format_exception(self)).splitlines()
        return str(self).splitlines()

    def __str__(self) -> str:
        return self.told()

    def told(self, columns: int | None = None) -> str:
        """The whole message; on a terminal of so many columns the part of a long line that has the mistake."""
        message = self.message
        if columns is not None and len(message) > MOST_TOLD:
            message = f"{message[:MOST_TOLD]} ... ({len(message) - MOST_TOLD:,} characters more)"
        lines = [f"error: {message}"]
        if self.span is not None and self.sql:
            lines += _caret_lines(self.sql, self.span, columns)
        if self.hint:
            lines.append(f"  try: {self.hint}")
        return "\n".join(lines)


class ParseError(SkimqlError):
    """The text is not a statement of the dialect."""

    default_code = "SKIMQL_PARSE_ERROR"


class UnsupportedQuery(SkimqlError):
    """The statement is understood, and no honest estimate of it can be given."""

    default_code = "SKIMQL_UNSUPPORTED_QUERY"


class UnknownName(SkimqlError):
    """A table, column or sketch that nobody registered."""

    default_code = "SKIMQL_UNKNOWN_NAME"


class AccuracyNotReached(SkimqlError):
    """The interval is wider than the asked error, and the behaviour is strict."""

    default_code = "SKIMQL_ACCURACY_NOT_REACHED"


class IncompatibleSketches(SkimqlError):
    """Two sketches of other seeds, sizes or families cannot be combined."""

    default_code = "SKIMQL_INCOMPATIBLE_SKETCHES"


class CorruptSketch(SkimqlError):
    """A stored sketch fails its checksum or its format."""

    default_code = "SKIMQL_CORRUPT_SKETCH"


class BudgetExceeded(SkimqlError):
    """The plan needs more memory than it may take."""

    default_code = "SKIMQL_BUDGET_EXCEEDED"


class StreamError(SkimqlError):
    """An event or a stream's state cannot be used."""

    default_code = "SKIMQL_STREAM_ERROR"


class DataError(SkimqlError):
    """A table's source cannot be read, or its values cannot be used as the query asks."""

    default_code = "SKIMQL_DATA_ERROR"


class EnvironmentFault(SkimqlError):
    """Java, Spark or Python on this machine is missing or unfit; `skimql doctor` says more."""

    default_code = "SKIMQL_ENVIRONMENT_FAULT"


def printable(text: str) -> str:
    """Text without characters that act on a terminal, each as its escape; line ends and tabs stay.

    For whatever stands in a file, be it a name, a path or what a library says of it, before anybody is shown it.
    """
    if text.isprintable():
        return text  # most are
    return "".join(_escaped(c) if _acts(c) else c for c in text)


def _acts(c: str) -> bool:
    return c in _TURNING or (c not in "\n\t" and unicodedata.category(c) in _UNPRINTABLE)


def _escaped(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"


def _caret_lines(sql: str, span: tuple[int, int], columns: int | None) -> list[str]:
    """The offending line with carets under the part of `span` that lies on it."""
    start = min(span[0], len(sql))
    end = max(start + 1, span[1])
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line_end = len(sql) if line_end < 0 else line_end
    line_number = sql.count("\n", 0, start) + 1
    before = sql[line_start:start].expandtabs(TAB_WIDTH)
    through = sql[line_start : min(end, line_end)].expandtabs(TAB_WIDTH)
    shown = sql[line_start:line_end].expandtabs(TAB_WIDTH).rstrip()
    before, through, shown = (printable(part) for part in (before, through, shown))
    prefix = f"  line {line_number}:  "
    room = None if columns is None else max(columns - len(prefix), 20)
    if room is not None and _columns(shown) > room:
        # Some of what stands in front, then as much as there is room for.
        cut = max(len(before) - room // 3, 0)
        cut, sign = (cut, "...") if cut > len("...") else (0, "")
        before, through, shown = (f"{sign}{part[cut:]}" for part in (before, through, shown))
        shown = _fitted(shown, room)
        through = through[: len(shown)]
    pad = " " * (len(prefix) + _columns(before))
    return [prefix + shown, pad + "^" * max(1, _columns(through) - _columns(before))]


def _fitted(text: str, room: int) -> str:
    """The text, cut where it takes more columns than there are."""
    if _columns(text) <= room:
        return text
    kept = 0
    while _columns(text[: kept + 1]) <= room - len("..."):
        kept += 1
    return f"{text[:kept]}..."


def _columns(text: str) -> int:
    """Terminal columns that `text` takes: wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
