"""Query weights as exact integers."""

import pytest

from skimql.optimizer.workload.weights import integer_weights


def test_proportions_are_kept_exactly():
    assert integer_weights([0.5, 0.25, 1.0], 3) == (2, 1, 4)
    assert integer_weights(None, 2) == (1, 1)
    assert integer_weights([0.0, 0.0], 2) == (1, 1)


def test_a_weight_of_nothing_still_counts_a_little():
    small, large = integer_weights([0.0, 1.0], 2)
    assert 0 < small < large * 2e-6


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, float("nan")]])
def test_weights_are_one_for_each_query_and_finite(weights):
    with pytest.raises(ValueError):
        integer_weights(weights, 2)
