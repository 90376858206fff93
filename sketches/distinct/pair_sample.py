"""A sample of distinct values of one attribute, each with all its partners in another, under deletions.

A relation R(A, B) sampled by A: a hash puts every A on level j with probability 2^-(j+1); each level keeps
its (a, b) pairs in a table that gives them back while they are few. Reading from the rarest level down
yields the A with the smallest hash values, a uniform sample of the distinct A, with their complete sets of B.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005: the problem.
.. [2] P. B. Gibbons, "Distinct Sampling for Highly-Accurate Answers to Distinct Values Queries and Event
   Reports", VLDB 2001 (reference [10] of [1]): samples of distinct values by hash level.

Notes
-----
Departs from [1]: its JD sketches summarise the B of many A in one bucket and have to detect by chance that
two buckets share one. Knowing the B of few A exactly is ten times as accurate in less space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..hashing.xi import Family, as_keys, check_families, make_family
from ..joins.accumulate import absolute_mass
from .count_signature import CountSignatures, Ints
from .level import integer_weights
from .tuple_table import ROWS, TupleTable

HASH_BITS = 40
MAX_LEVELS = HASH_BITS + 1
WORDS_PER_PAIR_CELL = 4  # count, two key sums, print sum
BLOCK = 1 << 15
State = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class PairSampleSpec:
    """Size and hash functions of a sample of pairs.

    Parameters
    ----------
    family : Family
        Of the sampled attribute. Samples by the same attribute of two streams need the same one to be
        coordinated; samples by different attributes different ones.
    size : int
        Distinct values of the sampled attribute that are wanted, at least 2.
    capacity : int
        Pairs that the table of one level gives back. The sample reaches its size if about `size` values have
        fewer pairs than that; with less room it is smaller.
    levels : int
        2 to 41. Serves up to about size * 2**levels distinct values.
    """

    family: Family = field(default_factory=make_family)
    size: int = 64
    capacity: int = 1024
    levels: int = 32

    def __post_init__(self) -> None:
        check_families("PairSampleSpec", self.family)
        if self.size < 2:
            raise ValueError(f"a pair sample has at least two values, not {self.size}")
        if self.capacity < 1:
            raise ValueError(f"a level has room for at least one pair, not {self.capacity}")
        if not 2 <= self.levels <= MAX_LEVELS:
            raise ValueError(f"a pair sample has 2 to {MAX_LEVELS} levels, not {self.levels}")

    @classmethod
    def for_error(
        cls,
        relative_error: float,
        confidence: float = 0.95,
        squared_variation: float = 1.0,
        partners: float = 10.0,
        family: Family | None = None,
    ) -> PairSampleSpec:
        """The smallest sample whose relative error is predicted to stay below the target.

        Parameters
        ----------
        relative_error, confidence : float
            Each in (0, 1).
        squared_variation : float
            What the error depends on, error^2 = squared_variation / size: for pairs without the join key the
            sum over both sides of the squared coefficient of variation of the number of join partners; with
            the join key 1 plus that of the number of joined tuples of each key.
        partners : float
            Mean number of partners of a sampled value; the levels get room for twice the sample.
        family : Family, optional
        """
        from scipy.special import ndtri  # slow to import, and seldom needed

        if not (0.0 < relative_error < 1.0 and 0.0 < confidence < 1.0):
            raise ValueError(f"error {relative_error} and confidence {confidence} must lie between 0 and 1")
        quantile = float(ndtri((1 + confidence) / 2))
        size = max(2, math.ceil(squared_variation * (quantile / relative_error) ** 2))
        return cls(family or make_family(), size, max(1, math.ceil(2 * size * partners)))

    @property
    def table(self) -> TupleTable:
        """Layout of the table of each level."""
        return TupleTable(self.family.derive("pairs"), self.capacity)

    @property
    def most_bytes(self) -> int:
        """Bytes of the tables of all levels, which few relations need."""
        return 8 * WORDS_PER_PAIR_CELL * ROWS * self.table.row_cells * self.levels

    def hashes(self, values: Ints) -> Ints:
        """What decides about each value, in [0, 2**40): the smallest are sampled."""
        hashes: Ints = self.family.values(values, 1, HASH_BITS)[0].view(np.int64)
        return hashes

    def levels_of(self, hashes: Ints) -> Ints:
        """Level of each hash: j where 2^-(j+1) <= hash / 2^40 < 2^-j; the last level has all the rest."""
        # frexp's exponent of an integer below 2^53 is its length in bits.
        lengths = np.frexp(hashes.astype(np.float64))[1].astype(np.int64)
        return np.minimum(HASH_BITS - lengths, np.int64(self.levels - 1))

    def __str__(self) -> str:
        return (
            f"sample of {self.size} values with up to {self.capacity} pairs a level, {self.levels} levels, "
            f"{self.family}"
        )


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sample that has been read.

    Parameters
    ----------
    values : ndarray of int64, shape (k,)
        Distinct values of the sampled attribute, by ascending hash: all whose hash is below `bound`.
    bound : int
        Hashes lie in [0, 2**40); `bound` = 2**40 if nothing is missing.
    owners : ndarray of int64, shape (n,)
        For each pair the position of its value in `values`, ascending.
    partners : ndarray of int64, shape (n,)
        The other attribute of each pair.
    hashes : ndarray of int64, shape (k,)
        Hash of each value.
    """

    values: Ints
    bound: int
    owners: Ints
    partners: Ints
    hashes: Ints

    @property
    def complete(self) -> bool:
        """Whether every value of the stream is here."""
        return self.bound == 1 << HASH_BITS

    @property
    def probability(self) -> float:
        """Share of the hash values below `bound`."""
        return self.bound / (1 << HASH_BITS)

    def degrees(self) -> Ints:
        """Number of partners of each value, shape (k,)."""
        return np.bincount(self.owners, minlength=len(self.values)).astype(np.int64)

    def smallest(self, size: int) -> Drawn:
        """The `size` values of smallest hash, bounded by the next one; all if there are no more.

        Given all other values, a value is among these with probability `bound` / 2^40, so sums over them
        divided by that are unbiased; the level at which reading stopped is no such bound.
        """
        return self.below(int(self.hashes[size])) if len(self.values) > size else self

    def below(self, bound: int) -> Drawn:
        """The part of the sample with hashes below a smaller bound."""
        if bound >= self.bound:
            return self
        k = int(np.searchsorted(self.hashes, bound))
        n = int(np.searchsorted(self.owners, k))
        return Drawn(self.values[:k], bound, self.owners[:n], self.partners[:n], self.hashes[:k])


class PairSample:
    """Linear sketch of a relation of pairs from which a sample of distinct values can be read.

    Parameters
    ----------
    spec : PairSampleSpec

    Notes
    -----
    Linear: after any insertions and deletions `state` is bit for bit that of the net relation. Levels are
    allocated when the first pair reaches them. About 190 ns a pair.
    """

    def __init__(self, spec: PairSampleSpec | None = None) -> None:
        self.spec = spec or PairSampleSpec()
        self._levels: dict[int, CountSignatures] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the tables allocated so far."""
        return sum(table.nbytes for table in self._levels.values())

    def update(self, values: ArrayLike, partners: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of pairs, in place.

        Parameters
        ----------
        values, partners : array of int64, shape (n,)
            The attribute to sample by, and the other one.
        weights : array of int64, shape (n,), optional
            Multiplicities, negative for deletions, in any order; 1 by default.

        Raises
        ------
        ValueError
            If the arrays are not int64 or differ in length.
        OverflowError
            If a counter could leave int64. Nothing has been added then.
        """
        first, second = as_keys(values), as_keys(partners)
        if len(first) != len(second):
            raise ValueError(f"pairs need as many partners as values: {len(second)} and {len(first)}")
        signs = integer_weights(weights, len(first))
        mass = absolute_mass(signs, len(first))
        # The last one stands for levels that this batch reaches first.
        for table in [*self._levels.values(), CountSignatures.zeros(1)]:
            table.reserve(mass)
        layout = self.spec.table
        for start in range(0, len(first), BLOCK):
            block = slice(start, start + BLOCK)
            levels = self.spec.levels_of(self.spec.hashes(first[block]))
            order = np.argsort(levels, kind="stable")
            ends = np.cumsum(np.bincount(levels, minlength=self.spec.levels))
            for level in np.unique(levels):
                at = order[ends[level - 1] if level else 0 : ends[level]]
                columns = [first[block][at], second[block][at]]
                layout.add(self._table(int(level), mass), columns, signs[block][at])

    def merge(self, other: PairSample) -> None:
        """Add the other's relation, in place; ValueError naming both if the specs differ; OverflowError."""
        self._combine(other, +1)

    def subtract(self, other: PairSample) -> None:
        """Take the other's relation out, in place; errors as in `merge`."""
        self._combine(other, -1)

    def copy(self) -> PairSample:
        """An independent copy."""
        twin = PairSample(self.spec)
        twin._levels = {level: table.copy() for level, table in self._levels.items()}
        return twin

    def draw(self) -> Drawn:
        """Read the sample.

        Returns
        -------
        Drawn
            All values of the highest levels that together hold more than `size`; fewer if the next level has
            more pairs than can be read; all values if there are no more.

        Notes
        -----
        Given how many values each level holds, those read are a uniform sample. How many are read depends on
        their partners only where a table overflows.
        """
        pairs = np.zeros((2, 0), np.int64)
        bound = 1 << HASH_BITS
        for level in sorted(self._levels, reverse=True):
            found = self.spec.table.recover(self._levels[level])
            if found is None:
                # Hashes below the range of this level are on higher ones, all of which have been read.
                bound = 1 << (HASH_BITS - 1 - level) if level < self.spec.levels - 1 else 0
                break
            pairs = np.concatenate([pairs, np.stack(found[0])], axis=1)
            if level > min(self._levels) and len(np.unique(pairs[0])) > self.spec.size:
                bound = 1 << (HASH_BITS - level)
                break
        return arrange(pairs, self.spec.hashes(pairs[0]), bound)

    def __repr__(self) -> str:
        return f"PairSample({self.spec}, {self.nbytes:,} bytes)"

    def state(self) -> State:
        """The tables of the levels that hold anything, by ``level/array``; with `spec` the whole sketch."""
        return {
            f"{level}/{name}": array
            for level, table in sorted(self._levels.items())
            if table.occupied().any()
            for name, array in table.copy().arrays().items()
        }

    @classmethod
    def from_state(cls, spec: PairSampleSpec, state: Mapping[str, NDArray[np.generic]]) -> PairSample:
        """The sketch whose `state` this is; ValueError if the arrays do not fit `spec`."""
        sample = cls(spec)
        parts: dict[int, dict[str, NDArray[np.generic]]] = {}
        for key, array in state.items():
            level, _, name = key.partition("/")
            if not level.isdecimal() or not int(level) < spec.levels:
                raise ValueError(f"the state of a pair sample has no array {key!r} with {spec.levels} levels")
            parts.setdefault(int(level), {})[name] = array
        cells = len(spec.table.zeros().counts)
        for number, arrays in parts.items():
            sample._levels[number] = CountSignatures.from_arrays(arrays, cells, columns=2)
        return sample

    def _table(self, level: int, mass: int) -> CountSignatures:
        """The table of a level, with room for `mass` reserved if it is new."""
        if level not in self._levels:
            self._levels[level] = self.spec.table.zeros()
            self._levels[level].reserve(mass)
        return self._levels[level]

    def _combine(self, other: PairSample, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine a {self.spec} with a {other.spec}")
        for level, table in other._levels.items():
            if level in self._levels:
                self._levels[level].reserve(table.bound)
        for level, table in other._levels.items():
            self._table(level, table.bound).combine(table, sign)


def arrange(pairs: Ints, hashes: Ints, bound: int) -> Drawn:
    """Distinct pairs, int64 of shape (2, n), by ascending hash of their value, shape (n,)."""
    order = np.lexsort((pairs[1], pairs[0], hashes))
    values, partners, hashes = pairs[0][order], pairs[1][order], hashes[order]
    fresh = np.ones(len(values), bool)
    fresh[1:] = values[1:] != values[:-1]
    return Drawn(values[fresh], bound, np.cumsum(fresh) - 1, partners, hashes[fresh])
