"""The residual tree of a query as the engine sees it."""

from support.questions import query
from support.schemas import XYZ
from support.tables import folded

from skimql.optimizer.fold import residual_tree, weight_at
from skimql.optimizer.plan import Weight

CHAIN = query("SUM(n) FROM x JOIN y ON x.id = y.id JOIN z ON y.m = z.id", XYZ)


def test_a_tree_has_an_edge_fewer_than_vertices():
    tree = residual_tree(CHAIN.graph)
    assert tree.vertices == (0, 1, 2)
    assert [(e.left, e.right) for e in tree.edges] == [(0, 1), (1, 2)]
    assert [a.keys for a in tree.attributes(1)] == [("`id`",), ("`m`",)]


def test_a_folded_vertex_is_a_message_to_its_neighbour():
    tree = residual_tree(CHAIN.graph, folded(CHAIN.graph, 2))
    assert tree.vertices == (0, 1)
    (message,) = tree.messages_into(1, CHAIN.aggregates[0].total[0])
    assert (message.table, message.sender.keys, message.receiver.keys) == ("z", ("`id`",), ("`m`",))


def test_weights_are_factors_or_one():
    term = CHAIN.aggregates[0].total[0]
    assert (weight_at(term, 0).expression, weight_at(term, 1)) == ("`n`", Weight())
