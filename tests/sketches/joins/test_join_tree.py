"""The shape of a query as sketches see it."""

import pytest

from skimql.sketches.joins.join_tree import Edge, check_tree, children_first

CHAIN = [Edge(0, 1), Edge(1, 2, 1, 0)]


def test_leaves_come_before_their_parents():
    assert children_first(CHAIN) == [(2, 1, 0, 1), (1, 0, 0, 0)]
    assert [c for c, *_ in children_first(CHAIN, root=2)] == [0, 1]


@pytest.mark.parametrize(
    ("attributes", "edges"),
    [
        ([1, 1], []),
        ([1, 2, 1], CHAIN[:1]),
        ([1, 1], [Edge(0, 1), Edge(1, 0)]),
        ([1, 1], [Edge(0, 2)]),
        ([1, 1], [Edge(0, 0)]),
    ],
)
def test_what_is_no_tree_over_all_attributes_is_refused(attributes, edges):
    with pytest.raises(ValueError):
        check_tree(attributes, edges)
    check_tree([1, 2, 1], CHAIN)
