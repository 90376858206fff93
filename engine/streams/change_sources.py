"""Which sources may have change records, and which folders must not be read as if every file brought new rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import StreamError
from ...parser.join_graph import Column
from ...parser.syntax import CreateStream
from ..catalog.streams import DEBEZIUM, DELTA
from ..materialized.names import place_of
from .changes import CHANGE_TYPE, columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENVELOPE = ("op", "before", "after")


def columns_read(statement: CreateStream, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a stream of change records.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_UNSUPPORTED`` for a source that cannot have such records, ``SKIMQL_BAD_COLUMNS`` for columns
        that are not theirs.
    """
    assert statement.changes is not None, "asked for"
    kind, sql, place = statement.changes.text, statement.sql, place_of(statement.changes)
    if statement.format == "rate" or (kind == DEBEZIUM and statement.format == "csv"):
        raise StreamError(
            f"{statement.format.upper()} has no change records of {kind.capitalize()}",
            "SKIMQL_STREAM_UNSUPPORTED",
            sql,
            place,
            "FROM JSON 'folder'",
        )
    if kind == DEBEZIUM:
        lines = next(
            (n for n, v in statement.options.items() if n.lower() == "multiline" and v != "false"), None
        )
        if lines is not None:
            raise StreamError(
                "a change record is one line of JSON",
                "SKIMQL_STREAM_UNSUPPORTED",
                sql,
                place,
                "without multiLine",
            )
        return tuple(columns)
    if statement.format == "csv" and all(c.name.lower() != CHANGE_TYPE for c in columns):
        raise StreamError(
            f"a change feed in CSV has the column {CHANGE_TYPE}, which is not among those of the stream",
            "SKIMQL_BAD_COLUMNS",
            sql,
            place,
            f"({', '.join(c.name for c in columns)}, {CHANGE_TYPE} STRING), in the order of the files",
        )
    return columns_of(columns)


def rows_of_changes(name: str, frame: DataFrame, changes: str | None) -> DataFrame:
    """The rows whose changes a DataFrame has, as far as their columns tell; the DataFrame itself where it has rows.

    Raises
    ------
    StreamError
        ``SKIMQL_BAD_COLUMNS`` if it has no such records.
    """
    kind = (changes or "").lower()
    if kind == DELTA and CHANGE_TYPE not in frame.columns:
        raise StreamError(
            f"the DataFrame of {name} has no column {CHANGE_TYPE}: it is no change feed",
            "SKIMQL_BAD_COLUMNS",
            hint='.option("readChangeFeed", "true") of a table with delta.enableChangeDataFeed = true',
        )
    if kind != DEBEZIUM:
        return frame
    from pyspark.sql.types import StructType

    outer = frame.schema
    if "payload" in outer.names and isinstance(outer["payload"].dataType, StructType):
        frame = frame.selectExpr("payload.*")
    inner = frame.schema
    images = [inner[n].dataType for n in _ENVELOPE[1:] if n in inner.names]
    if not set(_ENVELOPE) <= set(inner.names) or not all(isinstance(i, StructType) for i in images):
        raise StreamError(
            f"the DataFrame of {name} has no Debezium envelopes: op STRING, before STRUCT<...>, after STRUCT<...>",
            "SKIMQL_BAD_COLUMNS",
            hint='from_json(value, "op STRING, before STRUCT<...>, after STRUCT<...>"), and its fields',
        )
    before, after = images
    if before.simpleString() != after.simpleString():
        raise StreamError(
            f"before and after of {name} have other columns: {before.simpleString()} and {after.simpleString()}",
            "SKIMQL_BAD_COLUMNS",
            hint="one type for both",
        )
    return frame.selectExpr("after.*")


def refuse_table_folder(path: str, sql: str, place: tuple[int, int] | None) -> None:
    """Refuse the folder of a table whose files an update or a deletion writes anew.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_OF_TABLE``.
    """
    found = next((kind for mark, kind in _TABLES.items() if os.path.isdir(os.path.join(path, mark))), None)
    if found is not None:
        raise StreamError(
            f"{path} is a table of {found}: an update or a deletion writes its files anew, and their rows would be"
            " counted again",
            "SKIMQL_STREAM_OF_TABLE",
            sql,
            place,
            "its change feed as files, FROM PARQUET 'folder' CHANGES DELTA (delta.enableChangeDataFeed = true);"
            " or session.stream(name, df, changes='delta')",
        )


_TABLES = {"_delta_log": "Delta", ".hoodie": "Hudi"}
