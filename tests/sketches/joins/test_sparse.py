"""Sparse first: the change into counters cannot be seen in them, and merging works in every combination."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.agms import AgmsSpec
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.sparse import SparseFirstSketch, update_sparse_first

A, B = (make_family("tabulation", 1).derive(label) for label in "ab")
SPECS = [
    ConvolutionSpec((A,), 3, 4),
    ConvolutionSpec((A, B), 3, 4),
    AgmsSpec((A,), 4, 3),
    ConvolutionSpec(()),
]
LIMITS = [0, 60, 10_000]
EVENTS = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-(2**50), 2**50)), max_size=12
)


def spec_id(spec):
    return f"{type(spec).__name__}-{len(spec.families)}"


def filled(spec, events, limit):
    sketch = SparseFirstSketch(spec, limit)
    columns = [np.array([e[i] for e in events], dtype=np.int64) for i in range(len(spec.families))]
    sketch.update(columns, np.array([e[2] for e in events], dtype=np.int64))
    return sketch


def counters(sketch):
    return sketch.dense().counters.tobytes()


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
@settings(max_examples=30, deadline=None)
@given(EVENTS, EVENTS, st.sampled_from(LIMITS), st.sampled_from(LIMITS))
def test_every_combination_merges_to_the_same_counters(spec, first, second, limit, other_limit):
    plain = spec.empty()
    both = first + second
    plain.update(
        [np.array([e[i] for e in both], dtype=np.int64) for i in range(len(spec.families))],
        np.array([e[2] for e in both], dtype=np.int64),
    )
    a, b = filled(spec, first, limit), filled(spec, second, other_limit)
    before = b.state()
    merged = a.copy()
    merged.merge(b)
    assert counters(merged) == plain.counters.tobytes() == counters(filled(spec, both, limit))
    merged.subtract(b)
    assert counters(merged) == counters(a)
    assert all((before[name] == array).all() for name, array in b.state().items()), "the other is left alone"
    restored = SparseFirstSketch.from_state(spec, a.state(), limit)
    assert counters(restored) == counters(a)
    assert (restored.exact is None) == (a.exact is None)


def test_a_map_turns_into_counters_when_it_outgrows_them():
    spec = ConvolutionSpec((A,), 2, 8)
    sketch = SparseFirstSketch(spec)
    assert spec.nbytes == 128
    sketch.update([np.arange(8)])
    assert sketch.exact is not None
    assert sketch.nbytes == 128
    sketch.update([[3, 3, 7]])
    assert sketch.exact is not None, "no new key, no more bytes"
    sketch.update([[99]])
    assert sketch.exact is None
    assert sketch.nbytes == 128
    assert set(sketch.state()) == {"counters"}
    sketch.update([np.arange(8)], np.full(8, -1))
    assert sketch.exact is None, "what was forgotten does not come back"
    assert SparseFirstSketch(spec, 0).exact is None


def test_deleting_every_row_empties_a_map():
    sketch = SparseFirstSketch(ConvolutionSpec((A,), 2, 8))
    never = sketch.state()
    sketch.update([[5, 6]], [2, 3])
    sketch.update([[6, 5]], [-3, -2])
    assert len(sketch.exact) == 0
    assert all(sketch.state()[name].tobytes() == array.tobytes() for name, array in never.items())


def test_the_map_is_the_same_for_every_order():
    rng = np.random.default_rng(1)
    keys, order = rng.integers(-20, 20, (2, 500)), rng.permutation(500)
    a, b = (SparseFirstSketch(ConvolutionSpec((A, B), 11, 4096)) for _ in range(2))
    a.update(list(keys))
    for piece in np.array_split(order, 7):
        b.update([k[piece] for k in keys])
    assert all(b.state()[name].tobytes() == array.tobytes() for name, array in a.state().items())


def test_several_sketches_share_a_batch_in_any_representation():
    spec = ConvolutionSpec((A,), 3, 16)
    keys, values = np.arange(150_000) % 40, np.arange(150_000) % 7 - 3
    count, dense, total = (SparseFirstSketch(spec, limit) for limit in (10_000, 0, 200))
    floats = SparseFirstSketch(replace(spec, dtype="float64"))
    update_sparse_first([count, dense, total, floats], [keys], [None, values, values, values / 2])
    assert (count.exact is None, dense.exact is None, total.exact is None) == (False, True, True)
    assert counters(dense) == counters(total)
    assert len(count.exact) == 40
    assert int(count.exact.weights.sum()) == 150_000
    assert (floats.dense().counters * 2 == dense.dense().counters).all()
    update_sparse_first([], [keys], [])
    with pytest.raises(ValueError, match="as many weights"):
        update_sparse_first([count], [keys], [])
    with pytest.raises(ValueError, match="listed twice"):
        update_sparse_first([count, count], [keys], [None, None])
    with pytest.raises(ValueError, match="different layouts"):
        update_sparse_first([count, SparseFirstSketch(replace(spec, families=(B,)))], [keys], [None, None])


def test_an_overflow_leaves_every_sketch_of_the_batch_alone():
    spec = ConvolutionSpec((A,), 3, 16)
    first, second, third = SparseFirstSketch(spec), SparseFirstSketch(spec, 0), SparseFirstSketch(spec)
    second.update([[1]], [2**62])
    third.update([[1]], [2**62])
    for other in (second, third):
        with pytest.raises(OverflowError):
            update_sparse_first([first, other], [[1]], [[1], [2**62]])
        assert len(first.exact) == 0
    with pytest.raises(OverflowError):
        third.merge(third.copy())


def test_strange_states_and_specs_are_refused():
    spec = ConvolutionSpec((A,), 3, 16)
    with pytest.raises(ValueError, match="is its counters"):
        SparseFirstSketch.from_state(spec, {"keys": np.empty((0, 1))})
    with pytest.raises(ValueError, match="different specs"):
        SparseFirstSketch(spec).merge(SparseFirstSketch(replace(spec, rows=4)))
