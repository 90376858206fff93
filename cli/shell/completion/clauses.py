"""Where in an expression or between two clauses a text stops, and which of the words that may follow are likely."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .patterns import Piece

CONDITIONS = frozenset(("WHERE", "ON", "HAVING", "WHEN"))
AGGREGATES = frozenset("COUNT SUM AVG MEAN MIN MAX COUNT_IF APPROX_COUNT_DISTINCT".split())
_CLAUSE_WORDS = frozenset("SELECT WHERE ON HAVING WHEN GROUP ORDER WEIGHT SET".split())
COMPARING = frozenset("= < > <= >= <> != == <=> IN IS BETWEEN LIKE ILIKE RLIKE EXISTS".split())
_COMPARISONS = (
    "=",
    "IN",
    "IS NULL",
    "IS NOT NULL",
    "LIKE",
    "BETWEEN",
    "<",
    ">",
    "<>",
    "NOT",
    "+",
    "-",
    "*",
    "/",
)
# Of what is ordered rather than spelled.
OF_NUMBERS = ("=", ">", "<", "BETWEEN", "IN", "IS NULL", "IS NOT NULL", "<>", "+", "-", "*", "/", "NOT")
ARITHMETIC = ("*", "+", "-", "/")
_SIGNS = frozenset("= < > <= >= <> != == <=> + - / % || , |".split())
_BEFORE_OPERANDS = frozenset(
    """
    SELECT APPROXIMATE APPROX DISTINCT WHERE ON HAVING BY AND OR NOT LIKE ILIKE RLIKE BETWEEN WHEN THEN ELSE FOR WEIGHT
    SET COLUMNS
    """.split()
)
# Words that are followed by few others.
_BEHIND = {
    "CASE": ("WHEN",), "IS": ("NULL", "NOT NULL"), "IN": ("(",), "EXISTS": ("(",), "OVER": ("(",), "FILTER": ("(",),
}  # fmt: skip


def clause(pieces: Sequence[Piece]) -> str:
    """The word that began the clause in which these end; within CASE that of the clause around it."""
    depth = 0
    for piece in reversed(pieces):
        if piece.kind == "word" and piece.word in ("END", "CASE"):
            depth += 1 if piece.word == "END" else -1
        elif piece.kind == "word" and piece.word in _CLAUSE_WORDS and (piece.word != "WHEN" or depth == 0):
            if piece.word == "WHEN" and _case(pieces):
                continue
            return piece.word
    return ""


def wants_operand(pieces: Sequence[Piece]) -> bool:
    """Whether a value must follow: nothing stands here yet, or an operator does."""
    if not pieces:
        return False
    last = pieces[-1]
    if last.word == "*":
        return len(pieces) > 1 and pieces[-2].kind in ("name", "number", "group", "text")
    return last.word in _SIGNS or (last.kind == "word" and last.word in _BEFORE_OPERANDS)


def in_expression(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The words that must follow within an expression; nothing where it may end, or a value must follow."""
    if not pieces:
        return ()
    last, before = pieces[-1], pieces[-2] if len(pieces) > 1 else None
    if last.kind == "word" and last.word == "NOT" and before is not None and before.word == "IS":
        return ("NULL",)
    if last.kind == "word" and last.word == "NOT" and before is not None and before.kind in ("name", "group"):
        return ("IN", "LIKE", "BETWEEN")
    if last.kind == "word" and last.word in _BEHIND:
        return _BEHIND[last.word]
    case = _case(pieces)
    if case and not wants_operand(pieces):
        match case:
            case "CASE":
                return ("WHEN",)
            case "WHEN":
                return ("THEN", "AND", "OR") if _condition(pieces)[0] else ("=", *_COMPARISONS[1:8], "THEN")
            case "THEN":
                return ("ELSE", "WHEN", "END", *ARITHMETIC)
            case "ELSE":
                return ("END", *ARITHMETIC)
    compares, between = _condition(pieces)
    if wants_operand(pieces):
        return ()
    if clause(pieces) in CONDITIONS:
        return ("AND",) if between else () if compares else _COMPARISONS
    return ()


def goes_on(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The words by which an expression that may end goes on."""
    match clause(pieces):
        case "WHERE" | "ON" | "HAVING" | "WHEN":
            return ("AND", "OR")
        case "ORDER":
            return () if pieces[-1].word in ("DESC", "ASC") else ("DESC", "ASC")
        case "SELECT":
            return ("AS", "OVER", "FILTER") if pieces[-1].kind == "group" else ("AS", *ARITHMETIC)
        case "SET":
            return ("=",)
    return ()


def window(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The words that may follow in the parenthesis behind OVER."""
    if not pieces:
        return ("PARTITION BY", "ORDER BY")
    if pieces[-1].word in ("PARTITION", "ORDER"):
        return ("BY",)
    if wants_operand(pieces):
        return ()
    return ("DESC", "ASC") if any(p.word == "ORDER" for p in pieces) else ("ORDER BY",)


def _case(pieces: Sequence[Piece]) -> str:
    """Of a CASE that is open: the last of its words; else nothing."""
    opened: list[str] = []
    for piece in pieces:
        if piece.kind == "word" and piece.word == "CASE":
            opened.append("CASE")
        elif opened and piece.kind == "word" and piece.word in ("WHEN", "THEN", "ELSE"):
            opened[-1] = piece.word
        elif opened and piece.kind == "word" and piece.word == "END":
            opened.pop()
    return opened[-1] if opened else ""


def _condition(pieces: Sequence[Piece]) -> tuple[bool, bool]:
    """Whether the last condition has its operator, and whether it is a BETWEEN that waits for its AND."""
    compares = between = False
    for piece in pieces:
        if piece.kind == "word" and (piece.word in _CLAUSE_WORDS or piece.word in ("OR", "THEN", "ELSE")):
            compares = between = False
        elif piece.kind == "word" and piece.word == "AND":
            compares, between = (compares, False) if between else (False, False)
        elif piece.word in COMPARING:
            compares, between = True, piece.word == "BETWEEN"
    return compares, between


_ACCURACY = frozenset(
    ("ERROR WITHIN", "WITH ERROR", "SIZE", "OPTIONS", "SEED", "BEHAVIOR", "CONFIDENCE", "AT CONFIDENCE")
)
_OWN = ("ERROR", "USING", "SIZE", "OPTIONS", "SEED", "BEHAVIOR", "CONFIDENCE", "WITH")

_FIRST = ("SELECT", "FROM", "ON", "JOIN", "WHERE", "AND", "GROUP BY")
_ESTIMATED = (
    *_FIRST,
    "ERROR WITHIN",
    "USING",
    "SIZE",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "WITH ERROR",
    "OPTIONS",
    "SEED",
)
_COUNTED = (*_FIRST, "ERROR WITHIN", "WITH ERROR", "ORDER BY", "HAVING", "LIMIT", "USING", "SIZE")
_PLAIN = (*_FIRST[:6], "ORDER BY", "LIMIT", "GROUP BY", "LEFT JOIN", "UNION")
_NESTED = (*_FIRST[:6], "UNION", "INTERSECT SELECT", "EXCEPT SELECT", "GROUP BY", "ORDER BY", "LIMIT")
# Where a statement begins, and behind words that many go on from.
_HEADS = (
    "SELECT", "SHOW SKETCHES", "CREATE", "EXPLAIN", "SET", "SHOW", "DESCRIBE", "DROP",
    "SKETCH", "SKETCHES", "OR REPLACE", "STREAM", "CONTINUOUS VIEW", "TABLE", "TEMPORARY VIEW", "VIEW",
    "CONTINUOUS VIEWS",
    "ANALYZE", "FORMAT", "EXTENDED", "APPROXIMATE", "TABLES", "QUERIES", "STREAMS", "DATABASES", "COLUMNS",
    "FUNCTIONS", "WITH",
)  # fmt: skip


def ordered(words: Iterable[str], pieces: Sequence[Piece], *, nested: bool) -> list[str]:
    """The words that may follow, the likeliest first; in a query only those that go with what it asks.

    Parameters
    ----------
    words : iterable of str
    pieces : sequence of Piece
        What stands in front at this level.
    nested : bool
        Whether that is within a parenthesis.
    """
    told = list(dict.fromkeys(words))
    if not any(p.word == "SELECT" for p in pieces):
        ranks = (
            {w: n for n, w in enumerate(_HEADS)} if len(pieces) < 2 or pieces[-1].word == "REPLACE" else {}
        )
        return sorted(told, key=lambda w: ranks.get(w, len(ranks)))
    if _is_behind_own(pieces):
        return sorted(told, key=lambda w: w not in ("CONFIDENCE", "AT CONFIDENCE", "OPTIONS", "BEHAVIOR"))
    estimated = any(p.word in ("APPROXIMATE", "APPROX") for p in pieces)
    counted = any(p.word in AGGREGATES and after.kind == "group" for p, after in pairwise(pieces))
    likely = _ESTIMATED if estimated else _NESTED if nested else _COUNTED if counted else _PLAIN
    if nested and counted:
        likely = _COUNTED
    if nested or not (estimated or counted):
        told = [w for w in told if w not in _ACCURACY and (w != "USING" or joins(pieces))]
    ranks = {w: n for n, w in enumerate(likely)}
    if clause(pieces) == "ORDER":
        ranks |= {"DESC": -3, "ASC": -2, "LIMIT": -1}
    if clause(pieces) == "SELECT" and "FROM" in told:
        ranks |= {"FROM": -9, "AS": -8, "OVER": -7, "FILTER": -6} | dict.fromkeys(ARITHMETIC, -5)
    if joins(pieces):
        ranks |= {"ON": -2, "USING": -1}
    return sorted(told, key=lambda w: ranks.get(w, len(ranks)))


def joins(pieces: Sequence[Piece]) -> bool:
    """Whether these end behind JOIN and a table, which have no condition yet."""
    for number in range(len(pieces) - 1, -1, -1):
        if pieces[number].kind == "word" and pieces[number].word == "JOIN":
            before = pieces[number - 1].word if number else ""
            return before not in ("CROSS", "NATURAL") and len(pieces) > number + 1
        if pieces[number].kind == "word" and pieces[number].word in (
            "ON",
            "USING",
            "WHERE",
            "GROUP",
            "ORDER",
            "LIMIT",
        ):
            return False
    return False


def _is_behind_own(pieces: Sequence[Piece]) -> bool:
    """Whether a clause of accuracy has begun."""
    from .patterns import begins_clause

    return any(begins_clause(pieces, n) and pieces[n].word in _OWN for n in range(len(pieces)))
