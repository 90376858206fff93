"""Sample x sketch: exact while all is kept, unbiased, honest intervals, and refusals of what it cannot answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.theory import most_misses

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.joins.sparse import SparseFirstSketch
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec
from skimql.sketches.samples.sample_sketch import SampleSketch, SampleSketchSpec
from skimql.sketches.samples.sample_sketch_join import (
    expected_variances,
    sample_sketch_average,
    sample_sketch_join,
)
from skimql.sketches.samples.two_level import TwoLevel, TwoLevelSpec

EDGES = [(0, 1, 0, 0), (1, 2, 1, 0)]
COLUMNS = ("count", "x")


def sampled(seed, capacity, columns, weights=None, dense=()):
    family = make_family("tabulation", seed).derive("a")
    names = COLUMNS if weights is not None else COLUMNS[:1]
    sample = SampleSketch(
        SampleSketchSpec(family, capacity, len(columns), 0, names), np.array(dense, np.int64)
    )
    rows = [np.asarray(c, np.int64) for c in columns]
    sample.update(rows, None if weights is None else np.stack([np.ones(len(weights), np.int64), weights]))
    return sample


def sketched(seed, keys, buckets=64, weights=None, exact=False, dense=None, name="b"):
    spec = hash_spec(make_family("tabulation", seed).derive(name), 11, buckets)
    keys = np.asarray(keys, np.int64)
    if dense is not None:
        both = TwoLevel(TwoLevelSpec(spec), np.asarray(dense, np.int64))
        both.update(keys, weights)
        return both
    sketch = SparseFirstSketch(spec) if exact else spec.empty()
    sketch.update([keys], weights)
    return sketch


small = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-3, 3)), max_size=12)


@given(r=small, s=small, t=small)
@settings(max_examples=30)
def test_while_everything_is_kept_count_sum_and_average_are_exact(r, s, t):
    synopses = [
        sampled(1, 99, [[k for k, _, _ in r]]),
        sampled(
            1, 99, [[a for a, _, _ in s], [b for _, b, _ in s]], np.array([x for _, _, x in s], np.int64)
        ),
        sketched(1, [b for _, b, _ in t], exact=True),
    ]
    joined = [x for k, _, _ in r for a, b, x in s for _, c, _ in t if k == a and b == c]
    count = sample_sketch_join(synopses, EDGES)
    total = sample_sketch_join(synopses, EDGES, ["count", "x", "count"])
    assert (count.low, count.value, count.high) == (len(joined),) * 3
    assert (total.low, total.value, total.high) == (sum(joined),) * 3
    assert count.exact
    assert total.exact
    if joined:
        average = sample_sketch_average(synopses, synopses, EDGES, ["count", "x", "count"])
        assert average.value == pytest.approx(sum(joined) / len(joined))
        assert average.exact


class World:
    """R(a), S(a, b, x), T(b) with their exact join."""

    def __init__(self, skew):
        rng = np.random.default_rng(7)
        keys, tuples = 600, 2000
        draw = (
            (lambda n, m: rng.integers(0, m, n))
            if skew is None
            else (lambda n, m: (rng.zipf(skew, n) - 1) % m)
        )
        self.r, self.sa, self.sb = (
            draw(tuples, keys),
            rng.permutation(keys)[draw(tuples, keys)],
            draw(tuples, keys),
        )
        self.t = rng.permutation(keys)[draw(tuples, keys)]
        self.x = rng.integers(-20, 60, tuples)
        f, g = np.bincount(self.r, minlength=keys), np.bincount(self.t, minlength=keys)
        each = (f[self.sa] * g[self.sb]).astype(float)
        self.count, self.sum = float(each.sum()), float((each * self.x).sum())
        by_key = np.bincount(self.sa, each, keys)
        self.order = np.argsort(-by_key, kind="stable")
        self.by_key = by_key[self.order]

    def synopses(self, seed, dense=0, buckets=64, dense_beyond=None):
        keys = self.order[:dense]
        return [
            sampled(seed, 7, [self.r], dense=keys),
            sampled(seed, 45, [self.sa, self.sb], self.x, dense=keys),
            sketched(seed, self.t, buckets, dense=dense_beyond),
        ]


@pytest.mark.parametrize(
    ("skew", "dense", "buckets"),
    [(None, 0, 64), (None, 0, 1024), (1.5, 40, 256)],
    ids=["noisy", "drawn", "zipf"],
)
def test_estimates_are_unbiased_and_their_intervals_cover(skew, dense, buckets):
    world, trials = World(skew), 80
    heavy = np.arange(600)[np.bincount(world.t, minlength=600) > 20]
    values, missed = [], {"count": 0, "sum": 0, "average": 0}
    for seed in range(trials):
        synopses = world.synopses(seed, dense, buckets, heavy if skew else None)
        count = sample_sketch_join(synopses, EDGES, largest_product=world.by_key[dense])
        columns = ["count", "x", "count"]
        found = {
            "count": (count, world.count),
            "sum": (sample_sketch_join(synopses, EDGES, columns), world.sum),
            "average": (sample_sketch_average(synopses, synopses, EDGES, columns), world.sum / world.count),
        }
        values.append(count.value)
        assert count.certified
        assert not found["sum"][0].certified
        for name, (estimate, truth) in found.items():
            missed[name] += not estimate.low <= truth <= estimate.high
    standard_error = np.std(values) / np.sqrt(trials)
    assert abs(np.mean(values) - world.count) < 5 * standard_error
    assert missed["count"] <= most_misses(trials, 0.05)
    assert missed["sum"] <= most_misses(trials, 0.05)
    assert missed["average"] <= most_misses(trials, 0.1)


def test_tables_beyond_multiply_and_tables_of_the_sampled_class_may_be_sketched():
    world, values = World(None), []
    g = np.bincount(world.t, minlength=600).astype(float)
    f = np.bincount(world.r, minlength=600).astype(float)
    truth = float((f[world.sa] * g[world.sb] ** 2).sum())
    edges = [(0, 1, 0, 0), (1, 2, 1, 0), (1, 3, 1, 0)]
    for seed in range(40):
        s = sampled(seed, 45, [world.sa, world.sb])
        r = sketched(seed, world.r, 512, name="a beyond")
        two = [sketched(seed, world.t, 512, name=name) for name in ("b", "b again")]
        values.append(sample_sketch_join([r, s, *two], edges).value)
    assert abs(np.mean(values) - truth) < 5 * np.std(values) / np.sqrt(40)
    assert np.std(values) < truth


def test_deleting_all_that_was_inserted_leaves_nothing():
    r, s, t = World(None).synopses(3)
    for synopsis in (r, s, t):
        synopsis.subtract(synopsis.copy())
    estimate = sample_sketch_join([r, s, t], EDGES, low_bound=0.0)
    assert estimate.value == 0.0


def test_what_it_cannot_answer_is_refused():
    s = sampled(1, 9, [[1], [2]])
    r, t = sampled(1, 9, [[1]]), sketched(1, [2])
    other = KeySample(KeySampleSpec(make_family("tabulation", 2), 9))
    same_family = hash_spec(make_family("tabulation", 1).derive("a")).empty()
    for synopses, edges, why in (
        ([t, sketched(1, [2], name="c")], [(0, 1, 0, 0)], "none of the tables is sampled"),
        ([other, s, t], EDGES, "different hash functions"),
        ([r, s, same_family], EDGES, "hash independently"),
        ([r, s, sampled(1, 9, [[2]])], EDGES, "not of the class"),
        ([r, s, t], [(0, 1, 0, 0)], "not joined to the others"),
        ([r, s, t], [(0, 1, 0, 0), (1, 2, 2, 0)], "which there is not"),
        ([r, s], [(0, 1, 0, 0), (0, 1, 0, 1)], "two ways"),
        ([s, hash_pair(), t], [(0, 1, 0, 0), (1, 2, 1, 0)], "leads on to more classes"),
    ):
        with pytest.raises(ValueError, match=why):
            sample_sketch_join(synopses, edges)


def hash_pair():
    from skimql.sketches.joins.convolution import ConvolutionSpec

    base = make_family("tabulation", 1)
    return ConvolutionSpec((base.derive("p"), base.derive("q"))).empty()


@pytest.mark.parametrize("all_sampled", [False, True])
def test_expected_variances_are_those_of_many_seeds(all_sampled):
    """Over 60 seeds, the variances that are expected add up to that of the estimates; within a factor of 2."""
    world, values, expected = World(None), [], []
    for seed in range(60):
        synopses = world.synopses(seed)
        if all_sampled:
            synopses[:2] = sampled(seed, 2000, [world.r]), sampled(seed, 2000, [world.sa, world.sb])
        values.append(sample_sketch_join(synopses, EDGES).value)
        sampling, noise, rows, buckets = expected_variances(synopses, EDGES)
        assert (rows, buckets) == synopses[2].counters.shape
        assert (sampling == 0.0) == all_sampled
        assert noise > 0.0
        expected.append(sampling + math.pi / 3 / rows * noise)
    assert 0.5 < np.mean(expected) / np.var(values) < 2.0


def test_nothing_is_expected_of_collisions_where_the_sketches_are_exact():
    r, s = sampled(1, 9, [[1, 2]]), sampled(1, 9, [[1, 2], [2, 3]])
    t = sketched(1, [2, 3], exact=True)
    assert expected_variances([r, s, t], EDGES)[:2] == (0.0, 0.0)


def test_one_row_of_counters_is_no_exact_table():
    rng = np.random.default_rng(6)
    near, far = rng.integers(0, 300, 3000), rng.integers(0, 50, 3000)
    r = sampled(1, 5000, [near])
    s = SampleSketch(SampleSketchSpec(make_family("tabulation", 1).derive("a"), 5000, 2, 0, COLUMNS[:1]))
    s.update([np.arange(300), rng.integers(0, 50, 300)])
    t = hash_spec(make_family("tabulation", 1).derive("b"), 1, 4).empty()
    t.update([far])
    count = sample_sketch_join([r, s, t], EDGES)
    assert not count.exact
    assert not count.certified
    average = sample_sketch_average([r, s, t], [r, s, t], EDGES)
    assert not average.exact
    assert np.isfinite([count.low, count.high]).all()
