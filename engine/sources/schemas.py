"""The schema of a DataFrame as the parser sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...parser.join_graph import Column, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField


# Where Spark keeps the declared type of a column of CHAR or VARCHAR.
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


def schema_of(name: str, frame: DataFrame) -> TableSchema:
    """The schema of a DataFrame as the parser sees it."""
    fields = frame.schema.fields
    padded = any(_CHAR in f.metadata for f in fields) and not _takes_char_as_text(frame)
    return TableSchema(name, tuple(Column(f.name, _type_of(f, padded)) for f in fields))


def _type_of(field: StructField, padded: bool) -> str:
    """The type of a column; Spark shows a CHAR as STRING, and what it is beside it."""
    declared = str(field.metadata.get(_CHAR, "")).lower()
    kind: str = field.dataType.simpleString()
    return declared if padded and kind == "string" and declared.startswith("char(") else kind


def _takes_char_as_text(frame: DataFrame) -> bool:
    """Whether Spark neither pads CHAR nor compares it in a way of its own."""
    return frame.sparkSession.conf.get("spark.sql.legacy.charVarcharAsString", "false") == "true"
