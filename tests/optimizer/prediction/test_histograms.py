"""Histograms and what is predicted from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql.optimizer.prediction.histograms import (
    Histogram,
    JoinStatistics,
    equi_depth,
    from_bins,
    overlap,
    predict,
    query_weight,
)

LEAST, GREATEST = -(2**63), 2**63 - 1
columns = st.dictionaries(st.integers(LEAST, GREATEST), st.integers(1, 1000), max_size=40)


def histogram_of(column, buckets):
    return equi_depth(
        np.array(list(column), dtype=np.int64), np.array(list(column.values()), dtype=float), buckets
    )


def exact(frequencies):
    """The histogram with a bucket for every value: nothing is left to assume but independence."""
    return equi_depth(np.arange(len(frequencies)), frequencies, 10**6)


@given(columns, st.integers(1, 50))
def test_equi_depth_keeps_tuples_and_distinct_values(column, buckets):
    found = histogram_of(column, buckets)
    assert found.tuples == sum(column.values())
    assert found.distinct_count == len(column)
    assert len(found.counts) <= buckets
    # No bucket is deeper than the aim by more than one value.
    heaviest = max(column.values(), default=0)
    assert np.all(found.counts < sum(column.values()) / buckets + heaviest + 1e-9)
    assert found.self_join_size <= sum(f**2 for f in column.values()) * (1 + 1e-12)


@given(columns, columns, st.integers(1, 8))
def test_overlaps_keep_tuples_distinct_values_and_self_join_sizes(one, other, buckets):
    # Seen red with widths taken in float64, which lose single keys beyond 2^53.
    left, right = histogram_of(one, buckets), histogram_of(other, buckets)
    cut = overlap(left, right)
    for side, whole in enumerate((left, right)):
        assert cut.counts[side].sum() == pytest.approx(whole.tuples)
        assert cut.distinct[side].sum() == pytest.approx(whole.distinct_count)
        assert cut.squares[side].sum() == pytest.approx(whole.self_join_size)


@given(columns, columns)
def test_one_bucket_per_value_gives_exact_join_sizes(one, other):
    cut = overlap(histogram_of(one, 10**6), histogram_of(other, 10**6))
    assert cut.products.sum() == pytest.approx(sum(one[k] * other[k] for k in one.keys() & other.keys()))
    squared = sum((one[k] * other[k]) ** 2 for k in one.keys() & other.keys())
    assert cut.squared_products.sum() == pytest.approx(squared)


def test_a_frequent_value_stands_apart_from_rare_neighbours():
    found = equi_depth([1, 2, 3, 4], [5, 100, 5, 5], 4)
    assert (found.lows.tolist(), found.highs.tolist()) == ([1, 2, 3], [1, 2, 4])
    assert found.counts.tolist() == [5, 100, 10]


def test_bins_of_column_statistics_are_made_disjoint():
    # As Spark has them: bins touch, and a frequent value (7) fills several.
    found = from_bins([0, 5, 7, 7, 7], [5, 7, 7, 7, 20], [10, 10, 10, 10, 10], [6, 3, 1, 1, 9])
    assert found.lows.tolist() == [0, 6, 8]
    assert found.highs.tolist() == [5, 7, 20]
    assert found.counts.tolist() == [10, 30, 10]
    assert found.distinct.tolist() == [6, 2, 9]


def second_moment(tensors):
    """E[X^2] of a two-join chain by the message passing of Dobra et al., with no independence assumed."""

    def through(a):
        return np.trace(a) * np.eye(len(a)) + a + a.T - 2 * np.diag(np.diag(a))

    f, middle, g = tensors
    inner = middle @ through(np.outer(g, g)) @ middle.T
    return float(f @ through(inner) @ f)


def test_predictions_are_exact_where_attributes_are_independent():
    rng = np.random.default_rng(29)
    f, a, b, g = rng.integers(1, 20, (4, 6)).astype(float)
    b *= a.sum() / b.sum()
    middle = np.outer(a, b) / a.sum()
    joins = [JoinStatistics(0, 1, exact(f), exact(a)), JoinStatistics(1, 2, exact(b), exact(g))]
    found = predict(joins)
    size = float(f @ middle @ g)
    assert found.join_size == pytest.approx(size, rel=1e-9)
    assert found.variance == pytest.approx(second_moment((f, middle, g)) - size**2, rel=1e-9)
    assert query_weight(joins) == pytest.approx(8 * found.variance / size**2, rel=1e-9)


def test_single_join_variance_is_equation_1():
    f, g = np.array([20.0, 5, 10, 2]), np.array([2.0, 15, 3, 10])
    found = predict([JoinStatistics(0, 1, exact(f), exact(g))])
    assert (found.join_size, found.variance) == pytest.approx((165, 188977))


def test_weights_are_finite_where_nothing_joins():
    apart = [JoinStatistics(0, 1, equi_depth([1, 2], [3, 4], 9), equi_depth([8, 9], [3, 4], 9))]
    assert query_weight(apart) == pytest.approx(8 * 25 * 25)
    empty = equi_depth([], [], 4)
    assert query_weight([JoinStatistics(0, 1, empty, empty)]) == 0


@pytest.mark.parametrize(
    ("lows", "highs", "counts", "distinct"),
    [([0], [-1], [1.0], [1.0]), ([0, 3], [3, 4], [1.0, 1.0], [1.0, 1.0]), ([0], [1], [1.0], [0.0])],
)
def test_histograms_are_checked(lows, highs, counts, distinct):
    with pytest.raises(ValueError, match="bucket"):
        Histogram(np.array(lows), np.array(highs), np.array(counts), np.array(distinct))
