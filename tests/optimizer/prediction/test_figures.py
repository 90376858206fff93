"""What the relations of a tree contribute: sizes of joins on the way; what dense keys leave."""

import numpy as np
import pytest
from support.column_figures import chain, counted, exact_relation, figures_of, one_class

from skimql.optimizer.messages import JoinClass, JoinTree


def weights(number, seed, keys=200):
    rng = np.random.default_rng(seed)
    return [rng.geometric(0.2, keys) * (rng.random(keys) < 0.7) for _ in range(number)]


def test_the_joins_on_the_way_have_their_sizes():
    f, g, h = weights(3, 1)
    figures = figures_of(one_class(3), [exact_relation(w) for w in (f, g, h)])
    assert figures.sizes((0, 1, 2)) == pytest.approx(((f * g).sum(), (f * g * h).sum()))
    assert figures.sizes((2, 0, 1)) == pytest.approx(((f * h).sum(), (f * g * h).sum()))


def test_the_joins_on_the_way_of_a_chain_leave_out_what_comes_later():
    f, left, right, h = weights(4, 2, 60)
    middle = np.outer(left, right)
    tables = [exact_relation(f), exact_relation(middle.sum(axis=1), middle.sum(axis=0)), exact_relation(h)]
    figures = figures_of(chain(3), tables)
    assert figures.sizes((0, 1, 2)) == pytest.approx(((f * middle.sum(axis=1)).sum(), f @ middle @ h))
    assert figures.sizes((2, 1, 0)) == pytest.approx(((h * middle.sum(axis=0)).sum(), f @ middle @ h))


def test_tables_are_joined_by_number_to_those_that_they_have_a_key_with():
    tree = JoinTree(4, (JoinClass("a", (0, 3)), JoinClass("b", (2, 3)), JoinClass("c", (1, 2))))
    assert tree.joined_order() == (0, 3, 2, 1)
    assert one_class(3).joined_order() == (0, 1, 2)


def test_any_number_of_dense_keys_leaves_what_is_counted_one_by_one():
    f, g = weights(2, 3)
    figures = figures_of(one_class(2), [exact_relation(f), exact_relation(g)])
    dense, cells = figures.dense(0), figures.cells(0)
    taken = dense.cumulated(cells.counts * cells.weights[0])
    for number in (0, 1, 7, dense.order.size):
        keys = dense.order[:number]
        others = np.setdiff1d(np.arange(f.size), keys)
        assert dense.unseen(number) == figures.largest_unseen(0, keys)
        assert dense.heaviest(0, number) == f[others].max(initial=0)
        assert dense.present(1, number) == np.count_nonzero(g[keys])
        assert taken[number] == pytest.approx(f[keys].sum())
        assert set(cells.keys[dense.known(number)]) == set(keys)


def test_without_heavy_keys_none_is_dense():
    dense = figures_of(one_class(2), [counted(1e6, 1e5), counted(1e6, 1e4)]).dense(0)
    assert dense.order.size == 0
    assert not dense.known(0).any()
    assert dense.unseen(0) == np.inf
