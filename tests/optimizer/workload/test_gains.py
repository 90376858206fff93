"""What merging two vertices would gain."""

import pytest
from support.workloads import candidate_pairs, merge_of, tpch_workload

from skimql.optimizer.workload.gains import AverageError, MaximumError, error_factor

GRAPH = tpch_workload([1, 2, 3])


@pytest.mark.parametrize("metric", ["average", "maximum"])
def test_sharing_never_makes_the_least_error_worse(metric):
    before = error_factor(GRAPH, metric=metric)
    for pair in candidate_pairs(GRAPH)[:4]:
        assert error_factor(merge_of(GRAPH, pair), metric=metric) <= before * (1 + 1e-12)


def test_gains_are_within_their_bounds():
    weights = [1] * len(GRAPH.queries)
    for error in (AverageError(GRAPH, weights), MaximumError(GRAPH, weights)):
        for one, other in candidate_pairs(GRAPH)[:4]:
            assert 0 <= error.gain(one, other) <= min(error.bound(one), error.bound(other)) * (1 + 1e-9)
            assert error.scale() > 0
