"""Change records as rows with signs: what Debezium's envelopes and Delta's change feed say of the rows of a table.

An insertion counts once, a deletion minus once; an update deletes the row as it was and inserts it as it is now.
What of the image before is missing is known row by row, so that only views that need it are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp

from ...errors import DataError, StreamError
from ...optimizer.plan import Synopsis, Weight
from ...parser.fragment import quote_name
from ...parser.join_graph import Column, Span
from ...parser.select import parse_expression
from ..catalog.streams import DEBEZIUM, DELTA, StoredStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The column in which Spark's readers put a row that they cannot read.
BAD_ROW = "skimql bad row"
CHANGE_TYPE = "_change_type"
# Formats of which a change record is one text.
ENVELOPES_AS_TEXT = ("json", "kafka")

# Why a row cannot be read, and where it stands: a file, or the partition of a topic and an offset.
REASON, FILE, OFFSET = "skimql reason", "skimql file", "skimql offset"
_SIGN, _MISSING, _FAULT, _EVENT = "skimql sign", "skimql missing", "skimql fault", "skimql event"
_ROW = "skimql row"
# What Debezium sends in the place of a text that PostgreSQL did not.
_UNSENT = "__debezium_unavailable_value"
_OF_JSON = re.compile(r"allow|.*format$|locale$|timezone$|prefersdecimal|primitivesasstring", re.IGNORECASE)
_SHOWN = 300  # characters of an event
_NO_IMAGE, _BAD_CHANGE = "SKIMQL_NO_BEFORE_IMAGE", "SKIMQL_BAD_CHANGE"
_TOLD = re.compile(rf"({_NO_IMAGE}|{_BAD_CHANGE}): (.*?)(?: SQLSTATE: \w+|\n|$)", re.DOTALL)
_FULL = {
    DEBEZIUM: "full images from the source (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL; MySQL:"
    " binlog_row_image = FULL; MongoDB: capture.mode = change_streams_update_full_with_pre_image)",
    DELTA: "a change feed with update_preimage (delta.enableChangeDataFeed = true)",
}


def columns_needed(synopses: Iterable[Synopsis], also: Iterable[str] = ()) -> frozenset[str]:
    """The columns of a stream, in small letters, that synopses are made of, and what tells them apart."""
    texts = [*also, *(text for s in synopses for text in _expressions(s))]
    return frozenset(name for text in texts for name in _columns(text))


def _expressions(synopsis: Synopsis) -> Iterable[str]:
    yield from (k for a in synopsis.attributes for k in a.keys)
    yield from (k for m in synopsis.messages for k in m.receiver.keys)
    yield from (t for t in (synopsis.filter, synopsis.weight.expression) if t is not None)


@lru_cache(maxsize=4096)
def _columns(text: str) -> frozenset[str]:
    tree = parse_expression(text, Span(0, len(text))).tree
    return frozenset(column.parts[0].name.lower() for column in tree.find_all(exp.Column))


def times(stream: StoredStream, needed: frozenset[str]) -> str:
    """How often a row of `rows` counts, as SQL of type BIGINT; the scan fails where that cannot be said.

    Parameters
    ----------
    stream : StoredStream
        One of change records.
    needed : frozenset of str
        The columns that sketches are made of: of the image before, no others have to be there.
    """
    if stream.changes == DELTA:
        kind = quote_name(CHANGE_TYPE)
        shown = f"left(to_json(struct({', '.join(quote_name(c.name) for c in stream.columns)})), {_SHOWN})"
        unknown = _raised(_BAD_CHANGE, f"{kind} is ', coalesce({kind}, 'NULL'), ' in ", shown)
        return (
            f"CASE WHEN {kind} IN ('insert', 'update_postimage') THEN 1L"
            f" WHEN {kind} IN ('delete', 'update_preimage') THEN -1L ELSE {unknown} END"
        )
    missing, fault, event = (quote_name(n) for n in (_MISSING, _FAULT, _EVENT))
    event = f"left({event}, {_SHOWN})"
    if stream.format in ENVELOPES_AS_TEXT:
        at = "" if stream.format == "json" else f", ' offset ', `{OFFSET}`"
        event = f"concat({event}, ' (', `{FILE}`{at}, ')')"
    own = [literal(c.name) for c in stream.columns if c.name.lower() in needed]
    faulty = _raised(_BAD_CHANGE, f"', {fault}, ': ", event)
    branches = f"WHEN {fault} IS NOT NULL THEN {faulty}"
    if own:
        lacking = f"array_intersect({missing}, array({', '.join(own)}))"
        told = _raised(_NO_IMAGE, f"', array_join({lacking}, ', '), ' is not in ", event)
        branches += f" WHEN arrays_overlap({missing}, array({', '.join(own)})) THEN {told}"
    return f"CASE {branches} ELSE {quote_name(_SIGN)} END"


def _raised(code: str, what: str, event: str) -> str:
    return f"CAST(raise_error(concat('{code}: {what}', {event})) AS BIGINT)"


def refusal(stream: StoredStream, batch: int, fault: DataError) -> StreamError | None:
    """The error of a batch whose scan `times` has made fail; None for any other fault."""
    told = _TOLD.search(str(fault.__cause__ or fault))
    if told is None or not stream.changes:
        return None
    if told[1] == _NO_IMAGE:
        return no_before_image(stream, batch, told[2].strip())
    return StreamError(
        f"a change record in batch {batch} of stream {stream.name} cannot be applied: {told[2].strip()}",
        _BAD_CHANGE,
        hint=f"CREATE OR REPLACE STREAM {stream.name} ..., from a snapshot of what is there now",
    )


def no_before_image(stream: StoredStream, batch: int, what: str) -> StreamError:
    """The error of changes that do not tell what was there before."""
    return StreamError(
        f"views need what was there before an update or a deletion; in batch {batch} of stream {stream.name}, {what}",
        _NO_IMAGE,
        hint=f"{_FULL[stream.changes]}, then CREATE OR REPLACE STREAM {stream.name} ... from a new snapshot; or views"
        " of the keys alone",
    )


def updates(stream: StoredStream) -> Synopsis | None:
    """What counts updates of a change feed that has a row for each of their images; None of other streams."""
    if stream.changes != DELTA:
        return None
    kinds = f"{quote_name(CHANGE_TYPE)} IN ('update_preimage', 'update_postimage')"
    return Synopsis(stream.name, kinds, (), Weight(), "total", 1, 2)


def image_schema(stream: StoredStream) -> str:
    """The columns of a stream of envelopes as files of typed columns have them."""
    image = f"STRUCT<{', '.join(f'{quote_name(c.name)}: {c.type}' for c in stream.columns)}>"
    return f"before {image}, after {image}, op STRING"


def rows(stream: StoredStream, frame: DataFrame) -> DataFrame:
    """The rows that the events of a stream insert and delete, with what `times` needs.

    Parameters
    ----------
    stream : StoredStream
    frame : DataFrame
        As its source gives it: of envelopes as text the column `value`, and what else is to be kept.
    """
    if stream.changes != DEBEZIUM:
        return frame
    text = stream.format in ENVELOPES_AS_TEXT
    kept = [quote_name(c) for c in frame.columns if c.startswith("skimql ")]
    opened = _opened(stream, frame, kept) if text else _images(frame, kept)
    images = [quote_name(c.name) for c in stream.columns]
    exploded = opened.selectExpr(*kept, f"inline({_changes(stream, text)})")
    told = [_SIGN, _MISSING, _FAULT, _EVENT, *([BAD_ROW, REASON] if text else [])]
    return exploded.selectExpr(
        *kept, *(f"{quote_name(_ROW)}.{c} AS {c}" for c in images), *map(quote_name, told)
    )


def _opened(stream: StoredStream, frame: DataFrame, kept: list[str]) -> DataFrame:
    """Envelopes as text, with their images: Connect's, which say their schema, and bare ones."""
    bad = quote_name(BAD_ROW)
    given = {**json_options(stream.options), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_ROW}
    options = f"map({', '.join(literal(t) for pair in given.items() for t in pair)})"
    envelope = "before STRING, after STRING, op STRING"
    outer = f"{envelope}, payload STRUCT<{envelope}>, {bad} STRING"
    columns = f"{stream.ddl}, {bad} STRING"
    read = frame.selectExpr(
        *kept,
        "value AS event",
        f"from_json(value, {literal(outer)}, {options}) AS e",
        "array_contains(json_object_keys(value), 'payload') AS wrapped",
    )
    read = read.selectExpr(
        *kept,
        "event",
        "coalesce(event IS NULL OR trim(event) IN ('', 'null')"
        f" OR (wrapped AND e.payload IS NULL AND e.{bad} IS NULL), false) AS nothing",
        f"(e IS NULL OR e.{bad} IS NOT NULL OR ltrim(event) LIKE '[%') AS torn",
        *(f"IF(wrapped, e.payload.{n}, e.{n}) AS {n}" for n in ("before", "after", "op")),
    )
    every = f"array({', '.join(literal(c.name) for c in stream.columns)})"
    texts = [c.name for c in stream.columns if c.type == "string"]
    return read.selectExpr(
        *(*kept, "event", "nothing", "torn", "op"),
        *(f"from_json({n}, {literal(columns)}, {options}) AS {n}" for n in ("before", "after")),
        *(
            f"array_except({every}, coalesce(json_object_keys({n}), array())) AS no_{n}"
            for n in ("before", "after")
        ),
        f"{_unsent(texts)} AS unsent",
    )


def _unsent(texts: list[str]) -> str:
    """Columns of type STRING, of either image, that Debezium says it was not given."""
    if not texts:
        return "CAST(array() AS ARRAY<STRING>)"
    named = [f"IF(contains(event, {literal(_quoted_json(t))}), {literal(t)}, NULL)" for t in texts]
    found = f"array_compact(array({', '.join(named)}))"
    return f"IF(contains(event, '{_UNSENT}'), {found}, CAST(array() AS ARRAY<STRING>))"


def _quoted_json(name: str) -> str:
    return f'"{name}":"{_UNSENT}"'


def _images(frame: DataFrame, kept: list[str]) -> DataFrame:
    """Envelopes of typed columns."""
    if "payload" in frame.columns:
        frame = frame.selectExpr(*kept, "payload.*")
    return frame.selectExpr(*kept, "before", "after", "op", "to_json(struct(op, before, after)) AS event")


def _changes(stream: StoredStream, text: bool) -> str:
    """What an event does, as SQL: an array of rows, each with its sign."""
    bad = quote_name(BAD_ROW)
    nothing = f"CAST(NULL AS STRUCT<{', '.join(f'{quote_name(c.name)}: {c.type}' for c in stream.columns)}>)"
    names = ", ".join(f"{literal(c.name)}, {{0}}.{quote_name(c.name)}" for c in stream.columns)
    every = f"array({', '.join(literal(c.name) for c in stream.columns)})"
    none = "CAST(array() AS ARRAY<STRING>)"

    def row(
        image: str | None, sign: int, missing: str = none, fault: str = "NULL", reason: str = "NULL"
    ) -> str:
        one = nothing if image is None else f"named_struct({names.format(image)})"
        told = [
            *(literal(_ROW), one, literal(_SIGN), f"{sign}L", literal(_MISSING), missing),
            *(literal(_FAULT), f"CAST({fault} AS STRING)", literal(_EVENT), "event"),
        ]
        if text:
            unread = "CAST(NULL AS STRING)" if reason == "NULL" else "event"
            told += [literal(BAD_ROW), unread, literal(REASON), f"CAST({reason} AS STRING)"]
        return f"named_struct({', '.join(told)})"

    before = "array_union(no_before, unsent)" if text else f"IF(before IS NULL, {every}, {none})"
    both = "array_union(array_union(no_before, no_after), unsent)" if text else before
    after = "unsent" if text else none
    whole = [
        f"WHEN op IN ('c', 'r') AND after IS NOT NULL THEN array({row('after', 1, after)})",
        f"WHEN op = 'u' AND after IS NOT NULL THEN array({row('before', -1, both)}, {row('after', 1, after)})",
        f"WHEN op = 'd' THEN array({row('before', -1, before)})",
        "WHEN op = 'm' THEN array()",
        "WHEN op IN ('c', 'r', 'u') THEN array("
        + row(None, 0, fault="concat('op ', op, ' without the row after it')")
        + ")",
        "WHEN op = 't' THEN array(" + row(None, 0, fault="'truncate, which names no rows'") + ")",
    ]
    if not text:
        whole.append("WHEN op IS NULL AND before IS NULL AND after IS NULL THEN array()")
        other = row(None, 0, fault="concat('op ', coalesce(op, 'NULL'))")
    else:
        torn = row(None, 0, reason=literal("the event is no JSON object of the columns of the stream"))
        whole = [
            "WHEN nothing THEN array()",
            f"WHEN torn OR before.{bad} IS NOT NULL OR after.{bad} IS NOT NULL THEN array({torn})",
            *whole,
            f"WHEN op IS NULL THEN array({row(None, 0, reason=literal('no change record: it has no op'))})",
        ]
        other = row(None, 0, fault="concat('op ', op)")
    return f"CASE {' '.join(whole)} ELSE array({other}) END"


def columns_of(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of a stream of a change feed, with that of the kind of change."""
    given = tuple(columns)
    if any(c.name.lower() == CHANGE_TYPE for c in given):
        return given
    return (*given, Column(CHANGE_TYPE, "string"))


def json_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options of Spark's reader of JSON that say what a value means."""
    return {n: v for n, v in options.items() if _OF_JSON.match(n)}


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
