"""Expressions as the user's own text, in which only the column references are replaced.

A `Fragment` is a sequence of text pieces and column references. Rendering for Spark back-quotes each column
with its schema's spelling; nothing else is rewritten, so the expression means what it meant in the query.
Spacing and letter case of words are made uniform, so that equal expressions have equal text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

# Tokens that are set off by one blank on both sides, and those that cling to their neighbours.
_OPERATORS = frozenset(
    ["=", "<", ">", "<=", ">=", "<>", "!=", "==", "<=>", "+", "*", "/", "%", "||", "&", "|", "^"]
)
_CLING_LEFT = frozenset([",", ")", "]", ".", "::"])
_CLING_RIGHT = frozenset(["(", "[", ".", "::"])
_VERBATIM = frozenset([TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.HEX_STRING])


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of one vertex, spelled as its schema does."""

    vertex: int
    column: str

    def __str__(self) -> str:
        return quote_name(self.column)


@dataclass(frozen=True, slots=True)
class Fragment:
    """An expression over columns of vertices; `simple` if it needs no parentheses as an operand."""

    pieces: tuple[str | Ref, ...]
    simple: bool = False

    @property
    def vertices(self) -> frozenset[int]:
        """The vertices whose columns it reads."""
        return frozenset(p.vertex for p in self.pieces if isinstance(p, Ref))

    @property
    def column(self) -> Ref | None:
        """The column, if the expression is nothing else."""
        only = self.pieces[0] if len(self.pieces) == 1 else None
        return only if isinstance(only, Ref) else None

    @property
    def sql(self) -> str:
        """Spark SQL over the columns of one relation."""
        return "".join(map(str, self.pieces))

    def wrapped(self) -> Fragment:
        """In parentheses, unless it needs none."""
        if self.simple:
            return self
        return Fragment(("(", *self.pieces, ")"), simple=True)


def quote_name(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def typed_name(name: str) -> str:
    """A name as the user may type it: in backticks only where it needs them."""
    return name if name.isidentifier() else quote_name(name)


def join_fragments(parts: list[Fragment], separator: str) -> Fragment:
    """The operands in parentheses where needed, an operator between them."""
    if len(parts) == 1:
        return parts[0]
    pieces: list[str | Ref] = []
    for part in parts:
        if pieces:
            pieces.append(separator)
        pieces.extend(part.wrapped().pieces)
    return Fragment(tuple(pieces))


def spaced(
    tokens: tuple[Token, ...],
    sql: str,
    first: int,
    last: int,
    as_written: Sequence[tuple[int, int]] = (),
) -> list[tuple[int, str]]:
    """Pairs (token index, text with the blank before it) of a token range, in uniform spacing and case.

    Keywords and functions go to capitals, except in the ranges `as_written`; quoted things stay. A blank
    stands between tokens unless one of them clings to the other; tokens that touch in the text and are
    neither operators nor brackets go on touching (``1L``, ``>>``).
    """
    result: list[tuple[int, str]] = []
    before: Token | None = None
    for index in range(first, last + 1):
        token = tokens[index]
        # sqlglot splits 1L into several tokens that lie on top of each other: the text of the first counts.
        if before is not None and token.start <= before.end:
            continue
        raw = sql[token.start : token.end + 1]
        kept = any(start <= index <= end for start, end in as_written)
        shown = raw if kept else _uniform(tokens, index, raw)
        result.append((index, _blank_before(before, token, sql) + shown))
        before = token
    return result


def _uniform(tokens: tuple[Token, ...], index: int, raw: str) -> str:
    """Keywords and function names in capitals; names stay, since the key of a map is one (``m.Key``)."""
    token = tokens[index]
    quoted = token.token_type in _VERBATIM or raw[:1] in ("'", '"', "`") or raw[-1:] in ("'", '"', "`")
    called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    is_name = token.token_type == TokenType.VAR and not called
    is_field = index > 0 and tokens[index - 1].text == "."
    return raw if quoted or is_name or is_field else raw.upper()


def _blank_before(before: Token | None, token: Token, sql: str) -> str:
    if before is None:
        return ""
    left, right = sql[before.start : before.end + 1], sql[token.start : token.end + 1]
    touching = before.end + 1 == token.start
    if left in _CLING_RIGHT or right in _CLING_LEFT:
        return ""
    if left in _OPERATORS and right in _OPERATORS:
        return "" if touching else " "
    if left in _OPERATORS or right in _OPERATORS or left == ",":
        return " "
    return "" if touching else " "
