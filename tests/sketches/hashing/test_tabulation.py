"""The derived characters make tabulation 5-wise: no set of four keys cancels out in every position."""

from itertools import combinations

import numpy as np
import pytest

from skimql.sketches.hashing import tabulation


def determinant_is_zero(matrix, prime):
    m = [[int(x) % prime for x in row] for row in matrix]
    for c in range(len(m)):
        pivot = next((r for r in range(c, len(m)) if m[r][c]), None)
        if pivot is None:
            return True
        m[c], m[pivot] = m[pivot], m[c]
        inverse = pow(m[c][c], -1, prime)
        for r in range(c + 1, len(m)):
            factor = m[r][c] * inverse % prime
            m[r] = [(x - factor * y) % prime for x, y in zip(m[r], m[c], strict=True)]
    return False


def test_every_square_submatrix_is_regular():
    matrix = tabulation.cauchy_matrix(tabulation.CHARACTERS, tabulation.DERIVED, tabulation.PRIME)
    assert matrix.shape == (8, 7)
    for size in range(1, 8):
        for rows in combinations(range(8), size):
            for columns in combinations(range(7), size):
                assert not determinant_is_zero(matrix[np.ix_(rows, columns)], tabulation.PRIME)


# Planted bug: with one derived character dropped, or with a constant column in place of the last, 4-sets
# cancel.
def test_no_four_keys_of_a_small_code_cancel_out():
    """The same construction with three characters of two bits over Z_7: all 4-subsets of its 64 keys."""
    assert cancelling_sets(derived=2) == 0
    assert cancelling_sets(derived=1) > 0, "the search must see the independence that is lost"


def cancelling_sets(derived):
    characters, values, prime = 3, 4, 7
    matrix = tabulation.cauchy_matrix(characters, derived, prime)
    keys = np.array(np.meshgrid(*[range(values)] * characters)).reshape(characters, -1).T
    codes = np.hstack([keys, keys @ (matrix % prime)])
    # Position and character as bits of one mask: a set cancels if the exclusive or of its masks is zero.
    masks = np.zeros(len(codes), dtype=object)
    for position in range(codes.shape[1]):
        masks ^= np.array([1 << (64 * position + int(c)) for c in codes[:, position]], dtype=object)
    pairs = {}
    for i, j in combinations(range(len(codes)), 2):
        pairs.setdefault(masks[i] ^ masks[j], []).append((i, j))
    return sum(len({*p, *q}) == 4 for group in pairs.values() for p, q in combinations(group, 2))


def test_packed_products_are_the_matrix_modulo_the_prime():
    keys = np.array([0, 1, -1, 0x0123456789ABCDEF, 1 << 63 - 1], dtype=np.int64)
    inputs = tabulation._input_characters(keys)
    matrix = tabulation.cauchy_matrix(8, 7, 257)
    expected = matrix.T @ inputs % 257
    derived = tabulation._derived_characters(inputs)
    assert (derived % 257 == expected).all()
    assert derived.max() < tabulation.DERIVED_VALUES


def test_hash_of_known_keys_never_changes():
    words = tabulation.hash_words(np.array([0, 1, -1, 2**62], dtype=np.int64), seed=7, words=2)
    assert [[hex(int(x)) for x in row] for row in words] == GOLDEN


def test_a_field_too_small_for_the_characters_is_refused():
    with pytest.raises(ValueError, match="prime"):
        tabulation.cauchy_matrix(4, 4, 7)


GOLDEN = [
    ["0xf1698455a3570e7f", "0x3be3ad51b0323426", "0x51c5b248faaccee2", "0x96df666a3125bde9"],
    ["0x11ddd67fcd357a95", "0x54f643d2d4bea409", "0x75b1ec225e89ac4", "0x825274de45a8615f"],
]
