"""The keys of a join class as cells."""

import numpy as np
import pytest
from support.column_figures import exact_relation, figures_of, one_class


def test_cells_of_known_keys_give_the_moments_of_the_join():
    a, b = np.array([5, 3, 0, 2]), np.array([1, 4, 7, 0])
    cells = figures_of(one_class(2), [exact_relation(a), exact_relation(b)]).cells(0)
    assert cells.total(cells.products) == pytest.approx(float(a @ b))
    assert cells.total(cells.products**2) == pytest.approx(float((a * b) @ (a * b)))


def test_keys_that_a_table_does_not_have_add_nothing():
    cells = figures_of(one_class(2), [exact_relation([1, 0]), exact_relation([0, 1])]).cells(0)
    assert cells.total(cells.products) == 0
