"""What our jobs take: their bytes and CPU, and nothing of the user's own jobs that run at the same time."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.observed import Recorder, observed
from skimql.engine.spark.jobs import run_job
from skimql.engine.spark.meter import SparkMeter, tasks_of


def measured(spark, action, counts_bytes=True):
    recorder = Recorder(SparkMeter(lambda: spark, lambda: counts_bytes))
    with recorder.recording(), observed("scan", "t") as seen:
        run_job(spark, "scan t", action)
    (found,) = recorder.taken()
    return seen, found


@pytest.mark.spark
def test_bytes_and_cpu_are_of_our_jobs_and_those_of_the_user_are_not_counted(spark, tmp_path):
    pq.write_table(pa.table({"k": range(5000)}), tmp_path / "ours.parquet")
    pq.write_table(pa.table({"k": [i % 7919 for i in range(500_000)]}), tmp_path / "theirs.parquet")
    read = spark.read.option("parquet.hadoop.vectored.io.enabled", "false")

    def ours():
        # A new frame: of one that was collected Spark keeps the shuffled tuples.
        read.parquet(str(tmp_path / "ours.parquet")).selectExpr("sum(k)").collect()

    def theirs():
        read.parquet(str(tmp_path / "theirs.parquet")).selectExpr("sum(k)").collect()

    size = (tmp_path / "ours.parquet").stat().st_size
    frame = read.parquet(str(tmp_path / "ours.parquet")).selectExpr("sum(k)")
    _, alone = measured(spark, frame.collect)
    assert alone.whole_cpu
    assert 0 < alone.actual.bytes_read <= 3 * size
    assert 0 < alone.actual.cpu_seconds < 60

    over, ran = threading.Event(), threading.Event()

    def use():
        while not over.is_set():
            theirs()
            ran.set()

    def action():
        # Theirs run before, while and after ours does.
        ran.clear()
        ran.wait(300)
        ours()
        ran.clear()
        ran.wait(300)

    user = threading.Thread(target=use)
    user.start()
    try:
        seen, beside = measured(spark, action)
    finally:
        over.set()
        user.join()
    tasks = tasks_of(spark, seen.jobs[0])
    assert tasks.rows_read == 5000
    assert 0 < beside.actual.bytes_read <= 3 * size
    assert not beside.whole_cpu
    assert tasks.cpu_seconds <= beside.actual.cpu_seconds


@pytest.mark.spark
def test_what_spark_does_not_count_is_not_told(spark):
    _, unread = measured(spark, spark.range(10).collect, counts_bytes=False)
    assert unread.actual.bytes_read is None
    assert SparkMeter(lambda: None, lambda: True).mark().jvm is None
