"""What may be typed at the cursor, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from .... import Token, vocabulary
from ..names import Names, Table
from .clauses import (
    ARITHMETIC,
    COMPARING,
    CONDITIONS,
    clause,
    goes_on,
    in_expression,
    joins,
    ordered,
    wants_operand,
    window,
)
from .operands import by_type, operands, qualified, relations_seen, settings
from .patterns import Piece, following
from .place import Place, after_semicolon, find_place, pieces_of, typed_path
from .scope import relations, unquoted
from .streams import VIEW_SETTINGS, declared, in_list
from .words import match, quoted

MOST = 50
# Characters; of a script that was pasted nobody wants completion.
MOST_TEXT = 50_000
_READERS = ("path", "header", "delimiter", "inferSchema", "nullValue")
_OPTION_NAMES = ("rows", "buckets", "sparse", "route", "cache", "confidence")


Files = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may stand from `start` to the cursor."""

    text: str
    start: int
    kind: str
    about: str = ""


def complete(text: str, cursor: int, names: Names, files: Files | None = None) -> list[Candidate]:
    """Candidates for the place of the cursor in SQL text, the likeliest first; at most `MOST`.

    Parameters
    ----------
    text : str
        The whole text; what stands behind the cursor tells of aliases too.
    cursor : int
        Offset in the text.
    names : Names
        Tables, columns and sketches that there are.
    files : callable, optional
        The files that begin so, where a path may stand; without it none are offered.
    """
    place = find_place(text, cursor, names) if len(text) <= MOST_TEXT else None
    if place is None:
        return []
    paths = typed_path(place) if files is not None else None
    if paths is not None and files is not None:
        beginning, quote = paths
        return [
            Candidate(f"{quote}{f}{'' if f.endswith('/') else quote}", place.start, "file")
            for f in files(beginning)
        ]
    if place.prefix.startswith("'"):
        # A text that is not closed yet.
        return [
            Candidate(word, place.start, kind, about)
            for word, kind, about in _offered(replace(place, prefix=""), names)
            if word.lower().startswith(place.prefix.lower()) and len(word) > max(len(place.prefix), 1)
        ][:MOST]
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
        yield from qualified(place, names)
        return
    heads = [t.word for t in place.before[:1]]
    if place.outer and not (heads and heads[0] in ("SELECT", "WITH", "FROM")):
        yield from _inside(place, names, outer)
        return
    pieces = pieces_of(after_semicolon(place.before))
    yield from _by_pattern(place, names, pieces)


def _by_pattern(place: Place, names: Names, pieces: Sequence[Piece]) -> Iterator[tuple[str, str, str]]:
    after = following(pieces)
    if not after:
        return
    if pieces and pieces[-1].kind == "number" and len(pieces) > 1 and pieces[-2].word == "SIZE":
        yield from ((unit, "unit", "") for unit in ("KB", "MB", "GB"))
    within = any(s in ("<expression>", "<items>") for s in after)
    if within:
        must = in_expression(pieces)
        if must:
            yield from ((word, "keyword", "") for word in by_type(must, place, names))
            return
        if wants_operand(pieces):
            yield from operands(place, names, pieces)
            return
    symbols = [s for s in after if s not in ("<expression>", "<items>")]
    words = [s for s in symbols if not s.startswith("<")]
    if within:
        # Behind a value the expression may go on.
        words = [*words, *goes_on(pieces)]
    words = ordered(words, pieces, nested=bool(place.outer))
    slots = [s for s in symbols if s.startswith("<")]
    if slots == ["<method>"] and joins(pieces[:-1]):
        slots = []
    first = [w for w in words if w in _BEFORE_NAMES] if slots else []
    offered = [o for symbol in (*first, *slots) for o in _of_symbol(symbol, place, names)]
    if "<table>" in slots and pieces and pieces[-1].word in ("FROM", "JOIN"):
        offered.insert(min(4, len(offered)), ("(", "sign", "a subquery"))
    yield from offered
    for word in words:
        yield from _of_symbol(word, place, names)


# Behind the first word of a statement these come before the names that may stand there too.
_BEFORE_NAMES = ("SKETCH", "SKETCHES", "TABLE", "EXTENDED", "IF EXISTS")


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
            yield from ((f"skimql.{s}", "setting", "") for s in settings())
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
            some = _NUMBERS.get(place.before[-1].word if place.before else "", ("10", "100"))
            yield from ((value, "value", "") for value in some)
        case "<format>":
            yield from ((value, "format", "") for value in ("PARQUET", "CSV", "JSON", "ORC", "DELTA"))
        case "<function>":
            yield from ((f, "function", "") for f in words.functions)
        case "<column>":
            yield from (
                (quoted(c), "column", k) for r in relations_seen(place, names) for c, k in r.table.columns
            )
        case "()":
            yield "(", "sign", ""
        case "," | "=":
            yield symbol, "sign", ""
        case _ if not symbol.startswith("<"):
            yield symbol, "keyword", ""


_NUMBERS = {"INTO": ("4", "2", "8"), "SEED": ("1", "7")}


def _percents(before: Sequence[Token]) -> tuple[str, ...]:
    return ("95%", "99%", "90%") if before and before[-1].word == "CONFIDENCE" else ("5%", "1%", "10%")


def _about(table: Table) -> str:
    columns = len(table.columns)
    return f"{columns} column{'s' * (columns != 1)}" if columns else ""


def _inside(place: Place, names: Names, outer: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Within a parenthesis that holds no query yet."""
    last = outer[-1] if outer else ""
    if last == "OPTIONS":
        if "USING" in outer and outer[:1] == ["CREATE"] and "SKETCH" not in outer[:4]:
            yield from ((word, "option", "") for word in _option(place.before, _READERS))
        elif "STREAM" not in outer[:5]:
            yield from ((word, "option", "") for word in _option(place.before, _OPTION_NAMES))
        return
    if last == "WITH" and "CONTINUOUS" in outer[:4]:
        if len(place.before) > 1 and [t.word for t in place.before[-2:]] == ["TIME", "="]:
            columns = [(c, k) for t in names.streams for c, k in t.columns if k.lower() == "timestamp"]
            yield from ((quoted(c), "column", k) for c, k in columns)
            return
        yield from ((word, "option", "") for word in _option(place.before, tuple(VIEW_SETTINGS)))
        return
    if last == "DEDUP":
        yield from ((quoted(c), "column", kind) for c, kind in declared(place.outer))
        return
    listed = in_list(place.outer, place.before)
    if listed is not None:
        yield from listed
        return
    if "QUERIES" in outer and last in ("QUERIES", "(", ",", ";"):
        yield from (
            (("SELECT", "keyword", ""), ("(", "sign", "")) if not place.before or last == "QUERIES" else ()
        )
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
    inner = pieces_of(place.before)
    if last == "OVER":
        yield from ((word, "keyword", "") for word in window(inner))
        if not inner or not wants_operand(inner):
            return
    if last == "FILTER" and not inner:
        yield "WHERE", "keyword", ""
        return
    is_call = place.outer[-1].kind == "function" if place.outer else False
    if clause(pieces_of(place.outer)) in CONDITIONS and not is_call:
        # A part of the condition around it.
        inner = [Piece("word", "WHERE"), *inner]
    must = in_expression(inner)
    if must or (place.before and not wants_operand(inner) and place.before[-1].text != "DISTINCT"):
        told = must or (
            (*ARITHMETIC, "AND", "OR") if is_call else (*goes_on(inner), *ARITHMETIC, "AND", "OR")
        )
        yield from ((word, "keyword", "") for word in dict.fromkeys(told))
        return
    if not place.before and last in COMPARING:
        yield "SELECT", "keyword", ""
    if not place.before and last in ("COUNT",):
        yield "*", "sign", ""
        yield "DISTINCT", "keyword", ""
    yield from operands(place, names, inner)


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
