"""Two levels: dense keys are exact, the rest is a sample or a sketch, and each join takes what it knows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import streams
from support.enumeration import Enumerated
from support.theory import most_misses

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.hash_sketch import frequency_rows, hash_spec, join_size_rows
from skimql.sketches.samples.key_sample import KeySampleSpec
from skimql.sketches.samples.known_keys import join_terms
from skimql.sketches.samples.sample_join import estimate_average, estimate_join
from skimql.sketches.samples.two_level import TwoLevel, TwoLevelSpec, sketch_join, subjoin_rows
from skimql.sketches.samples.two_level_plan import heaviest

FAMILY = make_family("tabulation", 5)
SAMPLE = TwoLevelSpec(KeySampleSpec(FAMILY, 6))
SKETCH = TwoLevelSpec(hash_spec(FAMILY, 3, 16))
SPECS = pytest.mark.parametrize("spec", [SAMPLE, SKETCH], ids=["sample", "sketch"])
DENSE = np.array([30, 3, 7])

batches = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=40)


def arrays(batch):
    return (np.array([row[i] for row in batch], np.int64) for i in (0, 1))


def table_of(batch, spec, dense=DENSE):
    table = TwoLevel(spec, dense)
    table.update(*arrays(batch))
    return table


def same(a, b):
    left, right = a.state(), b.state()
    names = [n for n in left if n != "rest.unseen"]
    return left.keys() == right.keys() and all(np.array_equal(left[n], right[n]) for n in names)


@SPECS
@given(a=batches, b=batches)
@settings(max_examples=30)
def test_merging_is_concatenation_and_state_round_trips(spec, a, b):
    merged = table_of(a, spec)
    merged.merge(table_of(b, spec))
    assert same(merged, table_of(b + a, spec))
    assert same(TwoLevel.from_state(spec, merged.state()), merged)


@SPECS
@given(a=batches, b=batches)
@settings(max_examples=30)
def test_deleting_undoes_inserting(spec, a, b):
    table = table_of(a + b, spec)
    other = table.copy()
    keys, weights = arrays(b)
    table.update(keys, -weights)
    other.subtract(table_of(b, spec))
    truth = np.zeros(41, int)
    np.add.at(truth, [k for k, _ in a], [w for _, w in a])
    for found in (table, other):
        assert found.dense_weights[0].tolist() == truth[np.sort(DENSE)].tolist()
    if spec is SKETCH:
        assert same(table, table_of(a, spec))
        assert same(other, table)


@SPECS
def test_dense_keys_never_reach_the_rest(spec):
    table = table_of([(int(k), 100) for k in DENSE], spec)
    assert table.dense_keys.tolist() == [3, 7, 30]
    assert table.dense_weights.tolist() == [[100, 100, 100]]
    rest = table.sample.keys if spec is SAMPLE else table.sketch.counters
    assert not np.any(rest)


def test_bytes_are_sixteen_for_each_key_and_eight_for_the_total():
    table = table_of([(k, 1) for k in range(41)], SAMPLE)
    assert table.nbytes == 16 * (3 + 6) + 8
    assert table_of([(1, 1)], SKETCH).nbytes == 16 * 3 + 8 * 3 * 16


def test_several_columns_are_kept_for_dense_and_sampled_keys():
    spec = TwoLevelSpec(KeySampleSpec(FAMILY, 50, ("count", "price")))
    tables = []
    for scale in (1, 10):
        table = TwoLevel(spec, DENSE)
        keys = np.arange(41)
        table.update(keys, np.array([np.ones(41, int), scale * keys]))
        tables.append(table)
    assert estimate_join(tables, ["price", "count"]).value == 820
    assert estimate_average(tables, ["count", "price"]).value == 10 * 820 / 41


def test_jointly_dense_keys_are_certain_and_their_absence_is_known():
    left = table_of([(3, 50), (1, 2)], SAMPLE)
    right = table_of([(7, 90), (1, 5)], SAMPLE)
    terms = join_terms([t.known(["count"]) for t in (left, right)])
    assert terms.total() == 2 * 5
    assert not terms.unseen.any()


def test_a_key_dense_on_one_side_alone_meets_the_sketch_of_the_other():
    narrow = TwoLevelSpec(hash_spec(FAMILY, 3, 2))
    left, right = (TwoLevel(narrow, np.array(dense)) for dense in ([3, 7], [7, 9]))
    left.update(np.array([3, 7, 9, 11]), np.array([100, 50, 4, 2]))
    right.update(np.array([3, 7, 9, 11]), np.array([1, 60, 80, 3]))
    certain, (rests, mine, theirs) = subjoin_rows(left, right)
    assert certain == 50 * 60
    assert np.array_equal(rests, join_size_rows(left.sketch, right.sketch))
    assert np.array_equal(mine, 100 * frequency_rows(right.sketch, np.array([3]))[:, 0])
    assert np.array_equal(theirs, 80 * frequency_rows(left.sketch, np.array([9]))[:, 0])
    assert sketch_join(left, right).value == certain + sum(np.median(p) for p in (rests, mine, theirs))


# Every choice of bucket and sign is one row, so the mean of the rows' totals is the join size exactly. Two
# keys that are dense on different sides, one on both, two on none: every sub-join is needed.
# Seen red: one cross term missing (mean 52 for 92).
def test_over_all_hash_functions_the_mean_is_the_join_size():
    family = Enumerated(0, 1, keys=5, buckets=2)
    spec = TwoLevelSpec(ConvolutionSpec((family,), family.rows, 2))
    f, g = np.array([9, 7, 5, 3, 1]), np.array([2, 4, 8, 1, 3])
    left, right = TwoLevel(spec, np.array([0, 1])), TwoLevel(spec, np.array([0, 2]))
    left.update(np.arange(5), f)
    right.update(np.arange(5), g)
    certain, parts = subjoin_rows(left, right)
    assert certain == 9 * 2
    assert certain + np.sum(parts, axis=0).mean() == pytest.approx(f @ g)


# Zipf pair, dense keys chosen by each table alone (the hardest case), at 95 %: sample with its bounds and
# sketch. Measured coverage, not a theorem; the test allows 5 % misses. Chance of a false failure 1e-6 each.
# Seen red: rows of the rests alone (27 misses of 60, 14 allowed). Wrong scales of the sample show in
# test_sample_join.
def test_intervals_cover_at_their_level():
    domain, trials, keys = 4096, 60, np.arange(4096)
    f, g = streams.zipf(domain, 1.0, 10**6), streams.zipf(domain, 1.0, 10**6, shift=10)
    truth, missed = float(f @ g), np.zeros(2, int)
    named = [heaviest(keys, w, 20) for w in (f, g)]
    for seed in range(trials):
        family = make_family("tabulation", seed)
        for which, rest in enumerate((KeySampleSpec(family, 400), hash_spec(family, 11, 64))):
            tables = [TwoLevel(TwoLevelSpec(rest), n.keys) for n in named]
            for table, weights, n in zip(tables, (f, g), named, strict=True):
                table.update(keys, weights)
                if which == 0:
                    table.sample.bound_unseen("count", 0, n.largest_other)
            estimate = sketch_join(*tables) if which else estimate_join(tables)
            assert estimate.certified
            missed[which] += not estimate.low <= truth <= estimate.high
    assert missed.max() <= most_misses(trials, 0.05), missed


def test_synopses_that_do_not_match_are_refused():
    a = table_of([(1, 1)], SAMPLE)
    with pytest.raises(ValueError, match="different dense keys"):
        a.merge(table_of([(1, 1)], SAMPLE, np.array([1])))
    with pytest.raises(ValueError, match="different specs"):
        a.merge(table_of([(1, 1)], SKETCH))
    with pytest.raises(ValueError, match="not a key sample"):
        table_of([(1, 1)], SKETCH).known(["count"])
    with pytest.raises(ValueError, match="not a hash sketch"):
        sketch_join(a, a)
    other = table_of([(1, 1)], TwoLevelSpec(KeySampleSpec(make_family("tabulation", 6), 6)))
    with pytest.raises(ValueError, match="different hash functions"):
        estimate_join([a, other])
    with pytest.raises(ValueError, match="is a hash sketch"):
        TwoLevelSpec(ConvolutionSpec((FAMILY, FAMILY.derive("b")), 3, 16))
    with pytest.raises(ValueError, match="ascending"):
        TwoLevel.from_state(SAMPLE, a.state() | {"dense_keys": DENSE})
    with pytest.raises(ValueError, match="no weight column 'tax'"):
        a.known(["tax"])


def test_an_overflow_of_a_dense_key_is_refused():
    table = table_of([], SKETCH)
    table.update(np.array([3]), np.array([2**62]))
    with pytest.raises(OverflowError):
        table.update(np.array([3]), np.array([2**62]))
    assert table.dense_weights[0].tolist() == [2**62, 0, 0]
