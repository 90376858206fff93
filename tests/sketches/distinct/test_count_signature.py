"""Count signatures: what a cell holds can be read back, and nothing overflows silently."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.sketches.distinct.count_signature import (
    AMBIGUOUS,
    EMPTY,
    MULTIPLE,
    SINGLETON,
    CountSignatures,
    inverse_odd,
    make_prints,
    trailing_zeros,
)
from skimql.sketches.hashing.xi import make_family

INT64 = st.integers(-(2**63), 2**63 - 1)
WEIGHTS = st.integers(-(2**60), 2**60).filter(lambda w: w != 0)
LIGHT = st.integers(-(2**20), 2**20).filter(lambda w: w != 0)
FAMILY = make_family(seed=1)


def prints_of(keys):
    return make_prints([keys], FAMILY.values(keys, 1, 48)[0])


def verify(cells, columns):
    """Every key belongs into every cell."""
    return np.ones(len(cells), bool), prints_of(columns[0])


def signature(*tuples):
    cell = CountSignatures.zeros(1)
    for key, weight in tuples:
        keys, weights = np.array([key]), np.array([weight])
        cell.reserve(abs(weight))
        cell.add(np.zeros(1, np.intp), [keys], prints_of(keys), weights)
    return cell


def decoded(*tuples):
    kinds, (keys,) = signature(*tuples).decode(verify)
    return int(kinds[0]), int(keys[0])


@settings(deadline=None, max_examples=40)
@given(INT64, st.integers(-(2**40), 2**40).filter(lambda c: c % 2**17))
def test_a_single_key_is_read_back_whatever_its_weight(key, weight):
    # Breaks if the 16 repeated bits are left out of the print: an even weight then loses the key's
    # highest bits.
    assert decoded((key, weight)) == (SINGLETON, key)


@settings(deadline=None, max_examples=40)
@given(INT64, st.integers(1, 2**40))
def test_weights_with_a_large_power_of_two_are_called_ambiguous(key, odd):
    assert decoded((key, (2 * odd - 1) << 17)) == (AMBIGUOUS, 0)


# Weights below 2^20: of heavier multiples of 2^t a print only has 48 - t random bits to tell by.
@settings(deadline=None, max_examples=40)
@given(INT64, LIGHT, INT64, LIGHT)
def test_two_keys_are_never_taken_for_one(one, u, other, v):
    if one != other:
        assert decoded((one, u), (other, v))[0] in (MULTIPLE, AMBIGUOUS)


@settings(deadline=None, max_examples=40)
@given(INT64, WEIGHTS)
def test_deleting_the_only_key_leaves_nothing(key, weight):
    cell = signature((key, weight), (key, -weight))
    assert not any(array.any() for array in cell.arrays().values())
    assert cell.decode(verify)[0][0] == EMPTY


def test_keys_whose_counts_and_sums_cancel_are_still_seen():
    # 1 + 4 = 2 + 3: without the print the cell would look empty.
    cell = signature((1, 1), (4, 1), (2, -1), (3, -1))
    assert cell.counts[0] == 0
    assert cell.key_sums[0, 0] == 0
    assert cell.occupied()[0]
    assert cell.decode(verify)[0][0] == MULTIPLE


def test_a_key_from_another_cell_is_not_accepted():
    kinds, _ = signature((7, 1)).decode(
        lambda cells, columns: (np.zeros(len(cells), bool), prints_of(columns[0]))
    )
    assert kinds[0] == MULTIPLE


@settings(deadline=None, max_examples=40)
@given(st.lists(INT64, min_size=1))
def test_inverses_and_powers_of_two(values):
    odd = np.array(values).view(np.uint64) | np.uint64(1)
    assert (odd * inverse_odd(odd) == 1).all()
    expected = [64 if v == 0 else (v & -v).bit_length() - 1 for v in values]
    assert trailing_zeros(np.array(values)).tolist() == expected


def test_a_count_that_would_overflow_is_refused_and_deletions_make_room():
    cell = signature((5, 2**62), (5, 2**62 - 1))
    with pytest.raises(OverflowError, match="9223372036854775807"):
        cell.reserve(1)
    assert cell.counts[0] == 2**63 - 1
    cell = signature(*[(5, 2**61), (5, -(2**61))] * 5)
    assert cell.counts[0] == 0


def test_arrays_that_do_not_fit_are_refused():
    arrays = signature((1, 1)).arrays()
    with pytest.raises(ValueError, match="shape"):
        CountSignatures.from_arrays(arrays, 2)
    with pytest.raises(ValueError, match="counts, key_sums and print_sums"):
        CountSignatures.from_arrays({"counts": arrays["counts"]}, 1)
    restored = CountSignatures.from_arrays(arrays, 1)
    restored.counts[0] = 9
    assert arrays["counts"][0] == 1


@settings(deadline=None, max_examples=40)
@given(INT64, INT64, st.integers(-(2**40), 2**40).filter(lambda c: c % 2**17))
def test_a_single_pair_is_read_back_whatever_its_weight(one, other, weight):
    def prints(columns):
        return make_prints(columns, FAMILY.values(columns[0] ^ columns[1], 1, 32)[0])

    cell = CountSignatures.zeros(1, columns=2)
    columns = [np.array([one]), np.array([other])]
    cell.add(np.zeros(1, np.intp), columns, prints(columns), np.array([weight]))
    kinds, found = cell.decode(lambda cells, columns: (np.ones(len(cells), bool), prints(columns)))
    assert kinds[0] == SINGLETON
    assert [int(column[0]) for column in found] == [one, other]
