"""Arrow columns as Python values, those included for which Python has none: dates outside the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


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
    texts: list[Any] = column.cast(with_types(column.type, dates=pa.string())).to_pylist()
    return texts


def nullable(table: pa.Table) -> pa.Table:
    """The table with every field within its structs nullable: Spark has none in a struct that is NULL itself."""
    columns: Sequence[pa.ChunkedArray] = [c.cast(with_types(c.type)) for c in table.columns]
    return pa.table(list(columns), names=table.column_names)


def with_types(kind: pa.DataType, dates: pa.DataType | None = None) -> pa.DataType:
    """The type with its structs' fields nullable, and another type in the place of dates and timestamps."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, with_types(f.type, dates)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(with_types(kind.value_type, dates))
    if dates is not None and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return dates
    return kind
