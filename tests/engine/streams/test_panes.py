"""What a batch does to panes and groups: which events count, and that nothing hangs on how a batch is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemoryBuilder, MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution.partial_aggregate import Feed, Partial, sketch_plan
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.cells import OTHER, Cells, Split
from skimql.engine.streams.panes import _usual, split_plan, with_cells
from skimql.engine.streams.state import StreamState, batch_plan, events
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


@pytest.mark.parametrize("seed", range(3))
def test_which_groups_have_room_does_not_hang_on_how_a_batch_is_cut(seed):
    random = np.random.default_rng(seed)
    stream, split = stream_of("a", "g BIGINT"), Split(None, ("`g`",), 5)
    synopsis = events("a")
    groups = random.integers(0, 12, 60).tolist()
    batches, states = (groups[:9], groups[9:]), []
    for parts in (1, 2, 7):
        state = StreamState(stream.id, 1)
        for number, batch in enumerate(batches):
            made = split_plan(batch_plan(None, 1, stream, []), stream, [(synopsis, split)], state)
            whole = Cells(made.cuts)
            number_of = len(made.plan.synopses) - 1
            empty = {number_of: Partial.empty(sketch_plan(synopsis, 1, "int64"))}
            for piece in random.permutation(parts):
                task = Cells(made.cuts)
                feed = Feed(None, (), (None,), (), "c", ((number_of,),), (), (None,))
                for start in range(int(piece), len(batch), 2 * parts):
                    own = batch[start :: 2 * parts][:1] + batch[start + parts :: 2 * parts][:1]
                    struct = pa.StructArray.from_arrays([pa.array(own, pa.int64())], ["c0"])
                    task(pa.RecordBatch.from_arrays([struct], ["c"]), feed, empty)
                for (i, cell), part in task.parts.items():
                    whole.part(i, cell, empty).merge(part)
            found = whole.finished(empty, {number_of: 1.0})[number_of]
            state = with_cells(state, state, stream, number, {(synopsis, split): found}, {})
        (parts_of,) = state.parts.values()
        states.append({c: b.tally.tuples for c, b in parts_of.cells.items()})
    assert states[0] == states[1] == states[2]
    assert len(states[0]) == 6
    assert sum(states[0].values()) == 60
    assert (0, OTHER) in states[0]


def test_a_view_of_another_seed_begins_anew(tmp_path):
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM a x JOIN a y ON x.k = y.k"
    catalog = declared(Catalog(tmp_path / "c"), [stream_of("a", SCHEMA)], {"q": (text, HOUR)})
    spark = MemorySpark(catalog, "a", tmp_path / "checkpoint")
    spark.run([rows(0, 0)])
    declared(catalog, [continuous(catalog).streams["a"]], {"q": (text, HOUR)}, seed=5)
    assert [r["n"] for r in asked(catalog, "q").records()] == [0]
    spark.run([rows(0, 0), rows(0)])
    assert [r["n"] for r in asked(catalog, "q").records()] == [1]


def test_groups_are_computed_only_where_the_condition_holds(tmp_path):
    text = "SELECT APPROXIMATE CAST(10 / k AS BIGINT) AS g, COUNT(*) AS n FROM a WHERE k <> 0 GROUP BY 1"
    catalog = declared(Catalog(tmp_path / "c"), [stream_of("a", SCHEMA)], {"q": text})
    MemorySpark(catalog, "a", tmp_path / "checkpoint").run([arrow(SCHEMA, [(0, START), (5, START)])])
    assert [(r["g"], r["n"]) for r in asked(catalog, "q").records()] == [(2, 1)]
