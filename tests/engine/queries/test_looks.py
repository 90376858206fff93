"""What is looked at before an exact run: jobs are counted, not time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import Settings
from skimql.optimizer.candidates import first_sample

pytestmark = pytest.mark.spark

ROWS = 20_000
QUESTIONS = {
    "groups of a table": "a.g, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.g",
    "groups of single keys, ordered": "a.k, SUM(a.v) AS v FROM a JOIN b ON a.k = b.k WHERE b.t < 'm' "
    "GROUP BY a.k ORDER BY v DESC LIMIT 3",
    "keys of text": "a.g, COUNT(*) AS n FROM a JOIN c ON a.t = c.t GROUP BY a.g HAVING n > 5",
    "distinct values": "COUNT(DISTINCT b.v) AS n FROM a JOIN b ON a.k = b.k",
    "distinct values in groups": "a.g, COUNT(DISTINCT b.v) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.g",
    # More tuples come out than went in, and still the run costs less than a pilot.
    "ten tuples of a key": "a.g, COUNT(*) AS n FROM a JOIN b ON a.h = b.h GROUP BY a.g",
    "a subquery": "COUNT(*) AS n FROM a JOIN b ON a.k = b.k "
    "WHERE a.k IN (SELECT k FROM a GROUP BY k HAVING SUM(v) > 3)",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory, spark):
    """Of two each key is unique; views of the files have the same names in Spark."""
    folder = tmp_path_factory.mktemp("looks")
    texts = ["m" if i % 2 else f"a{i}" for i in range(ROWS)]
    made = {
        "k": range(ROWS),
        "g": [i % 7 for i in range(ROWS)],
        "h": [i % 2_000 for i in range(ROWS)],
        "v": [i % 13 for i in range(ROWS)],
        "t": texts,
    }
    for name, table in {
        "a": pa.table(made),
        "b": pa.table(made),
        "c": pa.table({"t": sorted(set(texts))}),
    }.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def jobs_of(spark, action):
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    found = action()
    return found, scheduler.numTotalJobs() - before


@pytest.mark.parametrize("large", [1e6, 1e3], ids=["small", "large"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_query_that_is_run_exactly_takes_the_jobs_of_that_run_alone(
    session, spark, tables, monkeypatch, name, large
):
    monkeypatch.setattr(first_sample, "LARGE", large)
    session.settings = Settings()
    for table in "abc":
        session.table(table, tables / f"{table}.parquet")
        spark.read.parquet(str(tables / f"{table}.parquet")).createOrReplaceTempView(table)
    text = QUESTIONS[name]
    answer, jobs = jobs_of(spark, lambda: session.sql(f"SELECT APPROXIMATE {text}"))
    rows, alone = jobs_of(spark, spark.sql(f"SELECT {text}").collect)
    assert answer.method == "exact_run"
    assert len(answer.rows) == len(rows)
    assert jobs <= alone, "nothing is looked at by a job"
