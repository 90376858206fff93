"""Whether a text that is being typed may be run as it stands, or goes on in another line."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ParseError, SkimqlError
from .tokens import (
    COMMENT,
    FUNCTION,
    KEYWORD,
    MISTAKE,
    NAME,
    NUMBER,
    OWN,
    QUOTED_NAME,
    SYMBOL,
    TEXT,
    Token,
    tokens,
)

# Behind these something must follow; where one of them is the last word, the statement goes on.
_OPEN_WORDS = frozenset(
    """ALTER ANALYZE AND ANTI APPEND APPROX APPROXIMATE AS BEHAVIOR BETWEEN BY CASE CLASS CONFIDENCE CREATE CROSS
    DESCRIBE DISTINCT DROP ELSE ERROR ESTIMATE EXACT EXCEPT EXISTS EXPLAIN EXPORT FOR FROM FULL GROUP HAVING IF ILIKE
    IMPORT IN INNER INSERT INTERSECT INTO IS JOIN LATERAL LEFT LIKE LIMIT MINIMIZE MINUS NATURAL NOT OFFSET ON OPTIONS
    OR ORDER OVER OVERWRITE PARTITION PAUSE REFRESH RESUME RIGHT RLIKE SEED SELECT SET SIZE TABLE TERMINATE THEN TO
    UNION UPDATE USE USING VALUES VIEW WHEN WHERE WITH WITHIN""".split()
)
_MAY_END = frozenset(
    ("TABLE", "SIZE", "VALUES", "SEED", "ERROR", "CLASS", "VIEW", "OPTIONS", "CONFIDENCE", "EXACT")
)
_OPEN_SYMBOLS = frozenset("+ - / = < > <= >= <> != == <=> || :: -> , . ( [ |".split())
_HEADS_OF_OURS = frozenset(
    """
    APPEND CREATE DESC DESCRIBE DROP ESTIMATE EXACT EXPLAIN EXPORT IMPORT PAUSE REFRESH RESUME SELECT SHOW TERMINATE
    WITH
    """.split()
)
_OPEN_JOINS = frozenset(("CROSS", "NATURAL"))
_ENDS_CLAUSE = frozenset(
    """
    WHERE GROUP HAVING ORDER LIMIT ERROR USING SIZE OPTIONS SEED CONFIDENCE BEHAVIOR UNION EXCEPT INTERSECT WITH
    """.split()
)


def is_complete(text: str) -> bool:
    """Whether Enter should run `text`: what is typed can end here.

    A semicolon outside of quotes, comments and parentheses ends it. Without one it must be something that the grammar
    may end with: quotes, comments and parentheses closed, nothing open at its end (``FROM``, ``a =``, ``JOIN t``
    without ON), no SELECT of columns or aggregates that has no FROM yet. A statement with a mistake in its middle is
    complete: running it says what is wrong. So is an empty text.

    Examples
    --------
    >>> is_complete("SELECT APPROXIMATE COUNT(*)"), is_complete("SELECT APPROXIMATE COUNT(*) FROM t")
    (False, True)
    >>> is_complete("SELECT 'a;"), is_complete("SELECT 1"), is_complete("SHOW SKETCHES")
    (False, True, True)
    """
    if text.lstrip().startswith("\\"):
        return True
    pieces = tokens(text)
    if any(t.kind == MISTAKE for t in pieces):
        return False
    seen = [t for t in pieces if t.kind != COMMENT]
    if not seen:
        return True
    depth = _depth(seen)
    if depth < 0:
        return True
    if depth > 0:
        return False
    if seen[-1].text == ";":
        return True
    last = _last_statement(seen)
    return (
        not _is_open(last)
        and not _selects_nothing_yet(last)
        and not _joins_nothing_yet(last)
        and not _ends_early(text)
    )


def _depth(seen: Sequence[Token]) -> int:
    """How many parentheses are open at the end; negative where one is closed that was not open."""
    depth = 0
    for token in seen:
        if token.kind == SYMBOL and token.text in "()":
            depth += 1 if token.text == "(" else -1
            if depth < 0:
                return depth
    return depth


def _last_statement(seen: Sequence[Token]) -> list[Token]:
    """The tokens behind the last semicolon outside of parentheses."""
    depth, start = 0, 0
    for number, token in enumerate(seen):
        if token.kind == SYMBOL:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if token.text == ";" and depth == 0:
                start = number + 1
    return list(seen[start:])


def _is_open(seen: Sequence[Token]) -> bool:
    last = seen[-1]
    if last.kind == SYMBOL:
        # A star ends `SELECT *`, and is a product behind a value.
        before = seen[-2] if len(seen) > 1 else last
        if last.text == "*":
            return (
                before.kind in (NAME, QUOTED_NAME, NUMBER, TEXT) or before.text == ")" or _misses_from(seen)
            )
        return last.text in _OPEN_SYMBOLS
    if last.kind not in (KEYWORD, OWN) or last.word not in _OPEN_WORDS:
        return False
    if last.word == "SET":
        return len(seen) > 1
    if last.word in _MAY_END:
        # Columns may be called so; alone it is a statement that does not exist, or begins.
        return len(seen) == 1 or seen[-2].word in ("WITH", "FOR", "CREATE", "REPLACE", "DROP")
    return True


def _misses_from(seen: Sequence[Token]) -> bool:
    return any(t.word == "SELECT" for t in seen) and not any(t.word == "FROM" for t in seen)


def _top(seen: Sequence[Token]) -> list[Token]:
    """The tokens outside of parentheses."""
    depth, top = 0, []
    for token in seen:
        if token.kind == SYMBOL and token.text == ")":
            depth -= 1
        if depth == 0:
            top.append(token)
        if token.kind == SYMBOL and token.text == "(":
            depth += 1
    return top


_AGGREGATES = frozenset("count sum avg mean min max count_if approx_count_distinct".split())


def _selects_nothing_yet(seen: Sequence[Token]) -> bool:
    """A SELECT of columns or aggregates without FROM: constants and functions of them need none."""
    top = _top(seen)
    words = [t.word for t in top]
    if words[:1] == ["FROM"] and "SELECT" not in words:
        return False
    selects = [i for i, w in enumerate(words) if w == "SELECT" and top[i].kind == KEYWORD]
    if words[:1] == ["WITH"] and not selects:
        return not any(w in ("INSERT", "FROM", "TABLE") for w in words)
    if not selects or words[:1] == ["FROM"]:
        return False
    if "FROM" in words[selects[-1] :]:
        return False
    own = top[selects[-1] + 1 :]
    if any(t.word in ("APPROXIMATE", "APPROX") for t in own[:1]):
        return True
    named = [t for n, t in enumerate(own) if t.kind in (NAME, QUOTED_NAME) and not _is_alias(own, n)]
    return bool(named) or any(t.kind == FUNCTION and t.text.lower() in _AGGREGATES for t in seen)


def _is_alias(own: Sequence[Token], place: int) -> bool:
    """A name behind AS or behind a value, or one that is called."""
    before, after = own[place - 1] if place else None, own[place + 1] if place + 1 < len(own) else None
    if after is not None and after.text == "(":
        return True
    return before is not None and (
        before.word == "AS" or before.kind in (NUMBER, TEXT, NAME, QUOTED_NAME) or before.text == ")"
    )


def _joins_nothing_yet(seen: Sequence[Token]) -> bool:
    """The last JOIN has neither ON nor USING, and is neither CROSS nor NATURAL."""
    top = _top(seen)
    joins = [i for i, t in enumerate(top) if t.kind == KEYWORD and t.word == "JOIN"]
    if not joins:
        return False
    place = joins[-1]
    before = {t.word for t in top[max(place - 2, 0) : place]}
    rest = {t.word for t in top[place + 1 :] if t.kind in (KEYWORD, OWN)}
    return not before & _OPEN_JOINS and not rest & ({"ON", "USING"} | _ENDS_CLAUSE)


def _ends_early(text: str) -> bool:
    """Whether a statement of ours is a beginning only: its mistake is that it ends where it does."""
    from .script import split_statements
    from .statement import parse_statement

    try:
        pieces = split_statements(text)
        if not pieces or pieces[-1].sql.split(None, 1)[0].upper() not in _HEADS_OF_OURS:
            return False
        sql = pieces[-1].sql
        parse_statement(sql)
    except ParseError as fault:
        # What cannot be read because it ends has its mistake at the end, or behind it.
        return fault.span is not None and fault.span[0] >= len(fault.sql.rstrip())
    except SkimqlError:
        return False
    return False
