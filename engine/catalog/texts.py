"""Values of GROUP BY as texts, and back: what Spark has for a value of a type, whatever program reads it."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

PLAIN = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date")
TIMES = ("timestamp", "timestamp_ntz")
_DECIMAL = re.compile(r"decimal\(\d{1,2},-?\d{1,2}\)")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def has_texts(kind: str) -> bool:
    """Whether values of a Spark type have a text."""
    return kind in (*PLAIN, *TIMES) or bool(_DECIMAL.fullmatch(kind))


def as_text(value: Any, kind: str) -> str | None:
    """A value of a Spark type as text, None for NULL; ValueError if it has none, a date beyond the year 9999 say.

    A timestamp is its microseconds since 1970, in UTC.
    """
    if value is None:
        return None
    match kind:
        case "string":
            return str(value)
        case "boolean":
            return "true" if value else "false"
        case "binary":
            return bytes(value).hex()
        case "float" | "double":
            return repr(float(value))
        case "timestamp" | "timestamp_ntz" if isinstance(value, datetime.datetime):
            moment = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
            return str((moment - _EPOCH) // _MICROSECOND)
        case "date" if isinstance(value, datetime.date):
            return value.isoformat()
        case "tinyint" | "smallint" | "int" | "bigint":
            return str(int(value))
        case _ if isinstance(value, Decimal) and _DECIMAL.fullmatch(kind):
            return f"{value:f}"
    raise ValueError(f"{value!r} has no text as {kind}")


def from_text(text: str | None, kind: str, zone: str) -> Any:
    """The value of a text, as Spark's results have it; timestamps in a time zone. ValueError if it is none."""
    if text is None:
        return None
    match kind:
        case "string":
            return text
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case "binary":
            return bytes.fromhex(text)
        case "float" | "double":
            return float(text)
        case "date":
            return datetime.date.fromisoformat(text)
        case "timestamp" | "timestamp_ntz":
            return _moment(int(text), zone if kind == "timestamp" else None)
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(text)
        case _ if _DECIMAL.fullmatch(kind) and re.fullmatch(r"-?\d{1,40}(\.\d{1,40})?", text):
            return Decimal(text)
    raise ValueError(f"{text[:40]!r} is no {kind[:40]}")


def _moment(microseconds: int, zone: str | None) -> datetime.datetime:
    """A moment in a time zone; in UTC where nobody here knows the zone. ValueError where Python has none."""
    import pyarrow as pa

    try:
        plain = _EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError as fault:
        raise ValueError(f"{microseconds} is no moment of the years 1 to 9999") from fault
    if zone is None:
        return plain
    try:
        found: datetime.datetime = pa.scalar(microseconds, pa.timestamp("us", zone)).as_py()
        return found
    except (ValueError, KeyError, OverflowError, pa.ArrowException):
        return plain.replace(tzinfo=datetime.UTC)
