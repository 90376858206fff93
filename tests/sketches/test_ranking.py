"""Choices by rank come out alike on every processor."""

import numpy as np

from skimql.sketches.ranking import by_weight, least, least_of, rounded

NEAR = np.nextafter(0.1, 1)


def test_largest_first_and_equals_in_their_order():
    assert by_weight(np.array([1, -5, 5, 2])).tolist() == [1, 2, 3, 0]
    assert by_weight(np.array([1, -5, 5, 2]), 2).tolist() == [1, 2]


def test_sums_equal_but_for_rounding_are_equal():
    assert rounded([0.1])[0] == rounded([NEAR])[0]
    assert rounded([0.1])[0] != rounded([0.1 * (1 + 1e-9)])[0]
    assert least([NEAR, 0.1]) == 0
    assert least_of([NEAR, 0.1], float) == NEAR
