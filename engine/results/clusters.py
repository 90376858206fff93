"""Aggregates that are no sums: deviations, correlations and quantiles, from what sampled keys say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...optimizer.plan import PlannedAggregate, PlannedTerm
from ...parser.extremes import EXTREMES
from ...sketches.intervals.gamma import Floats
from ...sketches.intervals.interval import Estimate, exact
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
    told : mapping of int to int
        The measures that files tell.
    """

    terms: Floats
    probabilities: Floats
    values: Mapping[int, ClusteredValues]
    told: Mapping[int, int] = field(default_factory=dict)

    def estimate(self, planned: PlannedAggregate, confidence: float) -> Estimate:
        """One of `VARIANCES`, `COVARIANCES`, `QUANTILES` and `EXTREMES`."""
        if planned.function in EXTREMES:
            return self._extreme(planned, confidence)
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

    def _extreme(self, planned: PlannedAggregate, confidence: float) -> Estimate:
        """MIN or MAX of what was met, which the true one is on one side of; NULL where no value was met."""
        (term,) = planned.total
        if term.synopses[0] in self.told:
            return exact(self.told[term.synopses[0]])
        met = self._column(term)[self._column(planned.presence[0]) > 0]
        if planned.function == "min":
            value = float(met.min(initial=math.inf))
            low, high = -math.inf, value
        else:
            value = float(met.max(initial=-math.inf))
            low, high = value, math.inf
        return Estimate(value if met.size else math.nan, low, high, confidence, True, "theorem")

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
        if self.clusters is not None and planned.function in (
            *VARIANCES,
            *COVARIANCES,
            *QUANTILES,
            *EXTREMES,
        ):
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
