"""The scans of a sample on Spark."""

from __future__ import annotations

import numpy as np
from support.tables import register

from skimql.engine.execution import sample_scan
from skimql.engine.execution.sample_scan import _drawn, _word
from skimql.engine.spark.isolation import temp_views
from skimql.engine.spark.jobs import run_job
from skimql.optimizer.plan import ValueDraw
from skimql.sketches.samples.sampled_hash import draw_family, sample_family, value_family


def test_spark_and_numpy_compute_the_same_hash_of_keys(spark):
    keys = [0, 1, -1, 77, 2**31, -(2**31), 2**62 + 3, 2**63 - 1, -(2**63)]
    families = [sample_family(3, "k"), sample_family(2**63 - 1, ""), draw_family(4, "k", 1)]
    columns = [f"{_word(family, 'k')} AS h{n}" for n, family in enumerate(families)]
    rows = spark.createDataFrame([(k,) for k in keys], "k BIGINT").selectExpr("k", *columns).collect()
    values = np.array([row.k for row in rows], np.int64)
    for number, family in enumerate(families):
        found = np.array([row[number + 1] for row in rows], np.int64).view(np.uint64)
        assert (family._hash_words(values, 1)[0] == found).all(), family


def test_tuples_are_drawn_for_tiny_values_too(spark):
    frame = spark.range(4000).selectExpr("id AS `skimql row`", "id % 2 AS half")
    found = []
    for unit in (1.0, 1e-305):
        drawn = _drawn(ValueDraw(0, f"half * {unit / 4!r}D", 0.0, unit), value_family(7, "k", 0))
        found.append([row[0] for row in frame.where(drawn).select("`skimql row`").collect()])
    assert found[0] == found[1]
    assert 400 < len(found[0]) < 600, "a quarter of every other tuple"


def test_another_seed_needs_no_new_code(spark, as_users_have_it):
    """The seed is no part of the code that Spark makes, which compiling and warming up costs more than a scan."""
    frame = spark.range(10)

    def code(seed):
        text = _word(sample_family(seed, "k"), "id")
        plan = frame.selectExpr(f"{text} AS h").where("h & 15 < 3")
        made = plan._jdf.queryExecution().debug().codegenToSeq()
        return [made.apply(n)._2() for n in range(made.size())]

    assert code(3) == code(4) != []


def test_what_a_scan_names_is_there_until_it_has_run(session, monkeypatch):
    # Spark Connect looks for it only then.
    register(session, sa=("k INT", [(1,), (2,)]), sb=("k INT", [(1,), (1,)]))
    there = []

    def run(spark, description, action, listener=None):
        if description.startswith("sample of"):
            views = temp_views(action.__self__.sparkSession)
            there.append(any(name.startswith("skimql_tuples_") for name in views))
        return run_job(spark, description, action, listener)

    monkeypatch.setattr(sample_scan, "run_job", run)
    assert session.sql("SELECT APPROXIMATE COUNT(*) FROM sa JOIN sb USING (k) USING key_sample").value == 2
    assert there
    assert all(there)
