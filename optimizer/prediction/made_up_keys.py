"""The keys that a sample will take, made up from statistics: how many tuples each has, and what these add.

The interval of a sample is skewed, has room for what is unseen, and of a ratio for what cancels; a standard deviation
says little of it. So keys are drawn as statistics say that they are, with values among those that have been looked at,
and the estimators of the answer itself are asked for their interval: see `reported`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .figures import PerTuple

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Keys that are made up; each stands for as many as there are more.
MOST_KEYS = 2048

# A key of more tuples has a normal sum of values.
MANY = 24

# So many times the sum of squares that is known, the one of values that are not makes an interval four times as wide.
FAR = 16.0

# What so many of are expected is met at least once but with a chance of 5 %.
UNMET = 3.0

# So many of the heaviest keys that have been met tell how fast their number falls with their tuples.
TAIL = 16

# A single key that is sampled with this probability is there.
CERTAIN = 0.999


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """What the tuples of a vertex are taken to have for an expression.

    Attributes
    ----------
    seen : ndarray of float64, shape (n,)
        Of some tuples behind the filter, NaN for NULL; one at least.
    low, high : float
        Between which all are that are not NULL; infinite where nothing tells.
    reached : bool
        Whether some tuple has the least of them, and some the largest.
    """

    seen: Floats
    low: float = -math.inf
    high: float = math.inf
    reached: bool = False

    @property
    def tells(self) -> bool:
        """Whether a sum is known by the values that have been looked at, to a half of it."""
        return _tells(np.nan_to_num(self.seen))

    @property
    def tells_mean(self) -> bool:
        """The same of the mean of values that are not NULL."""
        return _tells(self.seen[~np.isnan(self.seen)])

    @property
    def unmet(self) -> Floats:
        """Values that some tuple has, though none that has been looked at."""
        known = np.nan_to_num(self.seen)
        ends = (self.low, self.high) if self.reached else ()
        return np.array([e for e in ends if not known.min() <= e <= known.max()], np.float64)

    @property
    def largest_mean(self) -> float:
        """The most that the mean of those that are not NULL is taken to be from 0; infinite where all are NULL."""
        known = self.seen[~np.isnan(self.seen)]
        if not known.size:
            return math.inf
        rare = 0.0 if self.is_spread else UNMET * max(-self.low, self.high)
        return abs(float(known.mean())) + 2.0 * float(known.std()) / math.sqrt(known.size) + rare / known.size

    @property
    def is_spread(self) -> bool:
        """Whether values that are too few to be met cannot make most of the sum of squares, if one bounds them."""
        largest, square = max(-self.low, self.high), float(np.mean(np.nan_to_num(self.seen) ** 2))
        return math.isinf(largest) or largest**2 <= FAR * square * self.seen.size

    def range(self, presence: bool) -> tuple[float, float]:
        """Between which lies what a tuple adds."""
        return (0.0, 1.0) if presence else (min(self.low, 0.0), max(self.high, 0.0))

    def added(self, tuples: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Sums over so many tuples each: of values, and of those that are not NULL."""
        known = ~np.isnan(self.seen)
        values = np.where(known, self.seen, 0.0)
        few = tuples <= MANY
        owner = np.repeat(np.arange(tuples.size), np.where(few, tuples, 0))
        chosen = rng.integers(0, values.size, owner.size)
        z, found = rng.standard_normal(tuples.size), []
        for each in (values, known.astype(np.float64)):
            sums = float(each.mean()) * tuples + float(each.std()) * np.sqrt(tuples) * z
            found.append(np.where(few, np.bincount(owner, each[chosen], tuples.size), sums))
        return found[0], found[1]


def _tells(known: Floats) -> bool:
    """Whether the mean of many values is known by these, to a half of it."""
    if known.size < 2:
        return bool(known.size)
    return bool(2.0 * known.std() <= abs(known.mean()) * math.sqrt(known.size))


def combined_mean(terms: Iterable[tuple[float, Sequence[Values]]]) -> tuple[float, float]:
    """The mean of a sum of products of values, each with a coefficient, and what it may be off by.

    As far as the values that were looked at tell; NULL adds nothing. Of far-spread ones few tell their own spread: four
    standard errors, as they have it.
    """
    mean = square = 0.0
    for coefficient, values in terms:
        known = [np.nan_to_num(v.seen) for v in values]
        means = [float(k.mean()) for k in known]
        mean += coefficient * math.prod(means)
        for n, own in enumerate(known):
            others = math.prod(m for k, m in enumerate(means) if k != n)
            square += (coefficient * others * float(own.std())) ** 2 / own.size
    return mean, 4.0 * math.sqrt(square)


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of a join class as cells, see `cells.KeyCells`, with what hangs from their tuples.

    Attributes
    ----------
    counts : ndarray of float64, shape (n,)
        How many keys a cell stands for.
    tuples, squares : ndarray of float64, shape (tables, n)
        Of a key in each table, and the mean of their square.
    messages : tuple of PerTuple
        What a tuple of each table receives from beyond the class.
    dense : ndarray of bool, shape (n,)
        Which cells are keys that are counted whatever their hash.
    beside : ndarray of float64, shape (tables, n)
        Tuples of a key in other groups: they add nothing, but count for whether it is sampled.
    """

    counts: Floats
    tuples: Floats
    squares: Floats
    messages: tuple[PerTuple, ...]
    dense: npt.NDArray[np.bool_]
    beside: Floats | float = 0.0

    @cached_property
    def present(self) -> Floats:
        """With which chance a key has a tuple in each table, shape (tables, n): 1 where it has one on average.

        Of fewer, pairs of tuples of one key tell that some have two: as many as the mean square says.
        """
        pairs = np.maximum(self.squares - self.tuples, 0.0) / 2.0
        least = self.tuples**2 / np.maximum(self.squares, np.finfo(float).tiny)
        few = np.clip(self.tuples - pairs, np.minimum(least, self.tuples), self.tuples)
        return np.where(self.tuples < 1.0, few, 1.0)

    @property
    def joining(self) -> Floats:
        """How many keys of each cell are expected to have a tuple in every table."""
        return np.asarray(self.counts * self.present.prod(axis=0))

    def sampled(
        self, chances: Callable[[Ints], Floats], rng: np.random.Generator, most: int = MOST_KEYS
    ) -> Sampled:
        """Some of the keys that are sampled with these chances, by their tuples in each table."""
        beside = np.broadcast_to(self.beside, self.tuples.shape)
        usual = np.maximum(np.rint(self.tuples + beside), 1).astype(np.int64)
        p = np.where(self.dense, 1.0, chances(usual))
        joining = self.joining
        certain = (p > CERTAIN) & (self.counts <= 1.0) & (joining > 0.0)
        expected = np.where(certain, 0.0, joining * p)
        times = max(1, math.ceil(float(expected.sum()) / most))
        drawn = rng.poisson(expected / times)
        # A key that may not be there at all is or is not.
        there = np.flatnonzero(certain & (rng.random(p.size) < joining))
        cells = np.concatenate([np.repeat(np.arange(p.size), drawn), there])
        present = np.maximum(self.present[:, cells], np.finfo(float).tiny)
        pairs = zip(self.tuples[:, cells] / present, self.squares[:, cells] / present, strict=True)
        tuples = np.array([_numbers(t, s, rng) for t, s in pairs]).reshape(len(self.tuples), -1)
        others = np.rint(beside[:, cells]).astype(np.int64)
        own = np.where(self.dense[cells], 1.0, chances(tuples + others))
        once = np.concatenate([np.full(cells.size - there.size, times), np.ones(there.size, np.int64)])
        return Sampled(tuples, np.maximum(own, np.finfo(float).tiny), once, self.dense[cells])

    def shares(self, table: int, groups: float) -> Keys:
        """The same with as many of a table's tuples as one of so many groups has."""
        if groups <= 1.0:
            return self
        tuples, squares = self.tuples.copy(), self.squares.copy()
        tuples[table] = self.tuples[table] / groups
        # Tuples are in a group independently: a binomial number of each key.
        squares[table] = (self.squares[table] - self.tuples[table]) / groups**2 + tuples[table]
        beside = self.beside + self.tuples - tuples
        return Keys(self.counts, tuples, squares, self.messages, self.dense, beside)


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Keys: their tuples in each table, the probability of each, how many are like it, and whether it is dense."""

    tuples: Ints
    probabilities: Floats
    times: Ints
    dense: npt.NDArray[np.bool_]


def received(tuples: Ints, each: PerTuple, rng: np.random.Generator) -> tuple[Ints, float]:
    """Of so many tuples those that receive something, and what each of them does, by the two moments of it."""
    if each.square <= 0.0 or not math.isfinite(each.square):
        return np.zeros_like(tuples), 0.0
    share = min(each.mean**2 / each.square, 1.0)
    return (tuples if share > 1.0 - 1e-9 else rng.binomial(tuples, share)), each.square / each.mean


def heaviest_of(keys: float, tuples: float, share: float = 1.0) -> float:
    """The most tuples of one of so many keys, if tuples fall on them at random; 1 where each may have its own.

    Of the share of the tuples that a filter keeps.
    """
    from scipy import stats

    if tuples <= 1.01 * keys or keys < 1.0:
        return 1.0
    return max(float(stats.poisson.isf(1.0 / (keys + 1.0), share * tuples / keys)), 1.0)


def heaviest_beyond(tuples: Floats, counts: Floats) -> float:
    """The most tuples of any of the keys for which some stand that have been met, each for so many of its like.

    What was met of a sample of the keys is not the heaviest of all: the number of keys falls geometrically from the
    `TAIL` heaviest on, at the rate that the mean of these tells. Keys that are met once each are taken to be unique.
    """
    most = float(tuples.max(initial=0.0))
    if tuples.size < TAIL:
        return most
    least = float(np.partition(tuples, -TAIL)[-TAIL])
    tail = tuples >= least
    excess = float((tuples[tail] - least).mean())
    alike = float(counts[tail].mean())
    return most + (math.log(alike) / math.log1p(1.0 / excess) if excess > 0.0 and alike > 1.0 else 0.0)


def _numbers(mean: Floats, square: Floats, rng: np.random.Generator) -> Ints:
    """Numbers of tuples, one at least, of these means and mean squares."""
    more = np.maximum(mean, 1.0) - 1.0
    variance = np.maximum(square - mean**2, 0.0)
    varies = (variance > 1e-6 * mean**2) & (more > 1e-3)
    shape = np.where(varies, more**2 / np.where(varies, variance, 1.0), 1.0)
    drawn = rng.gamma(shape, np.where(varies, more / shape, 1.0))
    return 1 + np.rint(np.where(varies, drawn, more)).astype(np.int64)
