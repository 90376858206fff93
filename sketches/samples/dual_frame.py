"""Keys of a join class found by either of two samples: one of keys, by their hash, and one of tuples, one by one.

A sample of keys meets a heavy key no sooner than a light one. A sample of tuples meets the heavy keys first; those that
it meets often enough are then evaluated as a whole, like those whose hash was drawn. How often a key would be met is
known exactly from its tuples, so the probability with which it is among the evaluated keys is known of each of them
(and grows with its tuples), and the Horvitz-Thompson estimate over their union is without bias. It also says what a key
that was not evaluated can weigh: more than some tuples, and it would almost surely have been met.

A sum has tuples that are heavy by their value x. A third frame draws tuples with probability |x| over a unit, at most
1: a key with one of them is evaluated as well. A tuple of the unit or more is there with certainty; and of a key that
was not evaluated the sum of |x| is bounded, whatever the largest |x| is.

References
----------
.. [1] H. O. Hartley, "Multiple frame surveys", Proceedings of the Social Statistics Section, ASA 1962; C. J. Skinner,
   J. N. K. Rao, "Estimation in dual frame surveys with complex designs", JASA 91, 1996.
.. [2] S. Ganguly, P. Gibbons, Y. Matias, A. Silberschatz, "Bifocal sampling for skew-resistant join size estimation",
   SIGMOD 1996: keys that are dense among sampled tuples.
.. [3] T. W. Anderson, S. M. Samuels, "Some inequalities among binomial and Poisson probabilities", 5th Berkeley
   Symposium, 1967: below its mean less one a binomial distribution function lies below that of the Poisson.
.. [4] N. Duffield, C. Lund, M. Thorup, "Priority sampling for estimation of arbitrary subset sums", JACM 54, 2007:
   probabilities proportional to values, certainty above a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# The chance that a key was not met although it has more tuples than any unmet key is taken to have.
OVERLOOKED = 1e-4

# Steps of the grid on which the largest weight is looked for, for each of one, two, three and more draws.
POINTS = (1024, 128, 36, 12)


@dataclass(frozen=True, slots=True)
class DualFrame:
    """How the keys of a join class are found.

    Attributes
    ----------
    rate : float
        Share of the keys that is evaluated for their hash, in [0, 1].
    tuple_rates : tuple of float
        For each table of the class the share of its tuples that is drawn, in [0, 1]; one draw may serve several tables,
        see `draws`.
    hits : int
        So many drawn tuples, of all draws together, have a key evaluated.
    drawn : float
        Tuples that were drawn in all.
    draws : tuple of int
        For each table the number of its draw: tables that are one table, joined with itself by one attribute, share it.
        Empty: each its own.
    valued : float
        Tuples that were drawn for their values in all.
    """

    rate: float
    tuple_rates: tuple[float, ...]
    hits: int
    drawn: float
    draws: tuple[int, ...] = ()
    valued: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0 or not all(0.0 <= r <= 1.0 for r in self.tuple_rates):
            raise ValueError(f"shares lie in [0, 1]: {self.rate}, {self.tuple_rates}")
        if self.hits < 1:
            raise ValueError(f"a key is evaluated after one hit or more, not {self.hits}")

    @property
    def _shared(self) -> dict[int, list[int]]:
        """The tables of each draw."""
        found: dict[int, list[int]] = {}
        for table, draw in enumerate(self.draws or range(len(self.tuple_rates))):
            found.setdefault(draw, []).append(table)
        return found

    def probabilities(self, tuples: Ints, unvalued: Floats | float = 0.0) -> Floats:
        """The probability with which each of some keys is evaluated.

        Parameters
        ----------
        tuples : ndarray of int64, shape (tables, n)
            Of each key in each table; tables of one draw have the same.
        unvalued : ndarray of float64, shape (n,), optional
            The logarithm of the chance that none of a key's tuples was drawn for its value.

        Notes
        -----
        O(tables * hits**2 * n). Exact up to rounding: the hits of a key are a sum of independent binomial variables.
        """
        shared = list(self._shared.values())
        few = np.zeros((self.hits, tuples.shape[1]))
        few[0] = 1.0
        for tables in shared[:-1]:
            few = _summed(few, _binomial(tuples[tables[0]], self.tuple_rates[tables[0]], self.hits))
        # Of the last draw it matters only whether there are enough with the others'.
        for tables in shared[-1:]:
            few = few * _fewer(_binomial(tuples[tables[0]], self.tuple_rates[tables[0]], self.hits))
        return self._evaluated(few.sum(axis=0) * np.exp(unvalued))

    def _evaluated(self, missed: Floats) -> Floats:
        """The probability of keys which the drawn tuples miss with these."""
        return 1.0 - (1.0 - self.rate) * np.clip(missed, 0.0, 1.0)

    @property
    def most_hits(self) -> float:
        """More hits than this are expected of no key that was not met `hits` times, but with chance `OVERLOOKED`.

        Keys of which `c` hits are expected are at most ``drawn / c``, and each is overlooked with the chance that a
        Poisson variable of mean `c` lies below `hits` [3]_.
        """
        return _most_hits(self.hits, max(self.drawn, 1.0))

    def largest_product(self, most: Sequence[float] = ()) -> float:
        """The largest product of a key's tuples over all tables, divided by its probability, of keys not evaluated.

        Parameters
        ----------
        most : sequence of float, optional
            For each table the most tuples that a key can have, where that is known.

        Returns
        -------
        float
            Infinite where a table has no draw and no bound; holds but for the chance `OVERLOOKED`.
        """
        return self._largest(most, self.most_hits)

    def largest_value(self, table: int, unit: float, most: Sequence[float] = ()) -> float:
        """The largest sum of |x| of a key's tuples in one table, times its tuples in each other, by its probability.

        Of keys that are not evaluated, and of the tuples of `table` that are drawn for their values with probability
        ``min(1, |x| / unit)``; they are drawn beside those that `tuple_rates` tells of.

        Notes
        -----
        A key of such a sum X is missed with probability ``exp(-X / unit)`` at most. If all draws together miss it with
        a chance of `d`, at least ``log(1 / d)`` hits were expected: there are at most as many such keys as there are
        hits over that, and `d` is the chance at which they are overlooked with `OVERLOOKED` in all. What is left grows
        with X: the largest is where the chance to be missed is `d`.
        """
        surely = self._surely
        others = [t for t in range(len(self.tuple_rates)) if t != table]
        draws = self.draws or tuple(range(len(self.tuple_rates)))
        frame = DualFrame(
            self.rate,
            tuple(self.tuple_rates[t] for t in others),
            self.hits,
            self.drawn,
            tuple(draws[t] for t in others),
        )
        limit = self._hits_missed_with(math.exp(-surely))
        return frame._largest([most[t] for t in others] if most else (), limit, unit, surely)

    @property
    def _surely(self) -> float:
        """The logarithm of `1 / d`, see `largest_value`."""
        hits = max(self.drawn + self.valued, 1.0)
        found = 1.0
        for _ in range(60):
            found = max(math.log(hits / (found * OVERLOOKED)), 1.0)
        return found

    def _hits_missed_with(self, chance: float) -> float:
        """The expected hits of a key that are fewer than `hits` with a chance."""
        return float(special.gammainccinv(self.hits, chance))

    def _largest(
        self, most: Sequence[float], limit: float, unit: float = 0.0, surely: float = math.inf
    ) -> float:
        """`largest_product` of keys of at most so many expected hits; with a unit that times sums of values."""
        caps = list(most) if most else [math.inf] * len(self.tuple_rates)
        shared = list(self._shared.values())
        ends = [min(caps[i] for i in tables) for tables in shared]
        if any(not self.tuple_rates[t[0]] and math.isinf(end) for t, end in zip(shared, ends, strict=True)):
            return math.inf
        points = POINTS[min(max(len(shared), 1), len(POINTS)) - 1]
        few = np.zeros((self.hits, 1))
        few[0] = 1.0
        product, expected, missed = np.ones(1), np.zeros(1), np.ones(1)
        for number, (tables, end) in enumerate(zip(shared, ends, strict=True), 1):
            rate = self.tuple_rates[tables[0]]
            least, greatest = _steps(min(end, limit / rate) if rate else end, points)
            own = _binomial(least, rate, self.hits)
            if number < len(shared):
                few = _summed(few[:, :, np.newaxis], own[:, np.newaxis]).reshape(self.hits, -1)
            else:
                missed = (few.T @ _fewer(own)).reshape(-1)
            product = np.multiply.outer(product, greatest.astype(np.float64) ** len(tables)).reshape(-1)
            expected = np.add.outer(expected, rate * least).reshape(-1)
        # Product and probability both grow with the tuples: in a cell one is at its far end, one at its near end.
        missed = np.clip(missed, 0.0, 1.0)
        if not unit:
            possible = expected <= limit
            found = product[possible] / np.maximum(self._evaluated(missed[possible]), np.finfo(float).tiny)
            return float(found.max(initial=0.0))
        with np.errstate(divide="ignore"):
            values = unit * (surely + np.log(missed))
        # Of sums that are missed with the least chance that any of the keys is.
        found = product * np.maximum(values, 0.0) / (1.0 - (1.0 - self.rate) * math.exp(-surely))
        return float(found.max(initial=0.0))


@lru_cache(maxsize=1024)
def _most_hits(hits: int, drawn: float) -> float:
    def overlooked(expected: float) -> float:
        return drawn / expected * float(special.gammaincc(hits, expected))

    low, high = float(hits), float(hits) + 1.0
    while overlooked(high) > OVERLOOKED:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if overlooked(middle) > OVERLOOKED else (low, middle)
    return high


def _steps(most: float, points: int) -> tuple[Ints, Ints]:
    """The whole numbers from 1 to `most` in about so many steps: the least and the greatest of each."""
    last = max(math.floor(most), 1)
    least = np.unique(np.geomspace(1, last + 1, points + 1).astype(np.int64)[:-1])
    return least, np.append(least[1:] - 1, last)


def _summed(few: Floats, own: Floats) -> Floats:
    """The chances of 0, 1, ... of the sum of two independent counts, by those of each; along the first axis."""
    return np.array([sum(few[i] * own[j - i] for i in range(j + 1)) for j in range(len(few))])


def _fewer(own: Floats) -> Floats:
    """By the chances of 0, 1, ...: those of at most so few that, with 0, 1, ... others, there are not enough."""
    return np.cumsum(own, axis=0)[::-1]


def _binomial(trials: Ints, rate: float, most: int) -> Floats:
    """The chance of 0, 1, ..., `most` - 1 successes: float64 (most, n)."""
    found = np.zeros((most, trials.size))
    if rate >= 1.0:
        for successes in range(most):
            found[successes] = trials == successes
        return found
    with np.errstate(under="ignore"):
        found[0] = np.exp(trials * math.log1p(-rate))
        for successes in range(1, most):
            found[successes] = found[successes - 1] * np.maximum(trials - successes + 1, 0) / successes
            found[successes] *= rate / (1.0 - rate)
    return found
