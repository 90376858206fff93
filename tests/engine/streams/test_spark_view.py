"""A view as a table of Spark."""

from __future__ import annotations

import pytest
from support.continuous import MemorySpark, declared, stream_of
from support.memory import arrow

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.spark_view import named_in, reading, rows_of
from skimql.engine.streams.store import continuous
from skimql.errors import UnknownName

SCHEMA = "k BIGINT, v BIGINT"


@pytest.fixture
def catalog(tmp_path):
    return declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", SCHEMA)],
        {
            "q": "SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS total FROM s",
            "r s": "SELECT APPROXIMATE COUNT(*) FROM s",
        },
    )


def test_views_are_found_by_the_words_of_a_statement(catalog):
    views = continuous(catalog).views.values()
    for text, names in (
        ("SELECT n FROM Q, t", ["q"]),
        ("SELECT 1 FROM `r s` JOIN q", ["q", "r s"]),
        ("SELECT queue FROM r", []),
    ):
        assert sorted(v.name for v in named_in(text, views)) == names


def test_what_a_scan_reads_is_the_state_of_that_moment(catalog, tmp_path):
    folder = str(tmp_path / "c")
    scan = reading(folder, "q", rows_of(folder, "q").schema)
    stream = MemorySpark(catalog, "s", tmp_path / "checkpoint")
    for n in (1, 2):
        stream.run([arrow(SCHEMA, [(1, 5)])] * n)
        (batch,) = scan(iter([None]))
        assert batch.to_pylist()[0]["n"] == n


def test_a_scan_reads_what_is_there_then(spark, catalog, tmp_path):
    batches = [arrow(SCHEMA, [(1, 5), (2, 7)]), arrow(SCHEMA, [(3, 1)])]
    stream = MemorySpark(catalog, "s", tmp_path / "checkpoint")
    stream.run(batches, last=1)
    session = Session(spark, catalog=tmp_path / "c")
    query = "SELECT CAST(q.n AS INT) AS n, t.id FROM q JOIN range(2, 5) t ON q.n = t.id"
    assert [tuple(r) for r in session.sql(query).collect()] == [(2, 2)]
    stream.run(batches)
    assert [tuple(r) for r in session.sql(query).collect()] == [(3, 3)]
    frame = session.view("Q").table()
    assert [(r.n, r.n_low, r.total) for r in frame.collect()] == [(3, 3.0, 13)]
    assert spark.table("q").columns == session.view("q").answer().arrow().column_names
    session.sql("TERMINATE q")
    assert not spark.catalog.tableExists("q")
    with pytest.raises(UnknownName, match="no continuous view q"):
        session.view("q")
    with pytest.raises(UnknownName, match="any more"):
        rows_of(str(tmp_path / "c"), "q")
