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
folded         none proven  any int64                the same, one grouping for all rows; see `folding.py`
============== ============ ======================== =================================================
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .fields import P61, cubes, fold61, multiply61
from .tabulation import hash_words, random_words
from .xxhash import spark_xxhash64 as spark_xxhash64
from .xxhash import xxh64_of_long as xxh64_of_long

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
class _Seeded(ABC):
    """Seed, identity and derivation, common to all families."""

    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEED_LIMIT:
            raise ValueError(f"a family's seed lies in [0, 2**63), not {self.seed}")

    @property
    def parameters(self) -> dict[str, int]:
        """Everything but the seed that the functions depend on."""
        return {f.name: int(getattr(self, f.name)) for f in fields(self) if f.name != "seed"}

    @abstractmethod
    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""

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
        coefficients = [[(int(a) << 64 | int(b)) % P61 for a, b in row] for row in words]
        out = np.empty((functions, len(keys)), dtype=np.uint64)
        shift = np.uint64(61 - bits)
        for start in range(0, len(keys), BLOCK):
            x = (keys[start : start + BLOCK] % np.int64(P61)).astype(np.uint64)
            for row, (first, *rest) in enumerate(coefficients):
                value = np.full(len(x), first, dtype=np.uint64)
                for coefficient in rest:
                    value = fold61(multiply61(value, x) + np.uint64(coefficient))
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
        columns |= cubes(self.domain_bits)[keys] << np.uint64(self.domain_bits + 1)
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


@dataclass(frozen=True, slots=True)
class Folded(_Seeded):
    """Fine buckets and signs from one xxhash64, the fine buckets folded by a random map for each function.

    What an engine that can only group once computes: it groups by the fine bucket and sums every sign;
    `folding` turns these sums into the sketch. Functions share their fine buckets and are independent beyond
    that, which costs nothing measurable with 16 fine buckets or more for every bucket.

    Parameters
    ----------
    fine_bits : int
        8 to 24: there are 2**fine_bits fine buckets.

    Notes
    -----
    With w = ``xxhash64(seed, key)``, the fine bucket is the lowest `fine_bits` of w and the sign of function
    f its bit ``fine_bits + f``; functions for which w has no bits left take those of derived words in order.
    A value is the sign in its lowest bit, below random bits that belong to (function, fine bucket).
    """

    fine_bits: int = 16

    name: ClassVar[str] = "folded"
    independence: ClassVar[int] = 0
    basis: ClassVar[str] = "measured"

    __str__ = _Seeded.__str__

    def __post_init__(self) -> None:
        _Seeded.__post_init__(self)
        if not 8 <= self.fine_bits <= 24:
            raise ValueError(f"fine buckets take 8 to 24 bits, not {self.fine_bits}")

    def sign_place(self, function: int) -> tuple[int, int]:
        """Seed of the word, and number of the bit in it, that hold the sign of a function."""
        word, bit = divmod(self.fine_bits + function, WORD_BITS)
        return (self.seed if word == 0 else derive_seed(self.seed, f"word {word}")), bit

    def fine_buckets(self, keys: Keys) -> NDArray[np.int64]:
        """Fine bucket of each key: shape (n,), in [0, 2**fine_bits)."""
        return (spark_xxhash64(self.seed, keys) & np.uint64((1 << self.fine_bits) - 1)).view(np.int64)

    def maps(self, functions: int) -> NDArray[np.uint32]:
        """Random bits of each function and fine bucket: shape (functions, 2**fine_bits)."""
        return np.stack([_folding_map(self.seed, self.fine_bits, f) for f in range(functions)])

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`; `bits` is at most 33."""
        _check_bits(bits, 33)
        fine, mask = self.fine_buckets(keys), np.uint64((1 << bits) - 1)
        out = np.empty((functions, len(keys)), dtype=np.uint64)
        words: dict[int, Values] = {}
        for function in range(functions):
            seed, bit = self.sign_place(function)
            if seed not in words:
                words[seed] = spark_xxhash64(seed, keys)
            out[function] = _folding_map(self.seed, self.fine_bits, function)[fine]
            out[function] <<= np.uint64(1)
            out[function] |= (words[seed] >> np.uint64(bit)) & np.uint64(1)
            out[function] &= mask
        return out


@lru_cache(maxsize=64)
def _folding_map(seed: int, fine_bits: int, function: int) -> NDArray[np.uint32]:
    words = random_words(f"folded {seed} {fine_bits} {function}", 1 << (fine_bits - 1))
    return words.astype("<u8").view("<u4").astype(np.uint32)


FAMILIES: dict[str, type[Tabulation | Polynomial61 | BCH5 | XxHash64 | Folded]] = {
    family.name: family for family in (Tabulation, Polynomial61, BCH5, XxHash64, Folded)
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


def _parity(x: Values) -> Values:
    """Exclusive or of the 64 bits of each value."""
    for half in (32, 16, 8, 4, 2, 1):
        x = x ^ (x >> np.uint64(half))
    return x & np.uint64(1)


def _check_bits(bits: int, most: int) -> None:
    if not 1 <= bits <= most:
        raise ValueError(f"bits lie in 1 to {most}, not {bits}")
