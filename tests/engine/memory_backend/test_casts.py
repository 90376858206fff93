"""Casts as Spark makes them in ANSI mode."""

import datetime as dt
import math
from decimal import Decimal as D

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.casts import cast, local_time, to_precision, unscaled, whole_unscaled
from skimql.engine.memory_backend.values import Value, ValueFault


def texts(*values):
    return Value("string", pa.array(values, pa.string()))


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (texts(" 12 ", "-3", None), "int", [12, -3, None]),
        (texts("0.125", "1e3"), "double", [0.125, 1000.0]),
        (texts("1.255"), "decimal(5,2)", [D("1.26")]),
        (texts("2024-02-29", "2024-2-9"), "date", [dt.date(2024, 2, 29), dt.date(2024, 2, 9)]),
        (texts("true", "f", "1"), "boolean", [True, False, True]),
        (Value("double", pa.array([2.9, -2.9])), "int", [2, -2]),
        (Value("boolean", pa.array([True, False])), "bigint", [1, 0]),
        (Value("bigint", pa.array([2**53 + 1])), "string", ["9007199254740993"]),
        (Value("date", pa.array([0], pa.date32())), "string", ["1970-01-01"]),
    ],
)
def test_values_in_another_type(value, kind, found):
    made = cast(value, kind)
    assert (made.kind, made.data.to_pylist()) == (kind, found)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (texts("x"), "int"),
        (texts("128"), "tinyint"),
        (Value("double", pa.array([math.nan])), "bigint"),
        (Value("bigint", pa.array([2**31])), "int"),
        (texts("2023-02-29"), "date"),
    ],
)
def test_what_does_not_fit_is_a_fault(value, kind):
    with pytest.raises(ValueFault):
        cast(value, kind)


def test_a_timestamp_is_text_and_date_in_the_session_s_zone():
    noon = Value(
        "timestamp", pa.array([dt.datetime(2024, 1, 1, 3, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    )
    assert cast(noon, "string", "America/New_York").data.to_pylist() == ["2023-12-31 22:00:00"]
    assert cast(noon, "date", "America/New_York").data.to_pylist() == [dt.date(2023, 12, 31)]
    assert local_time(noon.data, "Asia/Tokyo").to_pylist() == [dt.datetime(2024, 1, 1, 12)]


def test_digits_of_decimals():
    data = pa.array([D("1.25"), None, D("-0.05")], pa.decimal128(9, 2))
    assert unscaled(data).to_pylist() == [125, None, -5]
    assert whole_unscaled(pa.array([D(10**30)], pa.decimal128(38, 0))) == [10**30]
    assert to_precision(data, "decimal(9,1)").to_pylist() == [D("1.3"), None, D("-0.1")]
    with pytest.raises(ValueFault):
        to_precision(pa.array([D("99.99")], pa.decimal128(4, 2)), "decimal(3,1)")
