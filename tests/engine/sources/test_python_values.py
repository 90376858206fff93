"""Arrow columns as Python values, and back."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from skimql.engine.sources.python_values import arrow_column, python_values, zoned


@pytest.mark.parametrize("values", [[1, None], ["a", None], [datetime.date(2020, 1, 2)], [[1, 2], None]])
def test_values_are_pythons_own_and_go_back(values):
    column = pa.chunked_array([pa.array(values)])
    assert python_values(column) == values
    assert arrow_column(values, column.type).equals(column.combine_chunks())


@pytest.mark.parametrize("ignored", ["", "1"])
def test_times_in_a_zone_are_themselves_whatever_pyspark_pandas_has_set(ignored, monkeypatch):
    # `import pyspark.pandas` sets it, and the wall clock of New York would be taken for that of UTC.
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", ignored)
    kind = pa.timestamp("us", "America/New_York")
    # The hour that is there twice, before and after the clocks were set back.
    instants = pa.array([1_730_611_800_000_000, 1_730_615_400_000_000, None], pa.timestamp("us", "UTC")).cast(
        kind
    )
    values = python_values(pa.chunked_array([instants]))
    assert arrow_column(values, kind).equals(instants)
    assert arrow_column(values).cast(pa.int64()).equals(instants.cast(pa.int64()))
    assert arrow_column(values).type == kind
    fixed = instants.cast(pa.timestamp("us", "+02:00"))
    assert arrow_column(fixed.to_pylist()).equals(fixed)
    nested = pa.StructArray.from_arrays([instants], ["t"])
    lists = pa.ListArray.from_arrays([0, 2, 3], instants)
    for column in (nested, lists):
        assert arrow_column(column.to_pylist(), column.type).equals(column)


def test_times_at_the_end_of_pythons_calendar_go_back():
    kind = pa.timestamp("us", "America/New_York")
    last = pa.array([253_402_300_799_000_000 + 2 * 3_600_000_000], pa.timestamp("us", "UTC")).cast(kind)
    values = python_values(pa.chunked_array([last]))
    assert arrow_column(values, kind).equals(last)


def test_dates_beyond_pythons_are_numpys():
    column = pa.chunked_array([pa.array([np.datetime64("12024-01-01"), None]).cast(pa.date32())])
    far, none = python_values(column)
    assert (far, none) == (np.datetime64("12024-01-01"), None)
    assert arrow_column([far, none], pa.date32()).equals(column.combine_chunks())


@pytest.mark.parametrize(
    ("zone", "told"),
    [("Asia/Tokyo", "Asia/Tokyo"), ("GMT+2", "+02:00"), ("+02:30", "+02:30"), ("nowhere", "UTC")],
)
def test_times_are_in_the_sessions_zone_where_arrow_knows_it(zone, told):
    assert zoned(pa.timestamp("us", "UTC"), zone).tz == told
    assert zoned(pa.int64(), zone) == pa.int64()
