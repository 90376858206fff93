"""From sketches to answers: exact where possible, one rule for certificates, ratios on the same hashes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support import streams, theory

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import TOO_FEW, ratio_interval
from skimql.sketches.joins.agms import AgmsSketch, AgmsSpec
from skimql.sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec, join_rows
from skimql.sketches.joins.estimate import (
    JoinTerm,
    in_rows,
    join_estimate,
    ratio_estimate,
    sum_estimate,
    sum_ratio_estimate,
)
from skimql.sketches.joins.sparse import SparseFirstSketch

A, B = (make_family("tabulation", 1).derive(label) for label in "ab")
ONE = [(0, 1, 0, 0)]
CHAIN = [(0, 1, 0, 0), (1, 2, 1, 0)]
SPEC = ConvolutionSpec((A,), 11, 1024)


def sparse(spec, keys, weights=None, limit=None):
    sketch = SparseFirstSketch(spec, limit)
    sketch.update(keys, weights)
    return sketch


def test_small_relations_come_out_exact():
    left, right = sparse(SPEC, [[1, 1, 2]]), sparse(SPEC, [[1, 2, 2]])
    estimate = join_estimate([left, right], ONE)
    assert (estimate.value, estimate.low, estimate.high) == (4, 4, 4)
    assert estimate.exact
    assert isinstance(estimate.value, int)
    average = ratio_estimate([sparse(SPEC, [[1, 1, 2]], [10, 20, 7]), right], [left, right], ONE)
    assert average.value == pytest.approx(44 / 4)
    assert average.exact


def test_nothing_joins_with_an_empty_relation():
    nothing, many = SparseFirstSketch(SPEC), sparse(SPEC, [np.arange(9)], limit=0)
    assert join_estimate([nothing, many], ONE).value == 0
    assert join_estimate([many, nothing], ONE).exact
    average = ratio_estimate([nothing, many], [nothing, many], ONE)
    assert math.isnan(average.value)
    assert average.exact
    assert average.notes == ("no rows match",)


def test_exact_and_counted_sketches_mix_and_tell_the_same_as_counters():
    rng = np.random.default_rng(1)
    keys, other = rng.integers(0, 300, 3000), rng.integers(0, 300, 50)
    counted, exact_ = sparse(SPEC, [keys], limit=0), sparse(SPEC, [other])
    mixed = join_estimate([counted, exact_], ONE)
    plain = [ConvolutionSketch(SPEC) for _ in range(2)]
    plain[0].update([keys])
    plain[1].update([other])
    assert mixed == join_estimate(plain, ONE)
    assert not mixed.exact
    assert mixed.certified
    assert mixed.basis == "theorem"
    assert mixed.low <= streams.join_size(keys, other) <= mixed.high
    itself = join_estimate([counted, counted], ONE, low_bound=0.0)
    assert itself.low <= streams.join_size(keys, keys) <= itself.high


def test_totals_are_exact_in_every_form():
    spec = ConvolutionSpec(())
    total = ConvolutionSketch(spec)
    total.update([], [2**60, 2**60 + 1])
    for sketch in (total, sparse(spec, [], [2**60, 2**60 + 1])):
        assert join_estimate([sketch], []).value == 2**61 + 1
    average = ratio_estimate([sparse(spec, [], [30, 12])], [sparse(spec, [], [1, 1])], [])
    assert average.value == 21


def test_a_sum_over_an_exact_count_divides_its_interval():
    counts, sums = (
        sparse(SPEC, [[1, 2]]),
        sparse(replace(SPEC, dtype="float64"), [[1, 2]], [1.5, -7.5], limit=0),
    )
    right = sparse(SPEC, [[1, 2, 2]])
    average = ratio_estimate([sums, right], [counts, right], ONE)
    assert average.low <= average.value <= average.high
    assert average.value == pytest.approx(-13.5 / 3)
    bounded = ratio_estimate([sums, right], [counts, right], ONE, low_bound=-1.0)
    assert bounded.low == -1.0


def test_what_takes_the_certificate_away():
    keys = np.arange(400)
    few_rows = sparse(ConvolutionSpec((A,), 5, 1024), [keys], limit=0)
    assert not join_estimate([few_rows, few_rows], ONE).certified
    few_buckets = sparse(ConvolutionSpec((A,), 11, 16), [keys], limit=0)
    narrow = join_estimate([few_buckets, few_buckets], ONE)
    assert not narrow.certified
    assert "16 buckets" in narrow.notes[0]
    unproven = replace(SPEC, families=(make_family("xxhash64", 3),))
    measured = join_estimate([sparse(unproven, [keys], limit=0)] * 2, ONE)
    assert measured.certified
    assert measured.basis == "measured"


def test_an_empty_join_of_large_relations_says_that_it_cannot_tell():
    """100,000 rows on keys 1 ... 1,000 against as many on keys 2,001 ... 3,000."""
    left, right = (sparse(SPEC, [np.arange(100_000) % 1000 + start], limit=0) for start in (1, 2001))
    count = join_estimate([left, right], ONE, low_bound=0.0, high_bound=1e10)
    assert count.low == 0 <= count.value <= count.high
    values = sparse(SPEC, [np.arange(100_000) % 1000 + 1], np.arange(100_000) % 50, limit=0)
    average = ratio_estimate([values, right], [left, right], ONE)
    assert math.isnan(average.value)
    assert TOO_FEW in average.notes


# 60 seeds of a chain of two joins in both kinds of sketches; misses of [2nd, 10th] bounded by FALSE_FAIL at
# the nominal 1.2 %. Planted bug: the middle vertex joined on its attributes the wrong way round, every seed
# misses.
@pytest.mark.parametrize("kind", [ConvolutionSpec, AgmsSpec])
def test_chains_are_covered(kind):
    rng = np.random.default_rng(5)
    left, middle, right = rng.zipf(1.5, 3000) % 50, rng.zipf(1.5, (2, 4000)) % 50, rng.integers(0, 50, 3000)
    middle[1] = (middle[1] + 25) % 50
    f, h = np.bincount(left, minlength=50), np.bincount(right, minlength=50)
    g = np.zeros((50, 50))
    np.add.at(g, tuple(middle), 1)
    truth, misses = np.einsum("a,ab,b", f, g, h), 0
    for seed in range(60):
        a, b = (make_family("tabulation", seed).derive(label) for label in "ab")
        specs = [
            ConvolutionSpec(families, 11, 256) if kind is ConvolutionSpec else AgmsSpec(families, 256, 11)
            for families in ((a,), (a, b), (b,))
        ]
        sketches = [spec.empty() for spec in specs]
        for sketch, keys in zip(sketches, ([left], list(middle), [right]), strict=True):
            sketch.update(keys)
        estimate = join_estimate(sketches, CHAIN)
        misses += not estimate.low <= truth <= estimate.high
    assert misses <= theory.most_misses(60, theory.order_statistic_miss(11, 2)), misses


def test_kinds_do_not_mix():
    spec = AgmsSpec((A,), 1024, 11)
    agms, hashed = AgmsSketch(spec), ConvolutionSketch(SPEC)
    with pytest.raises(ValueError, match="cannot be multiplied"):
        join_estimate([agms, hashed], ONE)


def test_terms_of_unequal_rows_add_row_by_row_and_known_terms_add_just_themselves():
    rng = np.random.default_rng(3)
    long, short = (replace(SPEC, rows=rows, buckets=64) for rows in (23, 11))
    pairs = []
    for spec, low in ((long, 0), (short, 5_000)):
        ends = [SparseFirstSketch(spec, 0) for _ in range(2)]
        for end in ends:
            end.update([low + rng.integers(0, 300, 900)])
        pairs.append(tuple(ends))
    rows = [join_rows([end.dense() for end in pair], ONE) for pair in pairs]
    # Entry r of the longer: the mean of its rows r, r + 11 and (for r = 0) r + 22.
    folded = np.array([np.mean([rows[0][i] for i in range(r, 23, 11)]) for r in range(11)])
    assert np.allclose(in_rows(rows[0], 11), folded)
    terms = [JoinTerm(pairs[0]), JoinTerm(pairs[1], -2.0)]
    summed = np.sort(folded - 2 * rows[1])
    estimate = sum_estimate(terms, ONE)
    assert estimate.value == pytest.approx(summed[5])
    assert (estimate.low, estimate.high) == pytest.approx((summed[1], summed[9]))
    exact = JoinTerm((sparse(SPEC, [[1, 1, 2]]), sparse(SPEC, [[1, 2, 2]])))
    assert sum_estimate([*terms, exact], ONE).value == pytest.approx(summed[5] + 4)
    ratio = sum_ratio_estimate([terms[0], exact], [terms[1]], ONE)
    assert ratio.value == pytest.approx(sum_ratio(folded + 4, -2 * rows[1]))


def sum_ratio(top, bottom):
    return ratio_interval(top, bottom, 0.95, "theorem").value
