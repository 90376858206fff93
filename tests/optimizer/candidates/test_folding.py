"""Exact messages of a candidate: keys and bytes."""

import pytest
from support.column_figures import chain, counted, figures_of, one_class

from skimql.optimizer.candidates.folding import (
    fold_keys,
    message_keys,
    messages_bytes,
    messages_cost,
    planned_bytes,
)
from skimql.optimizer.messages import whole
from skimql.optimizer.objective import Objective

TREE = one_class(2)
FIGURES = figures_of(TREE, [counted(1e6, 1e4), counted(500, 500)])
FOLDED = whole(TREE).without(1, 0)


def test_a_message_has_as_many_keys_as_its_sender():
    assert message_keys(FIGURES, whole(TREE), 1) == pytest.approx(500)
    assert [(sender, keys) for sender, keys, _ in fold_keys(FIGURES, FOLDED)] == [(1, pytest.approx(500))]


def test_bytes_are_those_of_all_messages():
    objective = Objective(relative_error=0.05)
    assert messages_bytes(FIGURES, FOLDED, objective) == pytest.approx(
        planned_bytes(FIGURES, 1, 500, objective)
    )
    assert messages_bytes(FIGURES, whole(TREE), objective) == 0


def test_a_message_costs_and_none_costs_nothing():
    assert messages_cost(FIGURES, FOLDED).seconds > messages_cost(FIGURES, whole(TREE)).seconds == 0


def test_a_message_that_has_received_another_has_no_more_keys_than_its_own():
    tree = chain(3)
    figures = figures_of(tree, [counted(1e6, 1e4), counted(1e4, 1e4, 100), counted(100, 100)])
    residual = whole(tree).without(2, 1)
    assert message_keys(figures, residual, 1) <= 1e4
