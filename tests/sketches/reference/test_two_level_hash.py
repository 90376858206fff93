"""The 2-level hash sketch with bit counters: linear, and its single keys are real."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.theory import most_misses

from skimql.sketches.distinct.count_signature import EMPTY, SINGLETON
from skimql.sketches.distinct.set_expression import Stream, estimate
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.reference.two_level_hash import TwoLevelHashSketch, TwoLevelHashSpec

SPEC = TwoLevelHashSpec(make_family(seed=2), copies=2, levels=4)
TUPLES = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 9)), max_size=20)


def of(tuples, spec=SPEC):
    sketch = TwoLevelHashSketch(spec)
    columns = np.array(tuples, dtype=np.int64).reshape(-1, 2)
    sketch.update([columns[:, 0]], columns[:, 1])
    return sketch


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_linear_to_the_last_bit(one, other):
    merged = of(one)
    merged.merge(of(other))
    assert np.array_equal(merged.counters, of((one + other)[::-1]).counters)
    merged.subtract(of(other))
    assert np.array_equal(merged.counters, of(one).counters)


@settings(deadline=None, max_examples=40)
@given(TUPLES)
def test_cells_hold_what_they_say(tuples):
    cells = of(tuples).cells()
    keys = np.array(sorted({key for key, _ in tuples}), dtype=np.int64)
    levels = np.minimum(
        32 - np.frexp(SPEC.family.values(keys, 2, 32).astype(float))[1], 3
    )  # as the docstring says, by other means than the sketch
    for copy in range(2):
        for level in range(4):
            there = keys[levels[copy] == level]
            kind, key = cells.kinds[level, copy], cells.keys[level, copy]
            assert (kind == EMPTY) == (len(there) == 0)
            assert (kind == SINGLETON) == (len(there) == 1)
            if kind == SINGLETON:
                assert key == there[0]


# 40 seeds; intervals of distinct count and intersection miss more often than `most_misses` with chance 1e-6.
# Seen to fail with levels shifted by one.
def test_distinct_and_intersection_cover_after_deletions():
    misses = np.zeros(2)
    for seed in range(40):
        spec = TwoLevelHashSpec(make_family(seed=seed), 48, 16, key_bits=11)
        a, b = TwoLevelHashSketch(spec), TwoLevelHashSketch(spec)
        a.update([np.arange(1_500)])
        a.update([np.arange(1_000, 1_500)], np.full(500, -1))
        b.update([np.arange(600, 1_600)])
        both = estimate(Stream("a") & Stream("b"), {"a": a, "b": b})
        for case, (found, truth) in enumerate([(a.estimate(), 1_000), (both, 400)]):
            misses[case] += not found.low <= truth <= found.high
    assert misses.max() <= most_misses(40, 0.05)


def test_keys_outside_the_domain_are_refused():
    sketch = TwoLevelHashSketch(TwoLevelHashSpec(key_bits=4, copies=2))
    with pytest.raises(ValueError, match=r"key 16 at position 1 is outside \[0, 2\*\*4\)"):
        sketch.update([[15, 16]])
    assert not sketch.counters.any()


@pytest.mark.parametrize("arguments", [{"copies": 0}, {"levels": 34}, {"key_bits": 65}])
def test_sizes_are_checked(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))[:3]):
        TwoLevelHashSpec(**arguments)
