"""Predicted variance of the samples: key sample, two-level synopsis, sampled messages.

The variance of a sampled total is ``(1 - p) / p * sum(c**2)`` over the keys that are left to chance, c their
contributions, or what a regression on known totals leaves of them (`sample_regression`). The moments are sums
over the cells of the sampled class (`figures`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ...sketches.intervals.interval import median_interval
from ...sketches.samples.sample_regression import (
    LEAST_JOINED,
    LEAST_KEYS,
    MOST_LEVERAGE,
    MOST_REMAINING,
    MOST_SUBSETS,
)
from .figures import Contributions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SIMILAR = 0.05


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted answer and standard error of a candidate, and the largest unseen contribution over p.

    With `rows` the interval is one of order statistics of so many row estimates, else the gamma interval.
    """

    answer: float
    variance: float
    unseen: float = 0.0
    rows: int = 0

    @property
    def error(self) -> float:
        """Relative standard error; infinite where the answer is predicted to be 0 and is not certain."""
        if self.variance == 0.0:
            return 0.0
        return math.sqrt(self.variance) / self.answer if self.answer else math.inf

    def half_width(self, confidence: float) -> float:
        """Predicted half-width of the interval, relative to the answer."""
        if self.variance == 0.0:
            return 0.0
        if not self.answer:
            return math.inf
        if self.rows:
            return self.error * rows_width(self.rows, confidence)
        z = float(ndtri((1 + confidence) / 2))
        low = z * math.sqrt(self.variance)
        w = self.unseen if math.isfinite(self.unseen) else 0.0
        high = w + z * math.sqrt(self.variance + w * w)
        return (min(low, self.answer) + high) / 2 / self.answer


@lru_cache(maxsize=64)
def rows_width(rows: int, confidence: float, part: float = 0.5) -> float:
    """The half-width that a part of the intervals of so many normal rows has at the most, in their standard errors."""
    drawn = np.random.default_rng(20040401).standard_normal((1024, rows))
    found = [median_interval(own, confidence) for own in drawn]
    reach = [max(e.high - e.value, e.value - e.low) for e in found]
    return float(np.quantile(reach, part)) / float(np.median(drawn, axis=1).std())


def sample_variance(
    contributions: Contributions,
    certain: Bools,
    probabilities: Sequence[float],
    totals: Sequence[bool],
) -> tuple[float, float]:
    """Variance of the join estimated from samples of its tables.

    Parameters
    ----------
    contributions : Contributions
        Of the sampled class.
    certain : ndarray of bool, shape (tables, n)
        Which cells' keys each table counts whatever their hash.
    probabilities : sequence of float
        With which each table keeps any other key.
    totals : sequence of bool
        Whether the table's total over the keys that may be sampled is known and used as a control variate.

    Returns
    -------
    variance : float
    used : float
        Share of the variance without regression; 1 where there is none.
    """
    cells, tables = contributions.cells, len(probabilities)
    p = np.ones(cells.counts.size)
    for own, probability in zip(certain, probabilities, strict=True):
        p = np.minimum(p, np.where(own, 1.0, probability))
    plain = float((cells.counts * contributions.squares) @ ((1.0 - p) / p))
    least = min(probabilities)
    if plain == 0.0 or least == 1.0:
        return plain, 1.0
    left = ~certain.all(axis=0)
    joining = least * float(cells.counts[left] @ np.minimum(cells.weights[:, left].prod(axis=0), 1.0))
    if joining < LEAST_JOINED * tables:
        return plain, 1.0
    x = _controls(contributions, certain, totals, least)[:, left]
    n, c = cells.counts[left], contributions.means[left]
    squares = float(n @ contributions.squares[left])
    if not x.size:
        return plain, 1.0
    own = [s for s, known in zip(cells.squares[:, left], totals, strict=True) if known]
    slopes = _slopes(x, own, n, c, least)
    remaining = max(squares - 2.0 * float((n * c) @ (slopes @ x)) + _explained(slopes, x, own, n), 0.0)
    # Slopes are fitted on the sampled keys: about one observation is lost for each.
    remaining *= 1.0 + len(x) / joining
    fitted = remaining * (1.0 - least) / least
    return (fitted, fitted / plain) if fitted <= MOST_REMAINING * plain else (plain, 1.0)


def _slopes(x: Floats, own: Sequence[Floats], n: Floats, c: Floats, least: float) -> Floats:
    """Slopes as a typical sample fits them: without the keys that would decide them by themselves."""
    fitted = n.copy()
    while True:
        gram = (x * fitted) @ x.T
        gram[np.arange(len(own)), np.arange(len(own))] = [fitted @ s for s in own]
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        inverse = np.linalg.pinv(gram / scale / scale[:, np.newaxis], rcond=SIMILAR, hermitian=True)
        inverse = inverse / scale / scale[:, np.newaxis]
        leverages = ((inverse @ x) * x).sum(axis=0) / least * (fitted > 0)
        heavy = leverages > MOST_LEVERAGE / (1.0 - MOST_LEVERAGE)
        if not heavy.any():
            return np.asarray(inverse @ ((x * fitted) @ c))
        fitted[heavy] = 0.0


def _explained(slopes: Floats, x: Floats, own: Sequence[Floats], n: Floats) -> float:
    """Sum of the squared fitted values over all keys."""
    gram = (x * n) @ x.T
    gram[np.arange(len(own)), np.arange(len(own))] = [n @ s for s in own]
    return float(slopes @ gram @ slopes)


def _controls(contributions: Contributions, certain: Bools, totals: Sequence[bool], least: float) -> Floats:
    """Control variates of each cell: the tables' weights, and products that several dense tables know."""
    cells, tables = contributions.cells, len(certain)
    rows = [w for w, known in zip(cells.weights, totals, strict=True) if known]
    subsets = [list(s) for size in range(2, tables) for s in combinations(range(tables), size)]
    for subset in subsets[:MOST_SUBSETS]:
        known = certain[subset].all(axis=0) & ~certain.all(axis=0)
        part = np.where(known, cells.weights[subset].prod(axis=0), 0.0)
        if least * float(cells.counts @ (part != 0)) >= LEAST_KEYS:
            rows.append(part)
    return np.array(rows).reshape(len(rows), cells.counts.size)


def is_dense(contributions: Contributions, dense: Ints) -> Bools:
    """Which cells belong to the dense keys, shape (n,)."""
    cells = contributions.cells
    return np.asarray(cells.heavy & np.isin(cells.keys, dense))
