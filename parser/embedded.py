"""Approximate SELECTs within a statement of Spark's: where they stand, and what has to be known to put something there.

The statement around them is not read: that is Spark's to do, once a call of a table function stands in their place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..errors import UnsupportedQuery
from .join_graph import Span
from .lexing import blank, identifiers
from .script import without_comments

_TOKEN = re.compile(
    r"""[rR]?'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|[rR]?"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|`(?:[^`]|``)*`|\w+|::|\S""",
    re.DOTALL,
)
_QUOTED = re.compile(
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|$)|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*(?:"|$)|`(?:[^`]|``)*(?:`|$)""",
    re.DOTALL,
)
# Behind one of these words a parenthesis holds a relation; elsewhere it holds a value.
_BEFORE_RELATION = frozenset(
    [
        "FROM",
        "JOIN",
        "LATERAL",
        "AS",
        "UNION",
        "ALL",
        "EXCEPT",
        "INTERSECT",
        "MINUS",
        "DISTINCT",
        "TABLE",
        "USING",
    ]
)
_CLAUSES = frozenset(
    ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "ON", "LIMIT", "JOIN", "VALUES", "SET"]
)
_SET_OPERATIONS = frozenset(["UNION", "EXCEPT", "INTERSECT", "MINUS"])
_NO_WORD_OF_OURS = re.compile(r"\s*(?:[,.=<>%]|$|(?:AS|FROM)\b)", re.IGNORECASE)
_STORED = re.compile(
    r"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?P<temporary>(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+)?(?:VIEW|(?P<function>FUNCTION))\b"
    r"|ALTER\s+VIEW\b|(?P<cached>CACHE)\b)",
    re.IGNORECASE,
)
_EXPLAINED = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marker:
    """A parameter: its place, and its name; None for ``?``."""

    span: Span
    name: str | None


@dataclass(frozen=True, slots=True)
class Embedded:
    """One approximate SELECT.

    Attributes
    ----------
    span : Span
        From its first word to its last.
    is_relation : bool
        Whether it stands where a table may stand; else only the asked columns have room.
    """

    span: Span
    is_relation: bool


@dataclass(slots=True)
class _Group:
    """What lies between two parentheses, or the whole text."""

    is_relation: bool
    clause: str = ""
    opened: int = 0
    with_at: int | None = None
    query_at: int | None = None
    ours: bool = False
    set_operation: bool = False
    inner: list[Embedded] = field(default_factory=list)

    def ended(self, end: int) -> list[Embedded]:
        """The approximate SELECTs in it, now that it has ended."""
        found = self.inner
        if self.ours and self.query_at is not None:
            found = [e for e in found if e.span.start < self.query_at]
            found.append(Embedded(Span(self.query_at, end), self.is_relation))
        self.with_at = self.query_at = None
        self.ours = self.set_operation = False
        self.clause, self.inner = "", []
        return found


def embedded(text: str) -> tuple[Embedded, ...]:
    """The outermost approximate SELECTs of a text, in order.

    Raises
    ------
    ParseError
        If a comment is not closed.
    UnsupportedQuery
        ``SKIMQL_INNER_APPROXIMATE`` for one that is a branch of a UNION without parentheses of its own, or that names
        a WITH of the statement around it.
    """
    visible, _ = without_comments(text)
    tokens = [(m.group(), m.start(), m.end()) for m in _TOKEN.finditer(visible)]
    words = [t.upper() for t, _, _ in tokens]
    groups = [_Group(not inserts(text))]
    found: list[Embedded] = []
    end = 0
    for number, (token, start, stop) in enumerate(tokens):
        word, group = words[number], groups[-1]
        before = words[number - 1] if number else ""
        after = words[number + 1] if number + 1 < len(words) else ""
        if token == "(":
            if before in ("", "("):
                inside = group.is_relation
            elif before == ",":
                inside = group.clause in ("FROM", "JOIN")
            else:
                inside = before in _BEFORE_RELATION and not (before == "ALL" and group.clause == "WHERE")
            groups.append(_Group(inside, opened=stop))
        elif token == ")":
            if len(groups) > 1:
                ended = groups.pop()
                groups[-1].inner += _checked(ended, text, end)
        elif token == ";" and len(groups) == 1:
            found += _checked(group, text, end)
        elif word == "WITH" and group.query_at is None and after != "ERROR":
            group.with_at = start
        elif word in ("INSERT", "MERGE", "UPDATE", "DELETE"):
            group.with_at = None
        elif word == "SELECT":
            if group.query_at is None:
                group.query_at = start if group.with_at is None else group.with_at
            behind = tokens[number + 1][2] if after else stop
            group.ours |= after in ("APPROX", "APPROXIMATE") and not _NO_WORD_OF_OURS.match(visible, behind)
            group.clause = word
        elif word in _SET_OPERATIONS:
            group.set_operation = True
        elif (
            group.query_at is not None
            and word == "ERROR"
            and (after == "WITHIN" or _is_with_error(before, after))
        ):
            group.ours = True
        elif word in _CLAUSES:
            group.clause = word
        if token != ";":
            end = stop
    while len(groups) > 1:
        ended = groups.pop()
        groups[-1].inner += _checked(ended, text, end)
    found += _checked(groups[0], text, end)
    ordered = tuple(sorted(found, key=lambda e: e.span.start))
    _refuse_outer_names(text, visible, ordered)
    return ordered


def _is_with_error(before: str, after: str) -> bool:
    return before == "WITH" and after[:1].isdigit()


def _checked(group: _Group, text: str, end: int) -> list[Embedded]:
    if group.ours and group.set_operation:
        start = group.query_at or 0
        raise UnsupportedQuery(
            "SELECT APPROXIMATE beside UNION, INTERSECT or EXCEPT needs parentheses of its own here",
            "SKIMQL_INNER_APPROXIMATE",
            text,
            (start, end),
            "(SELECT APPROXIMATE ...) UNION ALL (SELECT ...)",
        )
    return group.ended(end)


_COMMON = re.compile(
    r"(\w+|`(?:[^`]|``)+`)\s*(?:\([^()]*\)\s*)?\bAS\s*(?:NOT\s+MATERIALIZED\s*)?\(", re.IGNORECASE
)


def _refuse_outer_names(text: str, visible: str, found: tuple[Embedded, ...]) -> None:
    """Refuse one that names what a WITH around it defines: it would be answered from a table of that name."""
    if not found or not re.search(r"\bWITH\b", visible, re.IGNORECASE):
        return
    for one in found:
        outside = blank(visible, one.span)
        names = {m.group(1).strip("`").replace("``", "`").lower() for m in _COMMON.finditer(outside)}
        common = sorted(names & identifiers(visible[one.span.start : one.span.end]))
        if common:
            place = visible.lower().find(common[0], one.span.start)
            span = (place, place + len(common[0])) if place >= 0 else (one.span.start, one.span.end)
            raise UnsupportedQuery(
                f"{common[0]} is defined by a WITH outside of this SELECT APPROXIMATE",
                "SKIMQL_INNER_APPROXIMATE",
                text,
                span,
                f"WITH {common[0]} AS (...) in front of SELECT APPROXIMATE itself, or a view",
            )


def markers(text: str, span: Span) -> tuple[Marker, ...]:
    """The parameters in a part of a text: ``:name`` and ``?``."""
    visible, _ = without_comments(text)
    found: list[Marker] = []
    tokens = [m for m in _TOKEN.finditer(visible) if span.start <= m.start() < span.end]
    for number, token in enumerate(tokens):
        if token.group() == "?":
            found.append(Marker(Span(token.start(), token.end()), None))
        if token.group() != ":" or number + 1 == len(tokens):
            continue
        before, name = tokens[number - 1] if number else None, tokens[number + 1]
        # `v:name` without a blank is a part of a VARIANT.
        is_part = (
            before is not None and before.end() == token.start() and re.match(r"[\w`\])]", before.group())
        )
        if not is_part and name.start() == token.end() and re.fullmatch(r"\w+", name.group()):
            found.append(Marker(Span(token.start(), name.end()), name.group()))
    return tuple(found)


def stored_as(text: str) -> str:
    """How a statement keeps the text of a query in it: ``view``, ``temporary view``, ``function``, or not (empty)."""
    head = _STORED.match(without_comments(text)[0])
    if head is None:
        return ""
    if head["function"]:
        return "function"
    return "temporary view" if head["temporary"] or head["cached"] else "view"


def unquoted(text: str) -> str:
    """The text without what stands in quotes, closed or not, and without comments."""
    visible, _ = without_comments(text)
    return _QUOTED.sub(lambda m: " " * len(m.group()), visible)


def inserts(text: str) -> bool:
    """Whether a statement puts the rows of a query into a table."""
    return (
        re.match(r"\s*(?:INSERT\b|WITH\b.*\)\s*INSERT\b)", unquoted(text), re.IGNORECASE | re.DOTALL)
        is not None
    )


def is_explained(text: str) -> bool:
    """Whether a statement is one of Spark's that only looks at a plan."""
    return _EXPLAINED.match(without_comments(text)[0]) is not None


def in_place_of(text: str, span: Span, pieces: list[str]) -> str:
    """The text with pieces of another laid over a part of it, so that what stands behind keeps its line and column."""
    room = blank(text[span.start : span.end], Span(0, span.end - span.start))
    laid, at = room, 0
    for piece in pieces:
        line_end = _line_end(room, at)
        while at + len(piece) > line_end and line_end < len(room):
            at = line_end + 1
            line_end = _line_end(room, at)
        if at + len(piece) > len(room):
            return text[: span.start] + "".join(pieces) + "\n" * room.count("\n") + text[span.end :]
        laid = laid[:at] + piece + laid[at + len(piece) :]
        at += len(piece)
    return text[: span.start] + laid + text[span.end :]


def _line_end(text: str, start: int) -> int:
    found = text.find("\n", start)
    return len(text) if found < 0 else found
