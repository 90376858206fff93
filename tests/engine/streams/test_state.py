"""The state of a stream as a value."""

from __future__ import annotations

import numpy as np
import pytest
from support.continuous import stream_of

from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.engine.streams.state import (
    BAD_ROW,
    Sender,
    StreamState,
    bad_rows,
    events,
    times_of,
)
from skimql.engine.synopses import Built, Tally
from skimql.errors import StreamError
from skimql.optimizer.plan import Attribute, Message, Synopsis, Weight

KEY = Attribute(("`k`",), ("bigint",), "k")
HASH = Synopsis("s", None, (KEY,), Weight(), "hash", 3, 8)


def built(synopsis, keys, weights, seed=1):
    sketch = sketch_plan(synopsis, seed, "int64").empty()
    weights = np.array(weights, dtype=np.int64)
    sketch.update([np.array(keys, dtype=np.int64)] if synopsis.attributes else [], weights)
    return Built(sketch, Tally(len(weights), float(np.abs(weights).sum()), int((weights < 0).sum())), 1.0)


def after(state, number, synopsis, weights, seed=1):
    return state.after(
        number, "q", {synopsis: built(synopsis, [5] * len(weights), weights, seed)}, {}, "", seed
    )


def test_a_deletion_may_come_first_and_nothing_is_clamped():
    state = after(StreamState("s", 1), 0, HASH, [-1])
    assert state.summaries[HASH].built.sketch.exact.weights.tolist() == [-1]
    state = after(after(state, 1, HASH, [1]), 2, HASH, [1])
    assert state.summaries[HASH].built.sketch.exact.weights.tolist() == [1]
    assert state.tally(HASH) == Tally(3, 3.0, 1)


def test_states_are_values_and_the_one_before_is_as_it_was():
    first = after(StreamState("s", 1), 0, HASH, [1])
    after(first, 1, HASH, [1])
    assert (first.batch, first.next_batch, first.tally(HASH).tuples) == (0, 1, 1)
    assert after(first, 1, HASH, [1]).tally(HASH) == after(first, 1, HASH, [1]).tally(HASH)


def test_a_synopsis_that_comes_later_says_since_when_and_one_that_nobody_needs_goes():
    other = Synopsis("s", "`k` > 1", (KEY,), Weight(), "hash", 3, 8)
    state = after(StreamState("s", 1), 0, HASH, [1])
    new = {s: built(s, [5], [1]) for s in (HASH, other)}
    state = state.after(1, "q", new, {}, "")
    assert {s: f.since for s, f in state.summaries.items()} == {HASH: 0, other: 1}
    assert list(after(state, 2, other, [1]).summaries) == [other]


def test_of_another_seed_sketches_begin_anew_and_totals_go_on():
    state = after(StreamState("s", 1), 0, HASH, [1])
    total = events("s")
    counted = {total: built(total, [], [1, 1])}
    state = state.after(1, "q", {**counted, HASH: built(HASH, [5], [1])}, {}, "")
    state = state.after(2, "q", {**counted, HASH: built(HASH, [5], [1], 9)}, {}, "", 9)
    assert (state.tally(HASH).tuples, state.tally(total).tuples) == (1, 4)
    assert state.summary(HASH, 1) is None


def test_a_sum_that_leaves_64_bits_names_the_batch():
    state = after(StreamState("s", 1), 0, HASH, [(1 << 63) - 1])
    with pytest.raises(StreamError, match="in batch 1") as fault:
        after(state, 1, HASH, [1])
    assert fault.value.code == "SKIMQL_STREAM_OVERFLOW"


def test_values_of_another_type_are_refused():
    state = after(StreamState("s", 1), 0, HASH, [1])
    sketch = sketch_plan(HASH, 1, "float64").empty()
    with pytest.raises(StreamError, match="another type") as fault:
        state.after(1, "q", {HASH: Built(sketch, Tally(), 1.0)}, {}, "")
    assert fault.value.code == "SKIMQL_STREAM_TYPE"


def test_what_a_table_has_sent_is_told_from_what_it_sends_now():
    keys, message = np.array([3, 1, 2]), Message("t", None, KEY, KEY, Weight())
    ints, doubles = np.array([1, 2, 3]), np.array([0.1, 0.2, 0.3])
    assert Sender.of(keys, ints, "a").same(Sender.of(keys[::-1], ints[::-1], "b"))
    assert not Sender.of(keys, ints, "a").same(Sender.of(keys, np.array([1, 3, 2]), "a"))
    assert Sender.of(keys, doubles, "a").same(Sender.of(keys, doubles * (1 + 1e-15), "b"))
    assert not Sender.of(keys, doubles, "a").same(Sender.of(keys, doubles[::-1].copy(), "a"))
    first = {message: Sender.of(keys, ints, "first")}
    state = StreamState("s", 1).after(0, "q", {}, first, "")
    state = state.after(1, "q", {}, {message: Sender.of(keys, ints, "second")}, "")
    assert state.messages == first
    with pytest.raises(StreamError, match="table t is another than it was at first"):
        state.after(2, "q", {}, {message: Sender.of(keys, ints + 1, "third")}, "")


def test_rows_that_cannot_be_read_count_nothing():
    read = stream_of("s", "k BIGINT", "`k`", "csv")
    assert bad_rows(stream_of("s", "k BIGINT")) is None
    assert bad_rows(read).filter == f"`{BAD_ROW}` IS NOT NULL"
    assert times_of(stream_of("s", "k BIGINT")) is None
    assert times_of(read).startswith(
        f"CASE WHEN `{BAD_ROW}` IS NULL THEN coalesce(CAST((`k`) AS BIGINT), 0L)"
    )
