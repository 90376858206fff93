"""Sketches that were planned together are changed together or not at all, and answer only as what they were planned as.

F3 too: they never take the place of a sketch of the user's.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from support.kept import kept, remember

from skimql import CorruptSketch, Session, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import canonical, digest
from skimql.engine.catalog.manifest import StoredWorkload
from skimql.engine.spark.own import OwnSpark

PLANS = {"stages": "", "gathered_at": None, "queries": []}
MEMBERS = [kept(f"w.{i}", "t", {"k": [i, 5]}, rows=3, buckets=8, group="w") for i in range(2)]
WORKLOAD = StoredWorkload("w", ("w.0", "w.1"), PLANS)
SINGLE = kept("s", "t", {"k": [1]}, rows=3, buckets=8)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A catalog with a workload and a sketch; no Spark runs."""
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    catalog = remember(Catalog(tmp_path / "c"), SINGLE)
    catalog.put(*MEMBERS, forget=("w",), workload=WORKLOAD)
    session = Session(catalog=tmp_path / "c")
    session.sql(f"EXPORT SKETCH s TO '{tmp_path}/s.parquet'")
    return session


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE SKETCH `w.0` ON t (k CLASS `w.0`) WHERE k < 5 OPTIONS (rows = 128, buckets = 32)",
        "CREATE OR REPLACE SKETCH `W.1` ON t (k)",
        "CREATE SKETCH `w.0` ON t (k)",
        "CREATE SKETCH IF NOT EXISTS `w.0` ON t (k)",
        "APPEND SKETCH `w.0` FROM t",
        "APPEND SKETCH `W.0` FROM '/nowhere.parquet'",
        "REFRESH SKETCH `w.1`",
        "DROP SKETCH `w.0`",
        "DROP SKETCH IF EXISTS `w.1`",
        "IMPORT SKETCH `w.0` FROM '{path}'",
        "IMPORT SKETCH `w.1` FROM '{path}' TRUSTED",
        "CREATE OR REPLACE SKETCH w ON t (k)",
        "IMPORT SKETCH w FROM '{path}'",
    ],
)
def test_no_statement_changes_a_member(statement, home, tmp_path):
    before = home.catalog.manifest
    with pytest.raises(UnsupportedQuery) as caught:
        home.sql(statement.format(path=tmp_path / "s.parquet"))
    assert caught.value.code in ("SKIMQL_SKETCH_OF_GROUP", "SKIMQL_SKETCHES_EXIST")
    assert Catalog(tmp_path / "c").manifest == before


def test_the_catalog_itself_refuses_whoever_calls_it(home):
    for change in (
        lambda c: c.put(kept("w.0", "t", {"k": [7]}, rows=3, buckets=8)),
        lambda c: c.put(kept("W.1", "t", {"k": [7]}, rows=3, buckets=8), forget=("w.1",)),
        lambda c: c.put(forget=("w.0", "w.1")),
        lambda c: c.put(kept("w", "t", {"k": [7]}, rows=3, buckets=8)),
    ):
        with pytest.raises(UnsupportedQuery, match="kept together"):
            change(home.catalog)
    home.catalog.put(forget=("w",))
    assert [h.name for h in home.catalog.heads()] == ["s"]


@pytest.mark.parametrize("replacing", ["", "OR REPLACE "])
@pytest.mark.parametrize("taken", ["v.0", "V.12"])
def test_a_workload_does_not_take_the_place_of_a_sketch(replacing, taken, home):
    home.catalog.put(kept(taken, "t", {"k": [1]}, rows=3, buckets=8))
    before = home.catalog.manifest
    with pytest.raises(UnsupportedQuery, match=rf"there is a sketch {taken} already") as caught:
        home.sql(
            f"CREATE {replacing}SKETCHES v FOR QUERIES (SELECT COUNT(*) FROM t a JOIN t b ON a.k = b.k)"
            " SIZE 1 MB MINIMIZE AVERAGE ERROR"
        )
    assert caught.value.code == "SKIMQL_SKETCHES_EXIST"
    assert home.catalog.manifest == before
    with pytest.raises(UnsupportedQuery, match="already"):
        home.catalog.put(
            *(replace(m, head=replace(m.head, name=taken, group="v")) for m in MEMBERS[:1]),
            workload=StoredWorkload("v", (taken,), PLANS),
        )
    assert home.catalog.manifest == before


def test_sketches_do_not_replace_a_sketch_of_their_name(home):
    with pytest.raises(UnsupportedQuery, match="there are sketches s already"):
        home.sql(
            "CREATE OR REPLACE SKETCHES s FOR QUERIES (SELECT COUNT(*) FROM t a JOIN t b ON a.k = b.k)"
            " SIZE 1 MB MINIMIZE AVERAGE ERROR"
        )


def rewritten(folder, change):
    """Change the manifest behind the catalog's back, its checksum right."""
    for path in folder.glob("catalog*.json"):
        content = json.loads(path.read_bytes())["catalog"]
        change(content)
        path.write_bytes(canonical({"catalog": content, "sha256": digest(canonical(content))}))


def test_members_that_are_not_what_was_planned_answer_nothing(session, tmp_path):
    """With a checksum of what a workload was made of; without it, as older versions wrote it, by names and groups."""
    spark = session.spark
    session = Session(spark, error=None, catalog=tmp_path / "c")
    rows = {"t": [n % 50 for n in range(400)], "u": [n % 70 for n in range(300)]}
    for name, keys in rows.items():
        session.table(name, spark.createDataFrame(pa.table({"k": keys, "x": range(len(keys))})))
    question = "SELECT APPROXIMATE COUNT(*) AS n FROM t JOIN u ON t.k = u.k"
    session.sql(f"CREATE SKETCHES w FOR QUERIES ({question}) SIZE 1 MB MINIMIZE AVERAGE ERROR")
    right = session.sql(question)
    assert "from the sketches w" in right.notes[0]
    with pytest.raises(UnsupportedQuery, match="kept together"):
        session.sql(
            "CREATE OR REPLACE SKETCH `w.0` ON t (k CLASS `w.0`) WHERE x < 5 OPTIONS (rows = 128, buckets = 32)"
        )
    assert session.sql(question).value == right.value
    session.sql("CREATE SKETCH other ON t (k CLASS `w.0`) WHERE x < 5")
    for group in ("w", ""):
        rewritten(tmp_path / "c", lambda content, g=group: put_in_place(content, g))
        with pytest.raises(CorruptSketch, match="not those that they were planned as") as caught:
            Session(spark, error=None, catalog=tmp_path / "c").sql(question)
        assert "CREATE OR REPLACE SKETCHES w" in caught.value.hint


def put_in_place(content, group):
    """`other` where w.0 was; without a group as an older version would have let it, which kept no checksum either."""
    if "other" not in content["sketches"]:
        return  # the state before
    content["sketches"]["w.0"] = {**content["sketches"]["other"]}
    content["sketches"]["w.0"]["metadata"] = {
        **content["sketches"]["other"]["metadata"],
        "name": "w.0",
        "group": group,
    }
    if not group:
        content["workloads"]["w"].pop("made_of")
