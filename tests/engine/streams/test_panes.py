"""What a batch does to panes and groups: which events count, and that nothing hangs on how a batch is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from support.continuous import MemoryBuilder, MemorySpark, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.panes import _usual
from skimql.engine.streams.store import continuous, load
from skimql.errors import StreamError

SCHEMA = "k BIGINT, ts TIMESTAMP"
START = datetime(2026, 1, 1, tzinfo=UTC)
COUNT = "SELECT APPROXIMATE COUNT(*) AS n FROM a"
HOUR = {"window": "1 hour", "time": "ts", "ahead": "1 day"}


def rows(*hours):
    return arrow(SCHEMA, [(1, START + timedelta(hours=h)) for h in hours])


def test_the_usual_time_of_a_first_batch_is_that_of_most_events():
    assert _usual([1, 2, 3], 5, {1: 1, 2: 1, 3: 1}) == 3
    assert _usual([-99, 2, 3, 99], 5, {-99: 1, 2: 1, 3: 1, 99: 1}) == 3
    assert _usual([1, 99], 5, {1: 1, 99: 2}) == 99


def test_events_that_are_too_far_ahead_are_put_aside_or_stop_the_stream(tmp_path):
    views = {"q": (COUNT, HOUR), "r": (COUNT, {**HOUR, "bad_rows": "fail"})}
    for name, view in views.items():
        catalog = declared(Catalog(tmp_path / name), [stream_of("a", SCHEMA)], {name: view})
        builder = MemoryBuilder("a")
        batches = Batches(catalog, "a", builder, "query")
        batches(rows(0, 1), 0)
        if name == "q":
            batches(rows(2, 99), 1)
            latest = int((START + timedelta(hours=2)).timestamp()) * 10**6
            assert builder.quarantined == [(1, {"ts": latest})]
            continue
        with pytest.raises(StreamError, match="too far ahead of the others by ts") as fault:
            batches(rows(2, 99), 1)
        assert fault.value.code == "SKIMQL_BAD_ROWS"
        assert load(catalog, continuous(catalog).streams["a"], 1).state.batch == 0


def test_a_view_of_other_windows_has_panes_of_its_own(tmp_path):
    views = {"q": (COUNT, HOUR), "r": (COUNT, {**HOUR, "watermark": "1 hour"}), "s": (COUNT, HOUR)}
    catalog = declared(Catalog(tmp_path / "c"), [stream_of("a", SCHEMA)], views)
    MemorySpark(catalog, "a", tmp_path / "checkpoint").run([rows(0, 1), rows(9), rows(10)])
    state = load(catalog, continuous(catalog).streams["a"], 1).state
    assert len(state.clocks) == 2
    assert len({split for _, split in state.parts}) == 2


def test_a_batch_of_nothing_moves_nothing(tmp_path):
    catalog = declared(Catalog(tmp_path / "c"), [stream_of("a", SCHEMA)], {"q": (COUNT, HOUR)})
    none = pa.Table.from_batches([], rows(0).schema)
    MemorySpark(catalog, "a", tmp_path / "checkpoint").run([none, rows(5), none, rows(5)])
    state = load(catalog, continuous(catalog).streams["a"], 1).state
    (clock,) = state.clocks.values()
    assert clock.latest == clock.before == int((START + timedelta(hours=5)).timestamp()) * 10**6
