"""Kept sketches, and statistics, of what Spark knows by name notice that it has changed, or say that nobody can tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from skimql import Session


@pytest.fixture
def names(spark):
    """Drops what a test makes."""
    yield
    for kind, name in (("VIEW", "pv"), ("TABLE", "m"), ("TABLE", "o")):
        spark.sql(f"DROP {kind} IF EXISTS {name}")
    for name in ("tv", "dv", "mem"):
        spark.catalog.dropTempView(name)


def table(spark, name, *values):
    spark.sql(
        f"CREATE TABLE {name} USING parquet AS SELECT * FROM VALUES {', '.join(f'({v})' for v in values)} AS v(k)"
    )


def count(session, name):
    return session.sql(f"SELECT APPROXIMATE COUNT(*) FROM {name} x JOIN o ON x.k = o.k")


@pytest.fixture
def kept(spark, names):
    """A session with sketches of a table and of views of several kinds, all with one tuple that joins."""
    table(spark, "m", 1, 5)
    table(spark, "o", 1)
    spark.sql("CREATE VIEW pv AS SELECT k FROM m WHERE k < (SELECT 5)")
    spark.sql("CREATE TEMP VIEW tv AS SELECT k FROM m")
    spark.table("m").where("k < 5").createOrReplaceTempView("dv")
    spark.sql("SELECT * FROM VALUES (1), (2) AS v(k)").createOrReplaceTempView("mem")
    session = Session(spark, error=None)
    session.table("frame", spark.table("m"))
    session.table("rows", spark.createDataFrame([(1,), (2,)], "k INT"))
    for name in ("m", "o", "pv", "tv", "dv", "mem", "frame", "rows"):
        session.sql(f"CREATE SKETCH s_{name} ON {name} (k)")
    return session


def test_what_has_not_changed_is_certified_what_cannot_be_told_is_not_and_an_insert_is_noticed(kept, spark):
    """In the table and in all that is made of it."""
    for name in ("m", "pv", "tv", "dv", "mem", "frame"):
        answer = count(kept, name)
        assert (name, answer.value, answer.rows[0][0].certified) == (name, 1, True)
    answer = count(kept, "rows")
    assert not answer.rows[0][0].certified
    assert any("cannot be told" in note for note in answer.notes)
    spark.sql("INSERT INTO m VALUES (1)")
    for name in ("m", "pv", "tv", "dv", "frame"):
        answer = count(kept, name)
        assert answer.value == 2 or not answer.rows[0][0].certified, name
        assert any("1 new file" in note for note in answer.notes), name
    kept.sql("REFRESH SKETCH s_m")
    answer = count(kept, "m")
    assert (answer.value, answer.rows[0][0].certified) == (2, True)


def test_a_replaced_view_is_noticed(kept, spark):
    spark.sql("CREATE OR REPLACE VIEW pv AS SELECT k FROM m WHERE k < (SELECT 6)")
    spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT k + 0 AS k FROM m")
    spark.table("m").where("k < 4").createOrReplaceTempView("dv")
    spark.sql("SELECT * FROM VALUES (1), (3) AS v(k)").createOrReplaceTempView("mem")
    for name in ("pv", "tv", "dv", "mem"):
        answer = count(kept, name)
        assert not answer.rows[0][0].certified, name
        assert any("another table or view" in note for note in answer.notes), name


def test_what_the_cache_keeps_notices_change_too(spark, names):
    table(spark, "m", 1)
    table(spark, "o", 1)
    session = Session(spark, cache=True)
    assert count(session, "m").value == 1
    answer = count(session, "m")
    assert answer.rows[0][0].certified
    assert any("kept" in note for note in answer.notes)
    spark.sql("INSERT INTO m VALUES (1)")
    assert not count(session, "m").rows[0][0].certified


def test_a_sketch_of_a_table_is_checked_by_its_files_where_no_spark_runs(spark, names, tmp_path):
    """By the same look as a process without Spark takes."""
    from skimql.engine.materialized.staleness import stale_note

    table(spark, "m", 1)
    table(spark, "o", 1)
    spark.sql("CREATE TEMP VIEW tv AS SELECT k FROM m")
    session = Session(spark, error=None, catalog=tmp_path)
    session.sql("CREATE SKETCH s_m ON m (k)")
    session.sql("CREATE SKETCH s_tv ON tv (k)")
    later = Session(catalog=tmp_path)
    table_head, view_head = (later.catalog.entry(n).head for n in ("s_m", "s_tv"))
    assert stale_note(table_head, later.tables, runs=False) == ""
    assert "is not checked, as Spark does not run" in stale_note(view_head, later.tables, runs=False)
    # Behind Spark's back, which lists the files of a table once.
    (folder,) = table_head.lineage[0].state.roots
    part = next(p for p in Path(folder).iterdir() if p.suffix == ".parquet")
    shutil.copy(part, part.with_name("another.parquet"))
    assert "1 new file" in stale_note(table_head, later.tables, runs=False)
    assert not count(session, "m").rows[0][0].certified


def test_statistics_of_a_dataframe_that_has_grown_are_not_used(spark, names):
    from skimql.engine.sources.files import files_of

    table(spark, "m", 1)
    session = Session(spark)
    session.table("grown", spark.table("m"))
    session.table("rows", spark.createDataFrame([(1,)], "k INT"))
    session.table("fixed", spark.sql("SELECT id AS k FROM range(3)"))

    def states():
        found = {}
        for name in ("grown", "rows", "fixed"):
            with session.tables.statement(""):
                found[name] = files_of(session.tables, name, session.tables.frame(name), count=False).state
        return found

    before = states()
    assert states()["grown"] == before["grown"]
    assert states()["fixed"] == before["fixed"]
    assert states()["rows"] != before["rows"]
    spark.sql("INSERT INTO m VALUES (2)")
    assert states()["grown"] != before["grown"]
