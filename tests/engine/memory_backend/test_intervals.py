"""Dates moved by intervals: a day that its month has not becomes the last one; against Spark in test_expressions."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from skimql.engine.memory_backend.intervals import shifted
from skimql.engine.memory_backend.values import NOT_IN_MEMORY, Value
from skimql.errors import UnsupportedQuery

DAYS = Value("date", pa.array([dt.date(2024, 1, 31), None, dt.date(2023, 12, 31)], pa.date32()))


def moved(interval, sign=1, value=DAYS):
    read = sqlglot.parse_one(f"x + {interval}", dialect="spark").find(exp.Interval)
    return shifted(value, read, sign, interval)


@pytest.mark.parametrize(
    ("interval", "sign", "first", "last"),
    [
        ("INTERVAL '1' MONTH", 1, dt.date(2024, 2, 29), dt.date(2024, 1, 31)),
        ("INTERVAL 3 MONTHS", -1, dt.date(2023, 10, 31), dt.date(2023, 9, 30)),
        ("INTERVAL '-1' YEAR", 1, dt.date(2023, 1, 31), dt.date(2022, 12, 31)),
        ("INTERVAL '1' DAY", 1, dt.date(2024, 2, 1), dt.date(2024, 1, 1)),
    ],
)
def test_moved_days(interval, sign, first, last):
    found = moved(interval, sign)
    assert found.kind == "date"
    assert found.data.to_pylist() == [first, None, last]


@pytest.mark.parametrize("interval", ["INTERVAL '1' HOUR", "INTERVAL k DAY", "INTERVAL '9000' YEAR"])
def test_what_is_not_known_is_refused(interval):
    with pytest.raises(UnsupportedQuery) as fault:
        moved(interval)
    assert fault.value.code == NOT_IN_MEMORY


def test_times_are_not_moved():
    with pytest.raises(UnsupportedQuery):
        moved("INTERVAL '1' DAY", value=Value("timestamp", pa.array([], pa.timestamp("us", "UTC"))))
