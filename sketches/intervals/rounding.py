"""Sums in floating point: how far the order in which they are added may move them, and when they count as exact.

References
----------
.. [1] N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition 2002, section 4.2: n numbers added in
   any order err by at most (n - 1) u times the sum of their absolute values, u = eps / 2; so two orders are apart by at
   most n eps times it.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .interval import Estimate, exact

Floats = npt.NDArray[np.float64]

# A sum that its rounding moves by no more than this part of it is shown as exact: nine digits of it stand.
SHOWN = 1e-9
# Beyond, it is not the number of summands that rounding comes from.
LAST = 1e-6
CANCELS = "a sum of doubles that cancel out: the order in which they are added decides its digits"
MANY = "a sum of very many doubles: the order in which they are added decides its last digits"
OVERFLOWS = "a sum of doubles that leaves their range in some order of adding them"
# Roundings of a summand itself: the factors of a product, a coefficient, a unit.
OF_A_SUMMAND = 8


def slack_of(additions: float, mass: float) -> float:
    """How far rounding may have moved a sum of so many numbers, `mass` the sum of their absolute values [1]_."""
    return (additions + OF_A_SUMMAND) * sys.float_info.epsilon * mass if mass else 0.0


def rounded(value: float, slack: float) -> Estimate:
    """A sum in floating point as far as it is known: between `slack` less and more, for certain.

    It is for `shown` to call it exact; arithmetic on it goes on with its interval.
    """
    if not slack:
        return exact(value)
    if not math.isfinite(value):
        return overflown(1.0, "theorem")
    return Estimate(value, value - slack, value + slack, 1.0, True, "theorem", (_note(value, slack),))


def overflown(confidence: float, basis: str) -> Estimate:
    """What is known of a sum that leaves the range of doubles: nothing."""
    return Estimate(math.nan, -math.inf, math.inf, confidence, False, basis, (OVERFLOWS,))


def shown(estimate: Estimate) -> Estimate:
    """The estimate, exact where nothing but rounding moves it, and by less than `SHOWN` of it.

    An infinite estimate is none.
    """
    if math.isinf(estimate.value) and not estimate.exact:
        return overflown(estimate.confidence, estimate.basis)
    if not is_rounded(estimate):
        return estimate
    reach = max(estimate.high - estimate.value, estimate.value - estimate.low)
    others = tuple(n for n in estimate.notes if n not in (CANCELS, MANY))
    if reach <= SHOWN * abs(estimate.value):
        return replace(exact(estimate.value), notes=others)
    return replace(estimate, notes=(*others, _note(estimate.value, reach)))


def _note(value: float, slack: float) -> str:
    return MANY if slack <= LAST * abs(value) else CANCELS


def is_rounded(estimate: Estimate) -> bool:
    """Whether its interval is one of `rounded`, or of arithmetic on such: certain, for all that it has a width."""
    certain = estimate.basis == "theorem" and estimate.confidence == 1.0
    return certain and (CANCELS in estimate.notes or MANY in estimate.notes)


def widened(estimate: Estimate, slack: float) -> Estimate:
    """An estimate whose interval also holds what rounding may have moved it by."""
    if not slack or not math.isfinite(estimate.value) or slack <= SHOWN * abs(estimate.value):
        return estimate
    notes = tuple(dict.fromkeys((*estimate.notes, CANCELS)))
    return replace(estimate, low=estimate.low - slack, high=estimate.high + slack, notes=notes)


def unit_of(values: Floats) -> float:
    """A power of two of the magnitude of the largest value, 1 where all are 0: divided by it all have squares."""
    largest = float(np.abs(values).max(initial=0.0))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if 0.0 < largest < math.inf else 1.0


def root_sum_square(values: Floats, weights: Floats | float = 1.0) -> float:
    """The root of the weighted sum of the squares of values, of any magnitude that a DOUBLE has."""
    unit = unit_of(values)
    return unit * math.sqrt(max(float(np.sum((values / unit) ** 2 * weights)), 0.0))
