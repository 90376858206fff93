"""A Python worker that is killed: the job is done once more, and an error of ours says so where that ends likewise."""

from __future__ import annotations

import os
import signal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from skimql import EnvironmentFault, Session
from skimql.engine.execution import build as maintain
from skimql.engine.spark.session import explained
from skimql.engine.streams import spark_builder

QUERY = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"


@pytest.fixture
def killed(session, spark, tmp_path, monkeypatch):
    """Tables, and workers of this session's that kill themselves, so often as there are files in the folder."""
    session.table("a", spark.sql("SELECT id % 7 AS k FROM range(50)"))
    session.table("b", spark.sql("SELECT id % 5 AS k FROM range(50)"))
    monkeypatch.setattr(maintain, "task", _dying(maintain.task, str(tmp_path)))
    return session


def _dying(task, folder):
    """What makes the functions of workers, which take a file of the folder away and kill their worker while there are any."""

    def dying(*arguments):
        function = task(*arguments)

        def run(batches):
            for name in os.listdir(folder):
                try:
                    os.unlink(os.path.join(folder, name))
                except FileNotFoundError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
            return function(batches)

        return run

    return dying


def test_the_job_is_repeated_where_spark_gives_up(killed, tmp_path):
    (tmp_path / "once").touch()
    assert killed.sql(QUERY).value == 360
    assert not os.listdir(tmp_path)


def test_an_error_of_ours_says_what_happened_where_workers_die_again(killed, tmp_path):
    for number in range(8):
        (tmp_path / str(number)).touch()
    with pytest.raises(EnvironmentFault) as told:
        killed.sql(QUERY)
    assert told.value.code == "SKIMQL_WORKER_DIED"
    assert "Py4J" not in str(told.value)
    assert "route = jvm" in told.value.hint


def test_a_stream_goes_on_where_a_worker_dies_and_counts_every_event_once(spark, tmp_path, monkeypatch):
    folder, deaths = tmp_path / "a", tmp_path / "deaths"
    folder.mkdir()
    deaths.mkdir()
    pq.write_table(pa.table({"k": [1, 2, 2, 3]}), folder / "0.parquet")
    monkeypatch.setattr(spark_builder, "task", _dying(spark_builder.task, str(deaths)))
    monkeypatch.setattr(spark_builder, "cell_task", _dying(spark_builder.cell_task, str(deaths)))
    now = "WITH (trigger = 'available now')"
    with Session(spark, catalog=tmp_path / "catalog") as session:
        session.sql(f"CREATE STREAM a (k BIGINT) FROM PARQUET '{folder}'")
        (deaths / "once").touch()
        session.sql(
            f"CREATE CONTINUOUS VIEW q {now} AS SELECT APPROXIMATE COUNT(*) AS n FROM a x JOIN a y ON x.k = y.k"
        )
        assert not os.listdir(deaths)
        assert session.sql("SELECT * FROM q").value == 6
        pq.write_table(pa.table({"k": [2]}), folder / "1.parquet")
        for number in range(8):
            (deaths / str(number)).touch()
        with pytest.raises(EnvironmentFault) as told:
            session.sql(
                f"CREATE CONTINUOUS VIEW g {now} AS SELECT APPROXIMATE k, COUNT(*) AS n FROM a GROUP BY k"
            )
        assert told.value.code == "SKIMQL_WORKER_DIED"
        assert "RESUME" in told.value.hint


def test_a_job_without_memory_says_what_would_help_whoever_asked_for_it():
    from skimql.engine.spark.jobs import run_job

    class Connected:
        """A session without job groups: the action runs by itself."""

    def fail():
        raise PySparkException("Job aborted: java.lang.OutOfMemoryError: Java heap space")

    with pytest.raises(EnvironmentFault) as told:
        run_job(Connected(), "scan t", fail)
    assert told.value.code == "SKIMQL_SPARK_FAILED"
    assert "spark.driver.memory" in told.value.hint


def test_other_ends_of_spark_are_told_as_errors_of_ours():
    for fault, code, hint in (
        (ConnectionRefusedError("refused"), "SKIMQL_SPARK_GONE", "new Spark session"),
        (
            PySparkException("java.lang.OutOfMemoryError: Java heap space"),
            "SKIMQL_SPARK_FAILED",
            "spark.driver.memory",
        ),
        (
            PySparkException("java.io.IOException: No space left on device"),
            "SKIMQL_SPARK_FAILED",
            "spark.local.dir",
        ),
        (
            PySparkException(
                "Lost task 0.3: ExecutorLostFailure (executor 3 exited) Reason: exited with code 52"
            ),
            "SKIMQL_SPARK_FAILED",
            "spark.executor.memory",
        ),
        (
            PySparkException("Job 3 cancelled because SparkContext was shut down"),
            "SKIMQL_SPARK_FAILED",
            "spark.driver.memory",
        ),
        (PySparkException("something else"), "SKIMQL_SPARK_FAILED", ""),
    ):
        told = explained(fault, "SELECT 1")
        assert told.code == code
        assert hint in (told.hint or "")
    assert explained(KeyError("a fault of ours"), "SELECT 1") is None
