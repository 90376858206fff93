"""What answers the terms of a plan: finished synopses, joined.

The evaluator asks for sums and ratios of weighted joins; how they are estimated is the synopses' affair.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...optimizer.distinct_count import DistinctCount
from ...optimizer.plan import Plan, PlannedTerm
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.estimate import NOTHING_MATCHES, JoinTerm, known_sum, sum_estimate, sum_ratio_estimate
from ...sketches.joins.exact_map import ExactMap, exact_join
from ...sketches.joins.sparse import SparseFirstSketch
from ..synopses import Built

# A sum of doubles known to this relative accuracy counts as exact.
ROUNDING = 1e-9
CANCELS = "a sum of doubles that cancel out: the order in which they are added decides its digits"


class Joined(Protocol):
    """The synopses of a plan, ready to be asked."""

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all synopses."""

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """The sum of weighted joins; `bounded` clips it to what is certain."""

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """The ratio of two sums on the same keys, so that most of their errors cancel."""

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """The sum where it is known exactly, else None."""

    def distinct(self, count: DistinctCount, confidence: float) -> Estimate:
        """The number of distinct values."""


@dataclass(frozen=True)
class SketchJoin:
    """Linear sketches, one per synopsis of the plan, multiplied along the edges of the residual tree.

    Allocation may give the sketches of a term different numbers of rows. Row r of all of them comes from the same
    functions: a term reads the first rows that all have, and so do the other terms on the same cells, whose errors
    cancel against its own.
    """

    plan: Plan
    built: Sequence[Built]

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all sketches."""
        return sum(b.sketch.nbytes for b in self.built)

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`."""
        known = self.known(terms)
        if known is not None:
            return self._rounded(known, terms, confidence)
        ends = self._bounds(terms) if bounded else (-math.inf, math.inf)
        return sum_estimate(self._terms(terms), self._edges, confidence, *ends)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        above, count = self.known(top), self.known(bottom)
        if count == 0:
            return replace(exact(math.nan), notes=(NOTHING_MATCHES,))
        if above is None or count is None:
            return sum_ratio_estimate(self._terms(top), self._terms(bottom), self._edges, confidence)
        total = self.total(top, confidence)
        if total.exact:
            return exact(above / count if isinstance(above, float) else Fraction(above) / Fraction(count))
        low, high = sorted((total.low / float(count), total.high / float(count)))
        return replace(total, value=total.value / float(count), low=low, high=high)

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """See `Joined.known`; of integers and decimals with all their digits."""
        total: int | float | Fraction = 0
        terms = [t for t in terms if not self._adds_nothing(t)]
        for term, joined in zip(terms, self._terms(terms), strict=True):
            sum_of_one = known_sum([replace(joined, coefficient=1.0)], self._edges)
            if sum_of_one is None:
                return None
            scale = math.prod(self.built[i].scale for i in term.synopses)
            # A literal is the decimal that it is written as.
            factor = Fraction(repr(term.coefficient)) / Fraction(repr(scale))
            total += sum_of_one * (factor if factor.denominator > 1 else factor.numerator)
        return int(total) if isinstance(total, Fraction) and total.denominator == 1 else total

    def _rounded(
        self, known: int | float | Fraction, terms: Sequence[PlannedTerm], confidence: float
    ) -> Estimate:
        """A known sum; one of doubles that cancel out has an interval: their order decides more than last digits."""
        slack = math.fsum(self._rounding(t) for t in terms if not self._adds_nothing(t))
        if slack <= ROUNDING * abs(float(known)):
            return exact(known)
        value = float(known)
        return Estimate(value, value - slack, value + slack, confidence, True, "measured", (CANCELS,))

    def _rounding(self, term: PlannedTerm) -> float:
        """How far two orders of summation may be apart: n * eps * the sum of absolute values [1]_.

        What has cancelled out within keys may lie at those that join with most.

        References
        ----------
        .. [1] N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition 2002, section 4.2.
        """
        parts = [self.built[i] for i in term.synopses]
        doubles = [b for b in parts if b.linear.spec.dtype == "float64"]
        maps = [b.linear.exact for b in parts]
        scale = abs(term.coefficient) / math.prod(b.scale for b in parts)
        each = 2 * sum(b.tally.tuples for b in doubles) * sys.float_info.epsilon * scale
        if not doubles:
            return 0.0
        if len(parts) == 1:
            return each * parts[0].tally.mass
        if any(m is None for m in maps):
            return 0.0
        sizes = [ExactMap(m.keys, np.abs(m.weights.astype(np.float64))) for m in maps if m is not None]
        cancelled = [max(b.tally.mass - m.weights.sum(), 0.0) for b, m in zip(parts, sizes, strict=True)]
        # How much one tuple can meet in a table: its heaviest key where it has one key, else all of it.
        most = [
            float(m.weights.max(initial=0.0)) if m.keys.shape[1] == 1 and not c else b.tally.mass
            for b, m, c in zip(parts, sizes, cancelled, strict=True)
        ]
        hidden = (c * math.prod(most[:i] + most[i + 1 :]) for i, c in enumerate(cancelled))
        return each * (float(exact_join(sizes, self._edges)) + math.fsum(hidden))

    def _adds_nothing(self, term: PlannedTerm) -> bool:
        """Whether no tuple of one of its tables weighs anything, which is counted beside every sketch."""
        return any(not self.built[i].tally.mass for i in term.synopses)

    def distinct(self, count: DistinctCount, confidence: float) -> Estimate:
        """See `Joined.distinct`."""
        from .distinct import count_distinct

        return count_distinct(count, [b.sketch for b in self.built], confidence)

    @property
    def _edges(self) -> list[tuple[int, int, int, int]]:
        return [(e.left, e.right, e.left_position, e.right_position) for e in self.plan.edges]

    def _terms(self, terms: Sequence[PlannedTerm]) -> list[JoinTerm]:
        return [
            JoinTerm(
                tuple(self._first_rows(i, self._rows[self._cells(term)]) for i in term.synopses),
                term.coefficient / math.prod(self.built[i].scale for i in term.synopses),
            )
            for term in terms
        ]

    def _cells(self, term: PlannedTerm) -> tuple[tuple[int, ...], ...]:
        return tuple(self.plan.synopses[i].cell for i in term.synopses)

    @cached_property
    def _rows(self) -> dict[tuple[tuple[int, ...], ...], int]:
        """The rows that all sketches have that are read on the same cells."""
        found: dict[tuple[tuple[int, ...], ...], int] = {}
        for term in (t for a in self.plan.aggregates for t in (*a.total, *a.presence)):
            cells = self._cells(term)
            least = min(self.built[i].linear.spec.rows for i in term.synopses)
            found[cells] = min(found.get(cells, least), least)
        return found

    def _first_rows(self, synopsis: int, rows: int) -> SparseFirstSketch[Any]:
        """One sketch object for each size, so that a self-join is seen as one."""
        key = synopsis, rows
        if key not in self._cut:
            self._cut[key] = first_rows(self.built[synopsis].linear, rows)
        return self._cut[key]

    @cached_property
    def _cut(self) -> dict[tuple[int, int], SparseFirstSketch[Any]]:
        return {}

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


def first_rows(sketch: SparseFirstSketch[ConvolutionSpec], rows: int) -> SparseFirstSketch[ConvolutionSpec]:
    """The sketch of fewer rows that the same tuples make."""
    if sketch.spec.rows == rows:
        return sketch
    spec = replace(sketch.spec, rows=rows)
    state = sketch.state()
    if "counters" in state:
        state["counters"] = state["counters"][:rows]
    return SparseFirstSketch.from_state(spec, state, sketch.limit_bytes)
