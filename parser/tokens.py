"""SQL text as tokens, for colours and completion: linear in the text, never an error, whatever the text is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from .spark_words import FUNCTIONS, KEYWORDS

# What is ours beside Spark's words; each may be the name of a column too.
OURS = frozenset(
    """
    AGMS APPEND APPROX APPROXIMATE BEHAVIOR CLASS CONFIDENCE CONTINUOUS CONVOLUTION DEBEZIUM DEDUP DELETES ERROR
    ESTIMATE EXACT EXPORT JOIN_DISTINCT KEY_SAMPLE MINIMIZE PAUSE QUERIES RESUME SAMPLE_SKETCH SEED SIZE SKETCH
    SKETCHES SKIMMED STREAM TERMINATE TRUSTED TWO_LEVEL WEIGHT WITHIN
    """.split()
)

KEYWORD, OWN, FUNCTION, NAME, QUOTED_NAME = "keyword", "ours", "function", "name", "quoted_name"
TEXT, NUMBER, COMMENT, SYMBOL, MISTAKE = "text", "number", "comment", "symbol", "mistake"

_PIECE = re.compile(
    r"""(?P<blank>\s+)"""
    r"""|(?P<comment>--(?:\\\n|[^\r\n])*)"""
    r"""|(?P<open_comment>/\*)"""
    r"""|(?P<text>[rR]'[^']*'|[rR]"[^"]*"|'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")"""
    r"""|(?P<quoted_name>`[^`]*(?:``[^`]*)*`)"""
    r"""|(?P<mistake>['"`].*)"""
    r"""|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w])|\d+[kKmMgGtT](?:i?[bB])?\b)"""
    r"""|(?P<word>\w+)"""
    r"""|(?P<symbol><=>|<=|>=|<>|!=|==|\|\||::|->|.)""",
    re.DOTALL,
)
_COMMENT_ENDS = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL text.

    Attributes
    ----------
    kind : str
        ``keyword`` (Spark's), ``ours``, ``function``, ``name``, ``quoted_name``, ``text``, ``number``, ``comment``,
        ``symbol``, or ``mistake``: a quote or comment that is not closed, to the end of the text.
    text : str
    start, end : int
        Offsets in the whole text.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The text in capitals."""
        return self.text.upper()


def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of SQL text, blanks left out.

    Examples
    --------
    >>> [t.kind for t in tokens("SELECT APPROXIMATE count(*) FROM `a b` -- all")]
    ['keyword', 'ours', 'function', 'symbol', 'symbol', 'symbol', 'keyword', 'quoted_name', 'comment']
    """
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at, before = 0, ""
    while at < len(text):
        found = _PIECE.match(text, at)
        assert found is not None, "any character is a symbol"
        kind, end = str(found.lastgroup), found.end()
        if kind == "open_comment":
            closed = _end_of_comment(text, end)
            kind, end = (COMMENT, closed) if closed is not None else (MISTAKE, len(text))
        if kind != "blank":
            piece = text[at:end]
            if kind == "word":
                kind = _kind_of(piece, before, text, end)
            if kind != COMMENT:
                before = piece
            yield Token(kind, piece, at, end)
        at = end


def _kind_of(word: str, before: str, text: str, end: int) -> str:
    after = _first_sign(text, end)
    capitals = word.upper()
    if before == "." or (after == "." and capitals != "SKIMQL"):
        return NAME
    if before.upper() == "AS" and capitals not in _BEHIND_AS:
        return NAME
    if (
        before.upper() in ("FROM", "JOIN")
        and capitals in KEYWORDS
        and capitals not in _BEHIND_FROM
        and after != "("
    ):
        return NAME
    if after == "(" and word.lower() in functions() and capitals not in _NEVER_CALLED:
        return FUNCTION
    if capitals in OURS:
        return OWN
    return KEYWORD if capitals in KEYWORDS else NAME


# Behind AS stands an alias or a type, or what a view or table is made of.
_BEHIND_AS = frozenset(("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"))
# Behind FROM and JOIN stands a table, which may be called as a word of Spark's; these are none.
_BEHIND_FROM = frozenset(
    """
    SELECT WITH VALUES TABLE LATERAL UNNEST NULL TRUE FALSE CURRENT_DATE CURRENT_TIMESTAMP DATE TIMESTAMP INTERVAL WHERE
    GROUP ORDER JOIN ON USING LEFT RIGHT FULL INNER CROSS NATURAL HAVING LIMIT UNION EXCEPT INTERSECT AS STREAM
    """.split()
)
_NEVER_CALLED = frozenset(
    ("IN", "AND", "OR", "NOT", "ON", "USING", "VALUES", "FROM", "WHERE", "AS", "OVER", "FILTER")
)


def _first_sign(text: str, at: int) -> str:
    while at < len(text) and text[at] in " \t":
        at += 1
    return text[at : at + 1]


def _end_of_comment(text: str, at: int) -> int | None:
    depth = 1
    for found in _COMMENT_ENDS.finditer(text, at):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    return None


@cache
def functions() -> frozenset[str]:
    """Spark's functions that have a name, in lower case."""
    return frozenset(FUNCTIONS)
