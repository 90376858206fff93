"""Progress of a Spark job: tasks, rows, pace and time left."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.waiting import wait_until

from skimql import JobProgress
from skimql.engine.spark.jobs import run_job


def test_pace_and_time_left():
    progress = JobProgress("scan t", tasks_done=1, tasks=4, rows=500, seconds=10.0)
    assert (progress.share, progress.rows_per_second, progress.seconds_left) == (0.25, 50.0, 30.0)
    unknown = JobProgress("scan t", tasks_done=0, tasks=0)
    assert (unknown.share, unknown.rows_per_second, unknown.seconds_left) == (None, None, None)


@pytest.mark.spark
def test_a_listener_is_told_the_rows_that_were_read(spark, tmp_path):
    pq.write_table(pa.table({"k": range(1000)}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    told = []

    class Listener:
        def update(self, progress):
            told.append(progress)

        def done(self):
            told.append(None)

    def action():
        frame.selectExpr("sum(k)").collect()
        # Spark counts rows, and tasks that have ended, in its own time.
        wait_until(lambda: told and told[-1].rows == 1000 and told[-1].share == 1.0)
        return "done"

    assert run_job(spark, "scan t", action, Listener()) == "done"
    assert told[-1] is None
    assert told[-2].rows == 1000
    assert told[-2].share == 1.0


@pytest.mark.spark
def test_ctrl_c_cancels_a_job_that_begins_only_after_it(spark):
    begun = threading.Event()

    def action():
        # Planning takes this long.
        time.sleep(0.4)
        begun.set()
        spark.range(0, 1 << 60, 1, 2).selectExpr("MAX(id % 7)").collect()

    class Interrupting:
        def update(self, progress):
            assert not begun.is_set()
            raise KeyboardInterrupt

        def done(self):
            pass

    with pytest.raises(KeyboardInterrupt):
        run_job(spark, "a long job", action, Interrupting())
    assert begun.is_set()


@pytest.mark.spark
def test_who_cancels_the_callers_job_group_cancels_what_runs_in_it(spark):
    # So does a Thrift server for a client that cancels, leaves, or has no more time.
    context, begun = spark.sparkContext, threading.Event()

    def cancel():
        begun.wait(60)
        wait_until(lambda: context.statusTracker().getJobIdsForGroup("a caller's"))
        while not done.wait(0.1):
            context.cancelJobGroup("a caller's")

    def action():
        begun.set()
        spark.range(0, 1 << 60, 1, 2).selectExpr("MAX(id % 7)").collect()

    done = threading.Event()
    thread = threading.Thread(target=cancel)
    thread.start()
    context.setJobGroup("a caller's", "")
    try:
        with pytest.raises(Exception, match="cancelled"):
            run_job(spark, "a long job", action)
    finally:
        done.set()
        thread.join()
        context.setLocalProperty("spark.jobGroup.id", None)
