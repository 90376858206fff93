"""What may be typed at the cursor, the likeliest first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .... import Token, vocabulary
from ..names import Names, Table
from .joins import join_conditions, same_class, stem
from .patterns import Piece, following
from .place import WORDS, Place, after_semicolon, find_place, pieces_of
from .scope import Relation, relations, unquoted
from .streams import VIEW_SETTINGS, declared, in_list, makes_stream
from .words import match, quoted

MOST = 50
# Characters; of a script that was pasted nobody wants completion.
MOST_TEXT = 50_000
_AGGREGATES = ("count(*)", "sum(", "avg(", "count(distinct ", "count(", "min(", "max(")
_OPERATORS = (
    "AND",
    "OR",
    "IN",
    "IS NULL",
    "IS NOT NULL",
    "BETWEEN",
    "LIKE",
    "NOT",
    "AS",
    "DESC",
    "ASC",
    "THEN",
    "END",
)
_OPERANDS = ("NOT", "CASE", "DATE", "INTERVAL", "EXISTS", "CAST(")
_OPTION_NAMES = ("rows", "buckets", "sparse", "route", "cache", "confidence")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may stand from `start` to the cursor."""

    text: str
    start: int
    kind: str
    about: str = ""


def complete(text: str, cursor: int, names: Names) -> list[Candidate]:
    """Candidates for the place of the cursor in SQL text, the likeliest first; at most `MOST`.

    Parameters
    ----------
    text : str
        The whole text; what stands behind the cursor tells of aliases too.
    cursor : int
        Offset in the text.
    names : Names
        Tables, columns and sketches that there are.
    """
    place = find_place(text, cursor, names) if len(text) <= MOST_TEXT else None
    if place is None:
        return []
    seen: dict[str, Candidate] = {}
    for word, kind, about in _offered(place, names):
        if word.lower() not in seen:
            seen[word.lower()] = Candidate(word, place.start, kind, about)
    if not place.prefix:
        return list(seen.values())[:MOST]
    scored = []
    for number, candidate in enumerate(seen.values()):
        score = match(place.prefix, candidate.text)
        if score is not None and (score < 2 or candidate.kind not in ("function", "keyword")):
            scored.append((score, number, candidate))
    scored.sort(key=lambda s: s[:2])
    return [c for _, _, c in scored][:MOST]


def _offered(place: Place, names: Names) -> Iterator[tuple[str, str, str]]:
    """What may stand here, by what stands in front."""
    outer = [t.word for t in place.outer]
    if place.qualifier:
        yield from _qualified(place, names)
        return
    heads = [t.word for t in place.before[:1]]
    if place.outer and not (heads and heads[0] in ("SELECT", "WITH", "FROM")):
        yield from _inside(place, names, outer)
        return
    pieces = pieces_of(after_semicolon(place.before))
    yield from _by_pattern(place, names, pieces)


def _by_pattern(place: Place, names: Names, pieces: Sequence[Piece]) -> Iterator[tuple[str, str, str]]:
    after = following(pieces)
    open_operand = _wants_operand(pieces)
    within = any(s in ("<expression>", "<items>") for s in after)
    if within and open_operand:
        yield from _operands(place, names, pieces)
        return
    symbols = [s for s in after if s not in ("<expression>", "<items>")]
    words = [s for s in symbols if not s.startswith("<")]
    if pieces and pieces[-1].kind == "number" and len(pieces) > 1 and pieces[-2].word == "SIZE":
        yield from ((unit, "unit", "") for unit in ("KB", "MB", "GB"))
    clause = _clause(pieces)
    if within and clause in _CONDITIONS and not _compares(pieces):
        # What is to be compared is there, with what is not.
        yield from ((word, "keyword", "") for word in _COMPARISONS)
        return
    if within:
        # Behind a value the expression may go on.
        words += _OPERATORS if clause in _CONDITIONS else ("DESC", "ASC") if clause == "ORDER" else ("AS",)
    words = sorted(dict.fromkeys(words), key=_likelihood)
    names_last = words if "<table>" in symbols else []
    for symbol in (*names_last, *(s for s in symbols if s.startswith("<")), *words):
        yield from _of_symbol(symbol, place, names)


_CONDITIONS = frozenset(("WHERE", "ON", "HAVING", "WHEN"))
_COMPARISONS = ("=", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", "<", ">", "<>", "+", "-", "*", "/")
_CLAUSEWORDS = frozenset("SELECT WHERE ON HAVING WHEN GROUP ORDER WEIGHT".split())
_COMPARING = frozenset("= < > <= >= <> != == <=> IN IS BETWEEN LIKE ILIKE RLIKE EXISTS NOT".split())


def _clause(pieces: Sequence[Piece]) -> str:
    """The word that began the clause in which these end."""
    return next((p.word for p in reversed(pieces) if p.kind == "word" and p.word in _CLAUSEWORDS), "")


def _compares(pieces: Sequence[Piece]) -> bool:
    """Whether the last condition has its operator already."""
    for piece in reversed(pieces):
        if piece.kind == "word" and piece.word in ("AND", "OR", *_CLAUSEWORDS):
            return False
        if piece.word in _COMPARING:
            return True
    return False


# The order of words that may follow, where several may.
_LIKELY = (
    "SELECT", "FROM", "ON", "JOIN", "AND", "WHERE", "ERROR WITHIN", "GROUP BY", "USING", "SIZE", "ORDER BY",
    "CONFIDENCE", "HAVING", "LIMIT", "OPTIONS", "AS", "OR", "FOR SUM", "SEED", "BEHAVIOR",
    "LEFT JOIN", "=", "SHOW SKETCHES",
    "SHOW", "CREATE", "EXPLAIN", "SET", "SKETCH", "SKETCHES", "CONTINUOUS VIEW", "STREAM",
    "OR REPLACE SKETCH", "TEMPORARY VIEW",
)  # fmt: skip
_RANKS = {word: number for number, word in enumerate(_LIKELY)}


def _likelihood(word: str) -> int:
    return _RANKS.get(word, len(_RANKS))


_SIGNS = frozenset("= < > <= >= <> != == <=> + - / % || , |".split())
_BEFORE_OPERANDS = frozenset(
    """
    SELECT APPROXIMATE APPROX DISTINCT WHERE ON HAVING BY AND OR NOT IN LIKE ILIKE RLIKE BETWEEN CASE WHEN THEN ELSE FOR
    WEIGHT
    """.split()
)


def _wants_operand(pieces: Sequence[Piece]) -> bool:
    """Whether a value must follow: nothing stands here yet, or an operator does."""
    if not pieces:
        return False
    last = pieces[-1]
    if last.word == "*":
        return len(pieces) > 1 and pieces[-2].kind in ("name", "number", "group", "text")
    return last.word in _SIGNS or (last.kind == "word" and last.word in _BEFORE_OPERANDS)


def _of_symbol(symbol: str, place: Place, names: Names) -> Iterator[tuple[str, str, str]]:
    words = vocabulary()
    match symbol:
        case "<table>":
            yield from ((quoted(t.name), "table", "with") for t in place.named.values())
            yield from ((quoted(t.name), "table", _about(t)) for t in names.tables)
            yield from ((quoted(v), "view", "") for v in names.views)
            yield from ((quoted(t.name), "stream", _about(t)) for t in names.streams)
        case "<stream>":
            yield from ((quoted(t.name), "stream", _about(t)) for t in names.streams)
        case "<view>":
            yield from ((quoted(v), "view", "") for v in names.views)
        case "<sketch>" | "<workload>":
            yield from ((quoted(s), "sketch", "") for s in names.sketches)
        case "<method>":
            yield from ((m, "method", "") for m in words.methods)
        case "<setting>":
            yield from ((f"skimql.{s}", "setting", "") for s in _settings())
        case "<value>":
            name = next(
                (t.text.lower() for t in reversed(place.before) if t.text.lower() in words.settings), ""
            )
            yield from ((value, "value", "") for value in words.settings.get(name, ()))
        case "<behavior>":
            yield from ((value, "value", "") for value in words.settings["behavior"])
        case "<percent>":
            yield from ((value, "value", "") for value in _percents(place.before))
        case "<text>" if place.before[-1].word == "WITHIN":
            yield "'1 hour'", "value", ""
        case "<size>":
            yield from ((value, "value", "") for value in ("64 KB", "256 KB", "1 MB", "16 MB"))
        case "<number>":
            yield from ((value, "value", "") for value in ("10", "100"))
        case "()":
            yield "(", "sign", ""
        case "," | "=":
            yield symbol, "sign", ""
        case _ if not symbol.startswith("<"):
            yield symbol, "keyword", ""


def _settings() -> list[str]:
    """The settings, those first that are set often."""
    often = ("error", "confidence", "behavior", "cache", "seed")
    return [*often, *(s for s in vocabulary().settings if s not in often)]


def _percents(before: Sequence[Token]) -> tuple[str, ...]:
    return ("95%", "99%", "90%") if before and before[-1].word == "CONFIDENCE" else ("5%", "1%", "10%")


def _about(table: Table) -> str:
    return f"{len(table.columns)} columns" if table.columns else ""


def _qualified(place: Place, names: Names) -> Iterator[tuple[str, str, str]]:
    """Columns of one relation; behind ``skimql.`` settings, and values behind one of these."""
    if place.qualifier.lower() == "skimql":
        yield from ((s, "setting", "") for s in _settings())
        return
    mine = [r for r in _relations(place, names) if r.alias.lower() == place.qualifier.lower()]
    tables = [r.table for r in mine] or [
        t for t in (names.by_name.get(place.qualifier.lower()),) if t is not None
    ]
    left = _left_of_equals(place)
    for table in tables:
        ordered = sorted(table.columns, key=lambda c: _unlike(left, c, table)) if left else table.columns
        yield from ((quoted(c), "column", kind) for c, kind in ordered)


def _relations(place: Place, names: Names) -> list[Relation]:
    level = place.level
    # Of queries between semicolons, the one with the cursor.
    behind = [i for i, t in enumerate(level) if t.text == ";" and t.start >= place.start]
    before = [i for i, t in enumerate(level) if t.text == ";" and t.start < place.start]
    own = level[(before[-1] + 1 if before else 0) : (behind[0] if behind else len(level))]
    found = relations(own, names, place.named)
    if not found and place.outer:
        found = relations(place.outer, names, place.named)
    if not found and [t.word for t in own[:1]] == ["CREATE"] and "SKETCH" in [t.word for t in own[1:5]]:
        # ON names the table there.
        found = relations(
            [replace(t, text="FROM", kind="keyword") if t.word == "ON" else t for t in own], names, {}
        )
    if makes_stream(own):
        found = [Relation("", Table("", tuple(declared(own))))]
    return found


def _inside(place: Place, names: Names, outer: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Within a parenthesis that holds no query yet."""
    last = outer[-1] if outer else ""
    if last == "OPTIONS":
        if "STREAM" not in outer[:5]:
            yield from ((word, "option", "") for word in _option(place.before, _OPTION_NAMES))
        return
    if last == "WITH" and "CONTINUOUS" in outer[:4]:
        yield from ((word, "option", "") for word in _option(place.before, tuple(VIEW_SETTINGS)))
        return
    if last == "DEDUP":
        yield from ((quoted(c), "column", kind) for c, kind in declared(place.outer))
        return
    listed = in_list(place.outer, place.before)
    if listed is not None:
        yield from listed
        return
    if not place.before and last in _BEFORE_QUERIES:
        yield "SELECT", "keyword", ""
        if last != "IN":
            return
    if _is_sketch(outer):
        yield from _columns_of_sketch(place, names)
        return
    if last == "USING":
        yield from _common(place, names)
        return
    if (
        place.before
        and not _wants_operand(pieces_of(place.before))
        and place.before[-1].text not in ("DISTINCT",)
    ):
        yield from ((word, "keyword", "") for word in _OPERATORS)
        return
    if not place.before and last in ("COUNT",):
        yield "*", "sign", ""
        yield "DISTINCT", "keyword", ""
    yield from _operands(place, names, pieces_of(place.before))


_BEFORE_QUERIES = frozenset(("QUERIES", "AS", "FROM", "JOIN", "EXISTS", "IN"))


def _option(before: Sequence[Token], known: Sequence[str]) -> Sequence[str]:
    """Within OPTIONS or WITH: a name, an equals sign, a value, a comma."""
    last = before[-1].text if before else ","
    if last == ",":
        return known
    if last == "=":
        name = before[-2].text.lower() if len(before) > 1 else ""
        return VIEW_SETTINGS.get(name) or vocabulary().settings.get(name, ())
    return ("=",) if len(before) < 2 or before[-2].text == "," else (",",)


def _is_sketch(outer: Sequence[str]) -> bool:
    return "SKETCH" in outer[:5] and "ON" in outer and "WHERE" not in outer and "CREATE" in outer[:1]


def _columns_of_sketch(place: Place, names: Names) -> Iterator[tuple[str, str, str]]:
    outer = place.outer
    on = max(i for i, t in enumerate(outer) if t.word == "ON")
    table = names.by_name.get(unquoted(outer[on + 1].text).lower()) if on + 1 < len(outer) else None
    if place.before and place.before[-1].text not in (",", "(", "+", "-", "*", "/"):
        if place.before[-1].word == "CLASS":
            return
        yield "CLASS", "keyword", ""
        return
    yield from ((quoted(c), "column", kind) for c, kind in (table.columns if table else ()))


def _common(place: Place, names: Names) -> Iterator[tuple[str, str, str]]:
    """Columns that the last relation shares with one before it."""
    found = relations(place.outer, names, place.named)
    if len(found) < 2:
        return
    earlier = {c.lower() for r in found[:-1] for c, _ in r.table.columns}
    yield from ((quoted(c), "column", kind) for c, kind in found[-1].table.columns if c.lower() in earlier)


def _operands(place: Place, names: Names, pieces: Sequence[Piece]) -> Iterator[tuple[str, str, str]]:
    """What may be a value: join conditions behind ON, columns, aggregates, functions."""
    found = _relations(place, names)
    last = pieces[-1].word if pieces else ""
    selects = last in ("SELECT", "APPROXIMATE", "APPROX", "HAVING") or (last == "," and _in_select(pieces))
    if last == "SELECT":
        yield "APPROXIMATE", "ours", ""
    if selects:
        yield "count(*)", "function", ""
        if not found:
            yield "*", "sign", ""
            yield from ((a, "function", "") for a in _AGGREGATES)
    if last == "ON" or (last == "AND" and _in_on(pieces)):
        yield from ((c, "join", "join keys") for c in join_conditions(_in_front(found, place, names)))
    left = _left_of_equals(place)
    if left is not None:
        yield from ((c, "column", kind) for c, kind in _alike(found, left))
    several = len(found) > 1
    counts: dict[str, int] = {}
    for relation in found:
        for column, _ in relation.table.columns:
            counts[column.lower()] = counts.get(column.lower(), 0) + 1
    for relation in found:
        for column, kind in relation.table.columns:
            if several and counts[column.lower()] > 1:
                yield f"{quoted(relation.alias)}.{quoted(column)}", "column", kind
            else:
                yield quoted(column), "column", kind
    if several:
        # Qualified too, for who begins with the alias.
        for relation in found:
            yield quoted(relation.alias), "alias", relation.table.name
            if place.prefix:
                yield from (
                    (f"{quoted(relation.alias)}.{quoted(c)}", "column", kind)
                    for c, kind in relation.table.columns
                )
    elif found:
        yield quoted(found[0].alias), "alias", ""
    if selects:
        yield from ((a, "function", "") for a in _AGGREGATES)
    if last == "SELECT":
        yield "DISTINCT", "keyword", ""
        yield "*", "sign", ""
    if not found and place.prefix and last != "SET":
        yield from ((quoted(c), "column", "") for c in _beginning(names, place.prefix))
    yield from ((w, "keyword", "") for w in _OPERANDS)
    yield from ((f"{f}(", "function", "") for f in vocabulary().functions)


def _beginning(names: Names, prefix: str) -> Iterable[str]:
    """Columns of any table that begin so: there may be a hundred thousand."""
    columns, typed = names.all_columns, prefix.lower().lstrip("`")
    at = bisect_left(columns, typed, key=str.lower)
    for column in columns[at : at + MOST]:
        if not column.lower().startswith(typed):
            return
        yield column


def _in_on(pieces: Sequence[Piece]) -> bool:
    words = [p.word for p in pieces]
    on = max((i for i, w in enumerate(words) if w == "ON"), default=-1)
    return on >= 0 and "WHERE" not in words[on:]


def _in_select(pieces: Sequence[Piece]) -> bool:
    words = [p.word for p in pieces]
    select = max((i for i, w in enumerate(words) if w == "SELECT"), default=-1)
    return select >= 0 and "FROM" not in words[select:]


def _in_front(found: Sequence[Relation], place: Place, names: Names) -> Sequence[Relation]:
    """The relations up to the cursor: ON sees no later ones."""
    known = relations(after_semicolon(place.before), names, place.named)
    return found[: len(known)] if len(known) <= len(found) else found


def _left_of_equals(place: Place) -> tuple[str, str] | None:
    """Qualifier and column on the left of an equals sign at the cursor."""
    before = list(place.before)
    if len(before) >= 2 and before[-1].text == "=" and before[-2].kind in (*WORDS, "quoted_name"):
        name = unquoted(before[-2].text)
        qualified = len(before) >= 4 and before[-3].text == "."
        return (unquoted(before[-4].text) if qualified else "", name)
    return None


def _alike(found: Sequence[Relation], left: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Columns of other relations, those first that go with the left side."""
    known = {(r.alias.lower(), c.lower()): kind for r in found for c, kind in r.table.columns}
    own = [r.alias.lower() for r in found if (not left[0] or r.alias.lower() == left[0].lower())]
    kind = next((known[a, left[1].lower()] for a in own if (a, left[1].lower()) in known), "")
    rest = [(r, c) for r in found if r.alias.lower() != left[0].lower() for c in r.table.columns]
    rest.sort(key=lambda rc: (_unlike(left, rc[1], rc[0].table), not same_class(kind, rc[1][1])))
    many = len(found) > 1
    for relation, (column, its_kind) in rest[:20]:
        yield (f"{quoted(relation.alias)}.{quoted(column)}" if many else quoted(column)), its_kind


def _unlike(left: tuple[str, str] | None, column: tuple[str, str], table: Table) -> int:
    if left is None:
        return 0
    name, typed = column[0].lower(), left[1].lower()
    if name == typed:
        return 0
    if stem(name) == stem(typed):
        return 1
    return 2 if name in table.keys else 3
