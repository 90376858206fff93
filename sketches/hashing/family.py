"""What a hash family is: the interface, seeds and their derivation, and cutting hash words into functions."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .fingerprints import as_column, fingerprint, is_text

SEED_LIMIT = 1 << 63
WORD_BITS = 64

Keys = NDArray[np.int64]
Values = NDArray[np.uint64]


class Family(Protocol):
    """What every family offers. Frozen, hashable, compared by value."""

    name: ClassVar[str]
    independence: ClassVar[int]  # jointly independent keys under one function; 0 where nothing is proven
    basis: ClassVar[str]  # "theorem" or "measured"
    group: ClassVar[str]  # in which the buckets of several attributes add up: "cyclic" or "xor"

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
class Seeded(ABC):
    """Seed, identity and derivation, common to all families."""

    seed: int
    # What it was derived from, for people to read: the seed that they gave, and the labels.
    origin: tuple[int, tuple[str, ...]] | None = field(default=None, compare=False, repr=False, kw_only=True)

    group: ClassVar[str] = "cyclic"

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEED_LIMIT:
            raise ValueError(f"a family's seed lies in [0, 2**63), not {self.seed}")

    @property
    def parameters(self) -> dict[str, int]:
        """Everything but the seed that the functions depend on."""
        return {f.name: int(getattr(self, f.name)) for f in fields(self) if f.name not in ("seed", "origin")}

    @abstractmethod
    def values(self, keys: Keys, functions: int, bits: int) -> Values:
        """See `Family.values`."""

    def sign_words(self, keys: Keys, functions: int) -> Values:
        """See `Family.sign_words`."""
        return pack_bits(self.values(keys, functions, 1))

    def derive(self, label: str) -> Self:
        """The family of the same kind and parameters for the join class `label`."""
        first, labels = self.origin or (self.seed, ())
        origin = first, (*labels, label)
        return type(self)(derive_seed(self.seed, label), **self._derived_parameters(), origin=origin)

    def _derived_parameters(self) -> dict[str, Any]:
        return dict(self.parameters)

    def __str__(self) -> str:
        rest = "".join(f", {key}={value}" for key, value in self.parameters.items())
        seed, labels = self.origin or (self.seed, ())
        key = f", key={'/'.join(labels)!r}" if labels else ""
        return f"{type(self).name}(seed={seed}{key}{rest})"  # type: ignore[attr-defined]


def derive_seed(seed: int, label: str) -> int:
    """A seed in [0, 2**63) determined by `seed` and `label`, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}/{label}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def check_families(spec: str, families: object) -> None:
    """Raise TypeError if what a spec was given for its hash family, or for a tuple of some, is none."""
    for family in families if isinstance(families, tuple) else (families,):
        if not callable(getattr(family, "values", None)):
            raise TypeError(
                f"a {spec} takes a hash family, not {family!r}: make_family(seed=7).derive('user'); sizes have names"
            )


def as_keys(keys: ArrayLike) -> Keys:
    """`keys` as a one-dimensional int64 array, without copying where possible.

    Raises
    ------
    ValueError
        If they are neither integers that fit in int64 nor text or bytes, or not one-dimensional. Nothing is rounded or
        wrapped; text and bytes become their `fingerprint`.
    """
    array = as_column(keys)
    if array.ndim != 1:
        raise ValueError(
            f"the keys of an attribute are a one-dimensional array, not of shape {array.shape}; "
            "update([keys]) for one attribute, update([keys, others]) for two"
        )
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if is_text(array):
        return fingerprint(array)
    if array.dtype == np.uint64:
        raise ValueError("keys are int64, not uint64; keys.view(np.int64) keeps them apart")
    if array.dtype.kind not in "iu":
        raise ValueError(f"keys are int64, text or bytes, not {array.dtype}; cast them first")
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
    check_bits(bits, WORD_BITS - 1)
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


def check_bits(bits: int, most: int) -> None:
    if not 1 <= bits <= most:
        raise ValueError(f"bits lie in 1 to {most}, not {bits}")
