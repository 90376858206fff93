"""Pair samples that start as exact maps: everything while small, the tables of a pair sample afterwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.distinct.join_distinct import join_distinct, join_distinct_with_key
from skimql.sketches.distinct.pair_sample import PairSample, PairSampleSpec
from skimql.sketches.distinct.sparse_pairs import SparsePairSample
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import exact

SPEC = PairSampleSpec(make_family(seed=3), size=3, capacity=8, levels=4)
TUPLES = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)), max_size=20
)
LIMITS = st.sampled_from([0, 120, None])


def of(tuples, limit=None):
    sample = SparsePairSample(SPEC, limit)
    sample.update(*np.array(tuples, dtype=np.int64).reshape(-1, 3).T)
    return sample


def net(tuples):
    weights = {}
    for value, partner, weight in tuples:
        weights[value, partner] = weights.get((value, partner), 0) + weight
    return {pair for pair, weight in weights.items() if weight}


def dense(tuples):
    sample = PairSample(SPEC)
    sample.update(*np.array(tuples, dtype=np.int64).reshape(-1, 3).T)
    return sample.state()


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@settings(deadline=None, max_examples=60)
@given(TUPLES, TUPLES, LIMITS, LIMITS)
def test_merged_in_every_combination(one, other, limit, other_limit):
    merged = of(one, limit)
    merged.merge(of(other, other_limit))
    assert same(merged.dense().state(), dense(one + other))
    if limit is None and other_limit is None:
        drawn = merged.draw()
        assert drawn.complete
        pairs = zip(drawn.values[drawn.owners].tolist(), drawn.partners.tolist(), strict=True)
        assert set(pairs) == net(one + other)
        assert (np.diff(drawn.hashes) > 0).all()
    restored = SparsePairSample.from_state(SPEC, merged.state(), limit)
    assert same(restored.state(), merged.state())
    twin = merged.copy()
    twin.update([1], [1])
    assert same(restored.state(), merged.state())
    merged.subtract(of(other, other_limit))
    assert same(merged.dense().state(), dense(one))


def test_it_turns_into_tables_when_it_outgrows_its_limit_and_stays_so():
    sample = SparsePairSample(SPEC, limit_bytes=240)
    sample.update(np.arange(10), np.arange(10))
    assert (sample.nbytes, sample.draw().complete) == (240, True)
    sample.update([10], [10])
    assert 0 < sample.nbytes <= SPEC.most_bytes
    assert same(sample.state(), dense([(n, n, 1) for n in range(11)]))
    sample.update(np.arange(11), np.arange(11), np.full(11, -1))
    assert sample.state() == {}
    assert sample.draw().complete


def test_small_relations_make_joins_exact():
    family = make_family(seed=1)
    a, b, c = (np.array(column) for column in ([1, 1, 2, 2, 3], [5, 6, 6, 6, 9], [7, 7, 8, 8, 8]))
    r = SparsePairSample(PairSampleSpec(family.derive("a")))
    s = SparsePairSample(PairSampleSpec(family.derive("c")))
    r.update(a, b)
    s.update(c, b - 1)
    # b of R: 5, 6, 9; of S: 4, 5, 8. Only a = 1 with b = 5 joins c = 7 and 8.
    assert join_distinct(r, s, exact(3), exact(2)) == exact(2)
    by_key = [SparsePairSample(PairSampleSpec(family.derive("b"))) for _ in "rs"]
    by_key[0].update(b, a)
    by_key[1].update(b - 1, c)
    assert join_distinct_with_key(*by_key) == exact(1)
    assert join_distinct_with_key(*by_key, full=True) == exact(2)


def test_other_specs_are_refused():
    with pytest.raises(ValueError, match="cannot combine"):
        of([]).merge(SparsePairSample(PairSampleSpec(SPEC.family, 4, 8, 4)))
    with pytest.raises(ValueError, match="as many partners"):
        of([]).update([1, 2], [1])
