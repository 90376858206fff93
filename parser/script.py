"""Scripts: statements between semicolons, and the text without its comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from ..errors import ParseError
from .join_graph import Span
from .lexing import blank, end_of, grammar, start_of, tokens_of

# Texts without these are read without the grammar, whose tables take longer to build than a short script to read.
_COMMENT = re.compile(r"--|/\*|QUERIES\s*\(", re.IGNORECASE)
_HIDES_SEMICOLONS = re.compile("['\"`]")


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a script: its text, where it starts, and whether a semicolon ended it."""

    sql: str
    start: int
    terminated: bool


def split_statements(text: str) -> tuple[StatementText, ...]:
    """Cut a script at the semicolons outside of text, quoted names, comments and ``FOR QUERIES (...)``.

    Pieces of blanks and comments alone are dropped; the others keep their comments.

    Raises
    ------
    ParseError
        If a comment is not closed.

    Notes
    -----
    Comments nest, as in Spark. Time linear in the text.
    """
    visible, semicolons = without_comments(text)
    cuts = [*semicolons, len(text)]
    pieces = []
    start = 0
    for cut in cuts:
        shown = visible[start:cut]
        if shown.strip():
            skipped = len(shown) - len(shown.lstrip())
            own = text[start:cut]
            lead = min(skipped, len(own) - len(own.lstrip()))
            pieces.append(StatementText(own[lead:].rstrip(), start + lead, cut < len(text)))
        start = cut + 1
    return tuple(pieces)


def without_comments(text: str) -> tuple[str, list[int]]:
    """The text with its comments blanked, and the offsets of the semicolons that end statements.

    Raises
    ------
    ParseError
        If a comment, or the parenthesis of ``FOR QUERIES (``, is not closed.
    """
    if not _COMMENT.search(text) and (";" not in text or not _HIDES_SEMICOLONS.search(text)):
        return text, [i for i, c in enumerate(text) if c == ";"]
    try:
        tree = grammar("script").parse(text)
    except UnexpectedInput as error:
        raise _not_closed(text, error) from error
    comments: list[Span] = []
    semicolons = [start_of(t) for t in tree.children if isinstance(t, Token) and t.type == "SEMICOLON"]
    _collect_comments(tree, comments)
    pieces, end = [], 0
    for span in comments:
        pieces += [text[end : span.start], blank(text[span.start : span.end], Span(0, span.end - span.start))]
        end = span.end
    return "".join([*pieces, text[end:]]), semicolons


def _collect_comments(tree: Tree[Token], comments: list[Span]) -> None:
    stack: list[Tree[Token] | Token] = list(reversed(tree.children))
    while stack:
        piece = stack.pop()
        if isinstance(piece, Tree) and piece.data == "block_comment":
            tokens = list(tokens_of(piece))
            comments.append(Span(start_of(tokens[0]), end_of(tokens[-1])))
        elif isinstance(piece, Tree):
            stack.extend(reversed(piece.children))
        elif piece.type == "LINE_COMMENT":
            comments.append(Span(start_of(piece), end_of(piece)))


def _not_closed(text: str, error: UnexpectedInput) -> ParseError:
    """The outermost thing that was opened and not closed."""
    stack = error.interactive_parser.parser_state.value_stack
    kinds = {"COMMENT_OPEN": "comment", "QUERIES_OPEN": "parenthesis", "OPEN": "parenthesis"}
    opened = [t for t in stack if isinstance(t, Token) and t.type in kinds]
    comment = next((t for t in opened if t.type == "COMMENT_OPEN"), None)
    token = comment or opened[0]
    end = end_of(token)
    return ParseError(
        f"the {kinds[token.type]} is not closed",
        "SKIMQL_OPEN_COMMENT" if comment else "",
        text,
        (end - (2 if comment else 1), end),
        "close it with */ (comments nest)" if comment else "close it with )",
    )
