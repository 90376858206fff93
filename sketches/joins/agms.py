"""AGMS sketches: s2 groups of s1 atomic sketches, each the sum of weight times a product of signs.

The method of the papers, complete and selectable: the reference that faster sketches are measured against.
Every tuple touches all s1 * s2 atomic sketches, where a hash sketch touches one counter a row.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, "Processing complex aggregate queries over data
   streams", SIGMOD 2002, section 3: atomic sketches of several attributes, median of averages, Theorem 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hashing.xi import WORD_BITS, Family, Keys, Values, check_families
from .accumulate import Counters, Weights
from .convolution import check_families_and_dtype
from .join_tree import Edges, check_join
from .linear import LinearSketch

BLOCK = 1 << 13  # tuples; their sign words stay in the cache
FLOAT_BLOCK = 1 << 8  # tuples whose signs are spread out as float64, 8 bytes for each atomic sketch
SPREAD = 16  # words left when spreading out bits is cheaper than adding words


@dataclass(frozen=True, slots=True)
class AgmsSpec:
    """What identifies an AGMS sketch; equal specs can be merged.

    Parameters
    ----------
    families : tuple of Family
        One for each join attribute, 4-wise independent, all different.
    s1 : int
        Atomic sketches averaged: accuracy.
    s2 : int
        Averages of which the median is taken: confidence.
    dtype : str
        "int64" or "float64".
    """

    families: tuple[Family, ...]
    s1: int = 512
    s2: int = 11
    dtype: str = "int64"

    def __post_init__(self) -> None:
        check_families("AgmsSpec", self.families)
        if self.s1 < 1 or self.s2 < 1:
            raise ValueError(f"an AGMS sketch has at least one atomic sketch, not {self.s2} x {self.s1}")
        check_families_and_dtype(self.families, self.dtype)

    @property
    def rows(self) -> int:
        """Independent estimates of which the median is taken."""
        return self.s2

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counters, (s2, s1): a single one if there is no attribute."""
        return (self.s2, self.s1) if self.families else (1, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def layout(self) -> tuple[object, ...]:
        """Equal for specs that hash alike."""
        return self.families, self.s1, self.s2

    @property
    def basis(self) -> str:
        """What an interval rests on: "theorem", or "measured" if a family is not 4-wise independent."""
        return "measured" if any(f.independence < 4 for f in self.families) else "theorem"

    def __str__(self) -> str:
        names = " x ".join(str(f) for f in self.families) or "total"
        return f"AGMS {self.s2} x {self.s1} {self.dtype} over {names}"

    def empty(self) -> AgmsSketch:
        """A new sketch of this spec."""
        return AgmsSketch(self)

    def add_batch(
        self, targets: Sequence[Counters], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        """See `SketchSpec.add_batch`.

        Time per tuple for 1,024 atomic sketches: about 200 ns of hashing (tabulation), 30 ns of adding where
        all weights are one, 30 ns for each binary digit of integer weights, 1 us for float weights.
        """
        if not self.families:
            for target, column in zip(targets, weights, strict=True):
                assert column is not None, "checked before"
                target += column.sum(dtype=target.dtype)
            return
        atoms = self.s1 * self.s2
        for start in range(0, len(columns[0]), BLOCK):
            block = slice(start, start + BLOCK)
            words = self._sign_words([column[block] for column in columns])
            for target, column in zip(targets, weights, strict=True):
                piece = None if column is None else column[block]
                target += signed_sums(words, piece)[:atoms].reshape(self.shape).astype(target.dtype)

    def _sign_words(self, columns: Sequence[Keys]) -> Values:
        """The product of the signs of all attributes, a set bit for -1."""
        atoms = self.s1 * self.s2
        words = self.families[0].sign_words(columns[0], atoms)
        for family, column in zip(self.families[1:], columns[1:], strict=True):
            words = words ^ family.sign_words(column, atoms)
        return words


class AgmsSketch(LinearSketch[AgmsSpec]):
    """A `LinearSketch` of s2 x s1 atomic sketches."""

    __slots__ = ()


def join_averages(sketches: Sequence[AgmsSketch], edges: Edges) -> NDArray[np.float64]:
    """Estimate an acyclic join aggregate, once in each group of s1 atomic sketches.

    Parameters
    ----------
    sketches : sequence of AgmsSketch
        Entry v is the sketch of vertex v. The same object may stand for several vertices (a self-join).
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v: a tree, see `join_tree.check_join`.

    Returns
    -------
    ndarray of float64, shape (s2,)
        Y_i of [1] section 3.1: the average of s1 products of one atomic sketch of each vertex. The estimate
        is the median; each average has the join as its mean and `moments.join_variance` / s1 as its variance.
    """
    check_join([s.spec for s in sketches], edges)
    product = np.ones(sketches[0].spec.shape)
    for sketch in sketches:
        product *= sketch.counters.astype(np.float64)
    return np.asarray(product.mean(axis=1), dtype=np.float64)


def signed_sums(words: Values, weights: Weights | None) -> NDArray[np.int64] | NDArray[np.float64]:
    """Sum of weight * sign for every bit position.

    Parameters
    ----------
    words : ndarray of uint64, shape (w, n)
        A set bit is the sign -1.
    weights : ndarray of int64 or float64, shape (n,), or None for all ones

    Returns
    -------
    ndarray of int64 (modulo 2^64) or float64, shape (64 * w,)
    """
    if weights is None:
        return np.subtract(words.shape[1], 2 * count_bits(words))
    if weights.dtype == np.float64:
        return _float_sums(words, weights.astype(np.float64, copy=False))
    total = np.zeros(WORD_BITS * len(words), dtype=np.int64)
    integers = weights.astype(np.int64, copy=False)
    magnitudes = np.abs(integers).view(np.uint64)
    for negative in (False, True):
        side = (integers < 0) if negative else (integers > 0)
        # One pass for each binary digit: counting bits is exact, and far quicker than multiplying them out.
        digits = int(magnitudes[side].max(initial=0)).bit_length()
        for digit in range(digits):
            chosen = words[:, side & ((magnitudes >> np.uint64(digit)) & np.uint64(1)).astype(bool)]
            part = (chosen.shape[1] - 2 * count_bits(chosen)) << digit
            total += -part if negative else part
    return total


def count_bits(words: Values) -> NDArray[np.int64]:
    """Number of set bits at each bit position.

    Parameters
    ----------
    words : ndarray of uint64, shape (w, n)

    Returns
    -------
    ndarray of int64, shape (64 * w,)
        Entry 64 * i + b counts the words in row i with bit b set.

    Notes
    -----
    Full adders on whole words: three words of one binary place become a sum word of that place and a carry
    word of the next, five operations for 64 counters. The few words left at each place are spread out into
    bytes.
    """
    total = np.zeros(WORD_BITS * len(words), dtype=np.int64)
    left = np.ascontiguousarray(words.T)  # one tuple after the other: thirds are contiguous
    place = 0
    while len(left):
        carries = []
        while len(left) > SPREAD:
            third = len(left) // 3
            a, b, c = left[:third], left[third : 2 * third], left[2 * third : 3 * third]
            half = a ^ b
            carries.append((a & b) | (half & c))
            left = np.concatenate([half ^ c, left[3 * third :]])
        total += _spread(left).sum(axis=0, dtype=np.int64).ravel() << place
        left = np.concatenate(carries) if carries else left[:0]
        place += 1
    return total


def _spread(words: Values) -> NDArray[np.uint8]:
    """The bits of every word as bytes, lowest first: a last axis of 64 more."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8).reshape(*words.shape, 8)
    return np.unpackbits(octets, axis=-1, bitorder="little")


def _float_sums(words: Values, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros(WORD_BITS * len(words))
    for start in range(0, len(weights), FLOAT_BLOCK):
        piece = weights[start : start + FLOAT_BLOCK]
        bits = _spread(words[:, start : start + FLOAT_BLOCK]).astype(np.float64)
        total += piece.sum() - 2 * np.einsum("wnb,n->wb", bits, piece).ravel()
    return total
