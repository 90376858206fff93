"""Variances, covariances and correlations of values that are sampled in clusters: all of a key's, or none.

Each is a ratio of totals over the keys, of squared distances from the mean (which the sample estimates) and of values,
and by the delta method [1]_ its error is that of one total over the keys: what a key's distances are more than their
average says of its number of values. That total has the gamma interval of a Poisson sample. Distances are taken from
what each key's own mean is: nothing cancels.

References
----------
.. [1] C.-E. Saerndal, B. Swensson, J. Wretman, "Model Assisted Survey Sampling", 1992, sections 5.5 and 5.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..intervals.gamma import Floats, ratio_interval
from ..intervals.interval import Estimate, note_useless

# Values of the deviations, as SQL calls them.
VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
COVARIANCES = ("covar_pop", "covar_samp", "corr")

# Fewer keys that move the estimate say nothing of its error.
FEW_KEYS = 8
# Where so few keys' worth of distances were met, the largest of them falling off more slowly than that (Hill's index of
# the largest ones), the keys that were not met may hold most of the rest: no sample of this size tells.
FEW_EFFECTIVE, HEAVY_TAIL, LARGEST, FEW_LARGEST = 60.0, 0.4, 20, 4

TOO_FEW = "too few keys were met to tell"
HEAVY = "few keys have most of the distances from the mean: others like them may be there"
LINEARISED = "the error is linearised: distances are taken from a mean that is estimated too"


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What each sampled key says of two columns of values, where neither is NULL.

    Parameters
    ----------
    counts : ndarray of float64, shape (n,)
        Of pairs of values.
    means : ndarray of float64, shape (2, n)
    squares : ndarray of float64, shape (3, n)
        Sums of products of the distances from the key's own means: of the first column with itself, of the second with
        itself, and of both.
    probabilities : ndarray of float64, shape (n,)
        With which each of them is in the sample.
    """

    counts: Floats
    means: Floats
    squares: Floats
    probabilities: Floats


def estimate_moment(function: str, moments: Moments, confidence: float) -> Estimate:
    """A variance, a standard deviation, a covariance or a correlation.

    Parameters
    ----------
    function : str
        Of `VARIANCES` and `COVARIANCES`.
    moments : Moments
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        Never certified: nothing bounds what a key adds that was not met. NaN without an end where the keys say nothing.
    """
    n, p = moments.counts, moments.probabilities
    unknown = Estimate(math.nan, -math.inf, math.inf, confidence, False, "measured", (TOO_FEW,))
    total = float(np.sum(n / p))
    if total == 0.0:
        return unknown
    average = np.array([np.sum(n * m / p) for m in moments.means]) / total
    away = moments.means - average[:, np.newaxis]
    products = np.array([away[0] ** 2, away[1] ** 2, away[0] * away[1]])
    distances = moments.squares + n * products
    mean_products = _of_means(n, away, p) / total**2
    spread = np.sum(distances / p, axis=1) / total + mean_products
    if function == "corr":
        return _correlation(distances, spread, n, p, total, confidence) or unknown
    which = 2 if function.startswith("covar") else 0
    more = 1.0
    if function.endswith("samp"):
        if total <= 1.0:
            return unknown
        more = total / (total - 1.0)
    found = _ratio(distances[which], float(spread[which]), n, p, total, confidence)
    if found is None:
        return unknown
    if is_heavy(np.abs(distances[which] / p)[p < 1.0]):
        root = math.sqrt if function.startswith("stddev") else float
        return replace(found, value=root(found.value * more), low=-math.inf, high=math.inf, notes=(HEAVY,))
    found = replace(found, value=found.value * more, low=found.low * more, high=found.high * more)
    if which == 0:
        found = replace(found, low=max(found.low, 0.0))
    if function.startswith("stddev"):
        found = replace(
            found, value=math.sqrt(found.value), low=math.sqrt(found.low), high=math.sqrt(found.high)
        )
    return note_useless(found)


def _of_means(n: Floats, away: Floats, p: Floats) -> Floats:
    """How far the estimated means are off, as products: by so much are distances from them too small."""
    drawn = n * n * (1.0 - p) / p**2
    return np.array(
        [np.sum(drawn * away[0] ** 2), np.sum(drawn * away[1] ** 2), np.sum(drawn * away[0] * away[1])]
    )


def _ratio(
    tops: Floats, ratio: float, n: Floats, p: Floats, total: float, confidence: float
) -> Estimate | None:
    """A ratio of distances to values with its interval; None where too few keys move it."""
    sampled = p < 1.0
    residuals = (tops - ratio * n)[sampled] / p[sampled]
    if np.count_nonzero(n[sampled]) < FEW_KEYS or not np.any(residuals):
        return None
    # Of a slowly falling tail the largest key that was not met is larger than the largest that was.
    beyond = float((1.0 / p[sampled]).max()) ** _tail(residuals)
    largest = beyond * float(residuals.max(initial=0.0)), float(-residuals.min(initial=0.0))
    low, high = ratio_interval(tops[sampled], n[sampled], p[sampled], ratio, total, largest, confidence)
    value = min(max(ratio, low), high)
    return Estimate(value, low, high, confidence, False, "measured", (LINEARISED,))


def is_heavy(weights: Floats, few: float = FEW_EFFECTIVE) -> bool:
    """Whether less than `few` keys' worth of keys have most of a total, and the largest of them fall off slowly."""
    squares = float(np.sum(weights**2))
    if not squares or float(np.sum(weights)) ** 2 >= few * squares:
        return False
    return _tail(weights) > HEAVY_TAIL


def _tail(values: Floats) -> float:
    """Hill's index of the largest positive values: the k-th of them falls off as k to the power of it, negative."""
    largest = np.sort(values[values > 0.0])[::-1]
    number = min(LARGEST, len(largest) // 4)
    return float(np.mean(np.log(largest[:number] / largest[number]))) if number >= FEW_LARGEST else 1.0


def _correlation(
    distances: Floats, spread: Floats, n: Floats, p: Floats, total: float, confidence: float
) -> Estimate | None:
    """The correlation: its error is that of the covariance less what the two variances explain of it."""
    scale = math.sqrt(spread[0] * spread[1])
    if not scale:
        return None
    value = min(max(float(spread[2] / scale), -1.0), 1.0)
    explained = value / 2 * (distances[0] / spread[0] + distances[1] / spread[1] - 2 * n)
    found = _ratio(distances[2] / scale - explained, value, n, p, total, confidence)
    if found is None:
        return None
    drawn = (distances / p)[:, p < 1.0]
    if is_heavy(drawn[0]) or is_heavy(drawn[1]):
        return replace(found, low=-1.0, high=1.0, notes=(HEAVY,))
    low, high = max(found.low, -1.0), min(found.high, 1.0)
    return replace(found, low=min(low, value), high=max(high, value))
