"""Files by their paths or URIs."""

from pathlib import Path

from skimql.engine.sources.listing import file_now, files_under, local_path, path_or_uri, state_of_files


def test_local_files_have_paths_and_others_uris():
    assert local_path("file:///a%20b") == Path("/a b")
    assert local_path("/a b") == Path("/a b")
    assert local_path("s3://bucket/a") is None
    assert [path_or_uri(p) for p in ("file:/a%20b", "s3://bucket/a%20b")] == ["/a b", "s3://bucket/a b"]


def test_data_files_are_those_that_spark_lists(tmp_path):
    for name in ("a.csv", "_SUCCESS", ".hidden", "day=1/b.csv", "_temporary/c.csv", "_x=1/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    assert {Path(p).name for p in files_under(str(tmp_path))} == {"a.csv", "b.csv", "d.csv"}
    assert [Path(p).name for p in files_under(f"{tmp_path}/*.csv")] == ["a.csv"]
    assert list(files_under(None)) == list(files_under("s3://b/a")) == []


def test_a_file_that_is_gone_has_no_size(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    assert file_now(str(tmp_path / "a")).size == 3
    gone = file_now(str(tmp_path / "b"))
    assert (gone.size, gone.modified) == (None, None)


def test_the_state_of_the_files_of_a_folder_changes_with_each_of_them(tmp_path):
    (tmp_path / "k=1").mkdir()
    first = tmp_path / "k=1" / "a.csv"
    states = [state_of_files(str(tmp_path))]
    for change in (lambda: first.write_text("k"), lambda: first.write_text("kk"), first.unlink):
        change()
        states.append(state_of_files(str(tmp_path)))
    assert states[0] == states[3] == frozenset()
    assert len(set(states)) == 3
    (tmp_path / "_hidden").write_text("k")
    assert state_of_files(str(tmp_path)) == states[0]
    assert state_of_files("s3://b/a") is None
