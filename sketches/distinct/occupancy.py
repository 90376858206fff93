"""How many distinct keys are there? Maximum likelihood from how full the levels of a hash table are.

Level j receives each key with probability p_j (halving from level to level) and throws it into one of its
buckets. With n keys a bucket of level j holds about Poisson(n p_j / buckets) of them. Every level is used:
the full ones and the empty ones say little, the few between carry the information.

Notes
-----
Two observations are supported. *Occupied or not* has Fisher information pi^2 / (6 ln 2) per bucket about log
n: relative standard error 0.649 / sqrt(buckets). *None, one or more* (a count signature tells a single key
from a mixture) has 4.367 per bucket: 0.479 / sqrt(buckets) from as many buckets.

The likelihood is that of independent Poisson buckets. Given n keys, buckets compete for them, and the
variance of the estimate is smaller by that of a Poisson number of keys: 1/J - 1/n instead of 1/J in relative
terms, J the information about log n. At a few keys for each bucket that is most of it, so the interval's
deviance is scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINARY_INFORMATION = math.pi**2 / (6 * math.log(2))
TERNARY_INFORMATION = 4.366764910274407  # integral over all levels, by quadrature; a test recomputes it
_PARTS = 64  # into which an interval is cut at once
_NEAR = 1e-14  # of a logarithm: as near as doubles tell it
_SMALL = 1e-5
_LARGE = 500.0  # keys a bucket: all probabilities but that of "more" are zero in float64


def level_probabilities(levels: int) -> Floats:
    """Chance of a key to fall on each level: halves, the last two equal, summing to one; shape (levels,)."""
    exponents = np.minimum(np.arange(1, levels + 1), levels - 1) if levels > 1 else np.zeros(1)
    return np.exp2(-exponents.astype(np.float64))


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What was seen in the buckets of each level.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (levels,)
        Chance of a key to fall on each level.
    empty, single, multiple, occupied : ndarray of int64, shape (levels,)
        Buckets that hold no key, exactly one, at least two, and at least one (nothing more being known).
        Their sum is the number of buckets, the same on each level.
    throws : int
        Times each key is thrown, by functions of their own, into the buckets of all levels; as many as there
        are buckets where each bucket belongs to another copy of a sketch.
    """

    probabilities: Floats
    empty: NDArray[np.int64]
    single: NDArray[np.int64]
    multiple: NDArray[np.int64]
    occupied: NDArray[np.int64]
    throws: int = 1

    @property
    def buckets(self) -> int:
        """Buckets of one level."""
        return int(self.empty[0] + self.single[0] + self.multiple[0] + self.occupied[0])

    @property
    def certain(self) -> int:
        """Keys that must be there: one for each occupied bucket, two for each mixture."""
        seen = int(self.single.sum() + 2 * self.multiple.sum() + self.occupied.sum())
        return -(-seen // self.throws)

    @property
    def exact(self) -> bool:
        """Whether every key was seen by itself, so that `certain` is the number of keys."""
        return not (self.multiple.any() or self.occupied.any())

    @property
    def saturated(self) -> bool:
        """Whether nothing bounds the number of keys from above."""
        return not (self.empty.any() or self.single.any())

    def blurred(self) -> Occupancy:
        """The same, with single keys and mixtures no longer told apart."""
        zero = np.zeros_like(self.single)
        seen = self.single + self.multiple + self.occupied
        return Occupancy(self.probabilities, self.empty, zero, zero, seen, self.throws)

    def maximum_likelihood(self) -> float:
        """The most likely number of keys; infinite if `saturated`.

        Notes
        -----
        The score in log n is a sum of decreasing functions, so its zero is unique and bisection finds it.
        """
        if self.exact:
            return float(self.certain)
        if self.saturated:
            return math.inf
        last = _last(
            lambda log: self._scores(np.exp(log)) > 0, math.log(self.certain) - 1.0, self._log_most()
        )
        return max(math.exp(last), float(self.certain))

    def log_likelihood(self, keys: float) -> float:
        """Logarithm of the probability of what was seen, up to a constant; O(levels)."""
        return float(self._log_likelihoods(np.array([keys]))[0])

    def _log_likelihoods(self, keys: Floats) -> Floats:
        rate = np.clip(self._rates(keys[:, np.newaxis]), 1e-300, None)
        terms = -self.empty * rate
        if self.single.any():
            terms += self.single * (np.log(rate) - rate)
        if self.multiple.any():
            terms += self.multiple * _log_mixture(rate)
        if self.occupied.any():
            terms += self.occupied * np.log(-np.expm1(-rate))
        return np.asarray(terms.sum(axis=1))

    def information(self, keys: float) -> float:
        """Fisher information about the logarithm of the number of keys, if there are `keys`."""
        rate = np.clip(self._rates(keys), 1e-300, _LARGE)
        binary = rate * rate / np.expm1(rate)
        ternary = np.exp(-rate) * (rate * rate + rate * (1 - rate) ** 2 + rate * rate * _excess_mixture(rate))
        told_apart = not self.occupied.any()
        return float(self.buckets * (ternary if told_apart else binary).sum())

    def interval(self, confidence: float) -> tuple[float, float]:
        """Where the number of keys lies, by profile likelihood, rounded outwards to whole numbers.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        low, high : float
            Never below `certain`; of zero width if `exact`; `high` is infinite if `saturated`.
        """
        from scipy.special import ndtri  # slow to import, and seldom needed

        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie strictly between 0 and 1, not {confidence}")
        if self.exact:
            return float(self.certain), float(self.certain)
        quantile = float(ndtri((1 + confidence) / 2))
        if self.saturated:
            return max(float(self.certain), self._fewest(-math.log((1 - confidence) / 2))), math.inf
        best = self.maximum_likelihood()
        # A fixed number of keys varies less than the Poisson number that the likelihood imagines.
        share = max(1.0 - self.information(best) / (best * self.throws), 0.0)
        drop = quantile * quantile / 2 * share
        low = self._crossing(best, drop, -1)
        high = self._crossing(best, drop, +1)
        return max(math.floor(low), float(self.certain)), float(math.ceil(high))

    def _rates(self, keys: float | Floats) -> Floats:
        return keys * self.throws / self.buckets * self.probabilities

    def _log_most(self) -> float:
        """Logarithm of more keys than any sketch of this size can tell from full."""
        return math.log(self.buckets / (self.throws * float(self.probabilities.min()))) + 10.0

    def _scores(self, keys: Floats) -> Floats:
        rate = np.clip(self._rates(keys[:, np.newaxis]), 1e-300, None)
        bounded = np.minimum(rate, _LARGE)
        terms = -self.empty * rate + self.single * (1 - rate)
        if self.multiple.any():
            terms += self.multiple * _excess_mixture(bounded)
        if self.occupied.any():
            terms += self.occupied * (bounded / np.expm1(bounded))
        return np.asarray(terms.sum(axis=1))

    def _crossing(self, best: float, drop: float, direction: int) -> float:
        """Where the log-likelihood has fallen by `drop` from its maximum, below or above it."""
        target = self.log_likelihood(best) - drop
        near, far = math.log(best), math.log(best) + direction * 0.01
        while self.log_likelihood(math.exp(far)) > target and abs(far - near) < 60:
            far += 2 * (far - near)
        return math.exp(_last(lambda log: self._log_likelihoods(np.exp(log)) > target, near, far))

    def _fewest(self, drop: float) -> float:
        """The number of keys that fills everything with probability exp(-drop), given that all is full."""
        return math.exp(_last(lambda log: self._log_likelihoods(np.exp(log)) < -drop, 0.0, self._log_most()))


def _last(holds: Callable[[Floats], NDArray[np.bool_]], near: float, far: float) -> float:
    """The end of what holds from `near` on and no more at `far`, which may lie below: cut into many parts at once."""
    while abs(far - near) > _NEAR * max(abs(near), abs(far), 1.0):
        cuts = np.linspace(near, far, _PARTS + 1)
        held = holds(cuts[1:-1])
        number = _PARTS - 1 if held.all() else int(np.argmin(held))
        if (cuts[number], cuts[number + 1]) == (near, far):
            break
        near, far = float(cuts[number]), float(cuts[number + 1])
    return near


def _excess_mixture(rate: Floats) -> Floats:
    """rate^2 / (exp(rate) - 1 - rate): the score of a bucket known to hold two keys or more."""
    above = np.maximum(rate, _SMALL)
    return np.where(rate < _SMALL, 2 - 2 * rate / 3, above * above / (np.expm1(above) - above))


def _log_mixture(rate: Floats) -> Floats:
    """log(1 - exp(-rate) (1 + rate)): the chance of two keys or more."""
    above = np.maximum(rate, _SMALL)
    small = 2 * np.log(rate) - math.log(2) - 2 * rate / 3
    return np.where(rate < _SMALL, small, np.log(-np.expm1(-above) - above * np.exp(-above)))
