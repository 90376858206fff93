"""Keys of a join class found by either of two samples: one of keys, by their hash, and one of tuples, one by one.

A sample of keys meets a heavy key no sooner than a light one. A sample of tuples meets the heavy keys first; those that
it meets often enough are then evaluated as a whole, like those whose hash was drawn. How often a key would be met is
known exactly from its tuples, so the probability with which it is among the evaluated keys is known of each of them
(and grows with its tuples), and the Horvitz-Thompson estimate over their union is without bias. It also says what a key
that was not evaluated can weigh: more than some tuples, and it would almost surely have been met.

A sum has tuples that are heavy by their value x. A third frame draws these with probability |x| over a unit, at most 1,
and estimates what they add by themselves: of their keys nothing but the tuples of the other tables need be known. A
tuple of the unit or more is there with certainty, and one that was not drawn adds less than the unit times its
partners, whatever the largest |x| is. Keys with so many partners that the drawn tuples find them almost surely are left
to the other two frames, with all of their values.

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
from dataclasses import dataclass, replace
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
    """

    rate: float
    tuple_rates: tuple[float, ...]
    hits: int
    drawn: float
    draws: tuple[int, ...] = ()

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

    def probabilities(self, tuples: Ints) -> Floats:
        """The probability with which each of some keys is evaluated.

        Parameters
        ----------
        tuples : ndarray of int64, shape (tables, n)
            Of each key in each table; tables of one draw have the same.

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
        return self._evaluated(few.sum(axis=0))

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
        caps = list(most) if most else [math.inf] * len(self.tuple_rates)
        shared = list(self._shared.values())
        ends = [min(caps[i] for i in tables) for tables in shared]
        if any(not self.tuple_rates[t[0]] and math.isinf(end) for t, end in zip(shared, ends, strict=True)):
            return math.inf
        points, limit = POINTS[min(max(len(shared), 1), len(POINTS)) - 1], self.most_hits
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
        possible = expected <= limit
        found = product[possible] / np.maximum(self._evaluated(missed[possible]), np.finfo(float).tiny)
        return float(found.max(initial=0.0))

    def found_beside(self, tuples: Ints, table: int) -> npt.NDArray[np.bool_]:
        """Of some keys, by their tuples in each table, those that tuples drawn of the others than one find surely.

        Of these `most_hits` hits or more are expected there. What the values of `table` add at them is left to the
        evaluated keys; at any other key to the tuples that are drawn for their values.
        """
        draws = self.draws or tuple(range(len(self.tuple_rates)))
        others = {draws[t]: t for t in range(len(draws)) if t != table}
        expected = np.zeros(tuples.shape[1])
        for t in others.values():
            expected += self.tuple_rates[t] * tuples[t]
        return expected >= self.most_hits

    def largest_beside(self, table: int, most: Sequence[float] = ()) -> float:
        """The largest product of a key's tuples in the tables but one, of keys that are not `found_beside` it."""
        others = [t for t in range(len(self.tuple_rates)) if t != table]
        if not others:
            return 1.0
        draws = self.draws or tuple(range(len(self.tuple_rates)))
        # Of which no key is evaluated for less than certain: what is left is the product.
        beside = replace(
            self,
            rate=1.0,
            tuple_rates=tuple(self.tuple_rates[t] for t in others),
            draws=tuple(draws[t] for t in others),
        )
        return beside.largest_product([most[t] for t in others] if most else ())


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
