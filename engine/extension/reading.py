"""What Spark's parser has refused: whether it is ours, and the text that Spark is to read in its place.

A statement of ours becomes a call of a table function, ``SELECT*FROM __skimql(7)``, laid over its own text so that the
rest keeps its lines and columns. Where Spark keeps the text, in a view, the call holds the whole SELECT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ...errors import SkimqlError, UnsupportedQuery
from ...parser.compound import is_script, parts_of
from ...parser.embedded import (
    Embedded,
    Marker,
    embedded,
    in_place_of,
    inserts,
    is_explained,
    markers,
    stored_as,
    unquoted,
)
from ...parser.join_graph import Span
from ...parser.lexing import blank
from ...parser.script import without_comments
from ...parser.statement import ApproximateSelect, ExactSelect, PassThrough, SetOption, parse_statement
from ...parser.syntax import Statement

# Without one of these a text that Spark refuses is none of ours, whatever else is wrong with it.
_WORDS = re.compile(
    r"\bSELECT\s+APPROX(?:IMATE)?\b|\bERROR\s+WITHIN\b|\bWITH\s+ERROR\s+[.\d]|\bESTIMATE\s+ROWS\b|\bEXACT\s+(?:SELECT|WITH)\b"
    r"|^\s*\w+\s+(?:OR\s+REPLACE\s+)?(?:SKETCH(?:ES)?|STREAMS?|CONTINUOUS|QUERIES)\b|^\s*(?:PAUSE|RESUME|TERMINATE)\b",
    re.IGNORECASE,
)
# A column may be called approx: what is estimated has an aggregate.
_NAME_ALONE = re.compile(r"^\s*SELECT\s+APPROX(?:IMATE)?\b", re.IGNORECASE)
# More parts of one text than numbers are kept for.
MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class Read:
    """What Spark reads in place of a text, and what the numbers in it ask for."""

    text: str
    requests: dict[int, dict[str, Any]] = field(default_factory=dict)


def read(text: str, first: int) -> Read | None:
    """What Spark is to read in place of a text; None where nothing in it is ours.

    Parameters
    ----------
    text : str
        Refused by Spark, or one of those that Spark would take for something else.
    first : int
        The first number that is free for a request.

    Raises
    ------
    SkimqlError
        For a text of ours that cannot be read, or that cannot stand where it does.
    """
    try:
        without_comments(text)
    except SkimqlError:
        return None
    return _script(text, first) if is_script(text) else _statement(text, first)


def _script(text: str, first: int) -> Read | None:
    """A script, part by part: each is read as if it stood alone."""
    made = text
    requests: dict[int, dict[str, Any]] = {}
    # From behind, so that the places in front stay where they are.
    for part in reversed(parts_of(text)):
        alone = blank(blank(text, Span(part.end, len(text))), Span(0, part.start))
        try:
            found = _statement(alone, first + len(requests))
        except SkimqlError as fault:
            if fault.sql == alone:
                fault.sql = text
            raise
        if found is not None:
            behind = len(text) - part.end
            made = made[: part.start] + found.text[part.start : len(found.text) - behind] + made[part.end :]
            requests |= {number: {**asked, "text": text} for number, asked in found.requests.items()}
        if len(requests) > MOST_PARTS:
            raise _too_many(text)
    return Read(made, requests) if made != text else None


def _statement(text: str, first: int) -> Read | None:
    visible, semicolons = without_comments(text)
    plain = unquoted(text)
    if not _WORDS.search(plain) or (_NAME_ALONE.search(plain) and "(" not in plain):
        return None
    end = semicolons[0] if semicolons else len(visible)
    whole = Span(len(visible) - len(visible.lstrip()), len(visible[:end].rstrip()))
    parameters = markers(text, whole)
    refused: SkimqlError | None = None
    statement: Statement = PassThrough(text)
    try:
        statement = parse_statement(_without(text, parameters))
    except SkimqlError as fault:
        refused = fault
    if isinstance(statement, ExactSelect):
        return Read(_blank_exact(text))
    if not isinstance(statement, (PassThrough, ApproximateSelect, SetOption)):
        return _replaced(text, whole, _request(text, whole, parameters, "statement"), first)
    if isinstance(statement, ApproximateSelect) and not inserts(text):
        return _replaced(text, whole, _request(text, whole, parameters, ""), first)
    parts = embedded(text)
    if not parts or (refused is not None and not parameters and _is_whole(parts, whole)):
        # With parameters a text may not be one of ours until they have values.
        if refused is not None and not parameters:
            raise refused
        return (
            None
            if refused is None
            else _replaced(text, whole, _request(text, whole, parameters, "statement"), first)
        )
    if refused is not None and refused.code == "SKIMQL_SEVERAL_STATEMENTS":
        raise refused
    if len(parts) > MOST_PARTS:
        raise _too_many(text)
    return _with_parts(text, parts, first)


def _with_parts(text: str, parts: tuple[Embedded, ...], first: int) -> Read:
    stored = stored_as(text)
    purpose = "explain" if is_explained(text) else ""
    requests = {}
    # From behind, so that the places in front stay where they are.
    for number, part in reversed(list(enumerate(parts, first))):
        parameters = markers(text, part.span)
        if stored == "function":
            raise UnsupportedQuery(
                "a function of Spark's cannot hold a SELECT APPROXIMATE",
                "SKIMQL_INNER_APPROXIMATE",
                text,
                (part.span.start, part.span.end),
                "CREATE VIEW, or EXACT SELECT ... in the function",
            )
        if stored:
            refuse_parameters(text, parameters)
            inner = text[part.span.start : part.span.end]
            call = f"SELECT * FROM skimql_answer({_literal(inner)}, '{stored}')"
            text = text[: part.span.start] + call + text[part.span.end :]
            continue
        requests[number] = _request(text, part.span, parameters, purpose, part.is_relation)
        text = in_place_of(text, part.span, _call(number, parameters))
    return Read(text, requests)


def _replaced(text: str, span: Span, request: dict[str, Any], first: int) -> Read:
    parameters = [Marker(Span(s, e), name) for s, e, name in request["markers"]]
    return Read(in_place_of(text, span, _call(first, tuple(parameters))), {first: request})


def _request(
    text: str, span: Span, parameters: tuple[Marker, ...], purpose: str, bounds: bool = True
) -> dict[str, Any]:
    return {
        "text": text,
        "start": span.start,
        "end": span.end,
        "markers": [(m.span.start, m.span.end, m.name) for m in parameters],
        "purpose": purpose,
        "bounds": bounds,
    }


def _call(number: int, parameters: tuple[Marker, ...]) -> list[str]:
    """The call of the table function, in pieces between which a line may end."""
    marked = [f",{'?' if m.name is None else ':' + m.name}" for m in parameters]
    return ["SELECT*FROM ", f"__skimql({number}", *marked, ")"]


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def refuse_parameters(text: str, parameters: tuple[Marker, ...]) -> None:
    """Refuse parameters where Spark would not put their values.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_PARAMETERS``.
    """
    if parameters:
        span = parameters[0].span
        raise UnsupportedQuery(
            "a view is kept as a text, without the values of its parameters",
            "SKIMQL_PARAMETERS",
            text,
            (span.start, span.end),
            "the value itself",
        )


def _without(text: str, parameters: tuple[Marker, ...]) -> str:
    """The text with a number for each parameter, to see what statement it is."""
    for marker in parameters:
        wide = marker.span.end - marker.span.start
        text = text[: marker.span.start] + "1".ljust(wide) + text[marker.span.end :]
    return text


def _is_whole(parts: tuple[Embedded, ...], whole: Span) -> bool:
    return len(parts) == 1 and parts[0].span == whole


def _too_many(text: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"more than {MOST_PARTS} approximate SELECTs in one statement", "SKIMQL_INNER_APPROXIMATE", text
    )


def _blank_exact(text: str) -> str:
    visible, _ = without_comments(text)
    found = re.search(r"\bEXACT\b", visible, re.IGNORECASE)
    assert found is not None, "an EXACT SELECT has the word"
    return text[: found.start()] + " " * len("EXACT") + text[found.end() :]
