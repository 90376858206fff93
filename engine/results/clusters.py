"""Aggregates that are no sums: deviations, correlations and quantiles, from what sampled keys say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...optimizer.plan import PlannedAggregate, PlannedTerm
from ...sketches.intervals.gamma import Floats
from ...sketches.intervals.interval import Estimate
from ...sketches.samples.cluster_moments import COVARIANCES, VARIANCES, Moments, estimate_moment
from ...sketches.samples.cluster_quantiles import ClusteredValues
from .expressions import Evaluator

QUANTILES = ("percentile", "percentile_approx")


@dataclass(frozen=True, eq=False)
class Clusters:
    """What the keys of one group say.

    Attributes
    ----------
    terms : ndarray of float64, shape (measures, keys)
    probabilities : ndarray of float64, shape (keys,)
    values : mapping of int to ClusteredValues
        The values of those measures that are lists.
    """

    terms: Floats
    probabilities: Floats
    values: Mapping[int, ClusteredValues]

    def estimate(self, planned: PlannedAggregate, confidence: float) -> Estimate:
        """One of `VARIANCES`, `COVARIANCES` and `QUANTILES`."""
        if planned.function in QUANTILES:
            (term,) = planned.total
            (number,) = term.synopses
            discrete = planned.function == "percentile_approx"
            return self.values[number].quantile(term.coefficient, confidence, discrete=discrete)
        counts = self._column(planned.presence[0])
        columns = [self._column(t) for t in planned.total]
        none = np.zeros_like(counts)
        if planned.function in VARIANCES:
            variances, means = columns
            squares, averages = [counts * variances, none, none], [means, none]
        else:
            covariances, xs, ys, *own = columns
            squares, averages = [*(own or [none, none]), counts * covariances], [xs, ys]
        moments = Moments(counts, np.array(averages), np.array(squares), self.probabilities)
        return estimate_moment(planned.function, moments, confidence)

    def has_any(self, terms: Sequence[PlannedTerm]) -> bool:
        """Whether a key that was met adds to one of these."""
        return any(self._column(t).any() for t in terms)

    def _column(self, term: PlannedTerm) -> Floats:
        column: Floats = self.terms[term.synopses[0]]
        return column


@dataclass(frozen=True)
class ClusterEvaluator(Evaluator):
    """Evaluates sums as any other, and what is no sum by the clusters of its group."""

    clusters: Clusters | None = None

    def aggregate(self, planned: PlannedAggregate) -> Estimate:
        """See `Evaluator.aggregate`."""
        if self.clusters is not None and planned.function in (*VARIANCES, *COVARIANCES, *QUANTILES):
            return self.clusters.estimate(planned, self.confidence)
        nothing = self._sum_of_nothing(planned) if planned.function == "sum" else None
        return nothing or super().aggregate(planned)

    def _sum_of_nothing(self, planned: PlannedAggregate) -> Estimate | None:
        """NULL where no key that was met has a value, whatever others may have; certain where all keys were met."""
        found = super()._sum_of_nothing(planned)
        if found is not None or self.clusters is None or self.clusters.has_any(planned.presence):
            return found
        counted = self._joined.total(planned.presence, self.confidence)
        return replace(counted, value=math.nan, low=-math.inf, high=math.inf)
