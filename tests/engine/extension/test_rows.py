"""Small tables as texts for the JVM, without one."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa

from skimql.engine.extension.rows import MOST_ROWS, rows_text


def test_values_are_told_as_the_jar_reads_them():
    utc = datetime.UTC
    table = pa.table(
        {
            "n": pa.array([1, None], pa.int64()),
            "x": pa.array([float("nan"), float("-inf")]),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "day": pa.array([datetime.date(1970, 1, 3), None]),
            "t": pa.array(
                [datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=utc), None], pa.timestamp("us", "UTC")
            ),
            "local": pa.array([datetime.datetime(1970, 1, 1, 0, 0, 2), None], pa.timestamp("us")),
            "s": ["a'b", None],
            "b": [True, None],
            "nothing": pa.nulls(2),
        }
    )
    told = json.loads(rows_text(table))
    assert told["rows"] == [
        [1, "NaN", "1.50", 2, 1_000_000, 2_000_000, "a'b", True, None],
        [None, "-Infinity", None, None, None, None, None, None, None],
    ]
    types = [f["type"] for f in json.loads(told["schema"])["fields"]]
    assert types == [
        "long",
        "double",
        "decimal(5,2)",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
        "boolean",
        "void",
    ]


def test_what_is_large_or_has_a_shape_of_its_own_is_no_text():
    assert rows_text(pa.table({"n": range(MOST_ROWS + 1)})) is None
    assert rows_text(pa.table({"l": [[1]]})) is None
    assert json.loads(rows_text(pa.table({})))["rows"] == []
