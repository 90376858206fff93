"""Dates that an interval of days, months or years is added to or taken from."""

from __future__ import annotations

import datetime

import pyarrow as pa
from sqlglot import exp

from .values import Value, by_value, not_known

_MONTHS = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12}
_DAYS = {"DAY": 1, "DAYS": 1}


def shifted(value: Value, interval: exp.Interval, sign: int, text: str) -> Value:
    """``value + interval`` or, with a `sign` of -1, ``value - interval``: a date again, as Spark has it.

    A day that its month has not becomes the last one of the month.

    Raises
    ------
    UnsupportedQuery
        For anything but a date and a written number of days, months or years; `text` is the expression.
    """
    unit = interval.unit.name.upper() if interval.unit is not None else ""
    written = interval.this.name.strip() if isinstance(interval.this, exp.Literal) else ""
    digits = written.removeprefix("-")
    if (
        value.kind != "date"
        or unit not in {*_MONTHS, *_DAYS}
        or not digits.isdecimal()
        or not digits.isascii()
    ):
        raise not_known(text)
    number = sign * int(written)

    def moved(day: datetime.date) -> datetime.date:
        if unit in _DAYS:
            return day + datetime.timedelta(days=number)
        months = 12 * day.year + day.month - 1 + number * _MONTHS[unit]
        year, month = divmod(months, 12)
        after = datetime.date(year + (month == 11), (month + 1) % 12 + 1, 1)
        return datetime.date(year, month + 1, min(day.day, (after - datetime.timedelta(days=1)).day))

    try:
        return Value("date", by_value(value.data, moved, pa.date32()))
    except (ValueError, OverflowError) as fault:
        raise not_known(text) from fault
