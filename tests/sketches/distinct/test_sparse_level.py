"""Level sketches that start as exact maps: exact while small, the counters of a level sketch afterwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.distinct.set_expression import Stream, estimate
from skimql.sketches.distinct.sparse_level import SparseLevelSketch
from skimql.sketches.hashing.xi import make_family

SPEC = LevelSpec(make_family(seed=3), buckets=16, levels=4)
TUPLES = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)), max_size=40)
LIMITS = st.sampled_from([0, 160, None])


def of(tuples, limit=None):
    sketch = SparseLevelSketch(SPEC, limit)
    columns = np.array(tuples, dtype=np.int64).reshape(-1, 2)
    sketch.update(columns[:, 0], columns[:, 1])
    return sketch


def net(tuples):
    weights = {}
    for key, weight in tuples:
        weights[key] = weights.get(key, 0) + weight
    return {key for key, weight in weights.items() if weight}


def dense(tuples):
    sketch = LevelSketch(SPEC)
    columns = np.array(tuples, dtype=np.int64).reshape(-1, 2)
    sketch.update(columns[:, 0], columns[:, 1])
    return sketch.state()


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@settings(deadline=None, max_examples=60)
@given(TUPLES, TUPLES, LIMITS, LIMITS)
def test_merged_in_every_combination(one, other, limit, other_limit):
    merged = of(one, limit)
    merged.merge(of(other, other_limit))
    assert same(merged.dense().state(), dense(one + other))
    if merged.exact_keys is not None:
        assert set(merged.exact_keys.tolist()) == net(one + other)
        assert merged.estimate().exact
        assert merged.estimate().value == len(net(one + other))
    restored = SparseLevelSketch.from_state(SPEC, merged.state(), limit)
    assert same(restored.state(), merged.state())
    twin = merged.copy()
    twin.update([1])
    assert same(restored.state(), merged.state())
    merged.subtract(of(other, other_limit))
    assert same(merged.dense().state(), dense(one))


def test_it_turns_into_counters_when_it_outgrows_them_and_stays_so():
    sketch = SparseLevelSketch(SPEC, limit_bytes=160)
    sketch.update(np.arange(10))
    assert sketch.nbytes == 160
    assert sketch.estimate().exact
    assert sketch.estimate_where(lambda keys: keys < 3).value == 3
    assert sketch.sample().tolist() == list(range(10))
    sketch.update(np.arange(10, 11))
    assert sketch.exact_keys is None
    assert sketch.nbytes == 8 * SPEC.words
    assert same(sketch.state(), dense([(key, 1) for key in range(11)]))
    assert sketch.estimate_where(lambda keys: keys < 3).low <= 3
    sketch.update(np.arange(11), np.full(11, -1))
    assert sketch.exact_keys is None
    assert sketch.estimate().value == 0


def test_every_number_of_keys_is_exact_at_the_default_size():
    # C38 without an interval: 20,000 keys are 320 KB, the counters 786 KB.
    sketch = SparseLevelSketch()
    for n in range(0, 20_000, 500):
        assert (sketch.estimate().value, sketch.estimate().exact) == (n, True)
        sketch.update(np.arange(n, n + 500))


def test_an_intersection_with_a_known_set_is_not_larger_than_it():
    # C41: the smaller set is known exactly, and bounds value and interval.
    keys = np.arange(1_000_950)
    for seed in range(3):
        spec = LevelSpec(make_family(seed=seed))
        huge, tiny = SparseLevelSketch(spec), SparseLevelSketch(spec)
        huge.update(keys[:1_000_000])
        tiny.update(keys[999_950:])
        assert huge.exact_keys is None
        found = estimate(Stream("huge") & Stream("tiny"), {"huge": huge, "tiny": tiny})
        assert found.low <= 50 <= found.high <= 1_000
        assert found.value <= 1_000
        assert not found.exact


def test_set_expressions_of_known_sets_are_exact():
    a, b = SparseLevelSketch(), SparseLevelSketch()
    a.update(np.arange(5_000))
    b.update(np.arange(4_000, 9_000))
    found = estimate(Stream("a") - Stream("b"), {"a": a, "b": b})
    assert (found.value, found.exact) == (4_000, True)


def test_other_specs_are_refused():
    with pytest.raises(ValueError, match=r"cannot combine.*16 buckets.*17 buckets"):
        of([]).merge(SparseLevelSketch(LevelSpec(SPEC.family, 17, 4)))
