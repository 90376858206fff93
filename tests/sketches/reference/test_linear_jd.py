"""LinearJD sketches: linear, and their bitmaps are exactly those of the joining pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.reference.fm import hash_levels
from skimql.sketches.reference.linear_jd import (
    LinearJDSketch,
    LinearJDSpec,
    composed_bitmaps,
    linear_jd_composed_likely_size,
    linear_jd_likely_size,
    linear_jd_size,
)

SPEC = LinearJDSpec(make_family(seed=1).derive("a"), copies=3, levels=5)
OTHER = LinearJDSpec(make_family(seed=1).derive("c"), copies=3, levels=5)
TUPLES = st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5), st.integers(1, 4)), max_size=15)


def of(tuples, spec=SPEC, sign=1):
    sketch = LinearJDSketch(spec)
    values, keys, weights = np.array(tuples, dtype=np.int64).reshape(-1, 3).T
    sketch.update(values, keys, sign * weights)
    return sketch


def same(one, other):
    return all(
        np.array_equal(x, y) for x, y in zip(one.state().values(), other.state().values(), strict=True)
    )


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_linear_to_the_last_bit(one, other):
    merged = of(one)
    merged.merge(of(other))
    assert same(merged, of((one + other)[::-1]))
    merged.subtract(of(other))
    assert same(merged, of(one))
    assert same(LinearJDSketch.from_state(SPEC, merged.state()), of(one))
    twin = merged.copy()
    twin.update([1], [1])
    assert same(merged, of(one))


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_bitmaps_are_those_of_the_joining_pairs(r, s):
    expected = np.zeros((3, 4), bool)
    for a, b, _ in r:
        for c, b2, _ in s:
            if b == b2:
                k = hash_levels(SPEC.family, np.array([a]), 3, 5)[:, 0]
                m = hash_levels(OTHER.family, np.array([c]), 3, 5)[:, 0]
                for copy in np.flatnonzero(k != m):
                    expected[copy, min(k[copy], m[copy])] = True
    assert np.array_equal(composed_bitmaps(of(r), of(s, OTHER)), expected)


def graph(n, q, rng):
    r, s = rng.random((n, n)) < q, rng.random((n, n)) < q
    return np.nonzero(r), np.nonzero(s), int((r.astype(np.float32) @ s.T.astype(np.float32) > 0).sum())


# 8 graphs of 200 x 200 with 100 copies: measured mean errors 5 %, 7 % and 40 %; the bounds are two to three
# times that. Seen to fail with levels shifted by one (all three).
def test_errors_on_random_graphs():
    errors = np.zeros((3, 8))
    for seed in range(8):
        r, s, truth = graph(200, 0.04, np.random.default_rng(seed))
        family = make_family(seed=seed)
        by_a, by_c = (LinearJDSketch(LinearJDSpec(family.derive(x), 100, 14)) for x in "ac")
        by_a.update(*r)
        by_c.update(*s)
        passing = np.arange(500), np.arange(500) % 7
        by_a.update(*passing)
        by_a.update(*passing, np.full(500, -1))
        found = (
            linear_jd_likely_size(by_a, by_c, 200, 200),
            linear_jd_composed_likely_size(by_a, by_c, 200, 200),
            linear_jd_size(by_a, by_c),
        )
        errors[:, seed] = np.array(found) / truth - 1
    assert (np.abs(errors).mean(axis=1) < [0.12, 0.2, 1.0]).all()


def test_misuse_is_refused():
    with pytest.raises(ValueError, match=r"same size.*3 copies x 5.*4 copies x 5"):
        composed_bitmaps(of([]), LinearJDSketch(LinearJDSpec(OTHER.family, 4, 5)))
    with pytest.raises(ValueError, match="derive a family"):
        composed_bitmaps(of([]), of([]))
    with pytest.raises(ValueError, match="cannot combine"):
        of([]).merge(of([], OTHER))
    with pytest.raises(ValueError, match="2 and 1"):
        LinearJDSketch(SPEC).update([1], [1, 2])
    with pytest.raises(ValueError, match="keys and counters"):
        LinearJDSketch.from_state(SPEC, {})
    with pytest.raises(ValueError, match="ascending"):
        LinearJDSketch.from_state(SPEC, {"keys": np.array([2, 1]), "counters": np.ones((2, 3, 5), np.int64)})
    with pytest.raises(ValueError, match="levels"):
        LinearJDSpec(levels=1)


def test_overflow_is_refused():
    sketch = of([(1, 1, 2**62)])
    with pytest.raises(OverflowError, match="64 bits"):
        sketch.update([1], [1], [2**62])
    assert same(sketch, of([(1, 1, 2**62)]))
