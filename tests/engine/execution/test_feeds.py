"""Feeds of the same keys share their hashes, and every sketch has what its own feed gives it alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skimql.engine.execution.feeds import Feed, Partial, feed_batch, feed_together, together
from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.optimizer.methods import LEVEL
from skimql.optimizer.plan import Attribute, Synopsis, Weight
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.heavy_keys import METHOD as HEAVY_KEYS

ROWS = 400


def plans_of(*kinds, sparse=False):
    """Plans of sketches by number; each kind a method, with the key and size, and the type of its weights."""
    found = {}
    for number, (method, key, buckets, dtype) in enumerate(kinds):
        attributes = (Attribute((key,), ("bigint",), key),) if key else ()
        synopsis = Synopsis("t", None, attributes, Weight(), method, 7, buckets, sparse)
        found[number] = sketch_plan(synopsis, 3, dtype)
    return found


def batch_of(seed, passing=0.5):
    random = np.random.default_rng(seed)
    return pa.RecordBatch.from_pydict(
        {
            "k": pa.array(random.integers(0, 60, ROWS), mask=random.random(ROWS) < 0.1),
            "g": pa.array(random.integers(0, 9, ROWS)),
            "sign": pa.array(np.where(random.random(ROWS) < 0.3, -1, 1)),
            "v": pa.array(random.normal(size=ROWS)),
            "some": pa.array(random.random(ROWS) < passing, mask=random.random(ROWS) < 0.1),
            "few": pa.array(random.random(ROWS) < 0.02),
        }
    )


KINDS = (
    *[("hash", "k", 64, "int64")] * 3,
    ("hash", "k", 64, "float64"),
    (HEAVY_KEYS, "k", 64, "int64"),
    ("hash", "k", 100, "int64"),
    ("hash", "g", 64, "int64"),
    (LEVEL, "k", 64, "int64"),
    *[("total", None, 2, "int64")] * 2,
)
FEEDS = (
    Feed(None, ("k",), ("sign",), (0,)),
    Feed("some", ("k",), (None, "v", "sign", "sign"), (1, 3, 4, 7), slacks=(None, "v", None, None)),
    Feed("few", ("k",), ("sign",), (2,)),
    Feed("some", ("k",), ("sign",), (5,)),
    Feed(None, ("g",), (None,), (6,)),
    Feed("few", (), ("sign",), (8,)),
    Feed(None, (), (None,), (9,)),
)


def arrays(part):
    return {name: array.tolist() for name, array in part.sketch.state().items()}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("feeds", [FEEDS, FEEDS[1:3], FEEDS[2:3]], ids=["all", "filtered", "one"])
def test_sketches_are_those_of_every_feed_alone(feeds, sparse):
    plans = plans_of(*KINDS, sparse=sparse)
    alone, shared = ({i: Partial.empty(p) for i, p in plans.items()} for _ in range(2))
    for seed, passing in ((1, 0.5), (2, 0.05), (3, 0.0)):
        batch = batch_of(seed, passing)
        for feed in feeds:
            feed_batch(batch, feed, alone)
        for own in together(feeds, plans):
            feed_together(batch, own, shared)
    for i in plans:
        assert arrays(shared[i]) == arrays(alone[i]), i
        assert shared[i].tally == alone[i].tally, i


def test_a_key_is_hashed_once_for_all_filters(monkeypatch):
    plans, hashed = plans_of(*KINDS), []
    slots = ConvolutionSpec.slots

    def counted(self, keys):
        hashed.append(len(keys[0]))
        return slots(self, keys)

    monkeypatch.setattr(ConvolutionSpec, "slots", counted)
    parts = {i: Partial.empty(plan) for i, plan in plans.items()}
    batch = batch_of(1)
    for own in together(FEEDS[:3], plans):
        feed_together(batch, own, parts)
    assert hashed == [ROWS - batch.column("k").null_count]


def test_tuples_that_no_filter_takes_are_not_hashed(monkeypatch):
    plans = plans_of(*KINDS)
    monkeypatch.setattr(ConvolutionSpec, "slots", None)
    parts = {i: Partial.empty(plan) for i, plan in plans.items()}
    (own,) = together((Feed("few", ("k",), ("sign",), (0,)), FEEDS[2]), plans)
    columns = batch_of(1)
    nothing = columns.set_column(5, "few", pa.array([False] * ROWS))
    feed_together(nothing, own, parts)
    assert parts[0].tally.tuples == parts[2].tally.tuples == 0
