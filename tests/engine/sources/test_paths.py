"""What a path names."""

import pytest

from skimql import DataError
from skimql.engine.sources.paths import (
    absolute,
    check_file,
    defaults_of,
    format_of,
    is_remote,
    near_file,
    refuse_odd_path,
    stamp,
    without_scheme,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.parquet", "parquet"), ("a.CSV", "csv"), ("a.json.gz", "json"), ("a.txt", None), ("a", None)],
)
def test_formats_are_told_by_endings(name, kind, tmp_path):
    (tmp_path / name).write_text("1")
    assert format_of(str(tmp_path / name)) == kind


def test_a_folder_has_the_format_of_all_its_files(tmp_path):
    for name in ("a.csv", "b.csv", "_SUCCESS"):
        (tmp_path / name).write_text("1")
    assert format_of(str(tmp_path)) == "csv"
    (tmp_path / "c.json").write_text("1")
    assert format_of(str(tmp_path)) is None


def test_local_paths_are_made_absolute_and_uris_stand():
    assert absolute("s3://b/a") == "s3://b/a"
    assert absolute("a.csv").startswith("/")
    assert (is_remote("hdfs://h/a"), is_remote("/a")) == (True, False)
    assert without_scheme("file:///a/b") == without_scheme("file:/a/b") == "/a/b"


def test_what_is_not_there_or_cannot_be_is_refused(tmp_path):
    with pytest.raises(DataError):
        check_file("t", str(tmp_path / "none.csv"))
    with pytest.raises(DataError):
        refuse_odd_path("t", "a\x00b")
    assert stamp(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", None),
        ("a;b\n1;2,5\n3;4\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a\n1;2\n", None),
        ("a;b\n1\n2;3\n", None),
        ('a;b\n"x;y";2\n', ";"),
        ("", None),
    ],
)
def test_what_separates_the_columns_is_told_by_the_head(tmp_path, text, separator):
    (tmp_path / "t.csv").write_text(text)
    assert defaults_of(str(tmp_path / "t.csv"), "csv").get("sep") == separator


def test_what_is_compressed_otherwise_tells_nothing(tmp_path):
    (tmp_path / "t.csv.zst").write_text("a;b\n1;2\n")
    assert "sep" not in defaults_of(str(tmp_path / "t.csv.zst"), "csv")


def test_a_file_that_is_not_there_has_a_near_name_or_folder(tmp_path):
    (tmp_path / "flights.parquet").touch()
    assert near_file(str(tmp_path / "flihgts.parquet")) == str(tmp_path / "flights.parquet")
    assert near_file(str(tmp_path / "no" / "such" / "x.csv")) == f"a file in {tmp_path}"
    assert near_file(str(tmp_path / "zzz")) == ""
