"""Arrow tables as DataFrames, and times that a zone has not."""

import datetime as dt

import pyarrow as pa
import pytest

from skimql.engine.spark.arrow_frames import frame_of

pytestmark = pytest.mark.spark

# In New York the first is left out, the second is there twice.
TIMES = [dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 11, 3, 1, 30), None]


@pytest.fixture
def new_york(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_times_without_a_zone_stay_so(new_york):
    table = pa.table(
        {"t": pa.array(TIMES, pa.timestamp("us")), "u": pa.array(TIMES, pa.timestamp("us", "UTC"))}
    )
    frame = frame_of(new_york, table)
    assert [f.dataType.simpleString() for f in frame.schema.fields] == ["timestamp_ntz", "timestamp"]
    assert [row.t for row in frame.collect()] == TIMES


@pytest.mark.parametrize("method", ["", " USING key_sample", " USING exact", " USING sampled_query"])
def test_groups_by_times_without_a_zone_are_those_of_spark_in_any_zone(session, new_york, method):
    values = "TIMESTAMP_NTZ'2024-03-10 02:30:00', TIMESTAMP_NTZ'2024-03-10 03:30:00', TIMESTAMP_NTZ'2024-11-03 01:30:00'"
    new_york.sql(
        f"CREATE OR REPLACE TEMP VIEW times AS SELECT id % 4 AS k, element_at(array({values}), int(id % 3) + 1) AS t"
        " FROM range(30)"
    )
    text = "SELECT APPROXIMATE a.t, COUNT(*) AS n FROM times a JOIN times b ON a.k = b.k GROUP BY a.t"
    answer = session.sql(text + method)
    wanted = {tuple(row) for row in new_york.sql(text.replace("APPROXIMATE ", "")).collect()}
    assert {(row.t, row.n) for row in answer.df.collect()} == wanted
    assert answer.df.schema["t"].dataType.simpleString() == "timestamp_ntz"
