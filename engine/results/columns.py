"""The columns of a result: their names, their types, and values of these types.

The user's names stand as they are; what SkimQL puts beside them (bounds, exact values, certificates) takes the next
free name. Estimates are rounded to the type that Spark gives the exact value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from ...errors import DataError
from ...sketches.intervals.interval import Estimate
from ..sources.python_values import arrow_column

_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
_ROOM = Context(prec=100)


@dataclass(slots=True)
class Names:
    """Hands out names that no column has yet, ignoring case as Spark does: ``n``, else ``n_2``, ``n_3``, ..."""

    taken: set[str] = field(default_factory=set)

    def free(self, name: str) -> str:
        """The name, or the first numbered one that is free; it is taken from now on."""
        free, number = name, 2
        while free.lower() in self.taken:
            free, number = f"{name}_{number}", number + 1
        self.taken.add(free.lower())
        return free


def unique(names: Sequence[str]) -> tuple[tuple[str, ...], Names]:
    """The names with repeated ones numbered, none that stands there once changed; and what is taken then."""
    ours = Names({n.lower() for n in names})
    seen: set[str] = set()
    found = []
    for name in names:
        found.append(ours.free(name) if name.lower() in seen else name)
        seen.add(name.lower())
    return tuple(found), ours


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result; without a type its values say what it is."""

    name: str
    type: pa.DataType | None
    values: Sequence[Any]

    def array(self) -> pa.Array:
        """The column for Arrow."""
        return arrow_column(self.values, self.type)


def arrow_type(name: str | None) -> pa.DataType | None:
    """The Arrow type of a Spark type in ``simpleString`` form; None for what is nested, or in a time zone."""
    if name is not None and name.startswith("decimal("):
        precision, scale = name[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _TYPES.get(name or "")


def told_types(
    columns: Sequence[str], numbers: Sequence[str], rows: Sequence[Any]
) -> tuple[pa.DataType | None, ...]:
    """The types of what a statement tells, which are the same whatever there is to tell: texts, and whole numbers."""
    whole = None if rows else pa.int64()
    return tuple(whole if name in numbers else pa.string() for name in columns)


def typed(value: Any, kind: pa.DataType | None) -> Any:
    """A value, or that of an estimate, in the type of its column; None for NULL, and for what nothing is known of.

    Raises
    ------
    DataError
        ``SKIMQL_OVERFLOW`` if the type cannot hold it.
    """
    if isinstance(value, Estimate):
        value = value.value
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if kind is not None and pa.types.is_boolean(kind):
            return bool(value)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal)):
        return value
    if isinstance(value, float):
        value = float(value)  # numpy's writes itself differently
        if not math.isfinite(value):
            return value
    if kind is None:
        return float(value) if isinstance(value, Fraction) else value
    if pa.types.is_integer(kind):
        return _integer(value, kind)
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    return float(value) if pa.types.is_floating(kind) else value


def ends(cell: Any, value: Any) -> tuple[float | None, float | None]:
    """The interval of a cell as DOUBLEs, the rounded value in it; None where there is no bound."""
    if not isinstance(cell, Estimate):
        return _double(cell), _double(cell)
    low, high = _double(cell.low), _double(cell.high)
    if cell.exact or value is None:
        return low, high
    return (
        None if low is None else min(low, float(value)),
        None if high is None else max(high, float(value)),
    )


def _double(value: Any) -> float | None:
    """DOUBLE as SQL has it: an unknown or unbounded number is NULL."""
    if value is None or not isinstance(value, (int, float, Fraction, Decimal)):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _integer(value: float | Fraction | Decimal, kind: pa.DataType) -> int:
    whole = round(value)
    most = 1 << (kind.bit_width - 1)
    if not -most <= whole < most:
        raise _out_of_range(value, "BIGINT" if kind.bit_width == 64 else str(kind))
    return whole


def _decimal(value: float | Fraction | Decimal, kind: pa.DataType) -> Decimal:
    """Rounded half up, as Spark rounds."""
    scale = kind.scale
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    units = abs(exact) * 10**scale
    whole = (2 * units.numerator + units.denominator) // (2 * units.denominator)
    if whole >= 10**kind.precision:
        raise _out_of_range(value, f"DECIMAL({kind.precision},{scale})")
    return Decimal(-whole if exact < 0 else whole).scaleb(-scale, _ROOM)


def _out_of_range(value: float | Fraction | Decimal, name: str) -> DataError:
    return DataError(f"{float(value):,.6g} does not fit {name}, the type of the result", "SKIMQL_OVERFLOW")


def columns_by_rows(columns: Iterable[ResultColumn]) -> list[dict[str, Any]]:
    """One dict a row."""
    columns = list(columns)
    names = [c.name for c in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*(c.values for c in columns), strict=True)]


def relative_error(value: Any, truth: Any) -> float | None:
    """|value - truth| / |truth|, or None where either is NULL or no number, or the truth is 0 and missed."""
    known = [
        v
        for v in (value, truth)
        if isinstance(v, (int, float, Decimal, Fraction)) and not isinstance(v, bool)
    ]
    if len(known) < 2 or not all(math.isfinite(v) for v in known):
        return None
    if truth == 0:
        return 0.0 if value == 0 else None
    return float(abs(Fraction(value) - Fraction(truth)) / abs(Fraction(truth)))
