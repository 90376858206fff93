"""What all linear sketches do: merging is concatenation, deleting undoes, and no counter ever wraps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.agms import AgmsSketch, AgmsSpec
from skimql.sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec
from skimql.sketches.joins.linear import update_many

A, B, C = (make_family("tabulation", 1).derive(label) for label in "abc")
KEYS = st.integers(-(2**63), 2**63 - 1)
WEIGHTS = st.integers(-(2**40), 2**40)
KINDS = {ConvolutionSpec: ConvolutionSketch, AgmsSpec: AgmsSketch}


def tuples(attributes, **limits):
    return st.lists(st.tuples(*[KEYS] * attributes, WEIGHTS), max_size=12, **limits)


def empty(spec):
    return KINDS[type(spec)](spec)


def filled(spec, rows):
    """A sketch of the rows (key, ..., weight)."""
    sketch = empty(spec)
    columns = [np.array([r[i] for r in rows], dtype=np.int64) for i in range(len(spec.families))]
    sketch.update(columns, np.array([r[-1] for r in rows], dtype=np.int64))
    return sketch


def specs():
    for families in [(), (A,), (A, B), (A, B, C)]:
        yield ConvolutionSpec(families, 3, 8)
        yield ConvolutionSpec(families, 2, 7)
        yield AgmsSpec(families, 5, 3)
        yield AgmsSpec(families, 64, 2)


def spec_id(spec):
    return f"{type(spec).__name__}-{len(spec.families)}-{spec.shape[1]}"


ONE_ATTRIBUTE = [spec for spec in specs() if len(spec.families) == 1]


@pytest.mark.parametrize("spec", list(specs()), ids=spec_id)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_merging_is_concatenation_and_deleting_undoes(spec, data):
    first, second = data.draw(tuples(len(spec.families))), data.draw(tuples(len(spec.families)))
    a, b = filled(spec, first), filled(spec, second)
    both = a.copy()
    both.merge(b)
    shuffled = data.draw(st.permutations(first + second))
    assert both.counters.tobytes() == filled(spec, shuffled).counters.tobytes()
    both.subtract(b)
    assert both.counters.tobytes() == a.counters.tobytes()
    deletes = [(*keys, -weight) for *keys, weight in first]
    assert not filled(spec, first + deletes).counters.any()
    assert a.counters.tobytes() == filled(spec, first).counters.tobytes(), "merging must leave copies alone"


@pytest.mark.parametrize("spec", [s for s in specs() if len(s.families) == 2], ids=spec_id)
def test_state_round_trips_and_refuses_other_arrays(spec):
    sketch = filled(spec, [(1, 2, 3), (4, 5, -6)])
    again = type(sketch).from_state(spec, sketch.state())
    assert again.counters.tobytes() == sketch.counters.tobytes()
    assert again.nbytes == sketch.nbytes == spec.nbytes == 8 * np.prod(spec.shape)
    sketch.state()["counters"][:] = 0
    assert sketch.counters.any(), "a state is a copy"
    again.update([[1], [2]], [-3])
    assert sketch.counters.tobytes() != again.counters.tobytes(), "restoring is one, too"
    with pytest.raises(ValueError, match="do not belong"):
        type(sketch).from_state(spec, {"counters": sketch.counters[:1]})
    with pytest.raises(ValueError, match="do not belong"):
        type(sketch).from_state(spec, {"counters": sketch.counters.astype(np.float64)})
    with pytest.raises(ValueError, match="is its counters"):
        type(sketch).from_state(spec, {"rows": sketch.counters})


@pytest.mark.parametrize("spec", [ConvolutionSpec((A, B), 2, 64), AgmsSpec((A, B), 16, 4)], ids=spec_id)
def test_blocks_do_not_show(spec):
    rng = np.random.default_rng(5)
    keys, weights = rng.integers(0, 1000, (2, 150_000)), rng.integers(-(2**30), 2**30, 150_000)
    whole, parts = empty(spec), empty(spec)
    whole.update(list(keys), weights)
    for start in range(0, 150_000, 7_777):
        piece = slice(start, start + 7_777)
        parts.update([k[piece] for k in keys], weights[piece])
    assert whole.counters.tobytes() == parts.counters.tobytes()


@pytest.mark.parametrize("spec", ONE_ATTRIBUTE, ids=spec_id)
def test_several_sketches_share_one_hashing(spec):
    rng = np.random.default_rng(6)
    keys, values = rng.integers(0, 99, 500), rng.normal(size=500)
    count, present, total = empty(spec), empty(spec), empty(replace(spec, dtype="float64"))
    update_many([count, present, total], [keys], [None, (values > 0).astype(np.int64), values])
    for sketch, weights in ((count, None), (present, (values > 0).astype(np.int64)), (total, values)):
        alone = empty(sketch.spec)
        alone.update([keys], weights)
        assert alone.counters.tobytes() == sketch.counters.tobytes()
    update_many([], [keys], [])
    with pytest.raises(ValueError, match="listed twice"):
        update_many([count, count], [keys], [None, None])
    with pytest.raises(ValueError, match="different layouts"):
        update_many([count, empty(replace(spec, families=(B,)))], [keys], [None, None])
    with pytest.raises(ValueError, match="as many weights"):
        update_many([count], [keys], [])


@pytest.mark.parametrize("spec", ONE_ATTRIBUTE, ids=spec_id)
def test_float_sums_are_equal_whatever_the_order(spec):
    rng = np.random.default_rng(7)
    keys, values = rng.integers(0, 50, 4_000), rng.lognormal(0, 4, 4_000)
    forward, backward, exact = (empty(replace(spec, dtype=d)) for d in ("float64", "float64", "int64"))
    forward.update([keys], values)
    backward.update([keys[::-1]], values[::-1])
    assert np.abs(forward.counters - backward.counters).max() <= 1e-12 * values.sum()
    forward.update([keys], -values)
    assert np.abs(forward.counters).max() <= 1e-12 * values.sum()
    exact.update([keys])
    backward = empty(replace(spec, dtype="float64"))
    backward.update([keys])
    assert (exact.counters == backward.counters).all()


# Planted bug: with the check skipped, the counters wrap to negative numbers and this fails.
@pytest.mark.parametrize("spec", ONE_ATTRIBUTE, ids=spec_id)
def test_no_counter_ever_wraps(spec):
    sketch, other = empty(spec), empty(spec)
    sketch.update([[1, 1]], [2**62, 2**61])
    before = sketch.counters.tobytes()
    with pytest.raises(OverflowError, match="float64 sketch"):
        sketch.update([[1]], [2**62])
    with pytest.raises(OverflowError, match="adding a sketch"):
        sketch.merge(sketch.copy())
    assert sketch.counters.tobytes() == before
    sketch.update([[1]], [-(2**62)])
    sketch.update([[1]], [2**62])
    assert sketch.counters.tobytes() == before, "what was deleted leaves its room behind"
    restored = type(sketch).from_state(spec, sketch.state())
    with pytest.raises(OverflowError):
        restored.update([[1]], [2**62])
    with pytest.raises(OverflowError):
        update_many([other, sketch], [[1]], [[1], [2**62]])
    assert not other.counters.any(), "all or none"


@pytest.mark.parametrize("spec", [ConvolutionSpec((A,), 1, 2), AgmsSpec((A,), 2, 1)], ids=spec_id)
@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1)), max_size=12))
def test_a_batch_is_refused_exactly_if_a_counter_leaves_int64(spec, rows):
    sketch, totals = empty(spec), np.zeros(2, dtype=object)
    for key, weight in rows:
        one = empty(spec)
        one.update([[key]])
        totals += one.counters[0].astype(object) * weight
    batch = [[k for k, _ in rows]], np.array([w for _, w in rows], dtype=np.int64)
    if all(-(2**63) <= total < 2**63 for total in totals):
        sketch.update(*batch)
        assert sketch.counters[0].tolist() == totals.tolist()
    else:
        with pytest.raises(OverflowError):
            sketch.update(*batch)
        assert not sketch.counters.any()


@pytest.mark.parametrize("spec", ONE_ATTRIBUTE, ids=spec_id)
def test_other_specs_and_shapes_are_refused_by_name(spec):
    sketch, wider = empty(spec), {"buckets": 99} if isinstance(spec, ConvolutionSpec) else {"s1": 99}
    for change in ({"families": (B,)}, {"families": (A, B)}, {"dtype": "float64"}, wider):
        other = replace(spec, **change)
        with pytest.raises(ValueError) as caught:
            sketch.merge(empty(other))
        assert str(spec) in str(caught.value)
        assert str(other) in str(caught.value)
    with pytest.raises(ValueError, match="2 key arrays for the 1 attributes"):
        sketch.update([[1], [2]])
    with pytest.raises(ValueError, match="different lengths"):
        sketch.update([[1]], [1, 2])
    with pytest.raises(ValueError, match="weights"):
        empty(replace(spec, families=())).update([])
