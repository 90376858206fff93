"""What may be a value in an expression: columns of the relations in scope, join keys, aggregates, functions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from .... import vocabulary
from ..names import Names, Table
from .clauses import OF_NUMBERS, clause
from .joins import join_conditions, same_class, stem
from .patterns import Piece
from .place import WORDS, Place, after_semicolon
from .scope import Relation, relations, unquoted
from .streams import declared, makes_stream
from .words import quoted

# Of columns of any table so many are offered.
MOST_COLUMNS = 50
_AGGREGATES = ("count(*)", "sum(", "avg(", "count(distinct ", "count(", "min(", "max(")


# Functions of an estimate.
_OF_ANSWERS = ("lower_bound(", "upper_bound(", "absolute_error(", "relative_error(")


_OPERANDS = ("NOT", "CASE", "DATE", "INTERVAL", "EXISTS", "CAST(")


def by_type(words: Sequence[str], place: Place, names: Names) -> Sequence[str]:
    """Comparisons in the order in which the type of the column in front makes them likely."""
    if words[:2] != ("=", "IN") or place.before[-1].kind not in (*WORDS, "quoted_name"):
        return words
    name = unquoted(place.before[-1].text).lower()
    kind = next(
        (k for r in relations_seen(place, names) for c, k in r.table.columns if c.lower() == name), "string"
    )
    return words if kind.lower() in ("string", "boolean", "") else OF_NUMBERS


def settings() -> list[str]:
    """The settings, those first that are set often."""
    often = ("error", "confidence", "behavior", "cache", "seed")
    return [*often, *(s for s in vocabulary().settings if s not in often)]


def qualified(place: Place, names: Names) -> Iterator[tuple[str, str, str]]:
    """Columns of one relation; behind ``skimql.`` settings, and values behind one of these."""
    if place.qualifier.lower() == "skimql":
        yield from ((s, "setting", "") for s in settings())
        return
    mine = [r for r in relations_seen(place, names) if r.alias.lower() == place.qualifier.lower()]
    tables = [r.table for r in mine] or [
        t for t in (names.by_name.get(place.qualifier.lower()),) if t is not None
    ]
    left = _left_of_equals(place)
    for table in tables:
        columns = sorted(table.columns, key=lambda c: _unlike(left, c, table)) if left else table.columns
        yield from ((quoted(c), "column", kind) for c, kind in columns)
    if not tables and place.prefix:
        # Of an alias that is still to come.
        yield from ((quoted(c), "column", "") for c in _beginning(names, place.prefix))


_OWN_SCOPE = frozenset(("FROM", "JOIN", "AS", "QUERIES", ",", "(", ";"))


def relations_seen(place: Place, names: Names) -> list[Relation]:
    """The relations that the cursor sees: of its own query, then those around it."""
    own, outer = _scopes(place, names)
    return [*own, *outer]


def _scopes(place: Place, names: Names) -> tuple[list[Relation], list[Relation]]:
    level = place.level
    # Of queries between semicolons, the one with the cursor.
    behind = [i for i, t in enumerate(level) if t.text == ";" and t.start >= place.start]
    before = [i for i, t in enumerate(level) if t.text == ";" and t.start < place.start]
    own = level[(before[-1] + 1 if before else 0) : (behind[0] if behind else len(level))]
    found = relations(own, names, place.named)
    around: list[Relation] = []
    if place.outer and (not found or place.outer[-1].word not in _OWN_SCOPE):
        # A subquery within an expression sees the relations around it.
        around = relations(place.around, names, place.named)
    if (
        not found
        and not around
        and [t.word for t in own[:1]] == ["CREATE"]
        and "SKETCH" in [t.word for t in own[1:5]]
    ):
        # ON names the table there.
        found = relations(
            [replace(t, text="FROM", kind="keyword") if t.word == "ON" else t for t in own], names, {}
        )
    if makes_stream(own):
        found = [Relation("", Table("", tuple(declared(own))))]
    return (found, around) if found else (around, [])


def operands(place: Place, names: Names, pieces: Sequence[Piece]) -> Iterator[tuple[str, str, str]]:
    """What may be a value: join conditions behind ON, columns, aggregates, functions."""
    found = relations_seen(place, names)
    last = pieces[-1].word if pieces else ""
    selects = last in ("SELECT", "APPROXIMATE", "APPROX", "HAVING") or (last == "," and _in_select(pieces))
    if last == "SELECT" and not any(p.word in ("EXACT", "ESTIMATE") for p in pieces):
        yield "APPROXIMATE", "ours", ""
    if clause(pieces) in ("HAVING", "ORDER"):
        yield from ((quoted(a), "alias", "") for a in _items(place))
    if selects:
        yield "count(*)", "function", ""
    if last in ("SELECT", "DISTINCT"):
        yield "*", "sign", ""
    if selects and not found:
        if last == "SELECT":
            yield "DISTINCT", "keyword", ""
        yield from ((a, "function", "") for a in _AGGREGATES)
        yield from ((f, "function", "") for f in _OF_ANSWERS if place.prefix)
    if last == "ON" or (last == "AND" and _in_on(pieces)):
        yield from ((c, "join", "join keys") for c in join_conditions(_in_front(found, place, names)))
    yield from ((literal, "value", "") for literal in _literals(place, found))
    left = _left_of_equals(place)
    if left is not None:
        yield from ((c, "column", kind) for c, kind in _alike(found, left))
    own, around = _scopes(place, names)
    several = len(own) > 1
    counts = Counter(c.lower() for r in own for c, _ in r.table.columns)
    for relation in own:
        for column, kind in relation.table.columns:
            if several and counts[column.lower()] > 1:
                yield f"{quoted(relation.alias)}.{quoted(column)}", "column", kind
            else:
                yield quoted(column), "column", kind
    for relation in around:
        for column, kind in relation.table.columns:
            yield f"{quoted(relation.alias)}.{quoted(column)}", "column", kind
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
        yield from ((f, "function", "") for f in _OF_ANSWERS)
    if last == "SELECT":
        yield "DISTINCT", "keyword", ""
    if not found and last != "SET":
        yield from ((quoted(c), "column", "") for c in _beginning(names, place.prefix))
    yield from ((w, "keyword", "") for w in _OPERANDS)
    yield from ((f"{f}(", "function", "") for f in vocabulary().functions)


def _items(place: Place) -> Iterator[str]:
    """What the items of the SELECT are called, where AS names them."""
    before = list(place.before)
    selects = max((n for n, t in enumerate(before) if t.word == "SELECT"), default=0)
    for behind, token in pairwise(before[selects:]):
        if token.word == "FROM":
            return
        if behind.word == "AS" and token.kind in (*WORDS, "quoted_name"):
            yield unquoted(token.text)


def _beginning(names: Names, prefix: str) -> Iterable[str]:
    """Columns of any table that begin so: there may be a hundred thousand."""
    columns, typed = names.all_columns, prefix.lower().lstrip("`")
    at = bisect_left(columns, typed, key=str.lower)
    for column in columns[at : at + MOST_COLUMNS]:
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


_LITERALS = {"date": "DATE '", "timestamp": "TIMESTAMP '", "string": "'", "boolean": "true"}


_COMPARE = frozenset(("=", "<", ">", "<=", ">=", "<>", "!="))


def _literals(place: Place, found: Sequence[Relation]) -> Iterator[str]:
    """How a value begins of the type that the column on the left of a comparison has."""
    before = list(place.before)
    if len(before) < 2 or before[-1].text not in _COMPARE or before[-2].kind not in (*WORDS, "quoted_name"):
        return
    if before[-1].text == "=" and len(found) > 1:
        # Rather a join.
        return
    name = unquoted(before[-2].text).lower()
    kind = next((k for r in found for c, k in r.table.columns if c.lower() == name), "")
    if kind.lower() in _LITERALS:
        yield _LITERALS[kind.lower()]


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
