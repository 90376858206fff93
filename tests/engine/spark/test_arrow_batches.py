"""Large Arrow batches: set while a job runs, and a session's own settings back afterwards."""

from __future__ import annotations

import contextlib

import pytest

from skimql.engine.spark.arrow_batches import BATCHES, large_batches

pytestmark = pytest.mark.spark


def settings(spark):
    return {name: spark.conf.get(name, None) for name in BATCHES}


def test_a_job_has_large_batches_and_the_session_its_own_settings_afterwards(spark):
    own = settings(spark)
    with large_batches(spark):
        assert settings(spark) == BATCHES
    assert settings(spark) == own


def test_own_settings_come_back_when_the_last_of_several_jobs_ends(spark):
    own = settings(spark)
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(large_batches(spark))
        second.enter_context(large_batches(spark))
        first.close()
        assert settings(spark) != own
        second.close()
        assert settings(spark) == own


def test_own_settings_come_back_after_a_fault(spark):
    own = settings(spark)
    with pytest.raises(KeyboardInterrupt), large_batches(spark):
        raise KeyboardInterrupt
    assert settings(spark) == own


def test_the_fault_of_a_job_is_told_where_spark_is_gone():
    class Gone:
        """A session whose settings can be read and set once more, then never again."""

        def __init__(self):
            self.conf, self.left = self, len(BATCHES)

        def get(self, name, default):
            return "1"

        def set(self, name, value):
            self.left -= 1
            if self.left < 0:
                raise ConnectionRefusedError(name)

    with pytest.raises(RuntimeError, match="the job's own"), large_batches(Gone()):
        raise RuntimeError("the job's own")


def test_a_setting_of_the_user_comes_back(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "777")
    try:
        with large_batches(spark):
            assert spark.conf.get(name) != "777"
        assert spark.conf.get(name) == "777"
    finally:
        spark.conf.set(name, before)
