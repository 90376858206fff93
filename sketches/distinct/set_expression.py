"""How many distinct keys are in an expression of streams: unions, intersections, differences, nested.

A cell of the sketches of all the streams together holds no key, one, or more. The cells with one key are a
uniform random sample of the union of the streams, and of each of these keys it is known which streams have
it. Those that satisfy the expression are its *singleton witnesses*; their share times the size of the union
is the estimate.

References
----------
.. [1] S. Ganguly, M. Garofalakis, R. Rastogi, "Tracking Set-Expression Cardinalities over Continuous Update
   Streams", as summarised in S. Ganguly et al., "Join-Distinct Aggregate Estimation over Update Streams",
   PODS 2005, Section 2.2 and Theorem 2.1.

Notes
-----
Departs from [1]: witnesses are taken from all levels instead of one chosen level, which are 1.44 for each
bucket. With phi the share of the expression in the union, the relative standard error is about
sqrt((1 - phi) / (1.44 buckets phi) + 0.23 / buckets): it depends on the union, so a small intersection of
large streams is uncertain however the sketches are combined (Theorem 2.1 has the same ratio).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..intervals.interval import Estimate, exact
from ..joins.accumulate import distinct
from .count_signature import AMBIGUOUS, EMPTY, MULTIPLE, SINGLETON, Ints
from .level import Cells
from .occupancy import TERNARY_INFORMATION
from .witness import estimate_keys, estimate_share

Mask = NDArray[np.bool_]

SINGLES_PER_BUCKET = 1 / math.log(2)  # sum over halving rates of rate * exp(-rate)


class CellSketch(Protocol):
    """A sketch whose cells can be laid over those of another of the same spec."""

    @property
    def spec(self) -> object:
        """Sizes and hash functions; equal specs have the same cells."""

    @property
    def exact_keys(self) -> Ints | None:
        """All keys of the stream, if they are known."""

    def cells(self) -> Cells:
        """What each cell holds."""


class Expression(ABC):
    """A set of keys built from streams by ``|`` (union), ``&`` (intersection) and ``-`` (difference)."""

    __slots__ = ()

    def __or__(self, other: Expression) -> Union:
        return Union(self, other)

    def __and__(self, other: Expression) -> Intersection:
        return Intersection(self, other)

    def __sub__(self, other: Expression) -> Difference:
        return Difference(self, other)

    @abstractmethod
    def streams(self) -> frozenset[str]:
        """Names of the streams it mentions."""

    @abstractmethod
    def contains(self, member: Mapping[str, Mask]) -> Mask:
        """Which keys are in the set, given for each stream which of them it has; shapes (n,)."""

    @abstractmethod
    def most(self, sizes: Mapping[str, float]) -> float:
        """An upper bound on its size, given those of the streams."""


@dataclass(frozen=True, slots=True)
class Stream(Expression):
    """The keys of non-zero net weight of one stream."""

    name: str

    def streams(self) -> frozenset[str]:
        """See `Expression`."""
        return frozenset([self.name])

    def contains(self, member: Mapping[str, Mask]) -> Mask:
        """See `Expression`."""
        return member[self.name]

    def most(self, sizes: Mapping[str, float]) -> float:
        """See `Expression`."""
        return sizes[self.name]


@dataclass(frozen=True, slots=True)
class _Pair(Expression):
    left: Expression
    right: Expression

    def streams(self) -> frozenset[str]:
        """See `Expression`."""
        return self.left.streams() | self.right.streams()


class Union(_Pair):
    """Keys in either set."""

    __slots__ = ()

    def contains(self, member: Mapping[str, Mask]) -> Mask:
        """See `Expression`."""
        return self.left.contains(member) | self.right.contains(member)

    def most(self, sizes: Mapping[str, float]) -> float:
        """See `Expression`."""
        return self.left.most(sizes) + self.right.most(sizes)


class Intersection(_Pair):
    """Keys in both sets."""

    __slots__ = ()

    def contains(self, member: Mapping[str, Mask]) -> Mask:
        """See `Expression`."""
        return self.left.contains(member) & self.right.contains(member)

    def most(self, sizes: Mapping[str, float]) -> float:
        """See `Expression`."""
        return min(self.left.most(sizes), self.right.most(sizes))


class Difference(_Pair):
    """Keys in the left set and not in the right one."""

    __slots__ = ()

    def contains(self, member: Mapping[str, Mask]) -> Mask:
        """See `Expression`."""
        return self.left.contains(member) & ~self.right.contains(member)

    def most(self, sizes: Mapping[str, float]) -> float:
        """See `Expression`."""
        return self.left.most(sizes)


def estimate(
    expression: Expression, sketches: Mapping[str, CellSketch], confidence: float = 0.95
) -> Estimate:
    """Number of distinct keys in a set expression.

    Parameters
    ----------
    expression : Expression
        Built from `Stream` by ``|``, ``&`` and ``-``.
    sketches : mapping of str to LevelSketch, SparseLevelSketch or TwoLevelHashSketch
        One for each stream named, all of the same spec. Others are not looked at.
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        Exact if all keys are known or no two of them share a cell. Otherwise value and upper end are also
        held below what the sizes of the single streams allow (an intersection is not larger than its smaller
        side).

    Raises
    ------
    ValueError
        If a stream has no sketch, or two sketches differ in spec; both are named.

    Notes
    -----
    O(streams * cells).
    """
    names = sorted(expression.streams())
    _check(names, sketches)
    known = {name: keys for name in names if (keys := sketches[name].exact_keys) is not None}
    if len(known) == len(names):
        return _exactly(expression, known)
    cells = {name: sketches[name].cells() for name in names}
    union = overlay(list(cells.values()))
    single = union.kinds == SINGLETON
    # In a cell that holds one key over all streams, a stream has that key or nothing.
    member = {name: cell.kinds[single] != EMPTY for name, cell in cells.items()}
    hits = int(np.count_nonzero(expression.contains(member)))
    found = estimate_share(union.occupancy(), hits, int(np.count_nonzero(single)), confidence)
    if found.exact:
        return found
    alone = {
        name: exact(len(known[name])) if name in known else estimate_keys(cell.occupancy(), confidence)
        for name, cell in cells.items()
    }
    value = min(found.value, expression.most({name: e.value for name, e in alone.items()}))
    high = min(found.high, expression.most({name: e.high for name, e in alone.items()}))
    low = min(found.low, value)
    return Estimate(value, low, max(high, value), confidence, found.certified, found.basis, found.notes)


def _exactly(expression: Expression, keys: Mapping[str, Ints]) -> Estimate:
    everything = distinct(np.concatenate(list(keys.values())))
    member = {name: np.isin(everything, those) for name, those in keys.items()}
    return exact(int(np.count_nonzero(expression.contains(member))))


def buckets_for_share(share: float, relative_error: float, confidence: float = 0.95) -> int:
    """Buckets a level that a set expression needs, from its share of the union of its streams.

    Raises
    ------
    ValueError
        If an argument is not strictly between 0 and 1.
    """
    if not all(0.0 < x < 1.0 for x in (share, relative_error, confidence)):
        raise ValueError(f"share {share}, error {relative_error}, confidence {confidence}: all lie in (0, 1)")
    per_bucket = (1 - share) / (SINGLES_PER_BUCKET * share) + 1 / TERNARY_INFORMATION
    return max(16, math.ceil(per_bucket * (float(ndtri((1 + confidence) / 2)) / relative_error) ** 2))


def overlay(cells: list[Cells]) -> Cells:
    """The cells of the union of several streams' key sets, laid over each other.

    Parameters
    ----------
    cells : list of Cells
        Of equal shape, from sketches of one spec.

    Returns
    -------
    Cells
        A cell is EMPTY where all are, a SINGLETON where those that are not empty hold the same single key,
        AMBIGUOUS where nothing is known but that it is occupied, and MULTIPLE otherwise.

    Notes
    -----
    Not the sum of the sketches: a key of weight +1 in one stream and -1 in another is in the union.
    """
    kinds, keys = cells[0].kinds.copy(), cells[0].keys.copy()
    for cell in cells[1:]:
        both = (kinds != EMPTY) & (cell.kinds != EMPTY)
        fresh = (kinds == EMPTY) & (cell.kinds != EMPTY)
        same = both & (kinds == SINGLETON) & (cell.kinds == SINGLETON) & (keys == cell.keys)
        unclear = both & ((kinds == AMBIGUOUS) | (cell.kinds == AMBIGUOUS))
        unclear &= (kinds != MULTIPLE) & (cell.kinds != MULTIPLE)
        kinds[both & ~same] = MULTIPLE
        kinds[unclear] = AMBIGUOUS
        kinds[fresh], keys[fresh] = cell.kinds[fresh], cell.keys[fresh]
    keys[kinds != SINGLETON] = 0
    return Cells(kinds, keys, cells[0].throws)


def _check(names: list[str], sketches: Mapping[str, CellSketch]) -> None:
    for name in names:
        if name not in sketches:
            known = ", ".join(sorted(sketches)) or "none"
            raise ValueError(f"no sketch of the stream {name!r}; there are: {known}")
    first = sketches[names[0]].spec
    for name in names[1:]:
        if sketches[name].spec != first:
            raise ValueError(
                f"the streams {names[0]!r} and {name!r} have sketches of different specs: "
                f"{first} and {sketches[name].spec}"
            )
