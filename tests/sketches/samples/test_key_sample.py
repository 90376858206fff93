"""Key samples: which keys are kept, and that what is kept is exact whatever the order, deletions and
merges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec, net_weights

SPEC = KeySampleSpec(make_family("tabulation", 3), capacity=8)
TWO = KeySampleSpec(make_family("tabulation", 3), capacity=8, columns=("count", "price"))

keys_of_batch = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 40), max_size=60)


def batch(keys):
    return np.array(keys, dtype=np.int64)


def sample_of(*batches, spec=SPEC):
    sample = KeySample(spec)
    for keys in batches:
        sample.update(batch(keys))
    return sample


def same(a, b):
    left, right = a.state(), b.state()
    return all(np.array_equal(left[k], right[k]) for k in ("keys", "weights", "last_hash", "totals"))


def hashes(keys, spec=SPEC):
    return spec.family.values(batch(keys), 1, spec.hash_bits)[0]


@given(a=keys_of_batch, b=keys_of_batch, c=keys_of_batch)
@settings(max_examples=60)
def test_merging_parts_in_any_grouping_is_sampling_the_whole(a, b, c):
    whole = sample_of(a + b + c)
    left = sample_of(a)
    left.merge(sample_of(b))
    left.merge(sample_of(c))
    right = sample_of(c, b)
    right.merge(sample_of(a))
    assert same(left, whole)
    assert same(right, whole)


@given(keys=keys_of_batch, order=st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_inserts_leaves_no_trace(keys, order):
    shuffled = list(keys)
    order.shuffle(shuffled)
    assert same(sample_of(keys), sample_of(shuffled[:7], shuffled[7:]))


@given(keys=keys_of_batch)
@settings(max_examples=60)
def test_the_smallest_hashes_are_kept_with_exact_counts(keys):
    sample = sample_of(keys)
    distinct, counts = np.unique(batch(keys), return_counts=True)
    ranked = np.sort(hashes(distinct))
    cut = int(ranked[SPEC.capacity]) if distinct.size > SPEC.capacity else SPEC.everything
    kept = hashes(distinct) < np.uint64(cut)
    assert sample.threshold == cut
    assert np.array_equal(sample.keys, distinct[kept])
    assert np.array_equal(sample.weight("count"), counts[kept])


@given(kept=keys_of_batch, gone=keys_of_batch)
@settings(max_examples=60)
def test_after_deletions_every_key_below_the_threshold_has_its_exact_net_weight(kept, gone):
    sample = sample_of(kept, gone)
    sample.update(batch(gone), np.full(len(gone), -1))
    distinct, counts = np.unique(batch(kept), return_counts=True)
    below = hashes(distinct) < np.uint64(sample.threshold)
    assert np.array_equal(sample.keys, distinct[below])
    assert np.array_equal(sample.weight("count"), counts[below])


@given(a=keys_of_batch, b=keys_of_batch)
@settings(max_examples=60)
def test_subtracting_is_deleting(a, b):
    left, deleted = sample_of(a, b), sample_of(a, b)
    assert left.threshold == deleted.threshold  # read, so that nothing is pending when the deletions arrive
    left.subtract(sample_of(b))
    deleted.update(batch(b), np.full(len(b), -1))
    assert same(left, deleted)


@given(keys=keys_of_batch)
@settings(max_examples=30)
def test_an_empty_sample_is_neutral_and_a_copy_is_independent(keys):
    sample = sample_of(keys)
    twin = sample.copy()
    twin.merge(KeySample(SPEC))
    assert same(twin, sample)
    twin.update(batch([5, 6, 7]))
    assert same(sample, sample_of(keys))


@given(keys=keys_of_batch)
@settings(max_examples=30)
def test_state_round_trips(keys):
    sample = sample_of(keys)
    sample.bound_unseen("count", 0, 12)
    restored = KeySample.from_state(SPEC, sample.state())
    assert same(restored, sample)
    assert np.array_equal(restored.unseen, sample.unseen)
    restored.update(batch([1, 2]))
    assert same(restored, sample_of(keys, [1, 2]))


def test_large_batches_keep_what_small_batches_keep():
    keys = np.random.default_rng(1).integers(0, 1 << 40, 300_000)
    spec = KeySampleSpec(make_family("tabulation", 1), capacity=500)
    whole, pieces = KeySample(spec), KeySample(spec)
    whole.update(keys)
    for piece in np.array_split(keys, 77):
        pieces.update(piece)
    assert same(whole, pieces)
    assert whole.keys.size == 500
    assert whole.nbytes == 500 * spec.entry_bytes + 8 == 8008
    assert whole.totals.tolist() == [300_000]


def test_deleting_every_tuple_leaves_no_key_but_the_threshold_stays():
    sample = sample_of(range(100))
    fallen = sample.threshold
    sample.update(batch(range(100)), np.full(100, -1))
    assert sample.keys.size == 0
    assert sample.threshold == fallen < SPEC.everything


def test_several_columns_travel_together():
    sample = KeySample(TWO)
    sample.update(batch([4, 4, 9]), np.array([[1, 1, 1], [10, -3, 5]]))
    sample.update(batch([9]), np.array([[-1], [-5]]))
    assert sample.keys.tolist() == [4]
    assert sample.weight("price").tolist() == [7]


def test_a_key_of_count_zero_with_a_sum_left_is_not_dropped():
    sample = KeySample(TWO)
    sample.update(batch([4]), np.array([[-1], [-7]]))
    sample.update(batch([4]), np.array([[1], [10]]))
    assert sample.keys.tolist() == [4]


def test_bounds_on_unseen_weights_add_up_and_are_lost_by_an_update():
    a, b = sample_of([1, 2]), sample_of([3])
    a.bound_unseen("count", 0, 5)
    b.bound_unseen("count", -1, 2)
    both = a.copy()
    both.merge(b)
    assert both.unseen.tolist() == [[-1.0, 7.0]]
    both.subtract(b)
    assert both.unseen.tolist() == [[-3.0, 8.0]]
    both.update(batch([1]))
    assert both.unseen.tolist() == [[-np.inf, np.inf]]
    with pytest.raises(ValueError, match="enclose 0"):
        a.bound_unseen("count", 1, 5)


def test_an_overflowing_total_is_refused_and_leaves_the_sample_as_it_was():
    sample = KeySample(SPEC)
    sample.update(batch([1, 2]), batch([2**62, 5]))
    before = sample.copy()
    with pytest.raises(OverflowError, match="total weight leaves int64"):
        sample.update(batch([1]), batch([2**62]))
    assert same(sample, before)


def test_an_overflowing_weight_is_refused_and_not_wrapped():
    with pytest.raises(OverflowError, match="net weight of a key leaves int64"):
        net_weights(batch([1, 1, 2]), np.array([[2**62, 2**62, -(2**62)]]))


def test_sums_that_pass_beyond_int64_and_return_are_exact():
    keys = batch([1, 1, 1, 1])
    found, sums = net_weights(keys, np.array([[2**62, 2**62, -(2**62), -(2**62) + 3]]))
    assert (found.tolist(), sums.tolist()) == ([1], [[3]])


def test_the_smallest_int64_cannot_be_subtracted():
    sample = KeySample(SPEC)
    sample.update(batch([1]), batch([-(2**63)]))
    with pytest.raises(OverflowError, match="no negative"):
        KeySample(SPEC).subtract(sample)


def test_samples_of_other_specs_are_refused_with_both_named():
    other = KeySampleSpec(make_family("tabulation", 4), capacity=8)
    with pytest.raises(ValueError, match=r"seed=3.*seed=4"):
        sample_of([1]).merge(sample_of([1], spec=other))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": 0}, "at least one key"),
        ({"columns": ()}, "distinct names"),
        ({"columns": ("count", "count")}, "distinct names"),
        ({"hash_bits": 64}, "1 to 63"),
    ],
)
def test_senseless_specs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        KeySampleSpec(**({"family": SPEC.family, "capacity": 8} | change))


def test_wrong_arrays_are_refused():
    sample = KeySample(TWO)
    with pytest.raises(ValueError, match="shape"):
        sample.update(batch([1, 2]), batch([1, 2]))
    with pytest.raises(ValueError, match="int64"):
        sample.update(np.array([1.5]))
    with pytest.raises(ValueError, match="no weight column 'tax'"):
        sample.weight("tax")
    bad = sample_of([1, 2]).state()
    bad["keys"] = bad["keys"][::-1]
    with pytest.raises(ValueError, match="not a sample of"):
        KeySample.from_state(SPEC, bad)
