"""Counters: exact sums of any int64 weights, and an error in place of a wrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql.sketches.joins import accumulate

INT64 = st.integers(-(2**63), 2**63 - 1)


def wrapped(total):
    return (total + 2**63) % 2**64 - 2**63


# Planted bug: without the split into high and low parts, sums beyond 2^53 lose their last digits and this
# fails.
@given(st.lists(st.tuples(st.integers(0, 3), INT64), max_size=30))
def test_sums_equal_python_integers(pairs):
    slots = np.array([s for s, _ in pairs], dtype=np.int64)
    weights = np.array([w for _, w in pairs], dtype=np.int64)
    expected = [wrapped(sum(w for s, w in pairs if s == b)) for b in range(4)]
    assert accumulate.integer_sums(slots, weights, 4).tolist() == expected


def test_many_large_weights_sum_exactly():
    n = (1 << 21) + 5
    weights = np.full(n, (1 << 40) + 1, dtype=np.int64)
    total = accumulate.integer_sums(np.zeros(n, dtype=np.int64), weights, 2)
    assert total.tolist() == [n * ((1 << 40) + 1), 0]


@given(st.lists(INT64, max_size=20))
def test_mass_is_exact(weights):
    array = np.array(weights, dtype=np.int64)
    assert accumulate.absolute_mass(array, len(array)) == sum(map(abs, weights))


def test_mass_of_ones_is_their_number_and_floats_have_none():
    assert accumulate.absolute_mass(None, 7) == 7
    assert accumulate.absolute_mass(np.array([1.5]), 1) == 0


def test_a_wrapped_counter_is_told_from_a_rounded_one():
    counters = np.array([2**63 - 1, -(2**63)], dtype=np.int64)
    accumulate.check_not_wrapped(counters, counters.astype(np.float64), "nothing")
    with pytest.raises(OverflowError, match="adding a batch takes a counter to 9"):
        accumulate.check_not_wrapped(counters + np.array([1, 0]), np.array([2.0**63, -(2.0**63)]), "a batch")
    assert accumulate.absolute_peak(counters) == 2**63
    assert accumulate.absolute_peak(np.array([1e300])) == 0


def test_weights_of_the_wrong_kind_are_refused():
    with pytest.raises(ValueError, match="int64 weights, not float64"):
        accumulate.as_weights([1.0], "int64")
    with pytest.raises(ValueError, match="int64 weights, not uint64"):
        accumulate.as_weights(np.array([1], dtype=np.uint64), "int64")
    with pytest.raises(ValueError, match="one-dimensional"):
        accumulate.as_weights([[1]], "int64")
    with pytest.raises(ValueError, match="nan at position 1 is not finite"):
        accumulate.as_weights([1.0, np.nan], "float64")
    with pytest.raises(ValueError, match="not <U1"):
        accumulate.as_weights(["a"], "float64")
    assert accumulate.as_weights([], "int64").dtype == np.int64
    assert accumulate.as_weights([2], "float64").dtype == np.float64


WEIGHTS = [
    None,
    [1, 1, -1],
    [1, -1, -1],
    [1, 0, -1],
    [5, -3, 2],
    [0, 0, 0],
    [0, 0, -9],
    [(1 << 60) + 1, -7, 1],
]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("number", range(1, len(WEIGHTS) + 1))
def test_rows_get_what_each_of_them_would_get_alone(number, dtype):
    slots = np.array([[0, 3, 5], [2, 2, 3], [1, 4, 4]])
    columns = [None if w is None else np.array(w, dtype=dtype) for w in WEIGHTS[-number:]]
    together, second, alone = np.zeros((3, number, 3, 3), dtype=dtype)
    accumulate.add_columns(
        [(w, [t, other[:2]]) for w, t, other in zip(columns, together, second, strict=True)], slots
    )
    for rows, own in zip(alone, columns, strict=True):
        for row, places in zip(rows, slots, strict=True):
            accumulate.add_signed(row, places, own)
    assert together.tolist() == alone.tolist()
    alone[:, 2] = 0
    assert second.tolist() == alone.tolist()
    assert slots.tolist() == [[0, 3, 5], [2, 2, 3], [1, 4, 4]]
