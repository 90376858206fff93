"""What Spark reads a stream's rows with: the same columns from micro-batches and from files read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..catalog.streams import DEBEZIUM, StoredStream
from .changes import ENVELOPES_AS_TEXT, FILE, image_schema, rows
from .state import BAD_ROW, READ_AS_TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_HEADER_AS_SAID = "enforceschema"


def whole_rows(reader: Any, stream: StoredStream, where: str | list[str]) -> DataFrame:
    """The rows of a folder, or of files, with those that cannot be read beside the others.

    One row set for all queries: no row is read only as far as a query needs it. Of change records the rows that they
    insert and delete.
    """
    from pyspark.sql import functions as F

    ddl = stream.ddl if stream.changes != DEBEZIUM else image_schema(stream)
    if stream.changes == DEBEZIUM and stream.format in ENVELOPES_AS_TEXT:
        reader, ddl = reader.format("text"), "value STRING"
    elif stream.format in READ_AS_TEXT:
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=BAD_ROW, columnPruning="false")
        ddl = f"{ddl}, `{BAD_ROW}` STRING"
        if not any(name.lower() == _HEADER_AS_SAID for name in stream.options):
            # A header that names other columns, or in another order, stops the stream: by default it is skipped.
            reader = reader.option(_HEADER_AS_SAID, "false")
    frame: DataFrame = reader.schema(ddl).load(where)
    if stream.format in READ_AS_TEXT:
        frame = frame.select("*", F.col("_metadata.file_path").alias(FILE))
    return rows(stream, frame)
