"""Where in a text the cursor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .... import Token, tokens
from ..names import Names, Table
from .patterns import Piece
from .scope import closing, common_tables, unquoted

WORDS = frozenset(("keyword", "ours", "function", "name"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cursor is.

    Attributes
    ----------
    before : tokens of the innermost open level in front of the word at the cursor
    outer : tokens of the statement in front of that level
    level : all tokens of that level, behind the cursor too
    prefix, start : the word that is being typed, and where it starts
    qualifier : of it, such as an alias
    named : common table expressions that may be used
    around : all tokens of the level around, behind that level too
    """

    before: Sequence[Token]
    outer: Sequence[Token]
    level: Sequence[Token]
    prefix: str
    start: int
    qualifier: str
    named: Mapping[str, Table]
    around: Sequence[Token] = ()


def find_place(text: str, cursor: int, names: Names) -> Place | None:
    if text[cursor - 1 : cursor] == "." and not text[cursor : cursor + 1].isalnum():
        # Else the word behind the dot would be the name that is still to be typed.
        text = f"{text[:cursor]}_ {text[cursor:]}"
    own = _statement(tokens(text), cursor)
    before = [t for t in own if t.end <= cursor and t.kind != "comment"]
    at = next((t for t in own if t.start < cursor <= t.end), None)
    prefix, start = "", cursor
    if at is not None:
        if at.kind in WORDS or (at.kind in ("mistake", "quoted_name") and at.text.startswith("`")):
            prefix, start = text[at.start : cursor], at.start
            before = [t for t in before if t.end <= at.start]
        elif at.kind == "mistake" and at.text.startswith("'"):
            # A text that is not closed yet.
            prefix, start = text[at.start : cursor], at.start
            before = [t for t in before if t.end <= at.start]
        elif at.kind in ("comment", "mistake", "number") or (at.kind == "text" and cursor < at.end):
            return None
    qualifier = ""
    if len(before) > 1 and before[-1].text == "." and before[-1].end == start:
        qualifier = unquoted(before[-2].text)
        before = before[:-2]
    own = [t for t in own if t.kind != "comment"]
    opened = _open(before)
    named: dict[str, Table] = {}
    for depth in range(len(opened) + 1):
        begin = opened[depth - 1] + 1 if depth else 0
        end = closing(own, opened[depth - 1]) if depth else len(own)
        named.update(common_tables(own[begin:end], names, named))
    begin = opened[-1] + 1 if opened else 0
    end = closing(own, opened[-1]) if opened else len(own)
    around = opened[-2] + 1 if len(opened) > 1 else 0
    return Place(
        before[begin:],
        before[: begin - 1] if opened else [],
        own[begin:end],
        prefix,
        start,
        qualifier,
        named,
        own[around : closing(own, opened[-2]) if len(opened) > 1 else len(own)] if opened else (),
    )


def typed_path(place: Place) -> tuple[str, str] | None:
    """The beginning of a path that is being typed in quotes, and its quote; None where no path may stand."""
    before = place.before[-1].word if place.before else ""
    if place.prefix.startswith("'") and before in _BEFORE_PATHS:
        return place.prefix[1:], "'"
    if place.prefix.startswith("`") and place.qualifier.lower() in ("parquet", "csv", "json", "text", "orc"):
        return place.prefix[1:], "`"
    return None


_BEFORE_PATHS = frozenset(("FROM", "JOIN", "TO", "JSON", "CSV", "PARQUET", "LOCATION"))


def _statement(found: Sequence[Token], cursor: int) -> list[Token]:
    """The tokens of the statement with the cursor."""
    start, depth = 0, 0
    for number, token in enumerate(found):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ";" and depth <= 0:
            if token.end > cursor:
                return list(found[start:number])
            start, depth = number + 1, 0
    return list(found[start:])


def _open(before: Sequence[Token]) -> list[int]:
    """The numbers of the parentheses that are open behind these tokens, outermost first."""
    opened: list[int] = []
    for number, token in enumerate(before):
        if token.text == "(":
            opened.append(number)
        elif token.text == ")" and opened:
            opened.pop()
    return opened


def pieces_of(before: Sequence[Token]) -> list[Piece]:
    """Tokens of one level, whole parentheses and names with dots as one piece each."""
    pieces: list[Piece] = []
    number = 0
    while number < len(before):
        token = before[number]
        if token.text == "(":
            number = closing(before, number)
            pieces.append(Piece("group", "()"))
        elif token.text == "." and pieces and number + 1 < len(before):
            number += 1
            pieces[-1] = Piece("name", "." + before[number].word)
        elif token.text == "%" and pieces and pieces[-1].kind == "number":
            pieces[-1] = Piece("percent", "%")
        elif pieces and pieces[-1].kind == "number" and token.word in ("B", "KB", "MB", "GB", "TB"):
            pieces[-1] = Piece("number", token.word)
        elif token.kind in ("keyword", "ours", "function"):
            pieces.append(Piece("word", token.word))
        elif token.kind in ("name", "quoted_name"):
            pieces.append(Piece("name", token.word))
        else:
            pieces.append(Piece(token.kind, token.word))
        number += 1
    return pieces


def after_semicolon(before: Sequence[Token]) -> Sequence[Token]:
    """Of queries between semicolons within a parenthesis, the last."""
    depth, start = 0, 0
    for number, token in enumerate(before):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ";" and depth == 0:
            start = number + 1
    return before[start:]
