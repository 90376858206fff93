"""GROUP BY and exact answers of structs with NULLs, and of dates and timestamps that Python has no value for."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from skimql.engine.sources.python_values import arrow_column, python_values

FAR = 253_402_300_800_000_000  # microseconds to 10000-01-01
BEFORE = -62_167_219_200_000_000 - 86_400_000_000  # to the day before the year 0


def test_dates_that_python_cannot_hold_are_numpy_datetimes():
    days = pa.chunked_array([pa.array([2932897, None, -800000], pa.date32())])
    assert [None if v is None else str(v) for v in python_values(days)] == [
        "10000-01-01",
        None,
        "-221-09-04",
    ]
    assert arrow_column(python_values(days)).equals(days.chunk(0))
    local = pa.chunked_array([pa.array([FAR, BEFORE], pa.timestamp("us", "Etc/GMT-1"))])
    assert str(python_values(local)[0]) == "10000-01-01T01:00:00.000000"
    assert python_values(local)[1] < python_values(local)[0]
    inside = pa.chunked_array([pa.StructArray.from_arrays([days.chunk(0)], ["d"])])
    assert python_values(inside)[0] == {"d": "10000-01-01"}
    assert python_values(pa.chunked_array([pa.array([0], pa.date32())])) == [datetime.date(1970, 1, 1)]


@pytest.mark.spark
def test_groups_of_structs_and_far_dates_are_those_of_spark(spark, session):
    session.table(
        "a",
        spark.sql(
            "SELECT k, CASE WHEN k <> 2 THEN named_struct('x', k % 2, 'y', 'p') END AS s, "
            "CASE k WHEN 1 THEN make_date(10000, 1, 1) WHEN 3 THEN make_date(-44, 3, 15) END AS d, "
            f"CASE k WHEN 1 THEN timestamp_micros({FAR}) WHEN 3 THEN timestamp_micros({BEFORE}) END AS t, "
            "CASE WHEN k <> 2 THEN array(k % 2) END AS r "
            "FROM VALUES (1), (2), (3) AS t(k)"
        ),
    )
    for column in "sdtr":
        sql = f"COUNT(*) FROM a JOIN a AS o ON a.k = o.k GROUP BY a.{column}"
        exact = sorted(row[0] for row in session.sql(f"SELECT {sql}").collect())
        answer = session.sql(f"SELECT APPROXIMATE a.{column}, {sql}")
        assert sorted(row[1].value for row in answer.rows) == exact, column
        assert str(answer)
        assert answer.arrow().num_rows == len(exact)
    ordered = "a.d, COUNT(*) AS n FROM a JOIN a AS o ON a.k = o.k GROUP BY a.d ORDER BY a.d DESC"
    days = [str(row[0]) for row in session.sql(f"SELECT APPROXIMATE {ordered}").rows]
    assert days == ["10000-01-01", "-044-03-15", "None"]
    assert session.sql(f"EXACT SELECT {ordered}").rows[0][0] == np.datetime64("10000-01-01")
