"""Samples of distinct values with all their partners: linear, complete when small, uniform when not."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.theory import most_misses

from skimql.sketches.distinct.pair_sample import PairSample, PairSampleSpec
from skimql.sketches.hashing.xi import make_family

SPEC = PairSampleSpec(make_family(seed=4), size=4, capacity=40, levels=6)
INT64 = st.integers(-(2**63), 2**63 - 1)
TUPLES = st.lists(st.tuples(INT64, st.integers(0, 3), st.integers(-5, 5)), max_size=25)


def of(tuples, spec=SPEC):
    sample = PairSample(spec)
    sample.update(*np.array(tuples, dtype=np.int64).reshape(-1, 3).T)
    return sample


def same(one, other):
    a, b = one.state(), other.state()
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_linear_to_the_last_bit(one, other):
    merged = of(one)
    merged.merge(of(other))
    assert same(merged, of((one + other)[::-1]))
    merged.subtract(of(other))
    assert same(merged, of(one))
    assert same(of(one + other + [(a, b, -w) for a, b, w in other]), of(one))


@settings(deadline=None, max_examples=40)
@given(TUPLES)
def test_state_and_copy_restore_the_sample(tuples):
    sample = of(tuples)
    twin = sample.copy()
    restored = PairSample.from_state(SPEC, sample.state())
    assert same(restored, sample)
    twin.update([1], [1])
    assert same(restored, sample)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(INT64, st.sets(INT64, min_size=1, max_size=3), max_size=4))
def test_a_small_relation_is_all_there(relation):
    drawn = of([(a, b, 1) for a, partners in relation.items() for b in partners]).draw()
    assert drawn.complete
    found = {int(a): set() for a in drawn.values}
    for owner, partner in zip(drawn.owners, drawn.partners, strict=True):
        found[int(drawn.values[owner])].add(int(partner))
    assert found == relation
    assert drawn.degrees().tolist() == [len(relation[int(a)]) for a in drawn.values]


def sample_of_many(seed, capacity=400):
    values = np.repeat(np.arange(2_000), 3)
    sample = PairSample(PairSampleSpec(make_family(seed=seed), 64, capacity))
    sample.update(values, np.tile(np.arange(3), 2_000))
    return sample


def test_values_come_with_all_their_partners_and_are_those_of_smallest_hash():
    sample = sample_of_many(1)
    drawn = sample.draw()
    assert 64 < len(drawn.values) < 2_000
    assert (drawn.degrees() == 3).all()
    hashes = sample.spec.hashes(np.arange(2_000))
    assert sorted(drawn.values) == np.flatnonzero(hashes < drawn.bound).tolist()
    fewer = drawn.smallest(64)
    assert fewer.values.tolist() == np.argsort(hashes)[:64].tolist()
    assert fewer.bound == np.sort(hashes)[64]
    assert (fewer.degrees() == 3).all()
    assert fewer.smallest(64) is fewer


def test_with_too_little_capacity_the_sample_is_smaller_and_still_complete_below_its_bound():
    sample = sample_of_many(1, capacity=60)
    drawn = sample.draw()
    assert 0 < len(drawn.values) < 64
    hashes = sample.spec.hashes(np.arange(2_000))
    assert sorted(drawn.values) == np.flatnonzero(hashes < drawn.bound).tolist()


# 120 seeds, one value: it is among the 64 smallest of 2,000 with probability 64/2000 = .032, and more often
# than `most_misses` with chance below 1e-6; a sample that prefers small values would have it 120 times.
def test_every_value_is_as_likely():
    hits = sum(7 in sample_of_many(seed).draw().smallest(64).values for seed in range(120))
    assert hits <= most_misses(120, 64 / 2_000)


def test_the_sum_over_the_smallest_estimates_the_number_of_values():
    # 64 / probability has mean 2,000 and relative standard error 1/sqrt(63) = 12.6 %; the mean of 100 seeds
    # is within 4.9 * 1.26 % with chance 1 - 1e-6. Seen to fail if the smaller sample keeps the bound of the
    # larger one.
    drawn = [sample_of_many(seed).draw().smallest(64) for seed in range(100)]
    estimates = [len(sample.values) / sample.probability for sample in drawn]
    assert abs(np.mean(estimates) / 2_000 - 1) < 4.9 * 0.126 / 10


def test_overflow_is_refused_before_anything_changes():
    sample = of([(1, 1, 2**62)])
    before = sample.copy()
    with pytest.raises(OverflowError, match="4611686018427387904"):
        sample.update([2, 1], [1, 1], [1, 2**62])
    with pytest.raises(OverflowError, match="64 bits"):
        sample.merge(before.copy())
    assert same(sample, before)


def test_other_specs_and_states_are_refused():
    other = PairSampleSpec(make_family(seed=5), 4, 40, 6)
    with pytest.raises(ValueError, match=r"cannot combine.*seed=4.*seed=5"):
        PairSample(SPEC).merge(PairSample(other))
    with pytest.raises(ValueError, match="no array '9/counts'"):
        PairSample.from_state(SPEC, {"9/counts": np.zeros(1, np.int64)})
    with pytest.raises(ValueError, match="2 and 1"):
        PairSample(SPEC).update([1], [1, 2])


@pytest.mark.parametrize("arguments", [{"size": 1}, {"capacity": 0}, {"levels": 42}])
def test_sizes_are_checked(arguments):
    with pytest.raises(ValueError, match=r"values|pair|levels"):
        PairSampleSpec(**arguments)


def test_bytes_are_pinned():
    # The layout and the hash functions of a stored sample: if this changes, old ones can no longer be read.
    keys = np.arange(-500, 1_500) * 1_000_003
    sample = PairSample(SPEC)
    sample.update(keys, keys // 7, keys % 5 - 2)
    state = sample.state()
    whole = b"".join(name.encode() + state[name].tobytes() for name in sorted(state))
    assert hashlib.blake2b(whole, digest_size=8).hexdigest() == "33e2a6688d857227"


def test_sizing():
    # 5 % at 95 %: (1.96 / .05)^2 = 1,537 values of variation one.
    spec = PairSampleSpec.for_error(0.05, 0.95, squared_variation=0.5, partners=3)
    assert (spec.size, spec.capacity) == (769, 4_614)
    with pytest.raises(ValueError, match="between 0 and 1"):
        PairSampleSpec.for_error(1.0)
