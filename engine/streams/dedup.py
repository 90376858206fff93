"""Events that come twice: of those with one id within a time of their arrival, the first counts.

Which ids there were is Spark's own state, in the checkpoint of the stream; it grows with the ids of that time. Events
arrive when their batch is planned, which the checkpoint knows: a batch that is read again drops the same ids.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...errors import StreamError, UnknownName
from ...parser.fragment import quote_name
from ...parser.join_graph import TableSchema
from ...parser.syntax import CreateStream
from ..catalog.streams import DEBEZIUM, StoredStream
from ..materialized.names import place_of
from .changes import BAD_ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour|day)s?")
_ARRIVED, _ALONE = "skimql arrived", "skimql alone"


def dedup_of(statement: CreateStream, schema: TableSchema) -> tuple[tuple[str, ...], str]:
    """The columns of the id, as the stream spells them, and the time; nothing where events may come twice.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_UNSUPPORTED`` beside change records whose images have one id, ``SKIMQL_BAD_SETTING`` for a time
        that is none.
    UnknownName
        ``SKIMQL_UNKNOWN_COLUMN``.
    """
    if not statement.dedup or statement.within is None:
        return (), ""
    sql = statement.sql
    if statement.changes is not None and statement.changes.text == DEBEZIUM:
        raise StreamError(
            "DEDUP beside CHANGES DEBEZIUM: the rows before and after a change have one id",
            "SKIMQL_STREAM_UNSUPPORTED",
            sql,
            place_of(statement.dedup[0]),
            "the statement without DEDUP",
        )
    within = " ".join(statement.within.text.lower().split())
    if not INTERVAL.fullmatch(within):
        raise StreamError(
            f"{statement.within.text!r} is no time",
            "SKIMQL_BAD_SETTING",
            sql,
            place_of(statement.within),
            "WITHIN '1 hour'",
        )
    known = {c.name.lower(): c.name for c in schema.columns}
    for part in statement.dedup:
        if part.text.lower() not in known:
            raise UnknownName(
                f"stream {schema.name} has no column {part.text}",
                "SKIMQL_UNKNOWN_COLUMN",
                sql,
                place_of(part),
                ", ".join(known.values()),
            )
    return tuple(dict.fromkeys(known[p.text.lower()] for p in statement.dedup)), within


def deduplicated(stream: StoredStream, frame: DataFrame) -> DataFrame:
    """The events of a stream without those whose id has come already; without an id, or unread, each is kept."""
    if not stream.dedup:
        return frame
    columns = frame.columns
    nameless = " OR ".join(f"{quote_name(c)} IS NULL" for c in stream.dedup)
    if BAD_ROW in columns:
        nameless += f" OR {quote_name(BAD_ROW)} IS NOT NULL"
    marked = frame.selectExpr(
        "*",
        f"current_timestamp() AS {quote_name(_ARRIVED)}",
        f"CASE WHEN {nameless} THEN uuid() END AS {quote_name(_ALONE)}",
    )
    marked = marked.withWatermark(quote_name(_ARRIVED), stream.within)
    return marked.dropDuplicatesWithinWatermark([*stream.dedup, _ALONE]).select(*map(quote_name, columns))
