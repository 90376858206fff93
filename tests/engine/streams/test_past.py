"""Which files a stream has read, by Spark's checkpoint, and sketches that get their events later."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.continuous import MemoryBuilder, MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.past import files_of, files_read, past_of
from skimql.engine.streams.store import continuous, forget_senders
from skimql.errors import DataError

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

    assert files_of(checkpoint, 1) == (), "the offsets of the batch before are not there"
    (checkpoint / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":0}')
    assert files_of(checkpoint, 1) == tuple(str(tmp_path / n) for n in ("c[1]", "d"))


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


def test_what_is_joined_with_a_table_that_was_read_again_begins_with_the_next_batch(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA)],
        {"n": "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN t ON a.k = t.k"},
        {"t": arrow("k BIGINT", [(1,)])},
    )
    batches, now = [arrow(SCHEMA, [(1, 5)])] * 2, {"t": arrow("k BIGINT", [(1,), (1,)])}
    MemorySpark(catalog, "a", tmp_path / "checkpoint", {"t": arrow("k BIGINT", [(1,)])}).run(batches[:1])
    (stream,) = continuous(catalog).streams.values()
    sums = {
        "s": "SELECT APPROXIMATE SUM(v) AS s FROM a JOIN t ON a.k = t.k",
        "v": "SELECT APPROXIMATE SUM(v) FROM a",
    }
    declared(catalog, [stream], sums, now)

    def missing():
        handler = Batches(Catalog(catalog.folder), "a", MemoryBuilder("a"))
        handler.start()
        return {s.messages != () for s in handler.missing()}

    assert missing() == {True, False}
    forget_senders(catalog, stream, frozenset({"t"}))
    assert missing() == {False}
    MemorySpark(catalog, "a", tmp_path / "checkpoint", now).run(batches)
    assert asked(catalog, "s").value == 10
    assert any("from batch 1 on" in n for n in asked(catalog, "s").notes)


def test_of_a_stream_that_leaves_out_what_comes_twice_nothing_is_read_again(tmp_path):
    stream = replace(stream_of("a", SCHEMA), source=str(tmp_path), dedup=("k",), within="1 hour")
    assert past_of(None, stream, tmp_path, 0) is None


def test_past_changes_without_an_image_that_is_needed_now_are_left_alone(tmp_path):
    stream = stream_of("a", SCHEMA)
    catalog = declared(
        Catalog(tmp_path / "catalog"), [stream], {"n": "SELECT APPROXIMATE COUNT(*) AS n FROM a"}
    )
    MemorySpark(catalog, "a", tmp_path / "checkpoint").run([arrow(SCHEMA, [(1, 5)])])
    found = continuous(catalog).streams["a"]
    declared(catalog, [replace(found, changes="delta")], {"s": "SELECT APPROXIMATE SUM(v) AS s FROM a"})
    builder = MemoryBuilder("a")

    def build(*_):
        raise DataError("[USER_RAISED_EXCEPTION] SKIMQL_NO_BEFORE_IMAGE: v is not in {} SQLSTATE: P0001")

    builder.build = build
    handler = Batches(Catalog(catalog.folder), "a", builder)
    handler.start()
    assert handler.missing()
    assert not handler.catch_up(arrow(SCHEMA, []))
    assert handler.state.batch == 0
