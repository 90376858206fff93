"""How wide the interval of a view is to be expected, from its sketches alone: their self-join sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtri

from ...optimizer.plan import Plan, PlannedTerm
from ...sketches.intervals.interval import averaged, order_rank
from ...sketches.joins.convolution import ConvolutionSketch
from ..results.estimator import Joined, SketchJoin
from ..results.skimmed import SkimmedJoin


@runtime_checkable
class Sampled(Protocol):
    """Synopses of which some are samples."""

    def half_width(self, terms: Sequence[PlannedTerm], confidence: float) -> float | None:
        """The half-width to be expected of a sum."""


def predicted_half_width(plan: Plan, joined: Joined, confidence: float) -> float | None:
    """Of the first aggregate: 0 where it is exact, None of other joins than samples, or two hash sketches of one
    attribute.

    A row of a join of residuals f and g beside dense weights d and e has the variance
    ``(F2(f) F2(g) + F2(d) F2(g) + F2(e) F2(f)) / buckets`` at most; the interval lies between order statistics of the
    rows, here those of a normal variable.
    """
    terms = plan.aggregates[0].total
    if isinstance(joined, Sampled):
        return joined.half_width(terms, confidence)
    assert isinstance(joined, SketchJoin), "what is no sample is linear sketches"
    if joined.known(terms) is not None:
        return 0.0
    # Of several terms those are alike that are of parts of the domains.
    if not (len(terms) == 1 or plan.partitions) or len({t.coefficient for t in terms}) != 1:
        return None
    if any(len(t.synopses) != 2 for t in terms):
        return None
    found = [_products(joined, term) for term in terms]
    known = [f for f in found if f is not None]
    if len(known) < len(found):
        return None
    first = terms[0]
    rows, buckets = min(r for _, r in known), joined.counters(first)[0].spec.buckets
    scale = abs(first.coefficient) / math.prod(joined.built[i].scale for i in first.synopses)
    # A part that has more rows than others is averaged down to these.
    products = math.fsum(p * rows / own for p, own in known)
    return scale * half_width(products, rows, buckets, confidence)


def _products(joined: SketchJoin, term: PlannedTerm) -> tuple[float, int] | None:
    """What the variance of a row of a term is, times its buckets, and its rows; None of sketches by several keys."""
    skimmed = joined.skimmed([term]) if isinstance(joined, SkimmedJoin) else None
    if skimmed is not None:
        sketches = [s.residual for s in skimmed]
        dense = [float(np.square(s.weights.astype(np.float64)).sum()) for s in skimmed]
    else:
        sketches, dense = joined.counters(term), [0.0, 0.0]
    if any(len(s.spec.families) != 1 for s in sketches):
        return None
    left, right = map(_self_join_size, sketches)
    return left * right + dense[0] * right + dense[1] * left, sketches[0].spec.rows


def half_width(products: float, rows: int, buckets: int, confidence: float) -> float:
    """Of the join of two hash sketches, the variance of a row of which is `products` over its buckets."""
    fewer = len(averaged(np.zeros(rows), buckets, confidence))
    rank = max(order_rank(fewer, confidence), 1)
    quantile = -float(ndtri((rank - 0.375) / (fewer + 0.25)))  # the mean of that order statistic (Blom 1958)
    return quantile * math.sqrt(products / buckets * fewer / rows)


def _self_join_size(sketch: ConvolutionSketch) -> float:
    return float(np.median(np.square(sketch.counters.astype(np.float64)).sum(axis=1)))
