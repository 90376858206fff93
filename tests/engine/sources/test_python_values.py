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
