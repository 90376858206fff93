"""What Spark refuses, as a mistake of ours: its place in the user's text, near names, without Spark's own codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ...errors import ParseError
from ...parser.spark_words import KEYWORDS
from ...parser.tokens import tokens

if TYPE_CHECKING:
    from ..context import Context

# The code of what Spark refuses.
REFUSED = "SKIMQL_SPARK_REFUSES"

_PLACE = re.compile(r"[;(]?\s*\bline (\d+),? pos (\d+)\)?[;.]?")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_MEANT = re.compile(r"\s*Did you mean one of the following\? \[(.*?)\]\.?")
_LOST = re.compile(r"table or view `([^`]+)` cannot be found", re.IGNORECASE)
_BACK_QUOTED = re.compile(r"unquoted identifier (\S+) is invalid and must be back quoted as: (`[^`]+`)")
_NAME = re.compile(r"`[^`]+`")


def refusal(said: str, sql: str, text: str, tables: Iterable[str] = ()) -> ParseError:
    """The error for what Spark said of `text`; `tables` are those that there are.

    The text is a part of the statement `sql`, or all of it with our words blanked out.
    """
    place, meant, bare = _PLACE.search(said), _MEANT.search(said), _BACK_QUOTED.search(said)
    message = said
    for told in (_PLACE, _STATE, _MEANT):
        message = told.sub("", message)
    span = None
    start = 0 if _is_blanked(text, sql) else sql.find(text)
    if place is not None and start >= 0:
        span = _word_at(sql, start + _offset(text, int(place[1]), int(place[2])))
    hint = ""
    if meant is not None:
        hint = ", ".join(_shortest(name) for name in meant[1].split(", ")[:3])
    elif bare is not None:
        hint = bare[2]
        at = sql.find(bare[1])
        span = (at, at + len(bare[1])) if at >= 0 else span
    elif lost := _LOST.search(said):
        hint = ", ".join(get_close_matches(lost[1].lower(), list(tables), 1, 0.7))
    elif span is not None and "yntax error" in said:
        word = sql[span[0] : span[1]].upper()
        hint = ", ".join(w for w in get_close_matches(word, KEYWORDS, 1, 0.75) if w != word)
    return ParseError(message.strip().rstrip(";").strip(), REFUSED, sql, span, hint)


def refuse_own_mistake(context: Context, sql: str, text: str) -> None:
    """Where Spark refused what was made of a text: refuse the text itself, if Spark does; both as of `refusal`.

    Raises
    ------
    ParseError
        As `refusal`.
    """
    from ..spark.session import SPARK_FAULTS, first_line

    try:
        context.spark.sql(text)
    except SPARK_FAULTS as fault:
        raise refusal(first_line(fault), sql, text, context.tables.at_hand()) from fault


def _is_blanked(text: str, sql: str) -> bool:
    return len(text) <= len(sql) and all(one in (" ", other) for one, other in zip(text, sql, strict=False))


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(one) + 1 for one in lines[: line - 1]) + column


def _word_at(sql: str, at: int) -> tuple[int, int] | None:
    """The name at a place with all its parts, or the token there."""
    found = tokens(sql)
    first = next((n for n, t in enumerate(found) if t.start <= at < t.end), None)
    if first is None:
        return (len(sql), len(sql) + 1) if at >= len(sql.rstrip()) else None
    last = first
    while (
        last + 2 < len(found) and found[last + 1].text == "." and found[last + 2].start == found[last + 1].end
    ):
        last += 2
    return found[first].start, found[last].end


def _shortest(name: str) -> str:
    """A name that Spark suggests, its parts without the quotes that they do not need."""
    parts = [p[1:-1] if re.fullmatch(r"`[A-Za-z_]\w*`", p) else p for p in _NAME.findall(name)]
    return ".".join(parts) if parts else name
