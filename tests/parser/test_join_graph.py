"""The shared vocabulary: queries and their join graphs."""

import pytest

from skimql.errors import UnsupportedQuery
from skimql.parser.join_graph import Edge, Factor, Feature, JoinGraph, Query, Span, Term, Vertex

HERE = Span(0, 1)


def graph(*pairs, tables="abcd"):
    vertices = tuple(Vertex(t, t, None, HERE) for t in tables)
    return JoinGraph(vertices, tuple(Edge(i, j, ("`k`",), ("`j`",), ("int",), "c", HERE) for i, j in pairs))


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (graph(tables="a"), "single"),
        (graph((0, 1), (1, 2), (2, 3)), "chain"),
        (graph((0, 1), (0, 2), (0, 3)), "star"),
        (graph((0, 1), (2, 3)), "disconnected"),
        (graph((0, 1), (1, 2), (2, 0), (2, 3)), "cyclic"),
    ],
)
def test_shapes(made, shape):
    assert made.shape == shape


def test_an_edge_knows_the_keys_of_either_side():
    (edge,) = graph((0, 1), tables="ab").edges
    assert (edge.keys_of(0), edge.keys_of(1)) == (("`k`",), ("`j`",))
    assert graph((0, 1), (1, 2), tables="aba").is_self_join


def test_a_term_counts_tuples_where_it_has_no_factor():
    term = Term((Factor(1, "`n`"),))
    assert (term.factor_of(1), term.factor_of(0)) == (Factor(1, "`n`"), None)


def test_a_feature_that_nobody_runs_is_refused_where_it_stands():
    query = Query("SELECT x", "SELECT x", (), graph(tables="a"), features=(Feature("GROUP BY", HERE),))
    query.refuse_beyond({"GROUP BY"})
    with pytest.raises(UnsupportedQuery) as fault:
        query.refuse_beyond(())
    assert fault.value.span == (0, 1)
