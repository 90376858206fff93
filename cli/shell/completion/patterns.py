"""The statements of the dialect as patterns, and where in one of them a text stops.

A pattern is words and slots: ``A|B`` alternatives, ``[ ... ]`` what may be left out, ``{ ... }`` what may stand any
number of times, ``<slot>`` a name or value, ``()`` a parenthesis with anything in it. ``<expression>`` and ``<items>``
take any pieces, so that all that may follow them may follow at any place within.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

ANY = frozenset(("<expression>", "<items>", "<types>"))

_TAIL = """
    [ WHERE <expression> ] [ GROUP BY <items> ] [ HAVING <expression> ] [ ORDER BY <items> ] [ LIMIT <number> ]
    [ OFFSET <number> ]
    [ ERROR WITHIN <percent> [ AT ] [ CONFIDENCE <percent> ] ] [ WITH ERROR <percent> [ CONFIDENCE <percent> ] ]
    [ USING <method> ] [ SIZE <size> ] [ OPTIONS () ] [ SEED <number> ] [ BEHAVIOR <behavior> ]
"""
_RELATION = "<table> [ AS ] [ <alias> ]"
_JOIN = f"""{{ [ INNER | LEFT | RIGHT | FULL | CROSS | NATURAL | LEFT OUTER | LEFT SEMI | LEFT ANTI | RIGHT OUTER |
    FULL OUTER ] JOIN {_RELATION} [ ON <expression> | USING () ] }}"""
_FROM = f"FROM {_RELATION} {_JOIN} {{ , {_RELATION} {_JOIN} }}"
_SELECT = f"SELECT [ APPROXIMATE | APPROX | DISTINCT ] <items> [ {_FROM} {_TAIL} ]"
_WITH = "WITH <new> AS () { , <new> AS () }"
_QUERY = f"[ {_WITH} ] {_SELECT} {{ UNION [ ALL ] {_SELECT} | EXCEPT|INTERSECT {_SELECT} }}"
_EXPLAINED = "[ FORMAT TEXT|JSON|MERMAID|SVG ]"

PATTERNS = (
    _QUERY,
    f"EXACT {_QUERY}",
    f"ESTIMATE ROWS FOR {_QUERY}",
    f"EXPLAIN [ ANALYZE ] {_EXPLAINED} {_QUERY}",
    f"EXPLAIN FORMATTED|EXTENDED|COST|CODEGEN {_QUERY}",
    f"EXPLAIN [ ANALYZE ] ESTIMATE ROWS FOR {_QUERY}",
    f"EXPLAIN EXACT {_QUERY}",
    "EXPLAIN SKETCHES <workload>",
    """CREATE [ OR REPLACE ] STREAM [ IF NOT EXISTS ] <new> () FROM JSON|CSV|PARQUET|KAFKA|RATE <path>
       [ OPTIONS () ] [ DELETES WHEN <expression> | WEIGHT <expression> | CHANGES DEBEZIUM|DELTA ]
       [ DEDUP () WITHIN <text> ]""",
    "CREATE [ OR REPLACE ] CONTINUOUS VIEW <new> [ WITH () ] AS SELECT APPROXIMATE <items> " + f"{_FROM} {_TAIL}",
    """CREATE [ OR REPLACE ] CONTINUOUS VIEWS <new> [ WITH () ] () SIZE <size> MINIMIZE AVERAGE|MAX ERROR
       [ PARTITION INTO <number> ]""",
    "SHOW STREAMS",
    "SHOW QUERIES [ EXTENDED ]",
    "DESCRIBE|DESC STREAM <stream>",
    "DROP STREAM [ IF EXISTS ] <stream>",
    "PAUSE|RESUME|TERMINATE|REFRESH <view>",
    """CREATE [ OR REPLACE ] SKETCH [ IF NOT EXISTS ] <new> ON <table> () [ FOR SUM () ] [ WHERE <expression> ]
       [ GROUP BY <items> ] [ USING <method> ] [ SIZE <size> ]
       [ ERROR WITHIN <percent> [ AT ] [ CONFIDENCE <percent> ] ] [ OPTIONS () ]""",
    """CREATE [ OR REPLACE ] SKETCHES <new> FOR QUERIES () SIZE <size> MINIMIZE AVERAGE|MAX ERROR
       [ PARTITION INTO <number> ]""",
    f"CREATE [ OR REPLACE ] [ TEMPORARY | TEMP | GLOBAL TEMPORARY ] VIEW [ IF NOT EXISTS ] <new> [ () ] AS {_QUERY}",
    "CREATE [ OR REPLACE ] TEMPORARY|TEMP VIEW <new> USING <format> OPTIONS ()",
    f"""CREATE TABLE [ IF NOT EXISTS ] <new> [ () ] [ USING <format> ] [ OPTIONS () ] [ PARTITIONED BY () ]
       [ LOCATION <path> ] [ COMMENT <text> ] [ AS {_QUERY} ]""",
    "CREATE DATABASE|SCHEMA [ IF NOT EXISTS ] <new> [ COMMENT <text> ] [ LOCATION <path> ]",
    "CREATE FUNCTION <new> AS <text>",
    "APPEND SKETCH <sketch> FROM <table> [ WHERE <expression> ] [ DELETES WHEN <expression> | WEIGHT <expression> ]",
    "APPEND SKETCH <sketch> FROM SKETCH <sketch>",
    "REFRESH SKETCH|SKETCHES <sketch>",
    "REFRESH TABLE <table>",
    "SHOW SKETCHES [ LIKE <text> ]",
    "SHOW TABLES|VIEWS [ IN <new> ] [ LIKE <text> ]",
    "SHOW DATABASES|SCHEMAS|FUNCTIONS|CATALOGS [ LIKE <text> ]",
    "SHOW COLUMNS FROM|IN <table>",
    "SHOW CREATE TABLE <table>",
    "SHOW PARTITIONS|TBLPROPERTIES <table>",
    "DESCRIBE|DESC [ TABLE ] [ EXTENDED ] <table>",
    "DESCRIBE|DESC SKETCH|SKETCHES [ EXTENDED ] <sketch>",
    "DESCRIBE|DESC FUNCTION <function>",
    "DESCRIBE|DESC DATABASE <new>",
    "DROP SKETCH|SKETCHES [ IF EXISTS ] <sketch>",
    "DROP TABLE|VIEW [ IF EXISTS ] <table>",
    "DROP CONTINUOUS VIEW|VIEWS [ IF EXISTS ] <view>",
    "DROP DATABASE|SCHEMA [ IF EXISTS ] <new>",
    "EXPORT SKETCH|SKETCHES <sketch> TO <path>",
    "IMPORT SKETCH|SKETCHES <new> FROM <path> [ TRUSTED ]",
    "SET <setting> = <value>",
    "RESET <new>",
    "USE [ DATABASE | SCHEMA | CATALOG ] <new>",
    f"INSERT INTO|OVERWRITE [ TABLE ] <table> [ () ] {_QUERY}",
    "INSERT INTO|OVERWRITE [ TABLE ] <table> [ () ] VALUES () { , () }",
    "DELETE FROM <table> [ WHERE <expression> ]",
    "UPDATE <table> SET <items> [ WHERE <expression> ]",
    """MERGE INTO <table> [ AS ] [ <alias> ] USING <table> [ AS ] [ <alias> ] ON <expression>
       { WHEN [ NOT ] MATCHED [ AND <expression> ] THEN DELETE
       | WHEN [ NOT ] MATCHED [ AND <expression> ] THEN UPDATE SET <items>
       | WHEN [ NOT ] MATCHED [ AND <expression> ] THEN INSERT () VALUES () }""",
    "ALTER TABLE <table> RENAME TO <new>",
    "ALTER TABLE <table> RENAME COLUMN <column> TO <new>",
    "ALTER TABLE <table> ADD COLUMNS|COLUMN ()",
    "ALTER TABLE <table> DROP COLUMN|COLUMNS <column>",
    "ALTER TABLE <table> ALTER COLUMN <column> TYPE <new>",
    "ALTER TABLE <table> SET TBLPROPERTIES|LOCATION ()",
    f"ALTER VIEW <table> AS {_QUERY}",
    "ANALYZE TABLE <table> COMPUTE STATISTICS [ NOSCAN | FOR COLUMNS <items> | FOR ALL COLUMNS ]",
    "TRUNCATE TABLE <table>",
    f"CACHE [ LAZY ] TABLE <table> [ AS {_QUERY} ]",
    "UNCACHE TABLE [ IF EXISTS ] <table>",
    "CLEAR CACHE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A place in a pattern: what must stand here, and where that leads."""

    symbol: str
    number: int


class _Automaton:
    """All patterns as one automaton: places with a symbol, and from each the places behind it without a symbol."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.symbols: dict[int, str] = {}
        self.after: dict[int, int] = {}
        self.free: dict[int, list[int]] = {}
        self._next = 0
        self.start = self._place()
        self.end = self._place()
        for pattern in patterns:
            self._sequence(pattern.split(), self.start, self.end)

    def _place(self) -> int:
        self._next += 1
        return self._next

    def _link(self, start: int, end: int) -> None:
        self.free.setdefault(start, []).append(end)

    def _sequence(self, words: Sequence[str], start: int, end: int) -> None:
        """A sequence of pieces, or alternatives of such that single bars separate."""
        alternatives = list(_split(words))
        if len(alternatives) > 1:
            for alternative in alternatives:
                self._sequence(alternative, start, end)
            return
        at = start
        number = 0
        while number < len(words):
            word = words[number]
            after = self._place()
            if word in ("[", "{"):
                close = _closing(words, number)
                first = self._place()
                self._link(at, first)
                # What follows comes behind, so that what stands here is offered first.
                self._sequence(words[number + 1 : close], first, at if word == "{" else after)
                self._link(at, after)
                number = close
            elif word in ANY:
                self._symbol(at, word, after)
                self._symbol(after, word, after)
            else:
                for one in word.split("|"):
                    self._symbol(at, one, after)
            at = after
            number += 1
        self._link(at, end)

    def _symbol(self, start: int, symbol: str, end: int) -> None:
        place = self._place()
        self._link(start, place)
        self.symbols[place] = symbol
        self.after[place] = end

    def reached(self, places: Iterable[int]) -> list[int]:
        """The places with a symbol that can be reached from these, in the order of the patterns."""
        return self._reached(places)[0]

    def may_end(self, place: int) -> bool:
        """Whether a statement may end behind a symbol."""
        return self._reached([self.after[place]])[1]

    def _reached(self, places: Iterable[int]) -> tuple[list[int], bool]:
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(reversed(list(places)))
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            if place in self.symbols:
                found[place] = None
            stack.extend(reversed(self.free.get(place, [])))
        return list(found), self.end in seen


def _split(words: Sequence[str]) -> Iterator[list[str]]:
    depth = 0
    piece: list[str] = []
    for word in words:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(word, 0)
        if word == "|" and depth == 0:
            yield piece
            piece = []
        else:
            piece.append(word)
    yield piece


def _closing(words: Sequence[str], start: int) -> int:
    depth = 0
    for number in range(start, len(words)):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(words[number], 0)
        if depth == 0:
            return number
    raise AssertionError("a bracket of a pattern is not closed")


@cache
def _automaton() -> _Automaton:
    return _Automaton(PATTERNS)


@dataclass(frozen=True, slots=True)
class Piece:
    """A token at one level: a word, a name, a value, a sign, or a whole parenthesis."""

    kind: str
    word: str


def following(pieces: Sequence[Piece]) -> list[str]:
    """What may follow: words (several where no other can follow the first), slots and ``()``, likelier ones first.

    Nothing where the pieces are the beginning of no pattern.
    """
    automaton = _automaton()
    places = automaton.reached([automaton.start])
    for number, piece in enumerate(pieces):
        taking = [p for p in places if _takes(automaton.symbols[p], piece, number == 0)]
        if begins_clause(pieces, number):
            # No expression goes on here.
            taking = [p for p in taking if automaton.symbols[p] == piece.word]
        literal = [p for p in taking if automaton.symbols[p] == piece.word]
        if number == len(pieces) - 1 and literal and piece.kind == "word" and piece.word not in _ALSO_VALUES:
            # The last word is one of the statement's own, not the name of something.
            taking = literal
        places = automaton.reached(dict.fromkeys(automaton.after[p] for p in taking))
        if not places:
            return []
    return list(dict.fromkeys(_phrase(automaton, place) for place in places))


def _phrase(automaton: _Automaton, place: int) -> str:
    """The words from a place on, up to where more than one thing may follow."""
    words = [automaton.symbols[place]]
    while words[-1].isupper():
        after = automaton.reached([automaton.after[place]])
        if automaton.may_end(place) or len(after) != 1 or not automaton.symbols[after[0]].isupper():
            break
        place = after[0]
        words.append(automaton.symbols[place])
    return " ".join(words)


def begins_clause(pieces: Sequence[Piece], number: int) -> bool:
    """Whether a clause of ours begins at a piece: its first word may be the name of a column elsewhere."""
    after = pieces[number + 1] if number + 1 < len(pieces) else None
    if pieces[number].kind != "word" or after is None or number == 0:
        return False
    match pieces[number].word:
        case "ERROR":
            return after.word == "WITHIN" and pieces[number - 1].word != "WITH"
        case "WITH":
            return after.word == "ERROR"
        case "USING":
            return after.kind == "word"
        case "OPTIONS":
            return after.kind == "group"
        case "SIZE" | "SEED":
            return after.kind == "number"
        case "CONFIDENCE":
            return after.kind in ("number", "percent")
        case "BEHAVIOR":
            return after.kind == "text"
    return False


def _takes(symbol: str, piece: Piece, first: bool) -> bool:
    if symbol in ANY:
        return not first and piece.word not in _NEVER_INSIDE
    if symbol == "()":
        return piece.kind == "group"
    if symbol == ",":
        return piece.word == ","
    if symbol == "=":
        return piece.word == "="
    if symbol.startswith("<"):
        if symbol in ("<percent>", "<size>"):
            return piece.kind in ("number", "percent", "name")
        if symbol in ("<path>", "<text>", "<behavior>"):
            return piece.kind == "text"
        if symbol == "<number>":
            return piece.kind in ("number", "word")
        if symbol == "<table>":
            return piece.kind in ("name", "group", "word", "text") and piece.word not in _NEVER_NAMES
        if symbol == "<format>":
            return piece.kind in ("name", "word")
        if symbol == "<alias>":
            return piece.kind in ("name", "word") and piece.word not in _NEVER_NAMES
        return piece.kind in ("name", "word", "text", "number") and piece.word not in _NEVER_NAMES
    return piece.word == symbol


# Words of ours that many a column is called.
_ALSO_VALUES = frozenset(("AS", "AT"))
# Words that begin a clause: no name, and nothing within an expression.
_NEVER_NAMES = frozenset(
    """
    FROM WHERE GROUP HAVING ORDER LIMIT JOIN INNER LEFT RIGHT FULL CROSS NATURAL ON USING UNION EXCEPT INTERSECT SELECT
    ERROR SIZE OPTIONS SEED BEHAVIOR WITH AS SET AND OR NOT CONFIDENCE IF OR
    """.split()
)
_NEVER_INSIDE = frozenset("FROM WHERE GROUP HAVING ORDER LIMIT JOIN SELECT UNION".split())
