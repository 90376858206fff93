"""The file of a state: what is written is read, and nothing else is."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from support.continuous import MemoryBuilder, MemorySpark, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.streams import Continuous
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings
from skimql.engine.streams.state import StreamState, batch_plan, times_of
from skimql.engine.streams.state_file import decode, encode
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.views import define
from skimql.errors import CorruptSketch, IncompatibleSketches

SCHEMA = "k BIGINT, v DOUBLE, op STRING"
TEXT = (
    "SELECT APPROXIMATE COUNT(*), SUM(a.v) FROM flows a JOIN hosts h ON a.k = h.ip JOIN flows b ON a.k = b.k"
    " WHERE b.op = 'i' SIZE 8 KB"
)


@pytest.fixture(scope="module")
def state():
    hosts = arrow("ip BIGINT, w BIGINT", [(n % 7, n) for n in range(20)])
    stream = stream_of("flows", SCHEMA, "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END")
    rows = [(n % 300, n / 3, "d" if n % 5 == 0 else "i") for n in range(900)]
    tables = MemoryTables({"hosts": hosts, "flows": arrow(SCHEMA, [])})
    view = define(
        "q",
        TEXT,
        MemoryTables({"hosts": hosts}),
        Continuous({"flows": stream}),
        Settings(),
        tables.typed,
        {},
        TEXT,
    )
    plan = batch_plan(view.query, 1, stream, view.synopses_of("flows"))
    built, senders = MemoryBuilder("flows", {"hosts": hosts}).build(
        arrow(SCHEMA, rows), plan, times_of(stream)
    )
    found = StreamState(stream.id, 1).after(
        0, "q", dict(zip(plan.synopses, built, strict=True)), senders, "now"
    )
    assert any(s.messages for s in found.summaries), "a table is folded in"
    assert {s.built.sketch.exact is None for s in found.summaries.values()} == {True, False}
    return found


def test_what_is_written_is_read(state):
    again = decode(encode(state), "x")
    assert encode(again) == encode(state)
    assert (again.batch, again.messages, list(again.summaries)) == (0, state.messages, list(state.summaries))
    for synopsis, summary in state.summaries.items():
        mine, theirs = summary.built, again.summaries[synopsis].built
        assert np.array_equal(mine.sketch.dense().counters, theirs.sketch.dense().counters)
        assert (mine.tally, mine.scale) == (theirs.tally, theirs.scale)


def test_a_file_that_is_cut_or_changed_is_refused(state):
    data = encode(state)
    for cut in (0, 10, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(CorruptSketch):
            decode(data[:cut], "x")
    for place in range(0, len(data), len(data) // 40):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(CorruptSketch):
            decode(bytes(changed), "x")


def test_a_newer_file_is_refused_by_its_version(state):
    body = encode(state)[:-32].replace(b'"format_version":1', b'"format_version":9')
    with pytest.raises(IncompatibleSketches, match="format version 9"):
        decode(body + hashlib.sha256(body).digest(), "x")


def test_parts_of_domains_are_read_as_they_were_written_by_those_who_know_of_them(state):
    synopsis, summary = next((s, f) for s, f in state.summaries.items() if s.attributes)
    parts = {replace(synopsis, cell=(part,) * len(synopsis.attributes)): summary for part in (0, 3)}
    parted = replace(state, summaries={**state.summaries, **parts})
    again = decode(encode(parted), "x")
    assert encode(again) == encode(parted)
    assert list(again.summaries) == list(parted.summaries)
    assert b'"format_version":3' in encode(parted)
    body = encode(parted)[:-32].replace(b'"cell":[3]', b'"cell":[ ]')
    with pytest.raises(CorruptSketch):
        decode(body + hashlib.sha256(body).digest(), "x")


def test_panes_and_clocks_are_read_as_they_were_written(tmp_path):
    from datetime import UTC, datetime, timedelta

    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(90)]
    rows = [arrow("k BIGINT, ts TIMESTAMP", [(n % 7, t) for n, t in enumerate(times)])] * 2
    text = "SELECT APPROXIMATE COUNT(*) FROM a JOIN a AS b ON a.k = b.k"
    views = {"q": (text, {"window": "1 hour", "slide": "15 minutes", "time": "ts"}), "r": text}
    catalog = declared(Catalog(tmp_path / "c"), [stream_of("a", "k BIGINT, ts TIMESTAMP")], views)
    MemorySpark(catalog, "a", tmp_path / "checkpoint").run(rows)
    found = load(catalog, continuous(catalog).streams["a"], 1).state
    again = decode(encode(found), "x")
    assert encode(again) == encode(found)
    assert (list(again.parts), again.clocks) == (list(found.parts), found.clocks)
    assert b'"format_version":2' in encode(found)
    # Without panes it is as those read it that know of none.
    assert b'"format_version":1' in encode(replace(found, parts={}, clocks={}))
