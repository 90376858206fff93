"""A catalog in a folder: readers see whole states, damage is named, a change that fails has not happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem
from support.kept import kept, remember, same

from skimql import CorruptSketch, DataError, IncompatibleSketches, Session, UnknownName
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.changes import Change
from skimql.engine.catalog.folder import LocalFolder, RemoteFolder, open_folder
from skimql.engine.catalog.manifest import decode, encode, numbered
from skimql.engine.spark.own import OwnSpark

HERE = Path(__file__).parents[2]
A = kept("a", "t", {"k": [1, 2, 2]}, rows=3, buckets=8)
B = kept("b", "u", {"k": range(40)}, rows=3, buckets=8, sparse=False)


def data_file(folder, name):
    return folder / Catalog(folder).entry(name).file


def without_rename(path):
    """A folder on a store that refuses to rename."""
    inner = LocalFileSystem()

    class Handler(FileSystemHandler):
        def get_type_name(self):
            return "no rename"

        def normalize_path(self, path):
            return path

        def get_file_info(self, paths):
            return inner.get_file_info(paths)

        def get_file_info_selector(self, selector):
            return inner.get_file_info(selector)

        def create_dir(self, path, recursive):
            inner.create_dir(path, recursive=recursive)

        def delete_dir(self, path):
            inner.delete_dir(path)

        def delete_dir_contents(self, path, missing_dir_ok=False):
            inner.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

        def delete_root_dir_contents(self):
            raise OSError("no")

        def delete_file(self, path):
            inner.delete_file(path)

        def move(self, src, dest):
            raise OSError("this store cannot rename")

        def copy_file(self, src, dest):
            inner.copy_file(src, dest)

        def open_input_stream(self, path):
            return inner.open_input_stream(path)

        def open_input_file(self, path):
            return inner.open_input_file(path)

        def open_output_stream(self, path, metadata):
            return inner.open_output_stream(path)

        def open_append_stream(self, path, metadata):
            return inner.open_append_stream(path)

    return RemoteFolder(PyFileSystem(Handler()), str(path))


PLACES = {
    "path": lambda p: str(p),
    "file URI": lambda p: p.as_uri(),
    "remote": lambda p: RemoteFolder(LocalFileSystem(), str(p)),
    "no rename": without_rename,
    "memory": lambda p: None,
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_kept_is_found_by_another_reader(place, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    where = PLACES[place](tmp_path / "c")
    writer = Catalog(where)
    remember(writer, A, B)
    reader = writer if place == "memory" else Catalog(where)
    assert [h.name for h in reader.heads()] == ["a", "b"]
    assert same(reader.load("A"), A)
    assert same(reader.load("b"), B)
    again = kept("A", "t", {"k": [7]}, rows=3, buckets=8)
    writer.put(again, forget=["b"])
    assert [h.name for h in reader.heads()] == ["A"]
    assert same(reader.load("a"), again)
    with pytest.raises(UnknownName):
        reader.load("b")
    assert reader.table("T").schema.columns[0].name == "k"
    assert (reader.manifest.ansi, reader.manifest.time_zone) == (True, "UTC")
    writer.put(forget=["a"])
    assert reader.heads() == ()


def test_files_of_old_states_go_and_nothing_else_does(tmp_path):
    catalog = Catalog(tmp_path)
    catalog.put(A)
    (tmp_path / "notes.txt").write_text("mine")
    for _ in range(3):
        catalog.put(A)
    names = sorted(p.name for p in tmp_path.iterdir())
    # This state and the one before, which somebody may be reading.
    assert len([n for n in names if n.endswith(".parquet")]) == 2
    assert [n for n in names if not n.endswith(".parquet")] == [
        "catalog-00000003.json",
        "catalog-00000004.json",
        "catalog.json",
        "catalog.lock",
        "notes.txt",
    ]


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/x", "a/b", "..", "nul\x00", "ünï", "x" * 300, "con", "`q`"]
)
def test_no_name_becomes_a_path(name, tmp_path):
    inside = tmp_path / "deep" / "catalog"
    Catalog(inside).put(kept(name, "t", {"k": [1]}, rows=3, buckets=8))
    assert [h.name for h in Catalog(inside).heads()] == [name]
    assert {p for p in tmp_path.rglob("*") if p.is_file() and p.parent != inside} == set()


def test_a_manifest_that_points_out_of_the_folder_is_refused(tmp_path):
    Catalog(tmp_path).put(A)
    state = decode((tmp_path / "catalog.json").read_bytes(), "x")
    entry = state.sketches["a"]
    for file in ("../x.parquet", "/etc/passwd", ".hidden"):
        object.__setattr__(entry, "file", file)
        (tmp_path / "catalog.json").write_bytes(encode(state))
        for path in tmp_path.glob("catalog-*.json"):
            path.unlink()
        with pytest.raises(CorruptSketch, match="no name of a file"):
            Catalog(tmp_path).heads()


def test_every_flipped_byte_of_a_data_file_is_seen_and_named(tmp_path):
    remember(Catalog(tmp_path), A, B)
    file = data_file(tmp_path, "a")
    whole = file.read_bytes()
    regions = {
        "magic": 0,
        "first page": 30,
        "middle": len(whole) // 2,
        "footer": len(whole) - 60,
        "end": len(whole) - 1,
    }
    for place in [*regions.values(), *range(0, len(whole), 97)]:
        damaged = bytearray(whole)
        damaged[place] ^= 4
        file.write_bytes(damaged)
        catalog = Catalog(tmp_path)
        with pytest.raises(CorruptSketch) as caught:
            catalog.load("a")
        assert file.name in caught.value.message
        assert "SHA-256" in caught.value.message
        assert same(catalog.load("b"), B), "the others stay usable"
    for size in (0, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(CorruptSketch, match=file.name):
            Catalog(tmp_path).load("a")
    file.unlink()
    with pytest.raises(CorruptSketch, match="is gone"):
        Catalog(tmp_path).load("a")


def test_another_whole_file_in_its_place_is_seen(tmp_path):
    remember(Catalog(tmp_path), A, B)
    data_file(tmp_path, "a").write_bytes(data_file(tmp_path, "b").read_bytes())
    with pytest.raises(CorruptSketch):
        Catalog(tmp_path).load("a")


def test_a_damaged_or_half_written_manifest_costs_nothing(tmp_path):
    """Each byte of catalog.json, and each tenth length: the numbered manifest has the same state."""
    remember(Catalog(tmp_path), A, B)
    manifest = tmp_path / "catalog.json"
    whole = manifest.read_bytes()
    damaged = [whole[:n] for n in range(0, len(whole), 300)]
    damaged += [whole[:i] + bytes([whole[i] ^ 2]) + whole[i + 1 :] for i in range(0, len(whole), 41)]
    for data in damaged:
        manifest.write_bytes(data)
        assert [h.name for h in Catalog(tmp_path).heads()] == ["a", "b"]
    manifest.unlink()
    assert [h.name for h in Catalog(tmp_path).heads()] == ["a", "b"]


def test_with_both_manifests_damaged_the_file_is_named_and_nothing_is_invented(tmp_path):
    remember(Catalog(tmp_path), A)
    for path in tmp_path.glob("catalog*.json"):
        path.write_bytes(path.read_bytes().replace(b'"rows":3', b'"rows":4'))
    with pytest.raises(CorruptSketch, match=r"catalog-\d+.json is damaged: its SHA-256"):
        Catalog(tmp_path).heads()
    with pytest.raises(CorruptSketch):
        Catalog(tmp_path).put(B)
    assert data_exists(tmp_path)


def data_exists(folder):
    return list(folder.glob("*.parquet"))


def test_what_a_newer_program_wrote_is_refused_by_version(tmp_path):
    Catalog(tmp_path).put(A, B)
    text = (tmp_path / "catalog.json").read_text()
    whole = json.loads(text)["catalog"]
    whole["sketches"]["a"]["metadata"]["format_version"] = 7
    _write_signed(tmp_path, whole)
    catalog = Catalog(tmp_path)
    with pytest.raises(IncompatibleSketches, match=r"version 7.* up to 3"):
        catalog.load("a")
    assert same(catalog.load("b"), B)
    whole["format_version"] = 8
    _write_signed(tmp_path, whole)
    with pytest.raises(IncompatibleSketches, match=r"catalog.json has format version 8.* up to 2"):
        Catalog(tmp_path).heads()


def _write_signed(folder, content):
    from skimql.engine.catalog.file import canonical, digest

    (folder / "catalog.json").write_bytes(
        canonical({"catalog": content, "sha256": digest(canonical(content))})
    )


def test_the_first_format_version_stays_readable(monkeypatch):
    """A catalog committed with format version 1: counters, map and answer as they were then."""
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    folder = HERE / "fixtures" / "catalog_v1"
    catalog = Catalog(folder)
    assert [h.name for h in catalog.heads()] == ["lines", "orders"]
    lines, orders = catalog.load("lines"), catalog.load("orders")
    assert [f.seed for f in lines.head.families] == [7346365187983877119]
    assert (lines.head.lineage[0].files[0].path, lines.head.filter) == (
        "/data/lines/a.parquet",
        "`price` > -5",
    )
    counters = [b.sketch.state()["counters"].sum(axis=1).tolist() for b in lines.built[:2]]
    assert counters == [
        [0, 4, -2, -4, -2, -4, -2, 2, -2, -2, -2],
        [-2.75, 4.75, -10.75, -4.75, 3.25, -4.75, -10.75, -3.25, -10.75, -10.75, -10.75],
    ]
    assert {n: a.tolist() for n, a in orders.built[0].sketch.state().items()} == {
        "keys": [[1], [2], [3]],
        "weights": [1, 2, 1],
    }
    asked = "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s FROM orders o JOIN lines l ON o.id = l.oid"
    cells = Session(catalog=folder).sql(f"{asked} WHERE l.price > -5").rows[0]
    assert [c.value for c in cells] == [4, -2.25]
    assert sorted(p.name for p in folder.iterdir()) == FIXTURE, "reading writes nothing"


FIXTURE = [
    "2fc509b8165a4eeb91a55bb819f8017a.parquet",
    "5dd0739fe88643c5b265b4a8c75a241d.parquet",
    "catalog.json",
]


def test_a_change_that_fails_before_the_manifest_has_not_happened(tmp_path, monkeypatch):
    Catalog(tmp_path).put(A)
    before = sorted(p.name for p in tmp_path.iterdir())

    def interrupted(change, manifest):
        raise KeyboardInterrupt

    monkeypatch.setattr(Change, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Catalog(tmp_path).put(B)
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert same(Catalog(tmp_path).load("a"), A)


def test_what_a_killed_writer_left_is_swept_two_changes_later_and_nothing_else_is(tmp_path):
    catalog = Catalog(tmp_path)
    catalog.put(A)
    left = Change(LocalFolder(tmp_path), catalog.manifest)
    left.keep(b"half")
    left._write(left._new_name(".partial"), b"half")
    left._write(numbered(catalog.manifest.generation + 1), encode(catalog.manifest.next()))
    foreign = [
        tmp_path / ("0" * 32 + ".parquet"),
        tmp_path / ".x.partial",
        tmp_path / "catalog-00000077.json",
    ]
    for file in foreign:
        file.write_bytes(b"mine")
    assert [h.name for h in Catalog(tmp_path).heads()] == ["a"]
    Catalog(tmp_path).put(B)
    Catalog(tmp_path).put(B)
    assert {f.name: f.read_bytes() for f in foreign} == dict.fromkeys((f.name for f in foreign), b"mine")
    # Of ours: a, and b of this state and of the one before.
    assert len(data_exists(tmp_path)) == 3 + 1
    assert not list(tmp_path.glob("[!.]*.partial"))


@pytest.mark.parametrize(
    "fault", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")]
)
@pytest.mark.parametrize("step", ["write", "replace", "lock"])
def test_a_store_that_refuses_is_named_and_nothing_has_changed(fault, step, tmp_path, monkeypatch):
    Catalog(tmp_path).put(A)
    before = sorted(p.name for p in tmp_path.iterdir())

    def refuse(*_):
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr(LocalFolder, step, refuse)
        with pytest.raises(DataError, match=fault.strerror) as caught:
            Catalog(tmp_path).put(B)
    assert caught.value.code == "SKIMQL_CATALOG_NOT_WRITTEN"
    assert str(tmp_path) in caught.value.message
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert [h.name for h in Catalog(tmp_path).heads()] == ["a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere; the test above simulates the refusal")
def test_a_folder_without_write_permission(tmp_path):
    Catalog(tmp_path).put(A)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match="cannot be written"):
            Catalog(tmp_path).put(B)
        assert same(Catalog(tmp_path).load("a"), A)
    finally:
        tmp_path.chmod(0o700)


FULL_DISK = """
import resource, sys
from support.kept import kept
from skimql import DataError
from skimql.engine.catalog.catalog import Catalog
big = kept("big", "t", {"k": range(20000)}, rows=11, buckets=4096, sparse=False)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    Catalog(sys.argv[1]).put(big)
except DataError as fault:
    print(fault.code, fault.message)
"""


def test_a_full_disk_leaves_the_catalog_as_it_was(tmp_path):
    """A real limit on file sizes: the operating system refuses in the middle of the write."""
    Catalog(tmp_path).put(A)
    before = sorted(p.name for p in tmp_path.iterdir())
    done = run_python(FULL_DISK, str(tmp_path))
    assert done.stdout.startswith("SKIMQL_CATALOG_NOT_WRITTEN"), done.stderr
    assert "File too large" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert same(Catalog(tmp_path).load("a"), A)


WRITER = """
import sys
from support.kept import kept
from skimql.engine.catalog.catalog import Catalog
catalog = Catalog(sys.argv[1])
for i in range(8):
    catalog.put(kept(f"{sys.argv[2]}{i}", "t", {"k": [i]}, rows=3, buckets=8))
"""


def run_python(code, *arguments, wait=True):
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-c", code, *arguments]
    if wait:
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def test_two_writers_at_once_lose_nothing_and_readers_see_whole_states(tmp_path):
    writers = [run_python(WRITER, str(tmp_path), name, wait=False) for name in "xy"]
    seen = 0
    while any(w.poll() is None for w in writers):
        catalog = Catalog(tmp_path)
        heads = catalog.heads()
        assert len(heads) >= seen, "what was there stays there"
        seen = len(heads)
        for head in heads:
            assert catalog.load(head.name).head == head
    for writer in writers:
        assert writer.wait() == 0, writer.stderr.read()
        writer.stderr.close()
    assert [h.name for h in Catalog(tmp_path).heads()] == [f"{w}{i}" for w in "xy" for i in range(8)]


def test_a_change_by_somebody_else_meanwhile_is_not_overwritten(tmp_path):
    mine, theirs = Catalog(tmp_path), Catalog(tmp_path)
    mine.put(A, based_on={"a": None})
    before = mine.entry("a").file
    other = kept("a", "t", {"k": [5, 6]}, rows=3, buckets=8)
    theirs.put(other, based_on={"a": before})
    for base in ({"a": before}, {"A": None}):
        with pytest.raises(DataError, match=r"another writer has changed sketch [aA] ") as caught:
            mine.put(A, based_on=base)
        assert caught.value.code == "SKIMQL_SKETCH_CHANGED"
    theirs.put(forget=["a"])
    with pytest.raises(DataError, match="another writer"):
        mine.put(A, based_on={"a": before})
    assert Catalog(tmp_path).heads() == ()


def test_a_reader_gets_one_state_or_the_other_while_a_sketch_is_replaced(tmp_path):
    other = kept("a", "t", {"k": [5, 6]}, rows=3, buckets=8)
    writer, faults, stop = Catalog(tmp_path), [], threading.Event()
    writer.put(A)

    def read():
        while not stop.is_set():
            found = Catalog(tmp_path).load("a")
            if not (same(found, A) or same(found, other)):
                faults.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(30):
        writer.put(other if i % 2 else A)
    stop.set()
    reader.join()
    assert not faults


def test_a_scheme_nobody_knows_is_said(tmp_path):
    with pytest.raises(DataError) as caught:
        open_folder("nosuch://bucket/catalog")
    assert caught.value.code == "SKIMQL_CATALOG_UNREADABLE"
