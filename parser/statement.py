"""Our statements and clauses, read by lark from ``grammar/*.lark``; everything else is passed to Spark.

`split_statements` cuts a script at its semicolons, `parse_statement` reads one statement. A SELECT is not
parsed here: its text is handed on with our words blanked out, so that offsets in `select_sql` are offsets
in `sql`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from ..errors import ParseError, UnsupportedQuery
from .clauses import read_select
from .commands import is_command, read_command, refuse_unknown
from .join_graph import Span
from .lexing import blank, grammar, plain_value
from .script import StatementText, split_statements, without_comments
from .syntax import (
    ApproximateSelect,
    EstimateRows,
    ExactSelect,
    Explain,
    PassThrough,
    SetOption,
    Statement,
)

__all__ = [
    "ApproximateSelect",
    "EstimateRows",
    "ExactSelect",
    "Explain",
    "PassThrough",
    "SetOption",
    "Statement",
    "StatementText",
    "parse_statement",
    "split_statements",
]


# Of a text that is remembered with what it says: Spark asks for one statement twice, people for the same again.
MOST_CHARACTERS = 10_000
_WORDS = re.compile(r"\s*[A-Za-z_]\w*(?:\s+[A-Za-z_]\w*){0,3}")


def parse_statement(text: str) -> Statement:
    """Read one statement.

    Raises
    ------
    ParseError
        If the text holds one of our words and does not go on as it must, or holds several statements.
    UnsupportedQuery
        If APPROXIMATE or an accuracy clause stands inside a subquery, or behind what is no SELECT.
    """
    if not text.isascii():
        _refuse_half_characters(text)
    try:
        return _parsed_before(text) if len(text) <= MOST_CHARACTERS else _parse_statement(text)
    except RecursionError as error:
        raise too_deep(text) from error


def too_deep(sql: str) -> ParseError:
    """The error for a text that is nested deeper than it can be read."""
    hint = "fewer levels of parentheses and subqueries"
    return ParseError("the statement is nested too deeply", "SKIMQL_TOO_DEEP", sql, (0, len(sql)), hint)


@lru_cache(maxsize=64)
def _parsed_before(text: str) -> Statement:
    return _parse_statement(text)


def _parse_statement(text: str) -> Statement:
    visible, semicolons = without_comments(text)
    if semicolons and visible[semicolons[0] + 1 :].replace(";", " ").strip():
        raise ParseError(
            "several statements where one is expected",
            "SKIMQL_SEVERAL_STATEMENTS",
            text,
            (semicolons[0], semicolons[0] + 1),
            "run them one after the other, or as a script",
        )
    for place in semicolons:
        visible = blank(visible, Span(place, place + 1))
    words = _first_words(visible)
    if is_command(words):
        return read_command(text, visible, words)
    if words[:1] == ["SET"]:
        return _set_option(text, visible)
    if words[:1] and words[0] in {"SELECT", "WITH", "EXACT", "EXPLAIN", "ESTIMATE"}:
        return read_select(text, visible)
    inner = _without_parentheses(visible)
    if inner is not None and isinstance(statement := _parse_statement(inner), ApproximateSelect):
        return replace(statement, sql=text)
    refuse_unknown(text, words)
    _refuse_ours(text, visible, words)
    return PassThrough(text)


def _refuse_half_characters(text: str) -> None:
    """Python's text may hold halves of characters, from bytes that are no UTF-8; nothing can be done with those."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as fault:
        place = (fault.start, fault.end)
        message = f"character {fault.start + 1} is none: the text was read from bytes that are not UTF-8"
        raise ParseError(message, sql=text.encode("utf-8", "replace").decode(), span=place) from fault


# What only a statement of ours has at its head, looked for where it does not stand there.
_INSIDE = re.compile(
    r"""(?P<text>'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|`[^`]*`)"""
    r"|(?P<ours>\bSELECT\s+APPROX(?:IMATE)?\b(?!\s*(?:[,.=<>%]|$|(?:AS|FROM)\b)))",
    re.IGNORECASE | re.DOTALL,
)


def _without_parentheses(visible: str) -> str | None:
    """``(SELECT ...)`` without its parentheses; None for anything else."""
    if not visible.lstrip().startswith("(") or not visible.rstrip().endswith(")"):
        return None
    depth = 0
    pieces = [m for m in _PARENTHESES.finditer(visible) if m.group() in "()"]
    for number, piece in enumerate(pieces, 1):
        depth += 1 if piece.group() == "(" else -1
        if depth == 0 and number < len(pieces):
            return None
    if depth:
        return None
    outer = blank(visible, Span(pieces[-1].start(), pieces[-1].end()))
    return blank(outer, Span(pieces[0].start(), pieces[0].end()))


_PARENTHESES = re.compile(
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|`[^`]*`|[()]""", re.DOTALL
)


def _refuse_ours(text: str, visible: str, words: list[str]) -> None:
    """Refuse SELECT APPROXIMATE in a statement of Spark's, which would find a function of that name."""
    found = next((m for m in _INSIDE.finditer(visible) if m["ours"]), None)
    if found is None:
        return
    head = " ".join(w for w in words[:2] if w not in ("OR", "REPLACE")) or "a parenthesis"
    written = words[:1] and words[0] in ("CREATE", "INSERT", "REPLACE", "CACHE", "MERGE")
    hint = (
        "skimql.enable(spark), then spark.sql(...) with this text; or session.sql(...).df of the SELECT by itself"
        if written
        else "SELECT APPROXIMATE ... FROM ..., with SELECT in front"
    )
    raise UnsupportedQuery(
        f"SELECT APPROXIMATE stands by itself, not behind {head}",
        "SKIMQL_INNER_APPROXIMATE",
        text,
        found.span(),
        hint,
    )


def _first_words(visible: str) -> list[str]:
    """The words in front, four at most, in capitals."""
    found = _WORDS.match(visible)
    return found.group().upper().split() if found else []


def _set_option(text: str, visible: str) -> Statement:
    """``SET skimql.name = value``, or Spark's own SET."""
    try:
        tree = grammar("settings").parse(visible)
    except UnexpectedInput as error:
        words = visible.split(None, 2)
        if len(words) > 1 and words[1].lower().startswith("skimql."):
            place = min(getattr(error, "pos_in_stream", None) or len(text.rstrip()), len(text))
            raise ParseError(
                "SET skimql.<name> needs '=' and one value",
                sql=text,
                span=(place, place + 1),
                hint="SET skimql.error = 0.05",
            ) from error
        return PassThrough(text)
    _, name, value = tree.children
    assert isinstance(name, Token)
    assert isinstance(value, Tree)
    return SetOption(text, name.value.lower(), plain_value(value))


def is_approximate(text: str) -> bool:
    """Whether a statement is a SELECT to be estimated; raises ParseError where it is malformed."""
    return isinstance(parse_statement(text), ApproximateSelect)
