"""Families that Spark computes itself, so that sketches can be made without leaving the JVM.

All start from ``xxhash64(seed, key)``, of which nothing is proven: intervals built on them are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .family import WORD_BITS, Keys, Seeded, Values, check_bits, derive_seed, slice_words
from .tabulation import random_words
from .xxhash import spark_xxhash64

FIELDS = 3  # signs of a folded family that are summed in one integer
FIELD_BITS = 21


@dataclass(frozen=True, slots=True)
class XxHash64(Seeded):
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

    __str__ = Seeded.__str__

    def word_seeds(self, words: int) -> list[int]:
        """The first argument of Spark's function for each word: the seed itself, then derived ones."""
        return _word_seeds(self.seed, words)

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""
        return slice_words(lambda words: self._hash_words(keys, words), functions, bits)

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """See `Family.sign_words`."""
        return self._hash_words(keys, -(-functions // WORD_BITS))

    def _hash_words(self, keys: Keys, words: int) -> Values:
        return np.stack([spark_xxhash64(seed, keys) for seed in self.word_seeds(words)])


@dataclass(frozen=True, slots=True)
class Folded(Seeded):
    """Fine buckets and signs from one xxhash64; each function merges the fine buckets by a linear map of its own.

    What an engine that can only group once computes: it groups by the fine bucket and sums every sign;
    `folding` turns these sums into the sketch. Functions share their fine buckets and are independent beyond
    that, which costs nothing measurable with 16 fine buckets or more for every bucket.

    Parameters
    ----------
    fine_bits : int
        8 to 24: there are 2**fine_bits fine buckets.

    Notes
    -----
    Of the word w = ``xxhash64(seed, key)`` the highest `fine_bits` are the fine bucket; its other bits, and
    those of words under derived seeds, are signs, see `sign_place`. A value is the sign in its lowest bit,
    below the bits of ``matrix_f @ fine bucket`` over GF(2). The matrices are invertible, so that every bucket
    gets equally many fine ones, and depend on f and `fine_bits` alone: what is random is the fine bucket.

    Linear maps make sketches of several attributes possible: where the buckets of the attributes add up in
    GF(2)^n (`group`), so do their fine buckets and the bits of their signs, ``word of a XOR word of b``.
    """

    fine_bits: int = 16

    name: ClassVar[str] = "folded"
    independence: ClassVar[int] = 0
    basis: ClassVar[str] = "measured"
    group: ClassVar[str] = "xor"

    __str__ = Seeded.__str__

    def __post_init__(self) -> None:
        Seeded.__post_init__(self)
        if not 8 <= self.fine_bits <= 24:
            raise ValueError(f"fine buckets take 8 to 24 bits, not {self.fine_bits}")

    def word_seeds(self, words: int) -> list[int]:
        """The first argument of Spark's function for each word: the seed itself, then derived ones."""
        return _word_seeds(self.seed, words)

    def sign_place(self, function: int) -> tuple[int, int]:
        """Number of the word, and of the bit in it, that hold the sign of a function.

        Signs 3 s, 3 s + 1 and 3 s + 2 are `FIELD_BITS` apart in a word, so that one shift and one mask put
        each into a field of its own: three of them are summed at once.
        """
        group, field = divmod(function, FIELDS)
        first = max(0, WORD_BITS - (FIELDS - 1) * FIELD_BITS - self.fine_bits)
        word, shift = (0, group) if group < first else divmod(group - first, FIELD_BITS)
        return (word if group < first else word + 1), shift + field * FIELD_BITS

    def fine_buckets(self, keys: Keys) -> NDArray[np.int64]:
        """Fine bucket of each key: shape (n,), in [0, 2**fine_bits)."""
        return (spark_xxhash64(self.seed, keys) >> np.uint64(WORD_BITS - self.fine_bits)).view(np.int64)

    def maps(self, functions: int) -> NDArray[np.int64]:
        """Matrix times fine bucket: shape (functions, 2**fine_bits), each row a permutation of fine buckets."""
        return np.stack([_linear_map(self.fine_bits, f) for f in range(functions)])

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`. Beyond ``fine_bits + 1`` bits the lowest bits of the bucket are zero."""
        check_bits(bits, WORD_BITS - 1)
        fine = self.fine_buckets(keys)
        out = np.empty((functions, len(keys)), dtype=np.uint64)
        places = [self.sign_place(f) for f in range(functions)]
        seeds = self.word_seeds(1 + max((word for word, _ in places), default=0))
        words = [spark_xxhash64(seed, keys) for seed in seeds]
        for function, (word, bit) in enumerate(places):
            out[function] = self.bucket_bits(function, bits)[fine]
            out[function] <<= np.uint64(1)
            out[function] |= (words[word] >> np.uint64(bit)) & np.uint64(1)
        return out

    def bucket_bits(self, function: int, bits: int) -> Values:
        """A value without its sign, ``value >> 1``, of every fine bucket: shape (2**fine_bits,)."""
        mapped = _linear_map(self.fine_bits, function).view(np.uint64)
        if bits - 1 > self.fine_bits:
            return mapped << np.uint64(bits - 1 - self.fine_bits)
        return mapped & np.uint64((1 << (bits - 1)) - 1)


@dataclass(frozen=True, slots=True)
class CountMin(Seeded):
    """The rows of Spark's own ``count_min_sketch`` over ``xxhash64(seed, key)``.

    A count-min sketch of 2 m columns holds a hash sketch of m buckets: let the lowest bit of the column be the
    sign, and subtract. Function f is ``(a_f * w + (a_f * w >> 32)) mod 2^31`` for the word w of the key, with
    multipliers that Java's generator draws from a seed: rows of their own buckets, from one word.

    References
    ----------
    .. [1] G. Cormode, S. Muthukrishnan, "An improved data stream summary: the count-min sketch and its
       applications", J. Algorithms 55 (2005); Spark's ``CountMinSketchImpl.hash``.
    """

    name: ClassVar[str] = "countmin"
    independence: ClassVar[int] = 0
    basis: ClassVar[str] = "measured"

    __str__ = Seeded.__str__

    @property
    def multiplier_seed(self) -> int:
        """The seed that Spark's function takes, an INT."""
        return derive_seed(self.seed, "multipliers") & ((1 << 31) - 1)

    def multipliers(self, functions: int) -> NDArray[np.int64]:
        """The factor a_f of each function, below 2^31 - 1."""
        return np.array(java_integers(self.multiplier_seed, functions, (1 << 31) - 1), dtype=np.int64)

    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`; `bits` is at most 31."""
        check_bits(bits, 31)
        words = spark_xxhash64(self.seed, keys).view(np.int64)
        products = self.multipliers(functions)[:, None] * words[None, :]  # modulo 2^64, as in Java
        products += products >> np.int64(32)
        products &= np.int64((1 << bits) - 1)
        return products.view(np.uint64)


@lru_cache(maxsize=64)
def _linear_map(fine_bits: int, function: int) -> NDArray[np.int64]:
    """A random invertible matrix over GF(2) times each vector of `fine_bits` bits."""
    for attempt in count():
        columns = random_words(f"folded {fine_bits} {function} {attempt}", fine_bits)
        columns >>= np.uint64(WORD_BITS - fine_bits)
        if _independent(columns.tolist()):
            break
    mapped = np.zeros(1 << fine_bits, dtype=np.int64)
    for bit, column in enumerate(columns.view(np.int64)):
        np.bitwise_xor(mapped[: 1 << bit], column, out=mapped[1 << bit : 2 << bit])
    return mapped


def _independent(vectors: Sequence[int]) -> bool:
    """Whether vectors over GF(2), given as integers, are linearly independent."""
    reduced: list[int] = []
    for vector in vectors:
        for other in reduced:
            vector = min(vector, vector ^ other)
        if vector == 0:
            return False
        reduced.append(vector)
    return True


def _word_seeds(seed: int, words: int) -> list[int]:
    return [seed if w == 0 else derive_seed(seed, f"word {w}") for w in range(words)]


def java_integers(seed: int, count: int, bound: int) -> list[int]:
    """The first `count` values of Java's ``new Random(seed).nextInt(bound)``.

    Parameters
    ----------
    bound : int
        At most 2^31 - 1, and no power of two.
    """
    state, mask = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1), (1 << 48) - 1
    drawn: list[int] = []
    while len(drawn) < count:
        state = (state * 0x5DEECE66D + 0xB) & mask
        bits = state >> 17
        # The last, incomplete stretch of length `bound` below 2^31 is drawn again.
        if bits - bits % bound + bound - 1 < 1 << 31:
            drawn.append(bits % bound)
    return drawn
