"""Which events an answer has, as columns: batch, when it came in, the newest event, and when tables were read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.continuous import MemorySpark, declared, stream_of
from support.memory import arrow

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.as_of import as_of_columns, lag, rate
from skimql.engine.streams.state import StreamState
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.views import planned

TIMED = "k BIGINT, t TIMESTAMP"


def at(minute):
    return datetime(2026, 1, 1, 10, minute, tzinfo=UTC)


@pytest.fixture
def catalog(tmp_path):
    streams = [stream_of("a", TIMED), replace(stream_of("b", TIMED), id="b" * 32)]
    streams = [replace(s, time_zone="Europe/Vienna") for s in streams]
    window = {"window": "1 hour", "time": "t"}
    found = declared(
        Catalog(tmp_path / "c"),
        streams,
        {
            "one": ("SELECT APPROXIMATE COUNT(*) AS n FROM a", window),
            "two": ("SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k", window),
            "beside": "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN h ON a.k = h.k",
        },
        {"h": arrow("k BIGINT", [(1,)])},
    )
    statics = {"h": arrow("k BIGINT", [(1,)])}
    MemorySpark(found, "a", tmp_path / "of a", statics).run(
        [arrow(TIMED, [(1, at(1))]), arrow(TIMED, [(1, at(20)), (2, at(7))])]
    )
    return found


def of(catalog, name):
    found = continuous(catalog)
    view = planned(found.views[name], found.streams)
    states = {s: load(catalog, found.streams[s], 0).state for s in view.view.streams}
    return view, states


def test_an_answer_has_its_batch_and_its_newest_event_as_columns(catalog, tmp_path):
    session = Session(catalog=tmp_path / "c")
    rows = session.sql("SELECT * FROM one").records()
    assert [(r["n"], r["as_of_batch"]) for r in rows] == [(3, 1)]
    assert rows[0]["as_of_event"] == at(20)
    assert str(rows[0]["as_of_event"].tzinfo) == "Europe/Vienna"
    (beside,) = session.sql("SELECT * FROM beside").records()
    assert list(beside)[-3:] == ["as_of", "as_of_batch", "as_of_tables"]
    assert beside["as_of_tables"] <= beside["as_of"] <= datetime.now(UTC)
    session.sql("SET skimql.bounds = none")
    assert session.sql("SELECT * FROM one").names == ("window_start", "window_end", "n")


def test_of_several_streams_each_has_its_batch_and_the_earliest_tells_how_far_events_are(catalog, tmp_path):
    told = {n: v for n, _, v in as_of_columns(*of(catalog, "two"), "UTC")}
    assert (told["as_of_batch"], told["as_of_event"]) == ("a 1, b none", None)
    MemorySpark(catalog, "b", tmp_path / "of b").run([arrow(TIMED, [(1, at(9))])])
    view, states = of(catalog, "two")
    told = {n: v for n, _, v in as_of_columns(view, states, "UTC")}
    assert (told["as_of_batch"], told["as_of_event"]) == ("a 1, b 0", at(9))
    assert lag(view, states) == pytest.approx((datetime.now(UTC) - at(9)).total_seconds(), abs=60)


def test_what_has_no_batch_yet_has_neither_lag_nor_rate(catalog):
    empty = StreamState("0" * 32, 1)
    view, _ = of(catalog, "beside")
    assert lag(view, {"a": empty}) is None
    assert [v for _, _, v in as_of_columns(view, {"a": empty}, "UTC")] == [None, None, None]
    first = replace(empty, batch=0, updated="2026-01-01T00:00:00Z")
    later = replace(empty, batch=1, updated="2026-01-01T00:00:00.250Z")
    assert (rate(5, empty, first), rate(5, first, first), rate(5, first, later)) == (None, None, 20.0)
