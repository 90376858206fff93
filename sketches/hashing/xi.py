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
countmin       none proven  any int64                the same, by Spark's ``count_min_sketch``
============== ============ ======================== =================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .family import WORD_BITS as WORD_BITS
from .family import Family as Family
from .family import Keys as Keys
from .family import Seeded, check_bits, slice_words
from .family import Values as Values
from .family import as_keys as as_keys
from .family import check_families as check_families
from .family import derive_seed as derive_seed
from .family import pack_bits as pack_bits
from .fields import P61, cubes, fold61, multiply61
from .spark_families import CountMin as CountMin
from .spark_families import Folded as Folded
from .spark_families import XxHash64 as XxHash64
from .tabulation import hash_words, random_words
from .xxhash import spark_xxhash64 as spark_xxhash64
from .xxhash import xxh64_of_long as xxh64_of_long

BLOCK = 1 << 14  # keys hashed at a time where the arithmetic needs temporaries


@dataclass(frozen=True, slots=True)
class Tabulation(Seeded):
    """Thorup-Zhang tabulation on 64-bit keys, 5-wise independent; see `tabulation.py` for the proof.

    One 64-bit word is cut into ``64 // bits`` functions, 22 ns for the first word of a key and 11 ns for each
    further one.
    """

    name: ClassVar[str] = "tabulation"
    independence: ClassVar[int] = 5
    basis: ClassVar[str] = "theorem"

    __str__ = Seeded.__str__

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        return slice_words(lambda words: hash_words(keys, self.seed, words), functions, bits)

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """See `Family.sign_words`."""
        return hash_words(keys, self.seed, -(-functions // WORD_BITS))


@dataclass(frozen=True, slots=True)
class Polynomial61(Seeded):
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

    __str__ = Seeded.__str__

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`; `bits` is at most 40."""
        check_bits(bits, 40)
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
class BCH5(Seeded):
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

    __str__ = Seeded.__str__

    def __post_init__(self) -> None:
        Seeded.__post_init__(self)
        if not 2 <= self.domain_bits <= 20:
            raise ValueError(f"bch5 serves domains of 2 to 20 bits, not {self.domain_bits}")

    @property
    def digit_bits(self) -> int:
        """Bits of the seed that one hash bit takes."""
        return 2 * self.domain_bits + 1

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        check_bits(bits, WORD_BITS - 1)
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


FAMILIES: dict[str, type[Tabulation | Polynomial61 | BCH5 | XxHash64 | Folded | CountMin]] = {
    family.name: family for family in (Tabulation, Polynomial61, BCH5, XxHash64, Folded, CountMin)
}


def make_family(name: str = "tabulation", seed: int = 0, **parameters: int) -> Family:
    """The family called `name`; raises ValueError on an unknown name or parameter, listing the known ones."""
    if name not in FAMILIES:
        raise ValueError(f"unknown hash family {name!r}; known: {', '.join(sorted(FAMILIES))}")
    known = [f.name for f in fields(FAMILIES[name]) if f.name not in ("seed", "origin")]
    if unknown := sorted(set(parameters) - set(known)):
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; known: {', '.join(known) or 'none'}")
    made: Callable[..., Family] = FAMILIES[name]
    return made(seed, **parameters)


def _parity(x: Values) -> Values:
    """Exclusive or of the 64 bits of each value."""
    for half in (32, 16, 8, 4, 2, 1):
        x = x ^ (x >> np.uint64(half))
    return x & np.uint64(1)
