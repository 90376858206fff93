"""Columns of values with their Spark type, and the faults that computing them may raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UnsupportedQuery
from ...parser.result_types import digits
from ...parser.types import INTEGRAL_DIGITS

NOT_IN_MEMORY = "SKIMQL_NOT_IN_MEMORY"
MAX_DIGITS = 76  # of an Arrow decimal256
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_SPARK = {kind: name for name, kind in _ARROW.items()}


class ValueFault(ValueError):
    """A value that cannot be computed, where Spark in ANSI mode fails too."""


@dataclass(frozen=True, slots=True)
class Value:
    """A column: its Spark type, its values, and how many digits a whole number has that is written."""

    kind: str
    data: pa.Array
    written: int | None = None

    def __len__(self) -> int:
        return len(self.data)


def not_known(what: str) -> UnsupportedQuery:
    """What Spark can evaluate and this backend cannot."""
    return UnsupportedQuery(
        f"{what} cannot be evaluated in memory", NOT_IN_MEMORY, hint="a Session on Spark evaluates it"
    )


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type that holds values of a Spark type; UnsupportedQuery for one that is not known here."""
    if kind.startswith("decimal("):
        return pa.decimal128(*digits(kind))
    if kind not in _ARROW:
        raise not_known(f"a value of type {kind}")
    return _ARROW[kind]


def spark_type(kind: pa.DataType) -> str:
    """The name of the Spark type of an Arrow column."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_date64(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{spark_type(f.type)}' for f in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_unsigned_integer(kind):
        # Spark reads them from Parquet in the next wider type.
        return {8: "smallint", 16: "int", 32: "bigint", 64: "decimal(20,0)"}[kind.bit_width]
    return _SPARK.get(kind, str(kind))


def column_of(column: pa.ChunkedArray | pa.Array) -> Value:
    """A column of a table as it is computed with."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, array.type)
    kind = spark_type(array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    wanted = arrow_type(kind)
    if array.type != wanted:
        # Nanoseconds lose their last digits, as in Spark.
        array = pc.cast(array, wanted, safe=not pa.types.is_timestamp(wanted))
    return Value(kind, array)


def repeated(kind: str, value: Any, count: int) -> Value:
    """A constant."""
    if value is None:
        return Value(kind, pa.nulls(count, arrow_type(kind)))
    return Value(kind, pa.repeat(pa.scalar(value, arrow_type(kind)), count))


def by_value(array: pa.Array, function: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """A function of Python applied to the distinct values of a column, NULL to NULL."""
    encoded = array.dictionary_encode()
    made = pa.array([None if v is None else function(v) for v in encoded.dictionary.to_pylist()], kind)
    return pc.take(made, encoded.indices)


def is_integer(kind: str) -> bool:
    """Whether a type holds whole numbers, of any width."""
    return kind in INTEGRAL_DIGITS


def is_fraction(kind: str) -> bool:
    """Whether a type is FLOAT or DOUBLE."""
    return kind in ("float", "double")


def is_decimal(kind: str) -> bool:
    """Whether a type is a DECIMAL."""
    return kind.startswith("decimal(")


def is_number(kind: str) -> bool:
    """Whether values of a type can be computed with."""
    return is_integer(kind) or is_fraction(kind) or is_decimal(kind)


def any_true(array: pa.Array) -> bool:
    """Whether any value is true; NULL is not."""
    return bool(pc.any(array).as_py())
