"""Casts in ANSI mode: what Spark casts without a doubt; a value out of range or of no form fails, as there."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...parser.result_types import digits
from .values import (
    BITS,
    Value,
    ValueFault,
    any_true,
    arrow_type,
    by_value,
    is_decimal,
    is_fraction,
    is_integer,
    is_number,
    not_known,
)

EXACT_DOUBLE = 1 << 53
_BLANKS = "".join(map(chr, range(33)))
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ODD_NUMBER = re.compile(r"[+-]?(inf|infinity|nan|0x.*|.*[df])", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?")
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?"
_TIME = re.compile(rf"([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T](?:{_CLOCK})?)?)?)?")
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_ROOM = Context(prec=200)


def cast(value: Value, kind: str, zone: str = "UTC") -> Value:
    """A column in another type; `zone` is the session's time zone.

    Raises
    ------
    ValueFault
        If a value does not fit.
    UnsupportedQuery
        If the cast is not known.
    """
    if value.kind == kind:
        return value
    if value.kind == "void":
        return Value(kind, pa.nulls(len(value), arrow_type(kind)))
    found = _cast(value.kind, value.data, kind, zone)
    if found is None:
        raise not_known(f"a cast of {value.kind} to {kind}")
    return Value(kind, found)


def to_precision(data: pa.Array, kind: str) -> pa.Array:
    """A decimal of any size rounded half up to a DECIMAL; ValueFault where it does not fit."""
    precision, scale = digits(kind)
    if data.type.scale > scale:
        # A digit more, which rounding may carry over.
        wide = pa.decimal256(min(76, data.type.precision + 1), data.type.scale)
        data = pc.round(data.cast(wide), scale, "half_towards_infinity")
    most = Decimal(10) ** (precision - scale)
    whole = data.type.precision - data.type.scale
    if whole > precision - scale:
        bound = pa.scalar(_ROOM.create_decimal(most), pa.decimal256(76, 0)).cast(pa.decimal256(76, 0))
        size = pc.abs(data)
        if any_true(pc.greater_equal(_wide(size), bound)):
            raise ValueFault(f"a value does not fit {kind}")
    return pc.cast(data, arrow_type(kind), safe=False)


def _wide(data: pa.Array) -> pa.Array:
    """The whole part of decimals."""
    return pc.cast(pc.trunc(data), pa.decimal256(76, 0), safe=False)


def _cast(source: str, data: pa.Array, kind: str, zone: str) -> pa.Array | None:
    if source == "string":
        return _from_text(data, kind, zone)
    if kind == "string":
        return _to_text(source, data, zone)
    if source == "boolean" and is_number(kind):
        return _from_number("tinyint", data.cast(pa.int8()), kind)
    if is_number(source):
        return _from_number(source, data, kind)
    return _between_times(source, data, kind, zone)


def _from_number(source: str, data: pa.Array, kind: str) -> pa.Array | None:
    if kind == "boolean" and not is_decimal(source):
        return pc.not_equal(data, pa.scalar(0, data.type))
    if is_fraction(kind):
        return _to_fraction(source, data, kind)
    if is_integer(kind):
        return _to_integer(source, data, kind)
    if is_decimal(kind):
        return _to_decimal(source, data, kind)
    return None


def _to_fraction(source: str, data: pa.Array, kind: str) -> pa.Array:
    wanted = arrow_type(kind)
    if not is_decimal(source):
        return pc.cast(data, wanted, safe=False)
    _, scale = digits(source)
    if kind == "double" and scale <= 22:
        # One rounding: the unscaled number and the power of ten are both exact.
        size = pc.max(pc.abs(data)).as_py()
        if size is None or size * 10**scale < EXACT_DOUBLE:
            return pc.divide(unscaled(data).cast(pa.float64()), pa.scalar(float(10**scale)))
    if kind == "float":
        return by_value(data, lambda v: float(np.float32(str(v))), wanted)
    return by_value(data, float, wanted)


def unscaled(data: pa.Array) -> pa.Array:
    """The unscaled numbers of decimals (decimal128) that fit 64 bits, as BIGINT."""
    if not len(data):
        return pa.array([], pa.int64())
    words = np.frombuffer(data.buffers()[1], "<i8")[2 * data.offset : 2 * (data.offset + len(data)) : 2]
    nulls = data.is_null().to_numpy(zero_copy_only=False) if data.null_count else None
    return pa.array(words, pa.int64(), mask=nulls)


def whole_unscaled(data: pa.Array) -> list[int | None]:
    """The unscaled numbers of decimals of any size."""
    scale = data.type.scale
    return [None if v is None else int(v.scaleb(scale, _ROOM)) for v in data.to_pylist()]


def _to_integer(source: str, data: pa.Array, kind: str) -> pa.Array:
    bits = BITS[kind]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if is_integer(source):
        try:
            return pc.cast(data, arrow_type(kind))
        except pa.ArrowInvalid as fault:
            raise ValueFault(f"a value does not fit {kind}") from fault
    whole = pc.trunc(data)
    if is_decimal(source):
        wide = pc.cast(whole, pa.decimal256(76, 0), safe=False)
        bounds = [pa.scalar(Decimal(n), pa.decimal256(76, 0)) for n in (low, high)]
        if any_true(pc.or_(pc.less(wide, bounds[0]), pc.greater(wide, bounds[1]))):
            raise ValueFault(f"a value does not fit {kind}")
        return pc.cast(wide, arrow_type(kind))
    # Also NaN, which is in no range.
    inside = pc.and_(
        pc.greater_equal(pc.cast(whole, pa.float64()), float(low)),
        pc.less(pc.cast(whole, pa.float64()), float(high + 1)),
    )
    if any_true(pc.invert(inside)):
        raise ValueFault(f"a value does not fit {kind}")
    return pc.cast(whole, arrow_type(kind), safe=False)


def _to_decimal(source: str, data: pa.Array, kind: str) -> pa.Array:
    if is_integer(source):
        return to_precision(pc.cast(data, pa.decimal256(20, 0)), kind)
    if is_decimal(source):
        precision, scale = digits(source)
        return to_precision(pc.cast(data, pa.decimal256(precision, scale)), kind)
    narrow = source == "float"

    def made(number: float) -> Decimal | None:
        # The digits that are shown decide, as in Java; what is no number becomes NULL.
        shown = str(np.float32(number)) if narrow else repr(number)
        return _decimal(Decimal(shown), kind) if math.isfinite(number) else None

    return by_value(data, made, arrow_type(kind))


def _decimal(number: Decimal, kind: str) -> Decimal:
    precision, scale = digits(kind)
    with localcontext(_ROOM):
        found = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        if abs(found) >= Decimal(10) ** (precision - scale):
            raise ValueFault(f"{number} does not fit {kind}")
    return found


def _from_text(data: pa.Array, kind: str, zone: str) -> pa.Array | None:
    parse: Callable[[str], Any]
    if is_integer(kind):
        low, high = -(1 << (BITS[kind] - 1)), (1 << (BITS[kind] - 1)) - 1

        def parse(text: str) -> int:
            if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
                raise ValueFault(f"'{text}' cannot be cast to {kind}")
            return int(text)

    elif kind == "double":

        def parse(text: str) -> float:
            return float(_number_text(text, kind))

    elif is_decimal(kind):

        def parse(text: str) -> Decimal:
            return _decimal(Decimal(_number_text(text, kind)), kind)

    elif kind == "boolean":

        def parse(text: str) -> bool:
            if text.lower() not in (*_TRUE, *_FALSE):
                raise ValueFault(f"'{text}' cannot be cast to {kind}")
            return text.lower() in _TRUE

    elif kind == "date":
        parse = _date
    elif kind in ("timestamp", "timestamp_ntz"):
        local = by_value(data, lambda text: _time(text.strip(_BLANKS)), pa.timestamp("us"))
        return _zoned(local, zone) if kind == "timestamp" else local
    elif kind == "binary":
        return data.cast(pa.binary())
    else:
        return None
    return by_value(data, lambda text: parse(text.strip(_BLANKS)), arrow_type(kind))


def _number_text(text: str, kind: str) -> str:
    if _NUMBER.fullmatch(text):
        return text
    if _ODD_NUMBER.fullmatch(text):
        raise not_known(f"'{text}' as a number")
    raise ValueFault(f"'{text}' cannot be cast to {kind}")


def _date(text: str) -> datetime.date:
    found = _DATE.fullmatch(text)
    if found is None:
        if re.match(r"[+-]?[0-9]{5}|[+-][0-9]", text):
            raise not_known(f"the date '{text}'")
        raise ValueFault(f"'{text}' cannot be cast to date")
    try:
        return datetime.date(*(int(part or 1) for part in found.groups()))
    except ValueError as fault:
        raise ValueFault(f"'{text}' cannot be cast to date") from fault


def _time(text: str) -> datetime.datetime:
    found = _TIME.fullmatch(text)
    if found is None:
        if re.fullmatch(r"[0-9T:. +-]*([A-Za-z/]+[0-9:+-]*)?", text):
            raise not_known(f"the timestamp '{text}'")
        raise ValueFault(f"'{text}' cannot be cast to timestamp")
    year, month, day, hour, minute, second, fraction = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6] or 0)
    try:
        return datetime.datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            micros,
        )
    except ValueError as fault:
        raise ValueFault(f"'{text}' cannot be cast to timestamp") from fault


def _to_text(source: str, data: pa.Array, zone: str) -> pa.Array | None:
    if is_integer(source) or source in ("boolean", "date"):
        return pc.cast(data, pa.string())
    if is_decimal(source):
        return by_value(data, lambda v: format(v, "f"), pa.string())
    if source == "binary":
        try:
            return data.cast(pa.string())
        except pa.ArrowInvalid as fault:
            raise not_known("bytes that are no text, as text,") from fault
    if source in ("timestamp", "timestamp_ntz"):
        local = local_time(data, zone)
        return by_value(local, _time_text, pa.string())
    return None


def _time_text(moment: datetime.datetime) -> str:
    shown = moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    return shown + (f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else "")


def _between_times(source: str, data: pa.Array, kind: str, zone: str) -> pa.Array | None:
    match source, kind:
        case "date", "timestamp":
            return _zoned(data.cast(pa.timestamp("us")), zone)
        case "date", "timestamp_ntz":
            return data.cast(pa.timestamp("us"))
        case (("timestamp" | "timestamp_ntz"), "date"):
            return pc.cast(pc.floor_temporal(local_time(data, zone), unit="day"), pa.date32())
        case "timestamp", "timestamp_ntz":
            return local_time(data, zone)
        case "timestamp_ntz", "timestamp":
            return _zoned(data, zone)
        case "timestamp", "bigint":
            return _seconds(data)
    return None


def _seconds(data: pa.Array) -> pa.Array:
    micros = data.cast(pa.int64())
    floored = np.floor_divide(micros.fill_null(0).to_numpy(), 1_000_000)
    return pa.array(floored, mask=micros.is_null().to_numpy(zero_copy_only=False))


def local_time(data: pa.Array, zone: str) -> pa.Array:
    """Timestamps as the wall clock of a time zone shows them."""
    if data.type.tz is None:
        return data
    return pc.local_timestamp(data.cast(pa.timestamp("us", zone)))


def _zoned(local: pa.Array, zone: str) -> pa.Array:
    if zone == "UTC":
        return local.cast(pa.timestamp("us", "UTC"))
    try:
        moments = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise")
    except pa.ArrowInvalid as fault:
        raise not_known(f"a time that {zone} skips, or such a zone") from fault
    return moments.cast(pa.timestamp("us", "UTC"))
