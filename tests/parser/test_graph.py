"""Conditions to the join graph, and what is wrong with a graph."""

import pytest
from support.questions import edges, filters, query
from support.schemas import XYZ, schema, table

from skimql.errors import UnsupportedQuery


def test_equalities_that_follow_join_too():
    found = query("COUNT(*) FROM x, y, z WHERE x.id = y.id AND y.id = z.id", XYZ)
    assert len(edges(found)) == 2
    assert len({c for e in found.graph.edges for c in e.classes}) == 1


def test_a_constant_goes_along_an_equality():
    found = filters(query("COUNT(*) FROM x JOIN y ON x.id = y.id WHERE x.id = 3", XYZ))
    assert "3" in found["y"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COUNT(*) FROM x, y", "SKIMQL_CROSS_PRODUCT"),
        ("COUNT(*) FROM a, b, c WHERE a.i = b.i AND b.j = c.j AND c.k = a.k", "SKIMQL_CYCLIC_JOIN"),
    ],
)
def test_graphs_that_are_no_tree_are_refused_with_their_code(text, code):
    cyclic = schema(*(table(t, i="int", j="int", k="int") for t in "abc"))
    with pytest.raises(UnsupportedQuery) as fault:
        query(text, {**XYZ, **cyclic})
    assert fault.value.code == code


def test_conditions_that_exclude_one_another_leave_nothing():
    assert query("COUNT(*) FROM x JOIN y ON x.id = y.id WHERE x.id = 1 AND y.id = 2", XYZ).empty
