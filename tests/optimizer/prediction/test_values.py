"""Values of an attribute by figures, and which tuples find partners."""

import numpy as np
import pytest

from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics, complete
from skimql.optimizer.prediction.values import MOST_STRATA, Values, _alike, chance_of_any, strata, values_of


def test_a_thinned_value_stays_where_any_of_its_tuples_does():
    thinned = Values(np.array([1.0, 100.0]), np.array([1000.0, 10.0])).thinned(0.1)
    assert thinned.tuples == pytest.approx(0.1 * 2000)
    assert thinned.distinct == pytest.approx(1000 * 0.1 + 10 * (1 - 0.9**100))
    assert (thinned.weights >= 1.0).all()
    same = Values(np.array([2.0]), np.array([3.0]))
    assert same.thinned(1.0) is same


def test_chance_of_any():
    assert chance_of_any(np.array([0.0, 1.0, 2.0]), 0.5) == pytest.approx([0.0, 0.5, 0.75])
    assert chance_of_any(np.array([0.0, 3.0]), 1.0).tolist() == [0.0, 1.0]


def test_near_weights_are_put_together_and_nothing_is_lost():
    weights = np.geomspace(1, 1e6, 20_000)
    counts = np.linspace(1, 2, weights.size)
    fewer, number = strata(weights, counts)
    assert fewer.size <= MOST_STRATA + 1
    assert number.sum() == pytest.approx(counts.sum())
    assert fewer @ number == pytest.approx(weights @ counts)
    assert strata(weights[:5], counts[:5])[0] is not None


def test_of_evenly_spread_values_each_has_its_share():
    relation = complete(RelationStatistics(1e6, (AttributeStatistics(1e4),), source="exact"), 1)
    found = values_of(relation, relation.attributes[0])
    assert (found.distinct, found.tuples) == (pytest.approx(1e4), pytest.approx(1e6))
    assert found.weights == pytest.approx(np.full(found.weights.size, 100.0))


def test_keys_of_as_many_tuples_on_both_sides_are_one_cell():
    left, right, counts = np.array([1.0, 2.0, 1.0, 1.0]), np.array([3.0, 3.0, 3.0, 0.0]), np.arange(1.0, 5.0)
    found = _alike(left, right, counts)
    assert [f.tolist() for f in found] == [[1.0, 1.0, 2.0], [0.0, 3.0, 3.0], [4.0, 4.0, 2.0]]
    assert [f.size for f in _alike(*(np.empty(0),) * 3)] == [0, 0, 0]
