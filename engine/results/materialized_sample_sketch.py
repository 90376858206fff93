"""Joins over several key classes: kept samples of one class, and hash sketches of the tables beyond it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...optimizer.plan import PlannedEdge, PlannedTerm
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.joins.exact_map import ExactMap, exact_join
from ...sketches.joins.sparse_first import SparseFirst
from ...sketches.samples.sample_sketch import SampleSketch
from ...sketches.samples.sample_sketch_join import sample_sketch_average, sample_sketch_join
from ...sketches.samples.threshold_sample import net_entries
from ...sketches.samples.two_level import TwoLevel
from .materialized_samples import MaterializedSamples, SampledWeight, times


@dataclass(frozen=True)
class MaterializedSampleSketchJoin(MaterializedSamples):
    """Sampled tables and sketches, of which the column does not count, by the numbers of a plan's synopses.

    Attributes
    ----------
    edges : sequence of PlannedEdge
    orders : mapping of int to tuple of int
        For each edge of a synopsis's vertex the attribute that it joins.
    """

    edges: Sequence[PlannedEdge]
    orders: Mapping[int, tuple[int, ...]]

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`; of several terms the error of each is told by itself."""
        known = self.known(terms)
        if known is not None:
            return exact(known)
        # One of several intervals misses more often than each of them.
        each = 1.0 - (1.0 - confidence) / len(terms)
        parts = [self._term(t, each) for t in terms]
        notes = tuple(dict.fromkeys(n for p in parts for n in p.notes))
        value, low, high = (math.fsum(getattr(p, name) for p in parts) for name in ("value", "low", "high"))
        return Estimate(value, low, high, confidence, all(p.certified for p in parts), parts[0].basis, notes)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`; the errors of several terms are not set off against each other."""
        known = self._known_ratio(top, bottom)
        if known is not None:
            return known
        (one, *others), (count, *more) = top, bottom
        if not others and not more:
            try:
                found = sample_sketch_average(
                    self._synopses(one),
                    self._synopses(count),
                    self._edges(one),
                    self._columns(one),
                    self._columns(count),
                    confidence,
                )
            except ValueError:
                pass  # no sampled key joins: told below
            else:
                return times(found, self._factor(one) / self._factor(count))
        half = 1.0 - (1.0 - confidence) / 2.0
        return replace(quotient(self.total(top, half), self.total(bottom, half)), confidence=confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """See `Joined.known`: where no sample has lost a key, and every sketch is a map."""
        total = Fraction(0)
        ends = [(e.left, e.right, e.left_position, e.right_position) for e in self.edges]
        for term in terms:
            orders = self._orders(term)
            maps = [_whole(self.weights[i], o) for i, o in zip(term.synopses, orders, strict=True)]
            present = [m for m in maps if m is not None]
            if len(present) < len(maps):
                return None
            scale = math.prod(self.weights[i].scale for i in term.synopses)
            factor = Fraction(repr(term.coefficient)) / Fraction(repr(scale))
            total += Fraction(exact_join(present, ends)) * factor
        return int(total) if total.denominator == 1 else total

    def _term(self, term: PlannedTerm, confidence: float) -> Estimate:
        signed = any(self.weights[i].signed for i in term.synopses)
        found = sample_sketch_join(
            self._synopses(term),
            self._edges(term),
            self._columns(term),
            confidence,
            low_bound=-math.inf if signed else 0.0,
        )
        return times(found, self._factor(term))

    def _synopses(self, term: PlannedTerm) -> list[Any]:
        return [self.weights[i].sample for i in term.synopses]

    def _columns(self, term: PlannedTerm) -> list[str]:
        return [self.weights[i].column for i in term.synopses]

    def _orders(self, term: PlannedTerm) -> list[tuple[int, ...]]:
        return [self.orders[i] for i in term.synopses]

    def _edges(self, term: PlannedTerm) -> list[tuple[int, int, int, int]]:
        own = self._orders(term)
        return [
            (e.left, e.right, own[e.left][e.left_position], own[e.right][e.right_position])
            for e in self.edges
        ]


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two estimates, between the least and the largest that their ends allow; never certified."""
    notes = tuple(dict.fromkeys((*above.notes, *below.notes)))
    if below.exact and not below.value:
        return replace(exact(math.nan), notes=notes)
    value = above.value / below.value if below.value else math.nan
    if below.low <= 0.0 <= below.high:
        return Estimate(value, -math.inf, math.inf, above.confidence, False, "measured", notes)
    ends = [a / b for a in (above.low, above.high) for b in (below.low, below.high)]
    return Estimate(value, min(ends), max(ends), above.confidence, False, "measured", notes)


def _whole(weight: SampledWeight, order: Sequence[int]) -> ExactMap | None:
    """All keys of a table with their weights, where none is lost: for each edge those of its attribute."""
    synopsis = weight.sample
    weights: Any
    if isinstance(synopsis, SparseFirst):
        if synopsis.exact is None:
            return None
        keys, weights = synopsis.exact.keys.T, synopsis.exact.weights[np.newaxis]
    elif isinstance(synopsis, TwoLevel) or synopsis.probability < 1.0:
        return None
    else:
        keys = synopsis.keys if isinstance(synopsis, SampleSketch) else synopsis.keys[np.newaxis]
        weights = synopsis.weight(weight.column)[np.newaxis]
    keys, weights = net_entries(keys[list(order)], weights)
    return ExactMap(keys.T, weights[0])
