"""Hash families behind one interface: signs (xi), buckets and levels all come from `Family.values`.

A family is named by its class, its seed and its parameters, and equal families compute equal functions on
every machine. All functions that one family hands out are mutually independent. How many keys are jointly
independent under one function is stated in the class (`independence`):

============== ============ ======================== =================================================
name           independence keys                     use
============== ============ ======================== =================================================
tabulation     5            any int64                the default
polynomial61   4            abs(key) < 2^60          no tables; a check on the default
bch5           5            [0, 2^domain_bits)       tests that enumerate every seed
xxhash64       none proven  any int64                sketches computed in the JVM; measured only
============== ============ ======================== =================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tabulation import hash_words, random_words

SEED_LIMIT = 1 << 63
WORD_BITS = 64
BLOCK = 1 << 14  # keys hashed at a time where the arithmetic needs temporaries

Keys = NDArray[np.int64]
Values = NDArray[np.uint64]


class Family(Protocol):
    """What every family offers. Frozen, hashable, compared by value."""

    name: ClassVar[str]
    independence: ClassVar[int]  # jointly independent keys under one function; 0 where nothing is proven
    basis: ClassVar[str]  # "theorem" or "measured"

    @property
    def seed(self) -> int:
        """Chooses the functions within the family."""

    @property
    def parameters(self) -> dict[str, int]:
        """Everything but the seed that the functions depend on."""

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """Hash every key under the first `functions` functions.

        Parameters
        ----------
        keys : ndarray of int64, shape (n,)
        functions : int
            The first functions are the same however many are asked for.
        bits : int
            1 to 63. Functions of different `bits` are not independent of each other.

        Returns
        -------
        ndarray of uint64, shape (functions, n)
            Values in [0, 2**bits).

        Raises
        ------
        ValueError
            If a key is outside the family's domain, or `bits` out of range.
        """

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """One bit under each of `functions` functions, packed: `values` with ``bits=1``, 64 to a word.

        Returns
        -------
        ndarray of uint64, shape (ceil(functions / 64), n)
            Bit ``f % 64`` of word ``f // 64`` belongs to function f; bits beyond the last are anything.
        """

    def derive(self, label: str) -> Self:
        """The family of the same kind and parameters for another join class, with independent functions."""

    def __str__(self) -> str:
        """Name, seed and parameters: all that identifies the family."""


@dataclass(frozen=True, slots=True)
class _Seeded:
    """Seed, identity and derivation, common to all families."""

    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEED_LIMIT:
            raise ValueError(f"a family's seed lies in [0, 2**63), not {self.seed}")

    @property
    def parameters(self) -> dict[str, int]:
        """Everything but the seed that the functions depend on."""
        return {f.name: int(getattr(self, f.name)) for f in fields(self) if f.name != "seed"}

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        raise NotImplementedError

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """See `Family.sign_words`."""
        return pack_bits(self.values(keys, functions, 1))

    def derive(self, label: str) -> Self:
        """The family of the same kind and parameters for the join class `label`."""
        return type(self)(derive_seed(self.seed, label), **self._derived_parameters())

    def _derived_parameters(self) -> dict[str, Any]:
        return dict(self.parameters)

    def __str__(self) -> str:
        rest = "".join(f", {key}={value}" for key, value in self.parameters.items())
        return f"{type(self).name}(seed={self.seed}{rest})"  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Tabulation(_Seeded):
    """Thorup-Zhang tabulation on 64-bit keys, 5-wise independent; see `tabulation.py` for the proof.

    One 64-bit word is cut into ``64 // bits`` functions, 22 ns for the first word of a key and 11 ns for each
    further one.
    """

    name: ClassVar[str] = "tabulation"
    independence: ClassVar[int] = 5
    basis: ClassVar[str] = "theorem"

    __str__ = _Seeded.__str__

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        return slice_words(lambda words: hash_words(keys, self.seed, words), functions, bits)

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """See `Family.sign_words`."""
        return hash_words(keys, self.seed, -(-functions // WORD_BITS))


@dataclass(frozen=True, slots=True)
class Polynomial61(_Seeded):
    """Random cubic polynomials over the integers modulo 2^61 - 1, 4-wise independent; one for each function.

    Notes
    -----
    Keys are taken modulo 2^61 - 1: two keys collide only if they differ by a multiple of it, never when both
    are below 2^60 in absolute value. The value is the highest `bits` bits of the residue, uniform up to
    2^(bits - 61); hence `bits` <= 40. About 35 ns for each key and function.

    References
    ----------
    .. [1] J. L. Carter, M. N. Wegman, "Universal classes of hash functions", JCSS 18 (1979).
    """

    name: ClassVar[str] = "polynomial61"
    independence: ClassVar[int] = 4
    basis: ClassVar[str] = "theorem"

    __str__ = _Seeded.__str__

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`; `bits` is at most 40."""
        _check_bits(bits, 40)
        # Two words a coefficient: 128 random bits reduced modulo 2^61 - 1 are uniform up to 2^-67.
        words = random_words(f"polynomial61 {self.seed}", 8 * functions).reshape(functions, 4, 2)
        coefficients = [[(int(a) << 64 | int(b)) % _P61 for a, b in row] for row in words]
        out = np.empty((functions, len(keys)), dtype=np.uint64)
        shift = np.uint64(61 - bits)
        for start in range(0, len(keys), BLOCK):
            x = (keys[start : start + BLOCK] % np.int64(_P61)).astype(np.uint64)
            for row, (first, *rest) in enumerate(coefficients):
                value = np.full(len(x), first, dtype=np.uint64)
                for coefficient in rest:
                    value = _fold61(_multiply61(value, x) + np.uint64(coefficient))
                out[row, start : start + BLOCK] = value >> shift
        return out


@dataclass(frozen=True, slots=True)
class BCH5(_Seeded):
    """The BCH scheme over GF(2^domain_bits), 5-wise independent bits on a small domain.

    Bit of key i under the seed (s0, s1, s3): s0 + <s1, i> + <s3, i^3>, with the cube in GF(2^domain_bits):
    2^(2 domain_bits + 1) seeds, few enough to enumerate.

    Parameters
    ----------
    domain_bits : int
        2 to 20; keys lie in [0, 2**domain_bits).
    exhaustive : int
        1: bit j of the family (counted over the functions and their bits, lowest first) has as its seed the
        j-th digit of `seed` to the base 2^(2 domain_bits + 1), so that counting `seed` up enumerates the
        family. 0: digits are drawn from the seed.

    References
    ----------
    .. [1] N. Alon, Y. Matias, M. Szegedy, "The space complexity of approximating the frequency moments",
       STOC 1996: four-wise independent vectors from parity-check matrices of BCH codes.
    """

    domain_bits: int
    exhaustive: int = 0

    name: ClassVar[str] = "bch5"
    independence: ClassVar[int] = 5
    basis: ClassVar[str] = "theorem"

    __str__ = _Seeded.__str__

    def __post_init__(self) -> None:
        _Seeded.__post_init__(self)
        if not 2 <= self.domain_bits <= 20:
            raise ValueError(f"bch5 serves domains of 2 to 20 bits, not {self.domain_bits}")

    @property
    def digit_bits(self) -> int:
        """Bits of the seed that one hash bit takes."""
        return 2 * self.domain_bits + 1

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        _check_bits(bits, WORD_BITS - 1)
        size = 1 << self.domain_bits
        if len(keys) and not 0 <= keys.min() <= keys.max() < size:
            outside = int(np.flatnonzero((keys < 0) | (keys >= size))[0])
            raise ValueError(f"key {keys[outside]} at position {outside} is outside [0, {size}) of {self}")
        # Row i holds the column (1, i, i^3) of the parity-check matrix as one number.
        columns = np.uint64(1) | (keys.astype(np.uint64) << np.uint64(1))
        columns |= _cubes(self.domain_bits)[keys] << np.uint64(self.domain_bits + 1)
        out = np.zeros((functions, len(keys)), dtype=np.uint64)
        for position, digit in enumerate(self._digits(functions * bits)):
            function, bit = divmod(position, bits)
            out[function] |= _parity(columns & np.uint64(digit)) << np.uint64(bit)
        return out

    def _digits(self, count: int) -> list[int]:
        mask = (1 << self.digit_bits) - 1
        if self.exhaustive:
            return [self.seed >> (j * self.digit_bits) & mask for j in range(count)]
        return [int(word) & mask for word in random_words(f"bch5 {self.seed}", count)]

    def _derived_parameters(self) -> dict[str, Any]:
        # A derived seed is drawn, not counted: its digits would be zero beyond 63 bits.
        return {"domain_bits": self.domain_bits, "exhaustive": 0}


@dataclass(frozen=True, slots=True)
class XxHash64(_Seeded):
    """The bits of Spark's ``xxhash64(CAST(seed AS BIGINT), key)`` for a BIGINT key.

    Nothing is proven about it: intervals built on it are measured, not theorems. Word w of a key is
    ``xxhash64(word_seeds[w], key)``, cut into ``64 // bits`` functions. About 4 ns a word.

    References
    ----------
    .. [1] Y. Collet, "xxHash fast digest algorithm", the XXH64 specification; Spark's ``XXH64.hashLong``.
    """

    name: ClassVar[str] = "xxhash64"
    independence: ClassVar[int] = 0
    basis: ClassVar[str] = "measured"

    __str__ = _Seeded.__str__

    def word_seeds(self, words: int) -> list[int]:
        """The first argument of Spark's function for each word: the seed itself, then derived ones."""
        return [self.seed if w == 0 else derive_seed(self.seed, f"word {w}") for w in range(words)]

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        return slice_words(lambda words: self._hash_words(keys, words), functions, bits)

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """See `Family.sign_words`."""
        return self._hash_words(keys, -(-functions // WORD_BITS))

    def _hash_words(self, keys: Keys, words: int) -> Values:
        return np.stack([spark_xxhash64(seed, keys) for seed in self.word_seeds(words)])


FAMILIES: dict[str, type[Tabulation | Polynomial61 | BCH5 | XxHash64]] = {
    family.name: family for family in (Tabulation, Polynomial61, BCH5, XxHash64)
}


def make_family(name: str = "tabulation", seed: int = 0, **parameters: int) -> Family:
    """The family called `name`; raises ValueError on an unknown name or parameter, listing the known ones."""
    if name not in FAMILIES:
        raise ValueError(f"unknown hash family {name!r}; known: {', '.join(sorted(FAMILIES))}")
    known = [f.name for f in fields(FAMILIES[name]) if f.name != "seed"]
    if unknown := sorted(set(parameters) - set(known)):
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; known: {', '.join(known) or 'none'}")
    return FAMILIES[name](seed, **parameters)


def derive_seed(seed: int, label: str) -> int:
    """A seed in [0, 2**63) determined by `seed` and `label`, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}/{label}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def as_keys(keys: ArrayLike) -> Keys:
    """`keys` as a one-dimensional int64 array, without copying where possible.

    Raises
    ------
    ValueError
        If they are not integers that fit in int64, or not one-dimensional. Nothing is rounded or wrapped.
    """
    array = np.asarray(keys)
    if array.ndim != 1:
        raise ValueError(f"keys are a one-dimensional array, not of shape {array.shape}")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise ValueError(f"keys are int64, not {array.dtype}; view or fingerprint them first")
    return np.ascontiguousarray(array, dtype=np.int64)


def slice_words(hashed: Callable[[int], Values], functions: int, bits: int) -> Values:
    """Cut `functions` values of `bits` bits from as few 64-bit hash words as will do, lowest bits first.

    Parameters
    ----------
    hashed : callable
        Takes a number of words, returns uint64 of shape (words, n), word w independent of how many are asked.

    Returns
    -------
    ndarray of uint64, shape (functions, n)
    """
    _check_bits(bits, WORD_BITS - 1)
    per_word = WORD_BITS // bits
    words = hashed(-(-functions // per_word))
    mask = np.uint64((1 << bits) - 1)
    out = np.empty((functions, words.shape[1]), dtype=np.uint64)
    for function in range(functions):
        word, position = divmod(function, per_word)
        np.right_shift(words[word], np.uint64(position * bits), out=out[function])
        out[function] &= mask
    return out


def pack_bits(bits: Values) -> Values:
    """Pack rows of zeros and ones, shape (functions, n), into words: shape (ceil(functions / 64), n)."""
    words = np.zeros((-(-len(bits) // WORD_BITS), bits.shape[1]), dtype=np.uint64)
    for function, row in enumerate(bits):
        word, position = divmod(function, WORD_BITS)
        words[word] |= row << np.uint64(position)
    return words


def spark_xxhash64(seed: int | NDArray[np.int64], keys: Keys) -> Values:
    """Spark's ``xxhash64(seed, key)`` of BIGINTs, as uint64 (view as int64 for Spark's sign).

    Parameters
    ----------
    seed : int or ndarray of int64, shape (n,)
        Spark's first argument; an array gives ``xxhash64(a, b)``, the fingerprint of a composite key.
    keys : ndarray of int64, shape (n,)
    """
    first = np.atleast_1d(np.asarray(seed, dtype=np.int64))
    start = xxh64_of_long(first, np.uint64(_SPARK_SEED))
    return xxh64_of_long(keys, start if len(start) > 1 else start[0])


def xxh64_of_long(values: NDArray[np.int64], seed: np.uint64 | NDArray[np.uint64]) -> Values:
    """XXH64 of the eight little-endian bytes of each value, under a seed or a seed for each."""
    out = np.empty(len(values), dtype=np.uint64)
    whole = np.broadcast_to(np.asarray(seed, dtype=np.uint64), out.shape)
    for start in range(0, len(values), BLOCK):
        x = values[start : start + BLOCK].view(np.uint64) * _XXH_P2
        x = _rotate(x, 31) * _XXH_P1
        x ^= whole[start : start + BLOCK] + np.uint64((_P5 + 8) % (1 << 64))
        x = _rotate(x, 27) * _XXH_P1 + _XXH_P4
        x ^= x >> np.uint64(33)
        x *= _XXH_P2
        x ^= x >> np.uint64(29)
        x *= _XXH_P3
        x ^= x >> np.uint64(32)
        out[start : start + BLOCK] = x
    return out


_SPARK_SEED = 42
_P5 = 0x27D4EB2F165667C5
_XXH_P1, _XXH_P2, _XXH_P3, _XXH_P4 = (
    np.uint64(p) for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63)
)
_P61 = (1 << 61) - 1
_LOW32 = np.uint64(0xFFFFFFFF)
_LOW61 = np.uint64(_P61)


def _rotate(x: Values, left: int) -> Values:
    return (x << np.uint64(left)) | (x >> np.uint64(64 - left))


def _multiply61(a: Values, b: Values) -> Values:
    """a * b modulo 2^61 - 1, not quite reduced: below 2^63. Both factors are below 2^61."""
    a_high, a_low = a >> np.uint64(32), a & _LOW32
    b_high, b_low = b >> np.uint64(32), b & _LOW32
    low = a_low * b_low
    middle = a_low * b_high + a_high * b_low
    # 2^64 = 8 and middle * 2^32 = (middle >> 29) * 2^61 + ..., with 2^61 = 1.
    total = (a_high * b_high) << np.uint64(3)
    total += middle >> np.uint64(29)
    total += (middle & np.uint64((1 << 29) - 1)) << np.uint64(32)
    total += low >> np.uint64(61)
    total += low & _LOW61
    return total


def _fold61(x: Values) -> Values:
    """x modulo 2^61 - 1, fully reduced; x is below 2^64."""
    x = (x & _LOW61) + (x >> np.uint64(61))
    return np.where(x >= _LOW61, x - _LOW61, x)


def _cubes(domain_bits: int) -> Values:
    """i^3 in GF(2^domain_bits) for every i."""
    x = np.arange(1 << domain_bits, dtype=np.uint64)
    return _multiply_gf2(_multiply_gf2(x, x, domain_bits), x, domain_bits)


# The lower terms of an irreducible polynomial of each degree 2 ... 20.
_IRREDUCIBLE = {
    2: 0x3, 3: 0x3, 4: 0x3, 5: 0x5, 6: 0x3, 7: 0x3, 8: 0x1B, 9: 0x11, 10: 0x9, 11: 0x5,
    12: 0x9, 13: 0x1B, 14: 0x21, 15: 0x3, 16: 0x2B, 17: 0x9, 18: 0x9, 19: 0x27, 20: 0x9,
}  # fmt: skip


def _multiply_gf2(a: Values, b: Values, degree: int) -> Values:
    """a * b in GF(2^degree), elementwise, by shift and add."""
    product = np.zeros_like(a)
    top, one = np.uint64(degree - 1), np.uint64(1)
    mask, reduction = np.uint64((1 << degree) - 1), np.uint64(_IRREDUCIBLE[degree])
    for bit in range(degree - 1, -1, -1):
        carry = (product >> top) & one
        product = ((product << one) & mask) ^ (carry * reduction)
        product ^= ((b >> np.uint64(bit)) & one) * a
    return product


def _parity(x: Values) -> Values:
    """Exclusive or of the 64 bits of each value."""
    for half in (32, 16, 8, 4, 2, 1):
        x = x ^ (x >> np.uint64(half))
    return x & np.uint64(1)


def _check_bits(bits: int, most: int) -> None:
    if not 1 <= bits <= most:
        raise ValueError(f"bits lie in 1 to {most}, not {bits}")
