"""Whether what a sketch has read is still what its table has."""

import pytest
from support.effort import jvm_calls
from support.kept import kept, schema_of

from skimql import Session
from skimql.engine.catalog.form import Lineage
from skimql.engine.catalog.manifest import KnownTable
from skimql.engine.materialized.staleness import other_source, stale_note
from skimql.engine.sources.listing import file_now


class Known:
    """One table at one path."""

    def __init__(self, source):
        self.source = source

    def known(self, name):
        return KnownTable(schema_of(name, ["k"]), self.source, {})


def sketch(folder):
    files = tuple(file_now(str(p)) for p in sorted(folder.iterdir()))
    return kept(
        "s", "t", {"k": [1]}, lineage=(Lineage(str(folder), True, None, files, None, "2026-11-28T00:00:00Z"),)
    ).head


def test_new_changed_and_gone_files_are_told(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("k\n1\n")
    head, tables = sketch(tmp_path), Known(str(tmp_path))
    assert stale_note(head, tables, False) == ""
    (tmp_path / "c.csv").write_text("k\n2\n")
    assert (
        f"since then 1 new file: APPEND SKETCH s FROM '{tmp_path}/c.csv', or REFRESH SKETCH s"
        in stale_note(head, tables, False)
    )
    (tmp_path / "a.csv").write_text("k\n1\n3\n")
    (tmp_path / "b.csv").unlink()
    assert "1 new, 1 changed, 1 gone files: REFRESH SKETCH s" in stale_note(head, tables, False)


def test_a_name_that_stands_for_another_path_is_another_source(tmp_path):
    head = sketch(tmp_path)
    assert not other_source(head, Known(str(tmp_path)), False)
    assert other_source(head, Known("/elsewhere"), False)


def test_a_name_that_stands_for_another_table_of_sparks_is_another_source(spark, tmp_path):
    """``USE two`` makes t the table of two: what is kept of one.t is no answer for it, nor forgotten."""
    query = "SELECT APPROXIMATE COUNT(*) AS n FROM st JOIN st AS u ON st.k = u.k"
    session = Session(spark)
    try:
        for name, tuples in (("one", 10), ("two", 20)):
            spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / name}'")
            spark.sql(f"CREATE TABLE {name}.st USING parquet AS SELECT id AS k FROM range({tuples})")
        spark.sql("USE one")
        session.sql("CREATE SKETCH s ON st (k)")
        spark.sql("USE two")
        other = session.sql(query)
        spark.sql("USE one")
        own = session.sql(query)
    finally:
        spark.sql("USE default")
        for name in ("one", "two"):
            spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
    assert (other.rows[0][0].value, own.rows[0][0].value) == (20, 10)
    assert any("kept sketch s" in note for note in own.notes)
    assert not any("sketch s" in note for note in other.notes)


@pytest.mark.parametrize(("registered", "most"), [(True, 10), (False, 20)])
def test_an_answer_from_kept_sketches_asks_the_jvm_few_things_and_sees_what_has_changed(
    spark, session, tmp_path, registered, most
):
    """Its settings, and of each table the files; of a view of Spark's which plan it is now."""
    for name in ("fa", "fb"):
        spark.range(9).selectExpr("id % 5 AS k").coalesce(1).write.parquet(f"{tmp_path}/{name}")
        frame = spark.read.parquet(f"{tmp_path}/{name}")
        if registered:
            session.table(name, frame)
        else:
            frame.createOrReplaceTempView(name)
        session.sql(f"CREATE SKETCH s_{name} ON {name} (k)")
    query = "SELECT APPROXIMATE COUNT(*) FROM fa JOIN fb ON fa.k = fb.k"
    known = session.sql(query)
    with jvm_calls() as calls:
        again = session.sql(query)
    assert again.rows == known.rows
    assert calls.number <= most
    (file,) = (tmp_path / "fa").glob("*.parquet")
    file.write_bytes(next((tmp_path / "fb").glob("*.parquet")).read_bytes())
    assert any("since then 1 changed file" in note for note in session.sql(query).notes)
    spark.range(3).selectExpr("id AS k").coalesce(1).write.mode("append").parquet(f"{tmp_path}/fb")
    assert any("1 new file" in note for note in session.sql(query).notes)
