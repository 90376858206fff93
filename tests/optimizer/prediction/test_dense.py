"""Keys in the order in which they become dense: sums and bounds for any number of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from skimql.optimizer.prediction.dense import DenseKeys

# Cells of the keys 5, 7, 9 and of all others; 9 was never a candidate.
CELLS = SimpleNamespace(keys=np.array([5, 7, 9, -1]), heavy=np.array([True, True, True, False]))
HEAVY = {
    0: SimpleNamespace(keys=np.array([5, 7]), weights=np.array([10, -4]), largest_other=2.0),
    1: SimpleNamespace(keys=np.array([7, 9]), weights=np.array([0, 3]), largest_other=0.5),
}
DENSE = DenseKeys(np.array([7, 5]), CELLS, (np.array([5, 7]), np.array([100.0, 40.0]), 6.0), HEAVY)


def test_the_first_keys_of_the_order_are_known():
    assert [DENSE.known(n).tolist() for n in range(3)] == [
        [False] * 4,
        [False, True, False, False],
        [True, True, False, False],
    ]


def test_sums_over_the_dense_cells():
    assert DENSE.cumulated(np.array([1.0, 20.0, 300.0, 4000.0])).tolist() == [0.0, 20.0, 21.0]


def test_a_key_without_tuples_in_a_table_is_not_there():
    assert [DENSE.present(0, n) for n in range(3)] == [0, 1, 2]
    assert [DENSE.present(1, n) for n in range(3)] == [0, 0, 0]


def test_bounds_are_of_the_keys_that_are_left():
    assert [DENSE.unseen(n) for n in range(3)] == [100.0, 100.0, 6.0]
    assert [DENSE.heaviest(0, n) for n in range(3)] == [10.0, 10.0, 2.0]
    assert [DENSE.heaviest(1, n) for n in range(3)] == pytest.approx([3.0, 3.0, 3.0])


def test_no_dense_keys_at_all():
    none = DenseKeys(np.empty(0, np.int64), CELLS, (np.empty(0, np.int64), np.empty(0), np.inf), HEAVY)
    assert none.unseen(0) == np.inf
    assert not none.known(0).any()
