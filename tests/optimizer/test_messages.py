"""The join tree as message passing: classes are whole sets, leaves fold smallest first."""

import pytest
from support.column_figures import chain, one_class
from support.questions import query

from skimql.optimizer.messages import JoinClass, JoinTree, fold_orders, tree_of, whole
from skimql.parser.join_graph import Column, TableSchema

SCHEMA = {t: TableSchema(t, tuple(Column(c, "bigint") for c in "kji")) for t in "abcd"}


def tree(condition, tables="abcd"):
    return tree_of(query(f"COUNT(*) FROM {', '.join(tables)} WHERE {condition}", SCHEMA).graph)


def test_tables_on_one_key_are_one_class_however_it_is_spelled():
    for condition in (
        "a.k = b.k AND b.k = c.k AND c.k = d.k",
        "a.k = b.k AND a.k = c.k AND a.k = d.k",
        "d.k = c.k AND c.k = a.k AND b.k = a.k",
    ):
        found = tree(condition)
        assert [set(c.vertices) for c in found.classes] == [{0, 1, 2, 3}]
        assert len(found.classes[0].edges) == 3


def test_different_keys_are_different_classes():
    found = tree("a.k = b.k AND b.j = c.j AND c.i = d.i")
    assert sorted(c.vertices for c in found.classes) == [(0, 1), (1, 2), (2, 3)]
    assert [len(found.classes_of(v)) for v in range(4)] == [1, 2, 2, 1]


def test_a_composite_key_is_a_class_of_its_own():
    found = tree("a.k = b.k AND a.j = b.j AND b.k = c.k", "abc")
    assert sorted((c.vertices, len(c.edges)) for c in found.classes) in (
        [((0, 1), 1), ((0, 2), 1)],
        [((0, 1), 1), ((1, 2), 1)],
    )


@pytest.mark.parametrize(
    ("vertices", "classes"),
    [
        (3, [(0, 1)]),
        (3, [(0, 1), (1, 2), (0, 2)]),
        (2, [(0, 1), (0, 1)]),
    ],
)
def test_what_is_no_tree_is_refused(vertices, classes):
    with pytest.raises(ValueError, match=r"cycle|connected"):
        JoinTree(vertices, tuple(JoinClass(str(i), c) for i, c in enumerate(classes)))


def test_the_smallest_leaf_folds_first_and_the_last_vertex_stays():
    sizes = {0: 30, 1: 10, 2: 20}
    found = fold_orders(one_class(3), lambda _, v: sizes[v], 100)
    assert [r.vertices for r in found] == [(0, 1, 2), (0, 2), (0,)]
    assert [(f.sender, f.receiver) for f in found[-1].folds] == [(1, 0), (2, 0)]


def test_of_equal_messages_that_of_the_smaller_table_goes_first():
    found = fold_orders(one_class(2), lambda *_: 1, 100, tuples=lambda v: (20, 10)[v])
    assert [(f.sender, f.receiver) for f in found[-1].folds] == [(1, 0)]


def test_no_message_above_the_limit_is_folded():
    sizes = {0: 30, 1: 1000, 2: 20}
    found = fold_orders(one_class(3), lambda _, v: sizes[v], 25)
    assert [r.vertices for r in found] == [(0, 1, 2), (0, 1)]


def test_only_leaves_send():
    found = whole(chain(3))
    assert found.leaves == (0, 2)
    assert found.without(0, 1).leaves == (1, 2)
    with pytest.raises(ValueError, match="not joined"):
        found.without(0, 2)


def test_only_allowed_vertices_send():
    found = fold_orders(one_class(3), lambda *_: 1, 100, allowed=(2,))
    assert [r.vertices for r in found] == [(0, 1, 2), (0, 1)]


def test_the_receiver_is_the_vertex_with_most_classes():
    posts = JoinTree(4, (JoinClass("u", (0, 1, 2)), JoinClass("p", (2, 3))))
    residual = fold_orders(posts, lambda _, v: v + 1, 1)[-1]
    assert [(f.sender, f.receiver, f.joined) for f in residual.folds] == [(0, 2, 0)]
    assert residual.classes == (0, 1)
