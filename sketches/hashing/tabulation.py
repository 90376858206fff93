"""Tabulation hashing of 64-bit keys, 5-wise independent: eight input and seven derived characters.

A key is cut into eight 8-bit characters ``x``. Seven further characters are derived as ``x @ MATRIX`` modulo
the prime 257; each of the fifteen characters picks a random 64-bit word from its own table, and the hash is
the exclusive or of the fifteen words. One hash word holds many independent functions: its bits are
independent.

References
----------
.. [1] M. Thorup, Y. Zhang, "Tabulation based 4-universal hashing with applications to second moment
   estimation", SODA 2004: derived characters whose matrix has only regular square submatrices.
.. [2] M. Thorup, Y. Zhang, "Tabulation based 5-universal hashing and linear probing", ALENEX 2010.

Notes
-----
Why five-wise (the argument of [1], for this matrix): random words picked by a set of keys are dependent only
if every (position, character) occurs an even number of times, so a smallest dependent set has two or four
keys. Two keys differ in some input character. Four keys are paired up in each of the fifteen positions, in
one of three ways; call the keys a, b, c, d and write + and - for the characters modulo 257. The word a - b +
c - d is a codeword, and it is zero wherever the pairing is ab|cd or ad|bc. Choose the names so that these
are the two commoner ways: they cover ten of the fifteen positions, and a codeword with more than seven zeros
is zero everywhere, as the code ``(x, x @ MATRIX)`` has distance 8. Then at a position paired ac|bd also 2a =
2b, which in an odd characteristic means a = b: it is paired ab|cd as well. So two ways cover all fifteen,
one of them eight, and two keys agree in eight positions: they are equal. In characteristic 2 the argument
breaks, which is why the field is not GF(2^8).

Departs from [1]: the derived characters stay unreduced sums (below 2,049) instead of residues modulo 257. A
sum determines its residue, so nothing is lost, and no reduction is needed.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHARACTERS = 8
CHARACTER_VALUES = 256
DERIVED = CHARACTERS - 1
PRIME = 257
DERIVED_VALUES = CHARACTERS * (PRIME - 1) + 1
BLOCK = 1 << 13  # keys; the characters and partial sums of one block stay in the second-level cache
_CACHED_TABLES = 128  # 262 KB each

Tables = tuple[NDArray[np.inexact[Any]], ...]


def cauchy_matrix(characters: int, derived: int, prime: int) -> NDArray[np.int64]:
    """A matrix over Z_prime all of whose square submatrices are regular.

    Parameters
    ----------
    characters, derived : int
        Numbers of rows and columns; together at most `prime`.
    prime : int
        Size of the field.

    Returns
    -------
    ndarray of int64, shape (characters, derived)
        Entry [i, j] is 1 / (i - (characters + j)) modulo `prime`.
    """
    if characters + derived > prime:
        raise ValueError(
            f"{characters} + {derived} characters need a prime of at least that size, not {prime}"
        )
    rows = [[pow(i - characters - j, -1, prime) for j in range(derived)] for i in range(characters)]
    return np.array(rows, dtype=np.int64)


def random_words(label: str, count: int) -> NDArray[np.uint64]:
    """`count` 64-bit words determined by `label` alone: SHAKE-128 output, the same on every machine."""
    return np.frombuffer(hashlib.shake_128(label.encode()).digest(8 * count), dtype="<u8").astype(np.uint64)


def hash_words(keys: NDArray[np.int64], seed: int, words: int) -> NDArray[np.uint64]:
    """Hash every key to `words` independent 64-bit words.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
        Any 64-bit values.
    seed : int
        Chooses the tables.
    words : int
        Word w depends on the key, the seed and w only.

    Returns
    -------
    ndarray of uint64, shape (words, n)

    Notes
    -----
    About 22 ns a key for the first word and 8 to 11 ns for each further one; 131 KB of tables a word.
    """
    out = np.empty((words, len(keys)), dtype=np.uint64)
    # One set of characters for all blocks: allocating them anew would give the memory back to the system
    # each time.
    room = np.empty((CHARACTERS + DERIVED, min(BLOCK, len(keys))), dtype=np.intp)
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        characters = room[:, : len(block)]
        characters[:CHARACTERS] = _input_characters(block)
        characters[CHARACTERS:] = _derived_characters(characters[:CHARACTERS])
        for word in range(0, words, 2):
            width = min(2, words - word)
            found = _lookups(_tables(seed, word, width), characters)
            out[word : word + width, start : start + BLOCK] = found.reshape(-1, width).T
    return out


def _lookups(tables: Tables, characters: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Exclusive or of what the characters pick from their tables, as words."""
    total = tables[0].take(characters[0], mode="clip")
    scratch = np.empty_like(total)
    words: NDArray[np.uint64] = total.view(np.uint64)
    found = scratch.view(np.uint64)
    for table, character in zip(tables[1:], characters[1:], strict=True):
        table.take(character, mode="clip", out=scratch)
        words ^= found
    return words


def _input_characters(keys: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The eight bytes of every key, lowest first: shape (8, n)."""
    return np.ascontiguousarray(keys, dtype="<i8").view(np.uint8).reshape(len(keys), CHARACTERS).T


def _derived_characters(inputs: NDArray[np.intp] | NDArray[np.uint8]) -> NDArray[np.uint16]:
    """The seven unreduced sums x @ MATRIX: shape (7, n), each below DERIVED_VALUES."""
    sums = np.zeros((inputs.shape[1], 2), dtype=np.uint64)
    for i in range(CHARACTERS):
        sums += _PRODUCTS[i].take(inputs[i], mode="clip").view(np.uint64).reshape(-1, 2)
    return sums.view(np.uint16).reshape(-1, CHARACTERS)[:, :DERIVED].T


@lru_cache(maxsize=_CACHED_TABLES)
def _tables(seed: int, word: int, width: int) -> Tables:
    """The fifteen random tables of one hash word, or of two side by side.

    Two words are fetched by one lookup of a complex number, which is 16 bytes and nothing else here.
    """
    sizes = (CHARACTER_VALUES,) * CHARACTERS + (DERIVED_VALUES,) * DERIVED
    words = [random_words(f"tabulation {seed} {word + i}", sum(sizes)) for i in range(width)]
    entries = np.ascontiguousarray(np.stack(words, axis=-1))
    whole = entries.view(np.complex128)[:, 0] if width == 2 else entries[:, 0].view(np.float64)
    return tuple(np.split(whole, np.cumsum(sizes)[:-1]))


def _packed_products() -> NDArray[np.complex128]:
    """Eight tables of the seven products character * MATRIX[i] modulo 257, as 16-bit fields.

    One complex number is 16 bytes, the eight fields of one entry: a single lookup fetches all of them. The
    sums stay below 2^16 and never carry into the next field. No arithmetic is done in complex numbers.
    """
    matrix = cauchy_matrix(CHARACTERS, DERIVED, PRIME)
    values = np.arange(CHARACTER_VALUES, dtype=np.int64)
    fields = np.zeros((CHARACTERS, CHARACTER_VALUES, CHARACTERS), dtype=np.uint16)
    fields[:, :, :DERIVED] = values[None, :, None] * matrix[:, None, :] % PRIME
    return fields.view(np.complex128).reshape(CHARACTERS, CHARACTER_VALUES)


_PRODUCTS = _packed_products()
