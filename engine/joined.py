"""What answers the terms of a plan: finished synopses, joined.

The evaluator asks for sums and ratios of weighted joins; how they are estimated is the synopses' affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from ..optimizer.distinct_count import DistinctCount
from ..optimizer.plan import Plan, PlannedTerm
from ..sketches.convolution import ConvolutionSpec
from ..sketches.estimate import JoinTerm, known_sum, sum_estimate, sum_ratio_estimate
from ..sketches.interval import Estimate, exact
from ..sketches.sparse import SparseFirstSketch
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
            return exact(known)
        ends = self._bounds(terms) if bounded else (-math.inf, math.inf)
        return sum_estimate(self._terms(terms), self._edges, confidence, *ends)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        above, below = self.known(top), self.known(bottom)
        if above is not None and below:
            return exact(Fraction(above, below) if isinstance(above, int) else above / below)
        return sum_ratio_estimate(self._terms(top), self._terms(bottom), self._edges, confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """See `Joined.known`; of integers and decimals with all their digits."""
        total: int | float | Fraction = 0
        for term, joined in zip(terms, self._terms(terms), strict=True):
            sum_of_one = known_sum([replace(joined, coefficient=1.0)], self._edges)
            if sum_of_one is None:
                return None
            scale = math.prod(self.built[i].scale for i in term.synopses)
            # A literal is the decimal that it is written as.
            factor = Fraction(repr(term.coefficient)) / Fraction(repr(scale))
            total += sum_of_one * (factor if factor.denominator > 1 else factor.numerator)
        return int(total) if isinstance(total, Fraction) and total.denominator == 1 else total

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
