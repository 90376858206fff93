"""Predicted error of distinct counts, from figures alone: level sketches, set expressions, samples of pairs.

Each prediction has the relative standard error of the estimate and the half-width that its interval will have, the
larger side, at a confidence. Where the exact map holds everything both are 0.

Notes
-----
The errors are those of the estimators in `sketches.distinct`: `occupancy`, `set_expression`, `join_distinct`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.occupancy import TERNARY_INFORMATION, Occupancy, level_probabilities
from .variance import Predicted

Floats = npt.NDArray[np.float64]

LEVEL_ENTRY_BYTES = 16  # of an exact map: key and weight
# Values, and the tuples that a filter or a join leaves, are known to about so much: what fits by less may not fit.
MAP_RESERVE, TUPLES_RESERVE = 1.15, 1.05
SINGLES_PER_BUCKET = 1 / math.log(2)


@dataclass(frozen=True, slots=True)
class DistinctError:
    """What is predicted of one COUNT(DISTINCT).

    Parameters
    ----------
    value : float
        The count.
    error : float
        Relative standard error; infinite where nothing could be told.
    width : float
        Half-width of the interval over the value, the larger side, at the confidence asked.
    nbytes : float
        Of its synopses.
    certified : bool
        Whether the interval will be certified.
    entries : float
        Of the exact maps that its synopses are, or begin as.
    """

    value: float
    error: float
    width: float
    nbytes: float
    certified: bool = True
    entries: float = 0.0

    @property
    def predicted(self) -> Predicted:
        """As other candidates have it."""
        return Predicted(self.value, (self.error * self.value) ** 2)


def quantile(confidence: float) -> float:
    """Of the standard normal distribution, two-sided."""
    return float(ndtri((1 + confidence) / 2))


def surely(values: float, tuples: float) -> float:
    """The most distinct values that at most so many tuples may have, of which so many are expected."""
    return min(MAP_RESERVE * values, max(tuples, values))


def level_error(
    values: float, spec: LevelSpec, sparse: bool, confidence: float, tuples: float = math.inf
) -> DistinctError:
    """A level sketch of so many distinct values, of so many tuples."""
    dense = 8.0 * spec.words
    if sparse and LEVEL_ENTRY_BYTES * surely(values, tuples) <= dense:
        return DistinctError(values, 0.0, 0.0, LEVEL_ENTRY_BYTES * values, entries=values)
    entries = min(values, dense / LEVEL_ENTRY_BYTES) if sparse else 0.0
    error = _level_deviation(values, spec)
    width = math.expm1(quantile(confidence) * error)
    return DistinctError(values, error, width, dense, entries=entries)


def _level_deviation(values: float, spec: LevelSpec) -> float:
    """Relative standard error: a fixed number of values varies less than a Poisson number."""
    if values < 1.0:
        return 0.0
    if values > 1e4 * spec.buckets:
        return 1.0 / math.sqrt(TERNARY_INFORMATION * spec.buckets)
    zero = np.zeros(spec.levels, np.int64)
    empty = np.full(spec.levels, spec.buckets, np.int64)
    known = Occupancy(level_probabilities(spec.levels), empty, zero, zero, zero).information(values)
    return math.sqrt(max(1.0 / known - 1.0 / values, 0.0)) if known > 0.0 else math.inf


def sets_error(
    value: float, union: float, sides: list[DistinctError], spec: LevelSpec, confidence: float
) -> DistinctError:
    """A set expression of `value` values among the `union` of its streams, each in a level sketch."""
    nbytes, entries = sum(s.nbytes for s in sides), sum(s.entries for s in sides)
    if all(s.error == 0.0 for s in sides):
        return DistinctError(value, 0.0, 0.0, nbytes, entries=entries)
    whole = _level_deviation(union, spec)
    share = min(value / union, 1.0) if union else 0.0
    witnesses = min(SINGLES_PER_BUCKET * spec.buckets, union)
    if share * witnesses < 1.0:
        return DistinctError(value, math.inf, math.inf, nbytes, entries=entries)
    unseen = math.sqrt(max(1.0 - witnesses / union, 0.0))
    part = math.sqrt((1.0 - share) / (witnesses * share)) * unseen
    error, z = math.hypot(part, whole), quantile(confidence)
    # The exact interval of a proportion reaches further up than down, by about (z^2 + 2) / 3 witnesses.
    above = z * part + (z * z + 2.0) / 3.0 / (share * witnesses) * unseen**2
    width = math.hypot(above, math.expm1(z * whole))
    return DistinctError(value, error, width, nbytes, entries=entries)
