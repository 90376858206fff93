"""Quantiles of values that are sampled in clusters: all of a key's, or none.

The value is that of the weighted distribution of what was met. Its interval inverts a test [1]_: a value may be the
quantile as long as the total over the keys of "values below, less the asked share of all values" may be nothing by the
gamma interval of a Poisson sample of clusters. No density is estimated, and an end is open where values beyond all that
were met may be the quantile.

References
----------
.. [1] R. S. Woodruff, "Confidence intervals for medians and other position measures", JASA 47, 1952, pp. 635-646.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..intervals.gamma import Floats, difference_interval, poisson_sum
from ..intervals.interval import Estimate
from .cluster_moments import is_heavy

# Where few keys, of so many keys' worth, have most of the values and these are so much more alike within keys than
# between them, a key of the largest size may be missing.
FEW_EFFECTIVE, CLUSTERED = 100.0, 1.5
FEW_KEYS = 30

TOO_FEW = "too few keys were met to tell"


@dataclass(frozen=True, eq=False)
class ClusteredValues:
    """Values of the keys that a sample has met.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    owners : ndarray of int64, shape (n,)
        The number of each value's key.
    probabilities : ndarray of float64, shape (keys,)
        With which each key is in the sample.
    """

    values: Floats
    owners: npt.NDArray[np.int64]
    probabilities: Floats

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        return np.argsort(self.values, kind="stable")

    @cached_property
    def _sorted(self) -> Floats:
        return self.values[self._order]

    @cached_property
    def _counts(self) -> Floats:
        return np.bincount(self.owners, minlength=len(self.probabilities)).astype(np.float64)

    def quantile(self, share: float, confidence: float, *, discrete: bool = False) -> Estimate:
        """The value below which a share of all values is.

        Parameters
        ----------
        share : float
            In [0, 1].
        confidence : float
            In (0, 1).
        discrete : bool
            Whether it is one of the values, as of PERCENTILE_APPROX, or between two of them.

        Returns
        -------
        Estimate
            Never certified: nothing bounds how many values a key has that was not met. Open at the end where the
            quantile may lie beyond all values that were met; NaN where none was.
        """
        if not self.values.size:
            return Estimate(math.nan, -math.inf, math.inf, confidence, False, "measured", (TOO_FEW,))
        value = self._at(share, discrete=discrete)
        # The number of values in order at or before which it may be: 0 is before the first, and n behind the last.
        number = len(self._sorted)
        low = _first(number, lambda i: self._excess(i, share, confidence)[1] >= 0.0)
        high = _first(number, lambda i: self._excess(i, share, confidence)[0] > 0.0)
        ends = (
            -math.inf if low == 0 else float(self._sorted[low - 1]),
            math.inf if high > number else float(self._sorted[high - 1]) if high else value,
        )
        return Estimate(value, min(ends[0], value), max(ends[1], value), confidence, False, "measured")

    def _is_heavy(self, share: float) -> bool:
        """Whether there are few keys, or few have most of the values, and each has its own."""
        if share not in self._heavy:
            drawn = (self._counts / self.probabilities)[self.probabilities < 1.0]
            few = int(np.count_nonzero(drawn)) < FEW_KEYS
            self._heavy[share] = few or (
                is_heavy(drawn, FEW_EFFECTIVE) and self._clustering(share) > CLUSTERED
            )
        return self._heavy[share]

    @cached_property
    def _heavy(self) -> dict[float, bool]:
        return {}

    def _clustering(self, share: float) -> float:
        """How many times more the numbers below the quantile differ from key to key than if values were dealt out."""
        where = self._sorted[max(math.ceil(share * len(self._sorted)), 1) - 1]
        drawn = self.probabilities < 1.0
        below = np.bincount(self.owners[self.values <= where], minlength=len(self.probabilities))[drawn]
        counts = self._counts[drawn]
        known = below.sum() / counts.sum()
        dealt = known * (1.0 - known) * counts.sum()
        return float(np.sum((below - known * counts) ** 2)) / dealt if dealt else math.inf

    def _at(self, share: float, *, discrete: bool) -> float:
        weights = (1.0 / self.probabilities[self.owners])[self._order]
        total = np.cumsum(weights)
        if discrete:
            return float(self._sorted[min(int(np.searchsorted(total, share * total[-1])), len(total) - 1)])
        # As many values as the weights say stand for each: the place among them is interpolated as SQL does.
        places = total - (weights + 1.0) / 2.0
        return float(np.interp(share * (total[-1] - 1.0), places, self._sorted))

    def _excess(self, number: int, share: float, confidence: float) -> tuple[float, float]:
        """Between what lies the total of "values up to the n-th, less the share of all values"; equal ones together."""
        if number:
            number = int(np.searchsorted(self._sorted, self._sorted[number - 1], side="right"))
        below = np.bincount(self.owners[self._order[:number]], minlength=len(self.probabilities))
        residuals = below - share * self._counts
        sampled = self.probabilities < 1.0
        certain = float(np.sum(residuals[~sampled]))
        drawn, p = residuals[sampled], self.probabilities[sampled]
        up, down = np.maximum(drawn, 0.0), np.maximum(-drawn, 0.0)
        scaled = float((self._counts[sampled] / p).max(initial=0.0))
        most_up, most_down = (1.0 - share) * scaled, share * scaled
        if not self._is_heavy(share):
            # What moves the total most stands in for a key that was not met; else one of the largest size does.
            most_up = float((up / p).max(initial=0.0)) or most_up
            most_down = float((down / p).max(initial=0.0)) or most_down
        low, high = difference_interval(
            poisson_sum(up, p, most_up), poisson_sum(down, p, most_down), confidence
        )
        return certain + low, certain + high


def _first(number: int, holds: Callable[[int], bool]) -> int:
    """The first of 0 ... `number` of which something holds that stays true; one more where it holds of none."""
    low, high = 0, number + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
