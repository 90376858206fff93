"""Which files a stream has read, by Spark's checkpoint, and sketches that get their events later."""

from __future__ import annotations

import json

import pytest
from support.continuous import MemoryBuilder, MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.past import files_read
from skimql.engine.streams.store import continuous

SCHEMA = "k BIGINT, v BIGINT"


@pytest.fixture
def checkpoint(tmp_path):
    """Three listings, of which the first two are in the compact one; batch 1 goes up to listing 2."""
    for name in ("a b", "c[1]", "d"):
        (tmp_path / name).touch()
    folder = tmp_path / "checkpoint"
    (folder / "sources" / "0").mkdir(parents=True)
    (folder / "offsets").mkdir()

    def entry(name, number):
        return json.dumps({"path": (tmp_path / name).as_uri(), "timestamp": 1, "batchId": number})

    listings = {
        "0": [entry("a b", 0)],
        "1.compact": [entry("a b", 0), entry("c[1]", 1)],
        "2": [entry("d", 2)],
        "3": [entry("later", 3)],
    }
    for name, entries in listings.items():
        (folder / "sources" / "0" / name).write_text("\n".join(["v1", *entries]))
    (folder / "offsets" / "1").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":2}')
    return folder


def test_the_files_of_a_batch_and_of_those_before_it(checkpoint, tmp_path):
    assert files_read(checkpoint, 1) == tuple(str(tmp_path / n) for n in ("a b", "c[1]", "d"))


@pytest.mark.parametrize(
    "lost", ["d", "checkpoint/sources/0/2", "checkpoint/sources/0/1.compact", "checkpoint/offsets/1"]
)
def test_what_is_gone_is_not_guessed(checkpoint, tmp_path, lost):
    (tmp_path / lost).unlink()
    assert files_read(checkpoint, 1) is None


@pytest.mark.parametrize("whole", [True, False])
def test_a_later_view_gets_the_events_that_were_read_if_they_are_the_same(tmp_path, whole):
    batches = [arrow(SCHEMA, [(1, 5), (2, 6)]), arrow(SCHEMA, [(1, 7)])]
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA)],
        {"n": "SELECT APPROXIMATE COUNT(*) AS n FROM a"},
    )
    spark = MemorySpark(catalog, "a", tmp_path / "checkpoint")
    spark.run(batches)
    declared(
        catalog,
        [continuous(catalog).streams["a"]],
        {"s": "SELECT APPROXIMATE SUM(v) AS s FROM a WHERE k = 1"},
    )
    handler = Batches(Catalog(catalog.folder), "a", MemoryBuilder("a"))
    handler.start()
    assert {s.weight.expression for s in handler.missing()} == {"`v`"}
    assert handler.catch_up(arrow(SCHEMA, [(1, 5), (2, 6), (1, 7)][: 3 if whole else 2])) == whole
    assert asked(catalog, "s").value == (12 if whole else None)
    spark.run([*batches, arrow(SCHEMA, [(1, 100)])])
    answer = asked(catalog, "s")
    assert answer.value == (112 if whole else 100)
    assert any("from batch 2 on" in n for n in answer.notes) != whole
