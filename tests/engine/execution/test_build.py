"""One seed, one set of counters: whatever the partitions, their order, and Python's hash salt."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from skimql import Session
from skimql.engine.execution import build as maintain
from skimql.engine.execution.build import build
from skimql.engine.execution.partial_aggregate import merging

TABLE = "SELECT id % 997 AS k, concat('t', id % 101) AS t, id AS v FROM range(5000)"
SQL = "SELECT APPROXIMATE COUNT(*), SUM(a.v) FROM d a JOIN d b ON a.k = b.k JOIN d c ON b.t = c.t"


def counters(spark, frame):
    session = Session(spark, buckets=256, sparse=False)
    session.table("d", frame)
    return [
        (b.sketch.dense().counters.tobytes(), b.tally)
        for b in build(spark, session.plan(SQL).build, session.tables)
    ]


@pytest.mark.spark
def test_partitions_and_order_leave_no_trace_in_the_counters(session):
    frame = session.spark.sql(TABLE)
    one = counters(session.spark, frame.coalesce(1))
    for spark_partitions in (2, 7):
        shuffled = frame.orderBy("t", "v").repartition(spark_partitions)
        assert counters(session.spark, shuffled) == one


@pytest.mark.spark
def test_partial_sketches_that_workers_add_up_give_the_same_counters(session, monkeypatch):
    frame = session.spark.sql(TABLE).repartition(9)
    plain = counters(session.spark, frame)
    merged = []
    monkeypatch.setattr(maintain, "MOST_SENT_BYTES", 0)
    monkeypatch.setattr(maintain, "merging", lambda plans: merged.append(len(plans)) or merging(plans))
    assert counters(session.spark, frame) == plain
    assert merged, "the workers have added up"


@pytest.mark.spark
def test_another_seed_gives_other_counters(session):
    session.table("d", session.spark.sql(TABLE))
    plans = [session.plan(f"{SQL} SEED {seed}").build for seed in (1, 2)]
    a, b = (build(session.spark, plan, session.tables)[0].sketch.dense().counters.tobytes() for plan in plans)
    assert a != b


PROGRAM = """
import hashlib
import numpy as np
from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.optimizer.plan import Attribute, Synopsis, Weight
attributes = (Attribute(("`k`",), ("string",), "k"), Attribute(("`t`", "`u`"), ("int", "date"), "t,u"))
sketch = sketch_plan(Synopsis("t", None, attributes, Weight(), "convolution", 11, 64, False), 5, "int64").empty()
sketch.update([np.arange(1000), np.arange(1000)[::-1] * 2**40])
print(hashlib.sha256(sketch.dense().counters.tobytes()).hexdigest())
"""


def test_the_hash_salt_of_python_leaves_no_trace():
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("0", "1", "random")
    }
    assert len(told) == 1
