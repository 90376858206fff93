"""What relations contribute to a query, by class."""

import numpy as np
import pytest
from support.statistics import chain, exact_relation, figures_of, one_class

A, B = np.array([5, 3, 0, 2]), np.array([1, 4, 7, 0])


def test_the_predicted_answer_is_the_join_where_all_is_known():
    assert figures_of(one_class(2), [exact_relation(A), exact_relation(B)]).total == pytest.approx(
        float(A @ B)
    )


def test_dense_keys_are_those_that_contribute_most():
    figures = figures_of(one_class(2), [exact_relation(A), exact_relation(B)])
    assert figures.dense_order(0)[0] == np.argmax(A * B)
    assert figures.largest_unseen(0, figures.dense_order(0)[:1]) <= float((A * B).max())


def test_a_tuple_receives_what_its_other_classes_hold():
    figures = figures_of(chain(3), [exact_relation(A), exact_relation(B, B), exact_relation([2, 2, 2, 2])])
    assert figures.received(1, 0).mean == pytest.approx(2.0)
    assert figures.received(1, 0).square >= figures.received(1, 0).mean ** 2 * 0.999
    assert figures.message_keys(2, 1) == pytest.approx(4)
    assert figures.heaviest(0, 0) >= 5
