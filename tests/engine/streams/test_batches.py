"""Batches of a stream without Spark: nothing lost, nothing doubled, wherever the process dies."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from support.continuous import Killed, MemorySpark, asked, declared, stream_of
from support.dying import DyingFolder
from support.dying import Killed as DeadWriter
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.store import continuous, forget_senders, load
from skimql.errors import StreamError

SCHEMA = "k BIGINT, v BIGINT, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
HOSTS = {"hosts": arrow("ip BIGINT, w BIGINT", [(n % 7, n) for n in range(20)])}
JOIN = "SELECT APPROXIMATE COUNT(*) AS n, SUM(f.v) AS s FROM flows f JOIN hosts h ON f.k = h.ip"


def events(seed, batches=4, rows=60, keys=9):
    """Batches with deletions, some of them before their insertions."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(batches):
        k, v = random.integers(0, keys, rows), random.integers(0, 100, rows)
        op = np.where(random.random(rows) < 0.3, "d", "i")
        found.append(arrow(SCHEMA, list(zip(k.tolist(), v.tolist(), op.tolist(), strict=True))))
    return found


def truth(batches, hosts):
    """COUNT and SUM of the join of what is there, by plain arithmetic."""
    weight = {}
    for ip, _ in hosts:
        weight[ip] = weight.get(ip, 0) + 1
    count = total = 0
    for batch in batches:
        for row in batch.to_pylist():
            sign = -1 if row["op"] == "d" else 1
            count += sign * weight.get(row["k"], 0)
            total += sign * row["v"] * weight.get(row["k"], 0)
    return count, total


@pytest.fixture
def catalog(tmp_path):
    return declared(Catalog(tmp_path / "catalog"), [stream_of("flows", SCHEMA, DELETES)], {"q": JOIN}, HOSTS)


def test_a_view_of_a_stream_and_a_table_is_exact_after_every_batch(catalog, tmp_path):
    batches = events(1)
    spark = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS)
    hosts = [tuple(r.values()) for r in HOSTS["hosts"].to_pylist()]
    assert asked(catalog, "q").records()[0]["n"] == 0
    for last in range(1, len(batches) + 1):
        spark.run(batches, last=last)
        found = asked(catalog, "q")
        count, total = truth(batches[:last], hosts)
        (row,) = found.records()
        assert (row["n"], row["n_low"], row["n_high"], row["s"]) == (count, count, count, total)
        assert found.notes[0].startswith(f"as of batch {last - 1} of flows (")
        assert any(n.startswith("table hosts as of ") for n in found.notes)


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    """Counters and answer of a run that nobody kills."""
    folder = tmp_path_factory.mktemp("unkilled")
    catalog = declared(Catalog(folder / "c"), [stream_of("flows", SCHEMA, DELETES)], {"q": JOIN}, HOSTS)
    MemorySpark(catalog, "flows", folder / "checkpoint", HOSTS).run(events(2))
    return counters(catalog), asked(catalog, "q").records()


@pytest.mark.parametrize(
    ("kill", "again"),
    list(product(product((0, 2), ("planned", "built", "saved", "committed")), (False, True))),
)
def test_wherever_it_is_killed_the_state_ends_as_if_it_was_not(catalog, tmp_path, kill, again, unkilled):
    batches = events(2)
    spark = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS)
    with pytest.raises(Killed):
        spark.run(batches, kill)
    if again and kill[1] in ("planned", "built"):
        with pytest.raises(Killed):
            spark.run(batches, kill)
    spark.run(batches)
    assert (counters(catalog), asked(catalog, "q").records()) == unkilled


def counters(catalog, name="flows"):
    """Every sketch as counters, with its tally."""
    catalog = Catalog(catalog.folder)
    state = load(catalog, continuous(catalog).streams[name], 1).state
    return {
        s: (f.built.sketch.dense().counters.tolist(), f.built.tally, f.since)
        for s, f in state.summaries.items()
    }


def test_a_batch_that_is_delivered_twice_counts_once(catalog, tmp_path):
    batches = events(3)
    handler = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS).run(batches)
    before = counters(catalog)
    handler(batches[-1], len(batches) - 1)
    handler(batches[0], 0)
    assert counters(catalog) == before


def test_a_batch_that_is_not_the_next_one_is_refused(catalog, tmp_path):
    handler = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS).run(events(3), last=2)
    with pytest.raises(StreamError, match="batch 5 arrives, and the state waits for 2") as fault:
        handler(events(3)[0], 5)
    assert fault.value.code == "SKIMQL_CHECKPOINT_MISMATCH"


@pytest.mark.parametrize("later", [(0, "saved"), (0, "committed"), (1, "planned"), (1, "built")])
@pytest.mark.parametrize("batch", [0, 2])
def test_a_newest_state_that_is_cut_off_is_made_again(catalog, tmp_path, batch, later):
    batches = events(4)
    spark = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS)
    with pytest.raises(Killed):
        spark.run(batches, (batch + later[0], later[1]))
    file = tmp_path / "catalog" / continuous(Catalog(tmp_path / "catalog")).streams["flows"].state.file
    file.write_bytes(file.read_bytes()[:-40])
    spark.run(batches)
    other = declared(Catalog(tmp_path / "other"), [stream_of("flows", SCHEMA, DELETES)], {"q": JOIN}, HOSTS)
    MemorySpark(other, "flows", tmp_path / "whole", HOSTS).run(batches)
    assert counters(catalog) == counters(other)


def test_a_table_that_has_changed_stops_the_stream_and_not_silently_joins(catalog, tmp_path):
    batches = events(5)
    spark = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS)
    spark.run(batches, last=2)
    before = counters(catalog)
    changed = {"hosts": arrow("ip BIGINT, w BIGINT", [(n % 7, n) for n in range(21)])}
    with pytest.raises(StreamError, match="table hosts is another than it was") as fault:
        MemorySpark(catalog, "flows", tmp_path / "checkpoint", changed).run(batches)
    assert fault.value.code == "SKIMQL_STATIC_CHANGED"
    assert counters(catalog) == before


def test_a_table_that_is_read_again_joins_later_events_alone(catalog, tmp_path):
    batches = events(5, batches=3)
    MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS).run(batches, last=2)
    before = asked(catalog, "q").records()[0]["n"]
    stream = continuous(Catalog(catalog.folder)).streams["flows"]
    forget_senders(Catalog(catalog.folder), stream, frozenset(["other"]))
    assert continuous(Catalog(catalog.folder)).streams["flows"].state == stream.state
    forget_senders(Catalog(catalog.folder), stream, frozenset(["hosts"]))
    assert asked(catalog, "q").records()[0]["n"] == before
    changed = {"hosts": arrow("ip BIGINT, w BIGINT", [(n % 7, n) for n in range(21)])}
    MemorySpark(catalog, "flows", tmp_path / "checkpoint", changed).run(batches)
    hosts = [tuple(r.values()) for r in changed["hosts"].to_pylist()]
    found = asked(catalog, "q")
    assert found.records()[0]["n"] == before + truth(batches[2:], hosts)[0]
    said = "from batch 2 of flows on; the events before were joined with it as it was then"
    assert any(note.endswith(said) for note in found.notes)


def test_two_processes_do_not_overwrite_each_other(catalog, tmp_path):
    batches = events(6)
    spark = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS)
    first, second = spark.run(batches, last=1), spark.run(batches, last=1)
    first(batches[1], 1)
    with pytest.raises(StreamError, match="changed by another process") as fault:
        second(batches[1], 1)
    assert fault.value.code == "SKIMQL_STATE_CHANGED"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("steps", range(6, 14, 2))
def test_a_writer_that_dies_at_any_step_leaves_a_state_before_or_after(
    catalog, tmp_path, steps, after, unkilled
):
    dying = DyingFolder(catalog.folder, steps, after=after)
    checkpoint = tmp_path / "checkpoint"
    with contextlib.suppress(DeadWriter):
        MemorySpark(Catalog(dying), "flows", checkpoint, HOSTS).run(events(2))
    MemorySpark(Catalog(catalog.folder), "flows", checkpoint, HOSTS).run(events(2))
    assert (counters(catalog), asked(catalog, "q").records()) == unkilled


@pytest.mark.parametrize("keeps", [{}, {"dedup": ("k",), "within": "1 hour"}, {"format": "frame"}])
def test_a_batch_of_which_spark_keeps_something_is_run_though_the_state_has_it(tmp_path, keeps):
    stream = replace(stream_of("flows", SCHEMA, DELETES), **keeps)
    catalog = declared(Catalog(tmp_path / "c"), [stream], {"q": JOIN}, HOSTS)
    batches = events(3, batches=2)
    handler = MemorySpark(catalog, "flows", tmp_path / "checkpoint", HOSTS).run(batches)
    handler(batches[1], 1)
    assert handler.builder.passed_over == ([batches[1]] if keeps else [])
