"""What a session knows, without Spark."""

from __future__ import annotations

import pytest
from support.kept_catalog import two_sketches

from skimql import Session
from skimql.cli.shell.names import files, gather, keys_of


@pytest.mark.parametrize(
    ("keys", "columns"),
    [("id", {"id"}), ("oid CLASS id, `K`", {"oid", "k"}), ("", set()), (None, set())],
)
def test_key_columns(keys, columns):
    assert keys_of({"keys": keys}) == columns


def test_tables_and_sketches_of_a_catalog_are_known_without_spark(tmp_path):
    session = Session(catalog=two_sketches(tmp_path))
    names = gather(session, {"q": "SELECT 1"})
    assert [c for c, _ in names.by_name["lines"].columns] == ["oid", "price"]
    assert names.by_name["lines"].keys == {"oid"}
    assert names.sketches == ("s_lines", "s_orders")
    assert names.all_columns == ["id", "oid", "price"]
    assert not names.complete
    assert session.spark_state == "none"


def test_files_are_listed_as_they_begin_and_folders_end_in_a_slash(tmp_path):
    (tmp_path / "a[1].csv").touch()
    (tmp_path / "a[d").mkdir()
    assert files(f"{tmp_path}/a[") == [f"{tmp_path}/a[1].csv", f"{tmp_path}/a[d/"]
    assert files("/no/such/") == []
