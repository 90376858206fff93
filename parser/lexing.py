"""Small things that every reader of a lark tree needs: grammars, tokens, offsets, literals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from lark import Lark, Token, Tree

from .join_graph import Span

# What may hide a word, then a word. Text in double quotes is a name where Spark is told so.
_PIECE = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'((?:[^'\\]|\\.|'')*)'|"((?:[^"\\]|\\.|"")*)"|`((?:[^`]|``)+)`|(\w+)""", re.DOTALL
)
# With one of these words the name of a table may stand in a text.
_NAMES_BY_TEXT = re.compile(r"\b(?:identifier|execute)\b", re.IGNORECASE)


def identifiers(sql: str) -> frozenset[str]:
    """What may be a name in a statement, in lower case: words, and what stands in backticks or double quotes."""
    found: set[str] = set()
    by_text = _NAMES_BY_TEXT.search(sql) is not None
    for text, double, quoted, word in _PIECE.findall(sql):
        found |= {word, double, quoted.replace("``", "`")}
        if by_text:
            found |= {*re.findall(r"\w+", text), *re.findall(r"\w+", double)}
    return frozenset(name.lower() for name in found if name)


def with_quoted_names(sql: str) -> str:
    """The text with backticks for the double quotes that stand around names, where Spark reads those so."""

    def piece(found: re.Match[str]) -> str:
        text = found.group()
        if not text.startswith('"'):
            return text
        return "`" + text[1:-1].replace('""', '"').replace("`", "``") + "`"

    return _PIECE.sub(piece, sql)


@cache
def grammar(name: str, lexer: str = "contextual") -> Lark:
    """The parser of ``grammar/<name>.lark``, built at first use."""
    return Lark.open_from_package("skimql.grammar", f"{name}.lark", parser="lalr", lexer=lexer)


def blank(text: str, span: Span) -> str:
    """The text with blanks at `span`; line ends stay, so that lines keep their numbers."""
    blanks = "".join(c if c in "\r\n" else " " for c in text[span.start : span.end])
    return text[: span.start] + blanks + text[span.end :]


def start_of(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


def end_of(token: Token) -> int:
    assert token.end_pos is not None
    return token.end_pos


def tokens_of(tree: Tree[Token]) -> Iterator[Token]:
    """The tokens under a rule, in order; any depth."""
    stack: list[Tree[Token] | Token] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Token):
            yield node
        else:
            stack.extend(reversed(node.children))


def plain_value(value: Tree[Token]) -> str:
    """An option's value: text without its quotes, words and numbers as they stand."""
    tokens = list(tokens_of(value))
    if tokens[0].type == "TEXT":
        return unquote(tokens[0].value)
    sign = tokens[0].value if tokens[0].type == "SIGN" else ""
    return sign + " ".join(t.value for t in tokens[1 if sign else 0 :])


def unquote(literal: str) -> str:
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    body = literal[1:-1].replace(quote * 2, quote)
    return body.replace("\\" + quote, quote).replace("\\\\", "\\")
