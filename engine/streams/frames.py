"""What Spark reads a stream's rows with: the same columns from micro-batches and from files read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..catalog.streams import StoredStream
from .state import BAD_ROW, READ_AS_TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def whole_rows(reader: Any, stream: StoredStream, where: str | list[str]) -> DataFrame:
    """The rows of a folder, or of files, with those that cannot be read beside the others.

    One row set for all queries: no row is read only as far as a query needs it.
    """
    from pyspark.sql import functions as F

    ddl = stream.ddl
    if stream.format in READ_AS_TEXT:
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=BAD_ROW, columnPruning="false")
        ddl = f"{ddl}, `{BAD_ROW}` STRING"
    frame: DataFrame = reader.schema(ddl).load(where)
    if stream.format in READ_AS_TEXT:
        frame = frame.select("*", F.col("_metadata.file_path").alias("skimql file"))
    return frame
