"""Exact levels: how much of the space each vertex deserves."""

from skimql.optimizer.workload.levels import components_of


def test_a_heavy_query_has_a_level_of_its_own():
    light, heavy = components_of({0, 1, 2, 3}, {0: (1, (0, 1)), 1: (100, (2, 3))})[:2]
    low, high = sorted((light, heavy), key=lambda c: c.weight)
    assert (low.vertices, high.vertices) == ({0, 1}, {2, 3})
    assert low.is_below(high)
    assert not high.is_below(low)
    assert high.root == (100 * 2) ** 0.5


def test_equal_demands_are_one_level():
    parts = components_of({0, 1, 2}, {0: (1, (0, 1)), 1: (1, (1, 2)), 2: (1, (0, 2))})
    assert {v for c in parts for v in c.vertices} == {0, 1, 2}
    assert not any(a.is_below(b) for a in parts for b in parts)
