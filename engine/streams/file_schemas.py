"""The columns of the Parquet files of a batch beside those of their stream.

Spark reads a column that a file lacks as NULL, and fails on one of another type within a task, by the names of its
classes: both are told here, with both schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import StreamError
from ..catalog.streams import StoredStream

# What Spark reads as columns of these types; of others nothing is said beforehand.
_READ = {
    "bigint": ("int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"),
    "int": ("int32", "int16", "int8", "uint16", "uint8"),
    "double": ("double", "float", "int32", "int16", "int8"),
    "float": ("float",),
    "string": ("string", "large_string", "binary", "large_binary"),
    "boolean": ("bool",),
}


def refuse_lacking(stream: StoredStream, batch: int, files: Sequence[str]) -> None:
    """Stop before a batch whose files lack a column of their stream.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_TYPE``.
    """
    for file in files:
        names = _columns(file)
        # What stands in the names of folders is a column, too.
        folders = {part.partition("=")[0].lower() for part in Path(file).parts if "=" in part}
        gone = [c.name for c in stream.columns if c.name.lower() not in {*names, *folders}]
        if names and gone:
            raise _other(stream, batch, file, f"has no column {', '.join(gone)}")


def other_types(stream: StoredStream, batch: int, files: Sequence[str]) -> StreamError | None:
    """The error for a batch with a file whose columns are of types that Spark does not read as those of the stream."""
    for file in files:
        names = _columns(file)
        for column in stream.columns:
            field = names.get(column.name.lower())
            if field is not None and str(field.type) not in _READ.get(column.type, (str(field.type),)):
                return _other(stream, batch, file, f"has {column.name} as {field.type}")
    return None


def _columns(file: str) -> Mapping[str, pa.Field]:
    """The columns of a file by lower-cased name; none of what is no Parquet file, which Spark tells."""
    try:
        return {field.name.lower(): field for field in pq.read_schema(file)}
    except (OSError, pa.ArrowException):
        return {}


def _other(stream: StoredStream, batch: int, file: str, what: str) -> StreamError:
    there = ", ".join(f"{f.name} {f.type}" for f in _columns(file).values())
    return StreamError(
        f"batch {batch} of stream {stream.name}: file {file} {what}; it has ({there}), the stream ({stream.ddl})",
        "SKIMQL_STREAM_TYPE",
        hint=f"the file as it should be, under its name, then RESUME; or CREATE OR REPLACE STREAM {stream.name} (...)"
        " with the columns that there are",
    )
