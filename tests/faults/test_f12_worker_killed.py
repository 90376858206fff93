"""A Python worker that is killed: the job is done once more, and an error of ours says so where that ends likewise."""

from __future__ import annotations

import os
import signal

import pytest
from pyspark.errors import PySparkException

from skimql import EnvironmentFault
from skimql.engine.execution import build as maintain
from skimql.engine.spark.session import explained

QUERY = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"


@pytest.fixture
def killed(session, spark, tmp_path, monkeypatch):
    """Tables, and workers of this session's that kill themselves, so often as there are files in the folder."""
    session.table("a", spark.sql("SELECT id % 7 AS k FROM range(50)"))
    session.table("b", spark.sql("SELECT id % 5 AS k FROM range(50)"))
    plain, folder = maintain.task, str(tmp_path)

    def dying(*arguments):
        function = plain(*arguments)

        def run(batches):
            for name in os.listdir(folder):
                try:
                    os.unlink(os.path.join(folder, name))
                except FileNotFoundError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
            return function(batches)

        return run

    monkeypatch.setattr(maintain, "task", dying)
    return session


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
