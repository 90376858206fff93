"""Hash sketches beside dense keys: exact maps first, linear in all of it, the same tuples as without dense keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.convolution import ConvolutionSketch
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.samples.dense_first import DenseFirstSketch, update_dense_first
from skimql.sketches.samples.sample_sketch_join import point_rows

SPEC = hash_spec(make_family("tabulation", 3), 3, 8)
DENSE = np.array([9, 2, 5])
TUPLES = st.lists(st.tuples(st.integers(0, 12), st.integers(-3, 3)), max_size=40)


def sketch_of(tuples, limit=None):
    sketch = DenseFirstSketch(SPEC, DENSE, limit)
    keys, weights = (np.array([t[i] for t in tuples], np.int64) for i in (0, 1))
    sketch.update([keys], weights)
    return sketch


def same(a, b):
    one, two = a.state(), b.state()
    return set(one) == set(two) and all(np.array_equal(one[n], two[n]) for n in one)


@given(TUPLES, TUPLES, st.sampled_from([0, 100, None]))
def test_parts_add_up_and_what_is_taken_out_leaves_no_trace(one, two, limit):
    together = sketch_of([*one, *two], 0)
    merged = sketch_of(one, limit)
    merged.merge(sketch_of(two, limit))
    counted = DenseFirstSketch.from_state(SPEC, merged.state(), 0)
    counted.merge(sketch_of([], 0))
    assert same(counted, together)
    together.subtract(sketch_of(two))
    assert same(together, sketch_of(one, 0))
    copied = merged.copy()
    copied.merge(sketch_of(two, limit))
    assert same(DenseFirstSketch.from_state(SPEC, merged.state(), limit), merged)


@given(TUPLES, st.sampled_from([0, None]))
def test_dense_keys_keep_their_exact_weight_and_all_of_it_is_a_hash_sketch(tuples, limit):
    sketch, whole = sketch_of(tuples, limit), ConvolutionSketch(SPEC)
    whole.update([np.array([k for k, _ in tuples], np.int64)], np.array([w for _, w in tuples], np.int64))
    assert np.array_equal(sketch.plain().dense().counters, whole.counters)
    wanted = [sum(w for k, w in tuples if k == key) for key in DENSE]
    assert np.array_equal(point_rows(sketch, DENSE), np.tile(wanted, (len(point_rows(sketch, DENSE)), 1)))


def test_sums_of_doubles_have_dense_keys_too():
    spec = hash_spec(make_family("tabulation", 3), 3, 8, "float64")
    both = DenseFirstSketch(SPEC, DENSE, 0), DenseFirstSketch(spec, DENSE, 0)
    keys = np.repeat(np.arange(20), 3)
    update_dense_first(both, [keys], [None, keys / 4])
    assert point_rows(both[0], DENSE).tolist() == [[3.0] * 3] * 3
    twice = DenseFirstSketch.from_state(spec, both[1].state(), 0)
    twice.merge(both[1])
    assert point_rows(twice, DENSE).tolist() == [(1.5 * DENSE).tolist()] * 3
    twice.subtract(both[1])
    assert same(twice, both[1])


def test_many_keys_turn_the_map_into_counters_beside_the_dense_keys():
    sketch = DenseFirstSketch(SPEC, DENSE)
    sketch.update([np.arange(10)])
    assert sketch.exact is not None
    # Distances and weights of ten keys that follow one another: 20 bits.
    assert sketch.nbytes == 3 + DENSE.nbytes
    sketch.update([np.arange(1000)])
    assert sketch.exact is None
    assert sketch.nbytes == SPEC.nbytes + 16 * DENSE.size == sum(a.nbytes for a in sketch.state().values())
    assert point_rows(sketch, np.array([5]))[0] == 2


def test_what_does_not_fit_is_refused_and_nothing_is_added():
    one, other = sketch_of([(5, 1)]), DenseFirstSketch(SPEC, DENSE[:2])
    with pytest.raises(ValueError, match="different dense keys"):
        one.merge(other)
    full = sketch_of([(5, 2**62), (1, 1)], 0)
    before = full.copy()
    two = [full, sketch_of([], 0)]
    for key in (5, 1):  # a dense key, and one that is not
        weights = np.array([2**62] * 2 if key == 5 else [2**62, 2**62 - 1])
        with pytest.raises(OverflowError):
            update_dense_first(two[::-1], [np.array([key, key])], [None, weights])
        assert same(full, before)
        assert same(two[1], sketch_of([], 0))
    state = full.state()
    for broken in (
        {**state, "dense_keys": state["dense_keys"][::-1]},
        {**state, "rest.counters": np.zeros(3)},
    ):
        with pytest.raises(ValueError, match=r"state|counters|order"):
            DenseFirstSketch.from_state(SPEC, broken)
