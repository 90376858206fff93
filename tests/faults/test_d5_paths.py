"""Tables by paths as files are called."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.errors import SkimqlError


def put(path, *values):
    pq.write_table(pa.table({"k": list(values)}), path)
    return str(path)


def count(session, path, **options):
    session.table("t", path, **options)
    return sorted(r[0] for r in session.tables.frame("t").collect())


@pytest.mark.parametrize(
    "name", ["a[1].parquet", "a{b}.parquet", "a*b.parquet", "a?.parquet", "a b%20.parquet"]
)
def test_a_file_is_read_by_its_own_name(session, tmp_path, name):
    put(tmp_path / "a1.parquet", 7)
    put(tmp_path / "axb.parquet", 8)
    assert count(session, put(tmp_path / name, 1, 2)) == [1, 2]
    assert count(session, "file:" + str(tmp_path / name)) == [1, 2]
    assert count(session, "file://" + str(tmp_path / name)) == [1, 2]


def test_patterns_and_lists_of_files_and_orc_are_read(session, spark, tmp_path):
    paths = [put(tmp_path / f"p{i}.parquet", i) for i in range(3)]
    assert count(session, str(tmp_path / "p[01].parquet")) == [0, 1]
    assert count(session, paths[1:]) == [1, 2]
    spark.range(3).write.orc(str(tmp_path / "o.orc"))
    assert count(session, str(tmp_path / "o.orc")) == [0, 1, 2]


def test_what_is_wrong_with_a_path_is_said(session, tmp_path):
    os.mkdir(tmp_path / "empty")
    os.makedirs(tmp_path / "d" / "_delta_log")
    put(tmp_path / "d" / "x.parquet", 1)
    said = {
        put(tmp_path / "a:b.parquet", 1): "a colon",
        str(tmp_path / "empty"): "is empty",
        str(tmp_path / "x.avro"): "there is no file",
        str(tmp_path / "d"): "cannot read",
        "a\x00b.parquet": "no path",
        "\ud800.csv": "no path",
        "/x/" + "a" * 5000: "too long",
    }
    for path, words in said.items():
        with pytest.raises(SkimqlError) as caught:
            session.table("t", path)
        assert words in caught.value.message, path
        assert len(caught.value.message) < 500
    with pytest.raises(SkimqlError) as caught:
        session.table("t" * 300, put(tmp_path / "x.parquet", 1))
    assert caught.value.code == "SKIMQL_BAD_TABLE_NAME"
