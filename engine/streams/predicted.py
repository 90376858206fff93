"""How wide the interval of a view is to be expected, from its sketches alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ...optimizer.plan import Plan, PlannedTerm
from ...sketches.intervals.interval import averaged, median_interval, order_rank
from ..results.estimator import Joined, SketchJoin
from ..results.skimmed import SkimmedJoin

Floats = npt.NDArray[np.float64]

SEED, DRAWS = 20060143170, 400


@runtime_checkable
class Sampled(Protocol):
    """Synopses of which some are samples."""

    def half_width(self, terms: Sequence[PlannedTerm], confidence: float) -> float | None:
        """The half-width to be expected of a sum."""


def predicted_half_width(plan: Plan, joined: Joined, confidence: float) -> float | None:
    """Of the first aggregate: 0 where it is exact, None of other joins than samples, or two hash sketches of one
    attribute.

    What rows are off by is taken from the sketches themselves: see `rotated`. A dense part multiplied with a residual
    is off by what is nearly normal, with the variance F2(dense) F2(residual) / buckets. Of the intervals of rows drawn
    so that width is told which most of them are within a factor of two of.
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
    random, found = np.random.default_rng(SEED), []
    for term in terms:
        own = _errors(joined, term, random)
        if own is None:
            return None
        found.append(own)
    # A part that has more rows than others is averaged down to these.
    rows = min(e.shape[1] for e in found)
    errors = np.sum([e[:, :rows] * math.sqrt(rows / e.shape[1]) for e in found], axis=0)
    first = terms[0]
    buckets = joined.counters(first)[0].spec.buckets
    widths = np.array(
        [median_interval(averaged(r, buckets, confidence), confidence).half_width for r in errors]
    )
    scale = abs(first.coefficient) / math.prod(joined.built[i].scale for i in first.synopses)
    return scale * within_two(widths)


def within_two(widths: Floats) -> float:
    """The width that most of these, shape (n,), are within a factor of two of."""
    found = np.sort(widths)
    ends = np.searchsorted(found, 4.0 * found, side="right") - 1
    first = int(np.argmax(ends - np.arange(found.size)))
    return math.sqrt(float(found[first]) * float(found[ends[first]]))


def _errors(joined: SketchJoin, term: PlannedTerm, random: np.random.Generator) -> Floats | None:
    """What rows of a term may be off by, shape (DRAWS, rows); None of sketches by several keys."""
    skimmed = joined.skimmed([term]) if isinstance(joined, SkimmedJoin) else None
    sketches = joined.counters(term) if skimmed is None else [s.residual for s in skimmed]
    if any(len(s.spec.families) != 1 for s in sketches):
        return None
    counters = [s.counters.astype(np.float64) for s in sketches]
    found = rotated(counters[0], counters[1], random)
    if skimmed is not None:
        dense = [float(np.square(s.weights.astype(np.float64)).sum()) for s in skimmed]
        left, right = (float(np.median(np.square(c).sum(axis=1))) for c in counters)
        cross = (dense[0] * right + dense[1] * left) / sketches[0].spec.buckets
        found += random.standard_normal(found.shape) * math.sqrt(cross)
    return found


def rotated(left: Floats, right: Floats, random: np.random.Generator, draws: int = DRAWS) -> Floats:
    """What the rows of the product of two hash sketches may be off by, shape (draws, rows).

    Parameters
    ----------
    left, right : ndarray of float64, shape (rows, buckets)
        Counters of two sketches of the same hash functions.
    random : Generator
    draws : int

    Returns
    -------
    ndarray of float64
        Of each row the products of its buckets with those of the other sketch, moved by a random number of places, and
        of the moved ones with the other's: of a half of the buckets, as two keys are in one bucket in one way only. No
        key meets itself, all others do as by chance, so that the variance is that of the product, (F2(f) F2(g) +
        (f g)^2) / buckets, and heavy keys are in one bucket as rarely.
    """
    rows, buckets = left.shape
    if buckets < 2:
        return np.zeros((draws, rows))
    half = random.random(left.shape) < 0.5
    found = []
    for chosen, number in ((half, draws // 2), (~half, draws - draws // 2)):
        sides = ((left * chosen, right), (right * chosen, left))
        moved = np.fft.irfft(sum(np.conj(np.fft.rfft(a)) * np.fft.rfft(b) for a, b in sides), buckets)
        found.append(np.take_along_axis(moved, random.integers(1, buckets, (rows, number)), axis=1).T)
    return np.concatenate(found)


def half_width(products: float, rows: int, buckets: int, confidence: float) -> float:
    """Of the join of two hash sketches, the variance of a row of which is `products` over its buckets."""
    fewer = len(averaged(np.zeros(rows), buckets, confidence))
    rank = max(order_rank(fewer, confidence), 1)
    quantile = -float(ndtri((rank - 0.375) / (fewer + 0.25)))  # the mean of that order statistic (Blom 1958)
    return quantile * math.sqrt(products / buckets * fewer / rows)
