"""Equalities to join classes, and classes to a join tree."""

from skimql.parser.classes import Equality, Key, cyclic_pairs, join_classes, join_tree
from skimql.parser.fragment import Fragment, Ref
from skimql.parser.join_graph import Span


def key(vertex, column="k"):
    return Key(vertex, Fragment((Ref(vertex, column),), simple=True), "int")


def equal(left, right):
    return Equality(left, right, Span(0, 1))


def test_equality_is_transitive():
    classes = join_classes([equal(key(0), key(1)), equal(key(1), key(2)), equal(key(0, "j"), key(2, "j"))])
    assert [sorted(c.vertices) for c in classes] == [[0, 1, 2], [0, 2]]


def test_keys_of_one_vertex_in_a_class_must_be_equal_within_its_tuples():
    (joined,) = join_classes([equal(key(0), key(1)), equal(key(1), key(0, "j"))])
    assert [(a.expression.sql, b.expression.sql) for a, b in joined.repeated()] == [("`k`", "`j`")]


def test_the_tree_takes_the_pairs_that_share_most_classes():
    tree = join_tree(
        3, join_classes([equal(key(0), key(1)), equal(key(1), key(2)), equal(key(0, "j"), key(2, "j"))])
    )
    assert tree.acyclic
    assert (0, 2) in [(a, b) for a, b, _ in tree.edges]


def test_a_triangle_of_three_classes_is_cyclic():
    classes = join_classes(
        [equal(key(0), key(1)), equal(key(1, "j"), key(2, "j")), equal(key(2, "i"), key(0, "i"))]
    )
    assert not join_tree(3, classes).acyclic
    assert len(cyclic_pairs(classes)) == 3


def test_unjoined_vertices_are_components_of_their_own():
    assert sorted(map(sorted, join_tree(3, join_classes([equal(key(0), key(2))])).components)) == [
        [0, 2],
        [1],
    ]
