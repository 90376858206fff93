"""Batches by Spark: planned ahead, or one by one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import Session
from skimql.engine.streams.running import _has_one_plan
from skimql.engine.streams.spark_builder import SparkBuilder
from skimql.engine.streams.state import batch_plan, times_of
from skimql.engine.streams.store import continuous
from skimql.engine.streams.views import readers


@pytest.fixture
def session(spark, tmp_path):
    with Session(spark, catalog=tmp_path / "catalog") as session:
        yield session


@pytest.fixture
def views(session, tmp_path):
    """A stream `a` of Parquet, which has no event yet, and the views that are declared of it."""
    folder = tmp_path / "a"
    folder.mkdir()
    session.sql(f"CREATE STREAM a (k BIGINT, v BIGINT, d BOOLEAN) FROM PARQUET '{folder}' DELETES WHEN d")

    def declared(*texts):
        for number, text in enumerate(texts):
            session.sql(
                f"CREATE CONTINUOUS VIEW q{number} WITH (trigger = 'available now') AS SELECT APPROXIMATE {text}"
            )
        found = continuous(session.catalog)
        return found.streams["a"], readers(found, "a")

    return declared


def test_batches_that_are_planned_ahead_are_those_that_are_planned_one_by_one(
    session, spark, views, tmp_path
):
    session.table("t", spark.createDataFrame([(1,), (2,), (2,)], "k BIGINT"))
    stream, found = views(
        "COUNT(*) AS n FROM a x JOIN a y ON x.k = y.k", "SUM(v) AS s FROM a JOIN t ON a.k = t.k WHERE v > 1"
    )
    assert _has_one_plan(stream, found)
    asked = dict.fromkeys(s for v in found for s in v.asked_of("a"))
    plan = batch_plan(found[0].query, found[0].view.seed, stream, asked)
    fewer = batch_plan(found[0].query, found[0].view.seed, stream, found[1].asked_of("a"))
    pq.write_table(
        pa.table({"k": [1, 2, 2, None], "v": [5, 7, 1, 9], "d": [False, True, None, False]}),
        tmp_path / "a" / "0.parquet",
    )
    frame, made = spark.read.parquet(str(tmp_path / "a")), []
    for ahead in (False, True):
        builder = SparkBuilder(spark, session.context.tables, tmp_path)
        builder.warm(plan)
        given = builder.ahead(frame, plan, times_of(stream)) if ahead else frame
        # A view that has ended meanwhile is asked no more.
        for own in (plan, fewer):
            built, senders = builder.build(given, own, times_of(stream), ())
            assert len(built) == len(own.synopses)
            made.append([[b.tally, *(a.tolist() for a in b.sketch.state().values())] for b in built])
        assert [m.table for m in senders] == ["t"]
    assert made[:2] == made[2:]
    assert made[0]


def test_what_hangs_on_the_state_before_is_planned_batch_by_batch(views):
    stream, found = views("v, COUNT(*) AS n FROM a GROUP BY v")
    assert not _has_one_plan(stream, found)
