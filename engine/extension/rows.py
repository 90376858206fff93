"""A small table as the jar takes it: types and rows as a text, of which the JVM makes a relation without a job."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa

# What has more is handed over as a DataFrame.
MOST_ROWS = 10_000


def rows_text(table: pa.Table) -> str | None:
    """The table as JSON; None where it is large, or has what JSON does not hold."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructType

    if table.num_rows > MOST_ROWS or not all(_fits_json(field.type) for field in table.schema):
        return None
    schema = StructType()
    for field in table.schema:
        schema.add(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
    columns = [_values(column) for column in table.columns]
    rows = list(zip(*columns, strict=True))
    return json.dumps({"schema": schema.json(), "rows": rows}, allow_nan=False)


def _fits_json(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_signed_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_date32(kind)
        or (pa.types.is_timestamp(kind) and kind.unit == "us")
        or pa.types.is_null(kind)
    )


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values as JSON has them: decimals, and numbers that are none, as texts; times in units since 1970."""
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    return [_java(v) for v in values] if pa.types.is_floating(kind) else values


def _java(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
