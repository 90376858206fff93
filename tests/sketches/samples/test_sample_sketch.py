"""Sample sketches: which entries are kept, and that what is kept is exact whatever the order, deletions and merges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.samples.packed import PackedEntries
from skimql.sketches.samples.sample_sketch import BatchSampleSketch, SampleSketch, SampleSketchSpec

FAMILY = make_family("tabulation", 3)
SPEC = SampleSketchSpec(FAMILY, capacity=1, attributes=2, sampled=1)
DENSE = np.array([2, 5], np.int64)

tuples = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=50)


def sample_of(*batches, spec=SPEC, dense=DENSE, sign=1):
    sample = SampleSketch(spec, dense)
    for batch in batches:
        other, key = np.array(batch, np.int64).reshape(-1, 2).T
        sample.update([other, key], np.full(len(batch), sign, np.int64))
    return sample


def same(a, b):
    left, right = a.state(), b.state()
    return all(
        np.array_equal(left[k], right[k]) for k in ("keys", "weights", "last_hash", "totals", "dense_keys")
    )


@given(a=tuples, b=tuples, c=tuples)
@settings(max_examples=30)
def test_merging_parts_in_any_grouping_is_sampling_the_whole(a, b, c):
    whole = sample_of(a + b + c)
    left = sample_of(a)
    left.merge(sample_of(b))
    left.merge(sample_of(c))
    right = sample_of(c, b)
    right.merge(sample_of(a))
    assert same(left, whole)
    assert same(right, whole)


@given(kept=tuples, deleted=tuples)
@settings(max_examples=30)
def test_what_is_kept_after_deletions_is_exact_and_the_threshold_stays_low(kept, deleted):
    sample = sample_of(kept, deleted)
    threshold = sample.threshold
    sample.subtract(sample_of(deleted))
    weights = {}
    for other, key in kept:
        weights[other, key] = weights.get((other, key), 0) + 1
    chosen = {e: w for e, w in weights.items() if e[1] in DENSE or hashes([e[1]])[0] < sample.threshold}
    assert dict(zip(map(tuple, sample.keys.T.tolist()), sample.weights[0].tolist(), strict=True)) == chosen
    assert sample.threshold <= threshold
    assert sample.totals[0] == len(kept)


@given(batch=tuples)
@settings(max_examples=30)
def test_of_a_key_all_entries_are_kept_or_none_and_of_a_dense_key_all(batch):
    sample = sample_of(batch)
    entries = set(map(tuple, sample.keys.T.tolist()))
    kept = {key for _, key in entries}
    assert entries == {e for e in batch if e[1] in kept}
    assert kept >= {key for _, key in batch if key in DENSE}
    sampled = np.array([(k, o) for o, k in entries if k not in DENSE], np.int64).reshape(-1, 2).T
    assert PackedEntries(sampled[:, np.lexsort(sampled[::-1])], np.empty((0, 0))).nbytes <= SPEC.entry_bytes


@given(batch=tuples)
@settings(max_examples=30)
def test_the_state_restores_the_sample(batch):
    sample = sample_of(batch)
    assert same(SampleSketch.from_state(SPEC, sample.state()), sample)
    known, again = sample.known(["count"]), SampleSketch.from_state(SPEC, sample.state()).known(["count"])
    assert np.array_equal(known.keys, again.keys)
    assert np.array_equal(known.weights, again.weights)
    assert np.array_equal(known.certain, np.isin(known.keys, DENSE) | (sample.probability == 1.0))


def hashes(keys):
    return FAMILY.values(np.array(keys, np.int64), 1, SPEC.hash_bits)[0]


def test_states_of_another_sample_are_refused():
    state = sample_of([(0, k) for k in range(40)]).state()
    for wrong in (
        state | {"keys": state["keys"][:1]},
        state | {"keys": state["keys"][:, ::-1]},
        state | {"last_hash": np.array([0], np.uint64)},
        state | {"dense_keys": DENSE[::-1]},
        state | {"weights": state["weights"][:, 1:]},
    ):
        with pytest.raises(ValueError, match=r"sample|dense|weights"):
            SampleSketch.from_state(SPEC, wrong)


def test_samples_of_other_dense_keys_or_specs_do_not_add_up():
    with pytest.raises(ValueError, match="different dense keys"):
        sample_of([]).merge(sample_of([], dense=DENSE[:1]))
    with pytest.raises(ValueError, match="different specs"):
        sample_of([]).merge(sample_of([], spec=SampleSketchSpec(FAMILY, 2, 2, 1)))


def test_a_key_with_more_entries_than_the_capacity_is_noticed_unless_it_is_dense():
    key = 20 + int(np.argmin(hashes(range(20, 60))))
    many = [(n << 40, key) for n in range(20)] + [(0, k) for k in range(20, 60)]
    crowded, dense = sample_of(many), sample_of(many, dense=np.array([key], np.int64))
    assert crowded.crowded
    assert SampleSketch.from_state(SPEC, crowded.state()).crowded
    assert not dense.crowded
    dense_of_merged = sample_of([])
    dense_of_merged.merge(crowded)
    assert dense_of_merged.crowded


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        ({"capacity": 0}, "at least one entry"),
        ({"capacity": 1, "attributes": 2, "sampled": 2}, "none has the number 2"),
        ({"capacity": 1, "columns": ("count", "count")}, "distinct names"),
        ({"capacity": 1, "hash_bits": 64}, "hash_bits"),
    ],
)
def test_impossible_sizes_are_refused(sizes, what):
    with pytest.raises(ValueError, match=what):
        SampleSketchSpec(FAMILY, **sizes)


def test_what_is_kept_of_sums_of_both_signs_does_not_depend_on_how_parts_were_merged():
    """Every tuple again with the opposite value: sums are small in the whole, and large in either half."""
    rng = np.random.default_rng(0)
    keys = [np.tile(rng.integers(0, n, 600), 2) for n in (400, 50)]
    values = rng.integers(-(10**6), 10**6, 600)
    weights = np.stack([np.ones(1200, np.int64), np.r_[values, rng.integers(0, 3, 600) - values]])
    spec = SampleSketchSpec(FAMILY, capacity=60, attributes=2, columns=("count", "sum"))
    whole, *halves = (SampleSketch(spec) for _ in range(3))
    whole.update(keys, weights)
    for half, own in zip(halves, (slice(0, 600), slice(600, 1200)), strict=True):
        half.update([k[own] for k in keys], weights[:, own])
        assert half.probability < 1.0
    halves[0].merge(halves[1])
    assert whole.probability < 1.0
    assert all(np.array_equal(whole.state()[n], a) for n, a in halves[0].state().items())


def test_the_sample_of_a_batch_is_the_same_wherever_it_is_cut():
    random = np.random.default_rng(4)
    spec = SampleSketchSpec(FAMILY, capacity=12, attributes=2)
    keys = np.concatenate([random.integers(0, 300, (2, 500))] * 2, axis=1)
    # Large weights that are gone again in the whole: they must not decide which entries there is room for.
    weights = np.concatenate([random.integers(1, 1 << 40, 500), np.zeros(500, np.int64)])
    weights[500:] = -weights[:500]
    weights[:90] += 1
    found = []
    for parts in (
        [np.arange(1000)],
        np.array_split(random.permutation(1000), 7),
        np.split(np.arange(1000), 2),
    ):
        whole = BatchSampleSketch(spec)
        for part in parts:
            one = BatchSampleSketch(spec)
            one.update(list(keys[:, part]), weights[part])
            whole.merge(BatchSampleSketch.from_state(spec, one.state()))
        assert type(whole.copy()) is BatchSampleSketch
        found.append(whole.net().state())
    assert all(same_arrays(found[0], other) for other in found[1:])
    kept, threshold = found[0]["keys"], int(found[0]["last_hash"][0])
    assert 0 < kept.shape[1] <= 90
    assert threshold + 1 < spec.everything
    own = {(int(a), int(b)): 0 for a, b in keys.T}
    for (a, b), w in zip(keys.T.tolist(), weights.tolist(), strict=True):
        own[a, b] += w
    small = {k for k, w in own.items() if w and FAMILY.values(np.array([k[0]]), 1, 40)[0][0] <= threshold}
    assert {tuple(k) for k in kept.T.tolist()} == small


def same_arrays(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)
