"""Arrow columns as Python values, those included for which Python has none: dates outside the years 1 to 9999."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, None for NULL.

    Dates and timestamps are `datetime` values. If Python cannot hold one of a column, all of it are
    `numpy.datetime64`, timestamps as the wall clock of their time zone shows them; within arrays and structs they are
    text.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return _beyond_python(column)
    return values


def _beyond_python(column: pa.ChunkedArray) -> list[Any]:
    import numpy as np
    import pyarrow.compute as pc

    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            column = pc.local_timestamp(column)
        return [None if np.isnat(v) else v for v in column.to_numpy()]
    texts: list[Any] = column.cast(_with_texts(column.type)).to_pylist()
    return texts


def arrow_column(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """The inverse of `python_values`, for a column of a type or of what its values are."""
    import numpy as np
    import pyarrow.compute as pc

    there = next((v for v in values if isinstance(v, np.datetime64)), None)
    if there is None:
        return pa.nulls(0) if kind is None and not len(values) else _of_python(values, kind)
    made = pa.array(np.array([np.datetime64("NaT") if v is None else v for v in values], there.dtype))
    if kind is None or kind == made.type:
        return made
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        made = pc.assume_timezone(made, kind.tz, ambiguous="earliest", nonexistent="earliest")
    return made.cast(kind)


def _of_python(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    """Arrow values of Python's.

    Where PYARROW_IGNORE_TIMEZONE is set, as pyspark.pandas does for the whole process, pyarrow takes the wall clock of
    a time in a zone for that of UTC; so it gets times in UTC.
    """
    if kind is None:
        zone = next((v.tzinfo for v in values if isinstance(v, datetime) and v.tzinfo is not None), None)
        kind = None if zone is None else pa.timestamp("us", pa.lib.tzinfo_to_string(zone))
    return pa.array(list(map(_in_utc, values)), kind)


def _in_utc(value: Any) -> Any:
    """A value with its times, those within lists and structs too, in UTC where they have a zone."""
    match value:
        case datetime(tzinfo=zone) if zone is not None:
            # Within hours of the ends of Python's calendar it has no such time.
            with contextlib.suppress(OverflowError):
                return value.astimezone(UTC)
        case dict():
            return {k: _in_utc(v) for k, v in value.items()}
        case list() | tuple():
            return [_in_utc(v) for v in value]
    return value


def with_loose_structs(frame: DataFrame) -> DataFrame:
    """The frame with every field within its structs nullable.

    Where a struct is NULL, Arrow has NULL fields too, and pyspark fails on those that are not nullable.
    """
    from pyspark.sql import functions as F

    loose = [_loose(f.dataType) for f in frame.schema.fields]
    if loose == [f.dataType for f in frame.schema.fields]:
        return frame
    # By numbers: several columns may have one name.
    apart = frame.toDF(*(f"c{i}" for i in range(len(loose))))
    columns = zip(loose, frame.columns, strict=True)
    return apart.select(*(F.col(f"c{i}").cast(t).alias(name) for i, (t, name) in enumerate(columns)))


def _loose(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _loose(f.dataType), True, f.metadata) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_loose(kind.elementType), kind.containsNull)
    return kind


def _with_texts(kind: pa.DataType) -> pa.DataType:
    """The type with text in the place of dates and timestamps."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _with_texts(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_with_texts(kind.value_type))
    return pa.string() if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else kind


def in_zone(spark: SparkSession, table: pa.Table) -> pa.Table:
    """The table with its times in the zone of the session: the same moments, read as Spark shows them."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    kinds = [zoned(kind, zone) for kind in table.schema.types]
    if kinds == table.schema.types:
        return table
    columns = [c.cast(k) for c, k in zip(table.columns, kinds, strict=True)]
    return pa.Table.from_arrays(columns, names=table.column_names)


def zoned(kind: pa.DataType, zone: str) -> pa.DataType:
    """A time in the session's zone, where Arrow knows it by the same name."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return kind
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        # Spark takes GMT+2 and +2 too; Arrow reads +02:00.
        found = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?", zone)
        if found is None:
            return kind
        zone = f"{found[1]}{int(found[2]):02}:{found[3] or '00'}"
    return pa.timestamp(kind.unit, zone)
