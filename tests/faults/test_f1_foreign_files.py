"""Nothing that SkimQL did not make is removed or replaced in or around a catalog, whatever runs, wherever it is killed."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dying import DyingFolder, Killed
from support.kept import kept, remember, same, schema_of

from skimql import DataError, Session, SkimqlError
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import canonical, digest, encode
from skimql.engine.catalog.folder import LocalFolder
from skimql.engine.catalog.manifest import KnownTable, StoredWorkload
from skimql.engine.spark.own import OwnSpark
from skimql.engine.synopses import Tally

ROOT = Path(__file__).parents[2]
A = kept("a", "t", {"k": [1, 2, 2]}, rows=3, buckets=8)
B = kept("b", "u", {"k": range(40)}, rows=3, buckets=8, sparse=False)
MEMBERS = [kept(f"w.{i}", "t", {"k": [i]}, rows=3, buckets=8, group="w") for i in range(2)]
PLANS = {"stages": "", "gathered_at": None, "queries": []}

# Changes of a catalog that has a, and the workload w.
CHANGES = {
    "create": lambda c: c.put(B, based_on={"b": None}),
    "replace": lambda c: c.put(A, forget=["a"]),
    "drop": lambda c: c.put(forget=["a"]),
    "workload": lambda c: c.put(*MEMBERS, forget=["w"], workload=StoredWorkload("w", ("w.0", "w.1"), PLANS)),
    "drop workload": lambda c: c.put(forget=["w"]),
    "table": lambda c: c.remember(
        {"v": KnownTable(schema_of("v", ["k"]), "/data/v.parquet", {})}, True, "UTC"
    ),
}


@pytest.fixture(autouse=True, scope="module")
def _without_flushing():
    """What survives a power cut is not what is tested here, and flushing is most of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: None)
        yield


def everything(folder):
    """All files under a folder and what is in them; links as what they point to."""
    return {
        p.relative_to(folder): os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
    }


def begun(folder):
    """A catalog with a sketch and a workload."""
    catalog = remember(Catalog(folder), A)
    CHANGES["workload"](catalog)
    return catalog


@pytest.mark.parametrize(
    "name",
    ["a.parquet", "x.partial", "0" * 32 + ".parquet", "catalog.json", "catalog-00000001.json", "notes", "folder/x", "link"],
)  # fmt: skip
def test_a_folder_of_others_is_no_catalog_and_stays_as_it_is(name, tmp_path):
    user = tmp_path / "u"
    (user / name).parent.mkdir(parents=True)
    (user / name).write_bytes(b"mine") if name != "link" else (user / name).symlink_to("nowhere")
    before = everything(tmp_path)
    for change in CHANGES.values():
        with pytest.raises((DataError, Exception)) as caught:
            change(Catalog(user))
        assert caught.value.code in ("SKIMQL_NOT_A_CATALOG", "SKIMQL_CATALOG_LOST", "SKIMQL_CORRUPT_SKETCH")
    assert everything(tmp_path) == before


def test_the_way_out_is_a_folder_that_works(tmp_path):
    (tmp_path / "sketches").write_text("taken")
    with pytest.raises(DataError, match="it holds sketches") as caught:
        Catalog(tmp_path).put(A)
    Catalog(caught.value.hint.rpartition(" ")[2]).put(A)
    assert (tmp_path / "sketches").read_text() == "taken"


def test_registering_a_table_in_the_folder_of_its_file_is_refused_and_the_files_stay(tmp_path, spark):
    for name in ("a", "b"):
        pq.write_table(pa.table({"k": [1, 2]}), tmp_path / f"{name}.parquet")
    (tmp_path / "c.partial").write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(DataError, match="is no catalog") as caught:
        Session(spark, catalog=tmp_path).table("a", str(tmp_path / "a.parquet"))
    assert caught.value.code == "SKIMQL_NOT_A_CATALOG"
    assert everything(tmp_path) == before


# Names of the user's, some of them just of the form of ours.
digits = st.text("0123456789abcdef", min_size=32, max_size=32)
NAMES = st.one_of(
    st.sampled_from(["a.parquet", "x.partial", ".x.partial", ".hidden", "catalog.json.partial", "catalog-1.json", "q/b.parquet"]),
    digits.map(lambda d: d + ".parquet"),
    digits.map(lambda d: d + ".partial"),
    st.integers(0, 12).map(lambda n: f"catalog-{n:08d}.json"),
    st.text("abc.-_", min_size=1, max_size=8).filter(lambda t: t.strip(".")),
)  # fmt: skip


@settings(max_examples=30)
@given(
    names=st.sets(NAMES, min_size=1, max_size=5),
    steps=st.lists(st.tuples(st.sampled_from(list(CHANGES)), st.integers(0, 9), st.booleans()), max_size=5),
)
def test_files_of_others_in_and_around_a_catalog_survive_every_change_and_crash(
    names, steps, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("c")
    inside = folder / "catalog"
    begun(inside)
    foreign = [p for n in names for p in (folder / n, inside / n) if not p.exists()]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    for change, at, after in steps:
        with contextlib.suppress(Killed, DataError):
            CHANGES[change](Catalog(DyingFolder(LocalFolder(inside), at, after=after)))
    assert {p: p.read_bytes() for p in foreign} == dict.fromkeys(foreign, b"mine")
    if "drop" not in [c for c, _, _ in steps]:
        assert same(Catalog(inside).load("a"), A)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("after", [False, True])
def test_a_killed_change_has_happened_or_has_not_and_leaves_nothing_for_ever(change, after, tmp_path):
    for steps in range(12):
        folder = tmp_path / str(steps)
        begun(folder)
        before = Catalog(folder).manifest
        try:
            CHANGES[change](Catalog(DyingFolder(LocalFolder(folder), steps, after=after)))
            done = True
        except Killed:
            done = False
        state = Catalog(folder).manifest
        assert state.generation in (before.generation, before.generation + 1)
        assert done <= (state.generation > before.generation)
        for head in Catalog(folder).heads():
            Catalog(folder).load(head.name)
        for _ in range(2):  # what was left goes with the second change from here
            Catalog(folder).put(A, forget=["a"])
        state = Catalog(folder).manifest
        named = {e.file for e in state.sketches.values()} | {
            f for f in state.garbage if f.endswith(".parquet")
        }
        numbers = {f"catalog-{state.generation - n:08d}.json" for n in (0, 1)}
        assert {p.name for p in folder.iterdir()} == named | numbers | {"catalog.json", "catalog.lock"}
        if done:
            return
    raise AssertionError("a change has more steps than were tried")


def test_a_catalog_that_lost_its_manifests_keeps_its_sketches_and_says_how_to_get_them_back(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    inside = tmp_path / "c"
    remember(Catalog(inside), A)
    for file in inside.glob("catalog*.json"):
        file.unlink()
    left = everything(inside)
    for use in (
        lambda: Catalog(inside).heads(),
        lambda: Catalog(inside).put(B),
        lambda: Catalog(inside).load("a"),
    ):
        with pytest.raises(DataError, match=r"has no catalog.json any more, and 1 files") as caught:
            use()
        assert caught.value.code == "SKIMQL_CATALOG_LOST"
    assert everything(inside) == left
    statement = caught.value.hint.partition("IMPORT")
    rescued = Session(catalog=tmp_path / "other")
    rescued.sql("IMPORT" + statement[2].replace("name", "a"))
    assert same_arrays(rescued.catalog.load("a"), A)


def same_arrays(one, other):
    states = [[b.sketch.state() for b in s.built] for s in (one, other)]
    return all((a[n] == b[n]).all() for a, b in zip(*states, strict=True) for n in a)


def test_an_export_into_the_catalog_survives(tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    session = Session(catalog=tmp_path)
    remember(session.catalog, A)
    inside = [tmp_path / n for n in ("mine.parquet", "f" * 32 + ".parquet")]
    for path in inside:
        session.sql(f"EXPORT SKETCH a TO '{path}'")
    for _ in range(3):
        session.catalog.put(A)
    assert all(p.read_bytes() == encode(A) for p in inside)


def test_an_older_catalog_sweeps_what_its_manifests_name_and_nothing_else(tmp_path):
    """As the first versions wrote it: without a list of garbage, with the file of the state before still there."""
    catalog = Catalog(tmp_path)
    for _ in range(2):
        catalog.put(A)
    for path in tmp_path.glob("catalog*.json"):
        content = json.loads(path.read_bytes())["catalog"]
        del content["garbage"], content["id"]
        path.write_bytes(canonical({"catalog": content, "sha256": digest(canonical(content))}))
    (tmp_path / ("e" * 32 + ".parquet")).write_bytes(b"mine")
    for _ in range(2):
        Catalog(tmp_path).put(A)
    assert (tmp_path / ("e" * 32 + ".parquet")).read_bytes() == b"mine"
    assert len(list(tmp_path.glob("*.parquet"))) == 2 + 1


@pytest.mark.parametrize(
    "name", ["../x", "a.parquet", "notes", "catalog.json", "catalog.lock", "/etc/passwd"]
)
def test_a_manifest_cannot_have_other_names_swept(name, tmp_path):
    Catalog(tmp_path).put(A)
    for path in tmp_path.glob("catalog*.json"):
        content = json.loads(path.read_bytes())["catalog"] | {"garbage": [name]}
        path.write_bytes(canonical({"catalog": content, "sha256": digest(canonical(content))}))
    with pytest.raises(Exception, match="garbage has what is none") as caught:
        Catalog(tmp_path).put(B)
    assert caught.value.code == "SKIMQL_CORRUPT_SKETCH"


def test_a_lock_that_is_none_is_not_emptied(tmp_path):
    Catalog(tmp_path).put(A)
    (tmp_path / "catalog.lock").write_text("mine")
    with pytest.raises(DataError, match="is no lock of SkimQL's"):
        Catalog(tmp_path).put(B)
    assert (tmp_path / "catalog.lock").read_text() == "mine"


REMOVES = {
    "unlink",
    "rmtree",
    "rmdir",
    "remove",
    "replace",
    "rename",
    "delete_file",
    "delete_dir",
    "truncate",
    "umask",
}
# Where a file is removed or replaced: what runs in the catalog, and the scratch folders of a process.
ALLOWED = {
    "engine/catalog/changes.py": {"replace"},
    "engine/catalog/folder.py": {"unlink", "delete_file", "replace"},
    "engine/catalog/disk.py": {"unlink", "replace", "rmdir"},
    "engine/spark/scratch.py": {"rmtree"},
    # Its own file beside the jar, which it puts in its place.
    "engine/extension/jar.py": {"unlink", "replace"},
}


def test_no_other_module_removes_or_replaces_a_file():
    for path in sorted(
        p for f in ("cli", "engine", "optimizer", "parser", "sketches") for p in (ROOT / f).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in REMOVES
                and isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript))
            ):
                owner = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
                if owner in ("os", "shutil", "path", "folder", "file_system", "self") or node.attr in (
                    "unlink",
                    "rmtree",
                ):
                    assert node.attr in ALLOWED.get(str(path.relative_to(ROOT)), set()), (
                        f"{path}: {node.attr}"
                    )


def test_changes_alone_calls_for_removal_in_a_catalog():
    for path in (ROOT / "engine").rglob("*.py"):
        calls = [
            n.func.attr
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr in ("delete", "_delete")
        ]
        assert not calls or path.name in ("changes.py", "folder.py"), path


def test_what_no_reader_would_take_is_not_written(tmp_path):
    """Writers keep to the bounds of readers: a catalog that can be written can be read."""
    catalog = remember(Catalog(tmp_path), A)
    before, files = catalog.manifest, set(everything(tmp_path))
    measure = replace(A.head.measures[0], tally=Tally(3, float("inf"), 0))
    infinite = replace(A, head=replace(A.head, name="i", measures=(measure,)))
    for change in (
        lambda: catalog.put(infinite),
        lambda: catalog.put(kept("b", "t", {"k": [1]}, rows=3, buckets=8, created="x" * 100)),
        lambda: catalog.put(*MEMBERS, workload=StoredWorkload("w", ("w.0", "w.1"), {"stages": "no queries"})),
    ):
        with pytest.raises(SkimqlError):
            change()
        assert Catalog(tmp_path).manifest == before
        assert set(everything(tmp_path)) <= files
