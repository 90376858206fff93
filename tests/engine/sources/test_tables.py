"""Sources: files of every format, DataFrames, Spark's own tables, and what is wrong with a path."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import register_cases

from skimql import DataError

pytestmark = pytest.mark.spark

JOIN = "SELECT APPROXIMATE COUNT(*) FROM x JOIN f ON x.id = f.id"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("f.csv", "id,v\n1,a\n1,b\n3,c\n"),
        ("f.tsv", "id\tv\n1\ta\n1\tb\n3\tc\n"),
        ("f.json", '{"id": 1}\n{"id": 1}\n{"id": 3}\n'),
        ("f.jsonl", '{"id": 1}\n{"id": 1}\n{"id": null}\n'),
        ("with blank 'and quote.csv", "id,v\n1,a\n1,b\n3,c\n"),
    ],
)
def test_a_text_file_is_a_table(session, tmp_path, file, text):
    register_cases(session)
    (tmp_path / file).write_text(text)
    session.table("f", tmp_path / file)
    assert session.sql(JOIN).value == 2


def test_a_parquet_file_and_a_folder_are_tables(session, tmp_path):
    register_cases(session)
    session.spark.sql("SELECT * FROM VALUES (1), (1), (3) AS v(id)").write.parquet(
        str(tmp_path / "f.parquet")
    )
    session.table("f", tmp_path / "f.parquet")
    assert session.sql(JOIN).value == 2
    (tmp_path / "f.parquet").rename(tmp_path / "folder")
    session.table("f", tmp_path / "folder")
    assert session.sql(JOIN).value == 2


def test_a_relative_path_is_one_from_where_python_is_now(session, tmp_path, monkeypatch):
    folder = tmp_path / "below"
    folder.mkdir()
    pq.write_table(pa.table({"k": [1, 1]}), tmp_path / "r.parquet")
    monkeypatch.chdir(folder)
    answer = session.sql(
        "SELECT APPROXIMATE COUNT(*) FROM '../r.parquet' a JOIN '../r.parquet' b ON a.k = b.k"
    )
    assert answer.value == 4


def test_views_of_spark_are_tables_without_registration(session):
    register_cases(session)
    session.spark.sql("SELECT * FROM VALUES (1), (1), (3) AS v(id)").createOrReplaceTempView("f")
    assert session.sql(JOIN).value == 2


def test_large_integers_with_a_null_beside_them_keep_every_digit(session, tmp_path):
    ids = ["1344800117571260417", "1344800117571260418", "null"]
    (tmp_path / "big.json").write_text("".join(f'{{"id": {i}}}\n' for i in ids))
    session.table("big", tmp_path / "big.json")
    assert session.sql("SELECT APPROXIMATE COUNT(*) FROM big a JOIN big b ON a.id = b.id").value == 2


def test_the_rows_of_a_bad_csv_are_the_same_whatever_is_asked(session, tmp_path):
    (tmp_path / "bad.csv").write_text("id,amt,tag\n1,10,a\n2,abc,b\n1,7\n3,5,c,extra\nxyz,1,d\n")
    session.table("bad", tmp_path / "bad.csv", schema="id INT, amt INT, tag STRING")
    answer = session.sql("SELECT APPROXIMATE COUNT(*) AS n, COUNT(id) AS i, SUM(amt) AS s FROM bad")
    alone = session.sql("SELECT APPROXIMATE COUNT(*) FROM bad")
    assert [c.value for c in answer.rows[0]] == [5, 4, 23]
    assert alone.value == 5


def test_a_source_that_is_not_there_is_named(session, tmp_path):
    with pytest.raises(DataError, match=r"no file .*nosuch\.csv"):
        session.table("f", tmp_path / "nosuch.csv")
    with pytest.raises(DataError, match="nosuch"):
        session.table("f", "nosuch")


def test_a_pipe_and_an_unknown_format_are_refused(session, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="pipe"):
        session.table("f", tmp_path / "pipe.csv")
    (tmp_path / "f.xyz").write_text("1")
    with pytest.raises(DataError, match="format"):
        session.table("f", tmp_path / "f.xyz")


def test_a_file_that_is_not_what_it_says_is_refused(session, tmp_path):
    (tmp_path / "f.parquet").write_text("not parquet")
    with pytest.raises(DataError, match=r"f\.parquet"):
        session.table("f", tmp_path / "f.parquet")


def test_what_is_no_source_is_refused_by_its_type(session):
    for source in (pa.table({"k": [1]}), 5, {"a": 1}):
        with pytest.raises(DataError, match="is no file, folder or DataFrame of Spark") as fault:
            session.table("t", source)
        assert fault.value.code == "SKIMQL_UNKNOWN_FORMAT"


def test_a_folder_that_has_other_files_than_when_it_was_registered_is_read_as_it_is_now(session, tmp_path):
    one, other = tmp_path / "f" / "1.parquet", tmp_path / "g.parquet"
    one.parent.mkdir()
    ones = pa.table({"k": [1, 2, 2]})

    def counts(joined="COUNT(*)"):
        text = f"SELECT APPROXIMATE {joined} AS n FROM f JOIN g ON f.k = g.k"
        ways = ("", " USING key_sample", " ERROR WITHIN 5%")
        return {session.sql(text + way).value for way in ways} | {
            session.sql(f"EXACT {text}".replace("APPROXIMATE ", "")).rows[0][0]
        }

    pq.write_table(ones, one)
    pq.write_table(pa.table({"k": [1, 2]}), other)
    session.table("f", one.parent)
    session.table("g", other)
    assert counts() == {3}
    pq.write_table(ones, one.parent / "2.parquet")
    assert counts() == {6}
    one.unlink()
    assert counts() == {3}
    # One that is written over has its name still, and may have other columns.
    pq.write_table(pa.table({"k": [2, 2, 2, 2, 2], "v": [1, 2, 3, 4, 5]}), other)
    assert counts() == {10}
    assert counts("SUM(g.v)") == {30}


def test_a_file_that_has_changed_is_read_again_with_the_options_of_its_registration(session, tmp_path):
    from pyspark.sql.types import StringType, StructField, StructType

    path = tmp_path / "f.csv"
    path.write_text("k;v\n01;x\n1;y\n")
    session.table(
        "f",
        path,
        sep=";",
        schema=StructType([StructField("k", StringType()), StructField("v", StringType())]),
    )
    text = "SELECT APPROXIMATE COUNT(*) FROM f a JOIN f b ON a.k = b.k"
    assert session.sql(text).value == 2
    path.write_text("k;v\n01;x\n1;y\n01;z\n")
    assert session.sql(text).value == 5
