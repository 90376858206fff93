"""Known totals as control variates of a sampled join.

Every table knows the exact total weight of its tuples. The sampled keys' share of that total tells whether
the sample is rich or poor, and a key's contribution to the join usually grows with its weights: regressing
the contributions on the weights and putting the known totals in place of their estimates removes all of the
error but that of the residuals. A foreign key that nearly always finds its partner, for one, is counted
almost exactly.

Of three tables or more, two that count a key exactly (each among its own dense keys) know their part of its
contribution whether or not the third has seen the key; the total of these parts is one more control variate.

References
----------
.. [1] C.-E. Sarndal, B. Swensson, J. Wretman, "Model Assisted Survey Sampling", 1992: the regression
estimator
   under Poisson sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..intervals.gamma import difference_interval, poisson_sum
from ..intervals.rounding import root_sum_square, unit_of
from ..ranking import rounded
from .known_keys import Bools, Floats, Ints, JoinTerms, KnownKeys

LEAST_JOINED = 10  # sampled keys that contribute, for each table
# Share of the variance that may remain. Since keys that would decide the slopes are left out of the fit, 0.6 errs less
# than 0.25 in 11 of 18 Zipf cells (z 0.25 to 1, two and three tables, 60 seeds), more in 2, and covers no less in 17.
MOST_REMAINING = 0.6
LEAST_DIFFERENCE = 0.05  # share of the largest eigenvalue that a direction needs
LEAST_KEYS = 5  # sampled keys that a part needs to be a control variate
MOST_SUBSETS = 16
MOST_LEVERAGE = 0.6  # a key that pulls harder decides the slopes by its own luck


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A join's total as a known part plus sampled residuals.

    Parameters
    ----------
    known : float
        Contribution of the certain keys plus the slopes times the known totals of all other keys.
    residuals : ndarray of float64, shape (m,)
        Contribution minus slopes times weights, of every sampled key, whether it joins or not.
    probability : float
        Probability with which each of these keys was sampled.
    leverages : ndarray of float64, shape (m,)
        How far each key pulled the fitted slopes its way, in [0, 1).
    slopes : tuple of float
        What one unit of weight in each table adds to the contribution.
    """

    known: float
    residuals: Floats
    probability: float
    leverages: Floats
    slopes: tuple[float, ...]

    @property
    def value(self) -> float:
        """The estimate of the total."""
        return self.known + float(self.residuals.sum()) / self.probability

    @property
    def squares(self) -> float:
        """Sum of the squared residuals of the sampled keys, each as if its key had not been fitted."""
        return self._length * self._length

    @property
    def deviation(self) -> float:
        """The standard deviation of the total, estimated by these squares."""
        return self._length * math.sqrt(1.0 - self.probability) / self.probability

    @property
    def _length(self) -> float:
        return root_sum_square(self.residuals / (1.0 - self.leverages))

    def interval(self, confidence: float, largest: float) -> tuple[float, float]:
        """Interval of the total.

        Parameters
        ----------
        confidence : float
            In (0, 1).
        largest : float
            Largest absolute contribution of an unsampled key, divided by the probability; 0 if not known.

        Notes
        -----
        A residual is divided by one minus its leverage, what it would be had its key not been fitted.
        Measured: with the largest sampled residual for the largest unseen one 90 % are covered, with the
        largest unseen *contribution* in its place, which a key without weight elsewhere can leave, 96 to 98
        %.
        """
        scaled = self.residuals / (1.0 - self.leverages)
        up, down = np.maximum(scaled, 0.0), np.maximum(-scaled, 0.0)
        above, below = (
            poisson_sum(part, self.probability, max(largest, float(part.max(initial=0.0)) / self.probability))
            for part in (up, down)
        )
        low, high = difference_interval(above, below, confidence)
        middle = above.value - below.value
        return self.value + low - middle, self.value + high - middle


def regress(tables: Sequence[KnownKeys], terms: JoinTerms) -> list[Regression] | None:
    """Regress the contributions on the tables' weights, for each column.

    Parameters
    ----------
    tables : sequence of KnownKeys
        With exact totals.
    terms : JoinTerms
        Their `join_terms`.

    Returns
    -------
    list of Regression or None
        None where it does not apply: totals unknown, fewer than ten sampled contributions for each table, or
        residuals that leave more than a quarter of the variance.

    Notes
    -----
    Least squares without intercept, as the variance of a Poisson sample is that of the raw residuals. The
    bias from fitting the slopes is of the order of one over the number of sampled keys. Only keys whose weights
    are known in all tables take part, those with a hash below the lowest threshold. O(m * controls**2) time.
    """
    probability = min(table.probability for table in tables)
    sampled = (terms.probabilities < 1.0) & terms.terms.any(axis=0)
    if np.count_nonzero(sampled) < LEAST_JOINED * len(tables):
        return None
    if any(np.isnan(t.totals).any() for t in tables):
        return None
    rest = _uncertain(tables, probability)
    contributions = np.zeros((len(terms.terms), rest.keys.size))
    _, at, rows = np.intersect1d(rest.keys, terms.keys, assume_unique=True, return_indices=True)
    contributions[:, at] = terms.terms[:, rows]
    if np.count_nonzero(contributions.any(axis=0)) < LEAST_JOINED * len(tables):
        return None
    found = []
    for column, c in enumerate(contributions):
        x, left = rest.controls(column)
        slopes, leverages = _fit(x, c)
        certain = float(terms.terms[column][terms.probabilities == 1.0].sum())
        known = certain + float(np.sum(slopes * left))
        residuals = c - np.sum(slopes[:, np.newaxis] * x, axis=0)
        found.append(Regression(known, residuals, probability, leverages, tuple(slopes.tolist())))
        if found[-1].deviation > math.sqrt(MOST_REMAINING) * terms.deviation(column):
            return None
    return found


def _fit(x: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Slopes and leverages; keys that would decide the slopes are left out of the fit and have leverage 0.

    Any slopes will do, so those that all processors compute alike are taken.
    """
    # Products of doubles may leave a DOUBLE where these do not.
    units, unit = np.array([unit_of(row) for row in x]), unit_of(c)
    slopes, leverages = _fit_alike(x / units[:, np.newaxis], c / unit)
    return slopes * (unit / units), leverages


def _fit_alike(x: Floats, c: Floats) -> tuple[Floats, Floats]:
    """`_fit` of values that have squares."""
    fitted: Bools = np.ones(c.size, bool)
    while True:
        inverse = _steady_inverse(x[:, fitted])
        leverages = rounded(np.einsum("ti,tu,ui->i", x, inverse, x)) * fitted
        heavy = leverages > MOST_LEVERAGE
        if not heavy.any():
            return rounded(inverse @ (x[:, fitted] @ c[fitted])), leverages
        fitted &= ~heavy


def _steady_inverse(x: Floats) -> Floats:
    """Inverse of ``x @ x.T`` without the directions in which the tables' weights hardly differ.

    Where two tables weigh nearly all sampled keys alike, a few odd keys would decide huge slopes of opposite
    signs, and other odd keys that were not sampled would pay for it.
    """
    norms = np.sqrt(np.sum(x * x, axis=1, keepdims=True))
    norms[norms == 0.0] = 1.0
    similarity = (x / norms) @ (x / norms).T
    inverse = np.linalg.pinv(similarity, rcond=LEAST_DIFFERENCE, hermitian=True)
    return np.asarray(inverse / norms / norms.T)


@dataclass(frozen=True, slots=True, eq=False)
class _Uncertain:
    """The keys that are not certain in all tables and have a hash below the lowest threshold.

    Parameters
    ----------
    keys : ndarray of int64, shape (m,), ascending
    weights : ndarray of float64, shape (columns, tables, m)
        Their weights in every table, all of them known.
    left : ndarray of float64, shape (columns, tables)
        Exact totals over all keys that are not certain in all tables.
    parts : ndarray of float64, shape (columns, subsets, m)
        For every subset of two tables or more (but not of all) the product of the weights where all of the subset
        are certain of the key, else 0.
    parts_left : ndarray of float64, shape (columns, subsets)
        Exact totals of these products over all keys that are not certain in all tables.
    """

    keys: Ints
    weights: Floats
    left: Floats
    parts: Floats
    parts_left: Floats

    def controls(self, column: int) -> tuple[Floats, Floats]:
        """Control variates of the keys, shape (controls, m), and their totals; parts without a key are left out."""
        used = np.count_nonzero(self.parts[column], axis=1) >= LEAST_KEYS
        x = np.concatenate([self.weights[column], self.parts[column][used]])
        return x, np.concatenate([self.left[column], self.parts_left[column][used]])


def _uncertain(tables: Sequence[KnownKeys], probability: float) -> _Uncertain:
    keys = np.unique(
        np.concatenate([table.keys[table.certain | (table.ranks < probability)] for table in tables])
    )
    columns = tables[0].weights.shape[0]
    weights = np.zeros((columns, len(tables), keys.size))
    certain: Bools = np.zeros((len(tables), keys.size), bool)
    low: Bools = np.zeros(keys.size, bool)
    for number, table in enumerate(tables):
        _, at, rows = np.intersect1d(keys, table.keys, assume_unique=True, return_indices=True)
        weights[:, number, at] = table.weights[:, rows]
        certain[number] = table.probability == 1.0
        certain[number, at] |= table.certain[rows]
        low[at] |= table.ranks[rows] < probability
    settled = certain.all(axis=0)
    totals = np.stack([table.totals for table in tables], axis=1)
    left = totals - weights[:, :, settled].sum(axis=2)
    chosen = low & ~settled
    subsets = [list(s) for size in range(2, len(tables)) for s in combinations(range(len(tables)), size)][
        :MOST_SUBSETS
    ]
    parts = np.zeros((columns, len(subsets), keys.size))
    for number, subset in enumerate(subsets):
        known = certain[subset].all(axis=0) & ~settled
        parts[:, number, known] = weights[:, subset][:, :, known].prod(axis=1)
    return _Uncertain(keys[chosen], weights[:, :, chosen], left, parts[:, :, chosen], parts.sum(axis=2))
