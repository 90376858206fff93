"""Level sketches: linear to the last bit, exact when small, and right within their interval when large."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.theory import most_misses

from skimql.sketches.distinct import level
from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.hashing.xi import make_family

SMALL = LevelSpec(make_family(seed=3), buckets=16, levels=8)
TUPLES = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**40), 2**40)), max_size=60)


def sketch_of(keys, weights=None, spec=SMALL):
    sketch = LevelSketch(spec)
    sketch.update(np.asarray(keys, dtype=np.int64), weights)
    return sketch


def of_tuples(tuples, spec=SMALL):
    columns = np.array(tuples, dtype=np.int64).reshape(-1, 2)
    return sketch_of(columns[:, 0], columns[:, 1], spec)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.state().values(), b.state().values(), strict=True))


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_merging_equals_concatenating_in_any_order(one, other):
    merged = of_tuples(one)
    merged.merge(of_tuples(other))
    assert same(merged, of_tuples((one + other)[::-1]))


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_deleted_and_subtracted_tuples_leave_no_trace(kept, passing):
    deleted = of_tuples(kept + passing + [(key, -weight) for key, weight in passing])
    assert same(deleted, of_tuples(kept))
    subtracted = of_tuples(kept + passing)
    subtracted.subtract(of_tuples(passing))
    assert same(subtracted, of_tuples(kept))


@settings(deadline=None, max_examples=40)
@given(TUPLES)
def test_state_and_copy_restore_the_sketch(tuples):
    sketch = of_tuples(tuples)
    twin = sketch.copy()
    restored = LevelSketch.from_state(SMALL, sketch.state())
    assert same(restored, sketch)
    twin.update(np.array([1]))
    assert same(restored, sketch)
    assert not same(twin, sketch)
    assert sketch.nbytes == 8 * SMALL.words


def test_blocks_do_not_matter(monkeypatch):
    keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1000)
    whole = sketch_of(keys)
    monkeypatch.setattr(level, "BLOCK", 7)
    assert same(sketch_of(keys), whole)


def test_bytes_are_pinned():
    # The layout and the hash functions of a stored sketch: if this changes, old sketches can no
    # longer be read.
    keys = np.arange(-500, 1500, dtype=np.int64) * 1_000_003
    state = sketch_of(keys, keys % 7 - 3).state()
    digest = hashlib.blake2b(b"".join(state[name].tobytes() for name in sorted(state)), digest_size=8)
    assert digest.hexdigest() == "1afdc46948a98c65"


def test_deletion_before_insertion():
    # C58: the state holds -1 in between, and nothing is clamped.
    sketch = sketch_of([7], [-1])
    assert sketch.state()["counts"].sum() == -1
    sketch.update(np.array([7]))
    assert sketch.estimate().value == 0
    assert not sketch.state()["counts"].any()
    sketch.update(np.array([7]))
    estimate = sketch.estimate()
    assert (estimate.value, estimate.low, estimate.high, estimate.exact) == (1, 1, 1, True)


def test_a_key_of_negative_weight_counts_as_a_key():
    assert sketch_of([1, 2], [1, -1]).estimate().value == 2


def test_counts_do_not_wrap():
    sketch = sketch_of([1], [2**62])
    before = sketch.copy()
    with pytest.raises(OverflowError, match="4611686018427387904"):
        sketch.update(np.array([2, 1]), np.array([1, 2**62]))
    assert same(sketch, before)
    with pytest.raises(OverflowError, match="64 bits"):
        sketch.merge(before.copy())
    assert same(sketch, before)
    with pytest.raises(OverflowError, match="9223372036854775808"):
        sketch.update(np.array([2]), np.array([-(2**63)]))


@pytest.mark.parametrize(
    "other",
    [LevelSpec(make_family(seed=4), 16, 8), LevelSpec(SMALL.family, 17, 8), LevelSpec(SMALL.family, 16, 9)],
)
def test_other_specs_are_refused_and_both_named(other):
    for combine in (LevelSketch.merge, LevelSketch.subtract):
        with pytest.raises(ValueError, match="cannot combine") as caught:
            combine(LevelSketch(SMALL), LevelSketch(other))
        assert str(SMALL) in str(caught.value)
        assert str(other) in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"buckets": 15}, "buckets"), ({"levels": 1}, "levels"), ({"levels": 34}, "levels")],
)
def test_sizes_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        LevelSpec(**arguments)


def test_batches_are_checked():
    with pytest.raises(ValueError, match="2 keys need as many weights, not 1"):
        sketch_of([1, 2], [1])
    with pytest.raises(ValueError, match="float64"):
        LevelSketch(SMALL).update([1.5])
    with pytest.raises(ValueError, match="of shape"):
        LevelSketch.from_state(LevelSpec(SMALL.family, 17, 8), sketch_of([1]).state())


def test_sizing_reaches_the_error():
    spec = LevelSpec.for_error(0.05, 0.95)
    assert 1.96 * spec.relative_error <= 0.05 < 1.97 * LevelSpec(spec.family, spec.buckets - 8).relative_error
    with pytest.raises(ValueError, match="between 0 and 1"):
        LevelSpec.for_error(0.0)


def test_empty_sketch_is_exactly_zero():
    estimate = LevelSketch(SMALL).estimate()
    assert (estimate.value, estimate.high, estimate.exact) == (0, 0, True)


# C38. Every size with keys and functions of its own, so the misses are independent: 95 % intervals miss more
# often than `most_misses` with chance 1e-6. A likelihood over wrong level probabilities misses nearly
# everywhere.
def test_every_small_number_of_keys_is_exact_or_inside_the_interval():
    sizes = [*range(65), *np.unique(np.geomspace(65, 20_000, 120).astype(int))]
    misses = []
    for n in sizes:
        keys = np.random.default_rng(n).integers(-(2**63), 2**63 - 1, n)
        estimate = sketch_of(keys, spec=LevelSpec(make_family(seed=int(n)), 256)).estimate()
        if not estimate.low <= n <= estimate.high:
            misses.append(n)
        if n <= 3:
            assert estimate.value == n
    assert len(misses) <= most_misses(len(sizes), 0.05), f"{misses=}"


def test_sequential_keys_of_one_stream_are_followed_at_every_size():
    # C38 again, one growing stream; an interval for all 100 sizes at once (1e-6 / 100 each).
    sketch = LevelSketch(LevelSpec(make_family(seed=5), 256))
    for n in range(0, 20_000, 200):
        estimate = sketch.estimate(1 - 1e-6 / 100)
        assert estimate.low <= n <= estimate.high
        sketch.update(np.arange(n, n + 200))


def test_an_estimate_is_not_stuck_at_the_size_of_the_sketch():
    # C42: 16,384 cells, 100,000 keys, in two halves that overlap.
    spec = LevelSpec(make_family(seed=1), buckets=512)
    one, other = (sketch_of(np.arange(start, start + 60_000), spec=spec) for start in (0, 40_000))
    one.merge(other)
    estimate = one.estimate()
    # Four standard errors of 2.1 %: false alarm 6e-5 before the seed was fixed.
    assert abs(estimate.value / 100_000 - 1) < 4 * spec.relative_error
    assert estimate.low <= 100_000 <= estimate.high


# Error and coverage with half of the stream deleted, 40 seeds: the square sum of 40 normal errors exceeds
# 2.45 * 40 with chance 1e-6; a doubled or halved estimate is 20 standard errors off, forgotten deletions
# as well.
def test_error_with_half_of_the_stream_deleted():
    keys, buckets = 20_000, 256
    errors, misses = [], 0
    for seed in range(40):
        sketch = LevelSketch(LevelSpec(make_family(seed=seed), buckets))
        sketch.update(np.arange(2 * keys))
        sketch.update(np.arange(keys, 2 * keys), np.full(keys, -1))
        estimate = sketch.estimate()
        errors.append(estimate.value / keys - 1)
        misses += not estimate.low <= keys <= estimate.high
    assert np.sum(np.square(errors)) * 4.3668 * buckets <= 2.45 * 40
    assert misses <= most_misses(40, 0.05)


class Planted:
    """Keys that are their own hash: bits 32 and up give the level, the rest the bucket."""

    def values(self, keys, functions, bits):
        assert (functions, bits) == (4, 32)
        words = keys.view(np.uint64)
        # Not linear in the key, or sums of keys would look like keys.
        mixed = (words ^ (words >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
        return np.stack([words >> 32, words & 0xFFFFFFFF, mixed >> 32, mixed & 0xFFFFFFFF])


# C40: 2^36 keys. The lowest levels would be full beyond doubt, so four keys a bucket stand for what they
# hold; the 2^20 keys that fall above level 15 are fed as they are, in sixteen sketches that are merged.
def test_no_ceiling_at_32_bits():
    keys, buckets, first = 2**36, 256, 16
    spec = LevelSpec(Planted(), buckets)
    rng = np.random.default_rng(8)
    total = LevelSketch(spec)
    for lvl in range(first):
        depth = np.uint64(1 << (31 - lvl))
        bucket = np.repeat(np.arange(buckets, dtype=np.uint64) << 24, 4)
        words = (depth << 32) | bucket | rng.integers(0, 2**24, len(bucket), dtype=np.uint64)
        total.update(words.view(np.int64))
    above = keys >> first
    for _ in range(16):
        part = LevelSketch(spec)
        part.update(rng.integers(1, 2 ** (64 - first), above // 16, dtype=np.uint64).view(np.int64))
        total.merge(part)
    estimate = total.estimate()
    assert estimate.low <= keys <= estimate.high
    assert 0.02 * keys < estimate.half_width < 0.12 * keys
    assert abs(estimate.value / keys - 1) < 4.9 * spec.relative_error  # chance 1e-6
    assert LevelSpec().capacity > 2**40


def test_beyond_its_capacity_a_sketch_says_so():
    spec = LevelSpec(make_family(seed=2), buckets=16, levels=2)
    estimate = sketch_of(np.arange(5000), spec=spec).estimate()
    assert estimate.high == math.inf
    assert not estimate.certified
    assert 0 < estimate.low <= 5000
    assert "more levels" in estimate.notes[0]


# 2,000 of 20,000 keys satisfy it; 24 seeds. Misses as above; a sample that favours frequent keys (here the
# even ones, 50 times as frequent) would put the estimate near 0.
def test_predicate_over_distinct_keys():
    keys = np.concatenate([np.arange(20_000), np.repeat(np.arange(0, 20_000, 2), 50)])
    misses = 0
    for seed in range(24):
        sketch = sketch_of(keys, spec=LevelSpec(make_family(seed=seed), 256))
        assert set(sketch.sample() % 2) == {0, 1}
        estimate = sketch.estimate_where(lambda k: (k % 2 == 1) & (k < 4_000))
        assert 0 < estimate.half_width < 1_000
        misses += not estimate.low <= 2_000 <= estimate.high
    assert misses <= most_misses(24, 0.05)


def test_predicate_on_a_small_sketch_is_exact():
    estimate = sketch_of([1, 2, 3], spec=LevelSpec()).estimate_where(lambda k: k > 1)
    assert (estimate.value, estimate.exact) == (2, True)


def test_weights_with_a_large_common_factor_cost_accuracy_and_no_truth():
    # 2^20 a key: cells can no longer be told single, so occupancy alone speaks.
    sketch = sketch_of(np.arange(3_000), np.full(3_000, 2**20), LevelSpec(make_family(seed=2), 256))
    estimate = sketch.estimate(1 - 1e-6)
    assert estimate.low <= 3_000 <= estimate.high
    assert len(sketch.sample()) == 0


@pytest.mark.parametrize("name", ["tabulation", "polynomial61", "xxhash64"])
def test_every_family_of_64_bit_keys_serves(name):
    # Sequential keys, the usual trap of weak hashing; 5.3 standard errors each: chance 1e-7.
    sketch = sketch_of(np.arange(50_000), spec=LevelSpec(make_family(name, seed=9), 256))
    estimate = sketch.estimate(1 - 1e-7)
    assert estimate.low <= 50_000 <= estimate.high
    assert estimate.half_width < 0.25 * 50_000
    assert abs(np.mean(sketch.sample() % 2) - 0.5) < 5.3 * 0.5 / math.sqrt(len(sketch.sample()))
