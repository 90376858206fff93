"""What answers the terms of a plan: finished synopses, joined.

The evaluator asks for sums and ratios of weighted joins; how they are estimated is the synopses' affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..optimizer.plan import Plan, PlannedTerm
from ..sketches.estimate import JoinTerm, known_sum, sum_estimate, sum_ratio_estimate
from ..sketches.interval import Estimate
from .partial import Built


class Joined(Protocol):
    """The synopses of a plan, ready to be asked."""

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all synopses."""

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """The sum of weighted joins; `bounded` clips it to what is certain."""

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """The ratio of two sums on the same keys, so that most of their errors cancel."""

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | None:
        """The sum where it is known exactly, else None."""


@dataclass(frozen=True)
class SketchJoin:
    """Linear sketches, one per synopsis of the plan, multiplied along the edges of the residual tree."""

    plan: Plan
    built: Sequence[Built]

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all sketches."""
        return sum(b.sketch.nbytes for b in self.built)

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`."""
        ends = self._bounds(terms) if bounded else (-math.inf, math.inf)
        return sum_estimate(self._terms(terms), self._edges, confidence, *ends)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        return sum_ratio_estimate(self._terms(top), self._terms(bottom), self._edges, confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | None:
        """See `Joined.known`."""
        return known_sum(self._terms(terms), self._edges)

    @property
    def _edges(self) -> list[tuple[int, int, int, int]]:
        return [(e.left, e.right, e.left_position, e.right_position) for e in self.plan.edges]

    def _terms(self, terms: Sequence[PlannedTerm]) -> list[JoinTerm]:
        return [
            JoinTerm(
                tuple(self.built[i].sketch for i in term.synopses),
                term.coefficient / math.prod(self.built[i].scale for i in term.synopses),
            )
            for term in terms
        ]

    def _bounds(self, terms: Sequence[PlannedTerm]) -> tuple[float, float]:
        """Provable bounds of a total: no join adds more than the product of the absolute weights.

        The lower bound is 0 where no weight is negative.
        """
        low = high = 0.0
        for term in terms:
            chosen = [self.built[i] for i in term.synopses]
            most = abs(term.coefficient) * math.prod(b.tally.mass / b.scale for b in chosen)
            signed = term.coefficient < 0 or any(b.tally.negative for b in chosen)
            high += most
            low -= most if signed else 0.0
        return low, high
