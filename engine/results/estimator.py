"""What answers the terms of a plan: finished synopses, joined.

The evaluator asks for sums and ratios of weighted joins; how they are estimated is the synopses' affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...optimizer.distinct_count import DistinctCount
from ...optimizer.plan import Plan, PlannedTerm
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.intervals.rounding import rounded, slack_of, widened
from ...sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec
from ...sketches.joins.estimate import NOTHING_MATCHES, JoinTerm, known_sum, sum_estimate, sum_ratio_estimate
from ...sketches.joins.exact_map import ExactMap, exact_join
from ...sketches.joins.sparse import SparseFirstSketch
from ..synopses import Built


class Joined(Protocol):
    """The synopses of a plan, ready to be asked."""

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all synopses."""

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """The sum of weighted joins; `bounded` clips it to what is certain.

        A sum of doubles has what rounding may do to it in its interval, see `sketches.intervals.rounding`.
        """

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
    cancel against its own. With `deletions` the tallies have also counted what is gone, and bound nothing.
    """

    plan: Plan
    built: Sequence[Built]
    deletions: bool = field(default=False, kw_only=True)

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all sketches."""
        return sum(b.sketch.nbytes for b in self.built)

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`."""
        known = self.known(terms)
        slack = self._slack(terms)
        if known is not None:
            return rounded(float(known), slack) if slack else exact(known)
        ends = self._bounds(terms) if bounded and not self.deletions else (-math.inf, math.inf)
        return widened(sum_estimate(self._terms(terms), self._edges, confidence, *ends), slack)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        above, count = self.known(top), self.known(bottom)
        if count == 0:
            return replace(exact(math.nan), notes=(NOTHING_MATCHES,))
        if above is None or count is None:
            found = sum_ratio_estimate(self._terms(top), self._terms(bottom), self._edges, confidence)
            slack = self._slack(top)
            return widened(found, slack / self._at_least(bottom, count, confidence)) if slack else found
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
            one = joined if joined.coefficient == 1.0 else replace(joined, coefficient=1.0)
            sum_of_one = known_sum([one], self._edges)
            if sum_of_one is None:
                return None
            scale = math.prod(self.built[i].scale for i in term.synopses)
            # A literal is the decimal that it is written as.
            plain = term.coefficient == scale == 1.0
            factor = Fraction(1) if plain else Fraction(repr(term.coefficient)) / Fraction(repr(scale))
            total += sum_of_one * (factor if factor.denominator > 1 else factor.numerator)
        return int(total) if isinstance(total, Fraction) and total.denominator == 1 else total

    def _at_least(
        self, counted: Sequence[PlannedTerm], known: float | Fraction | None, confidence: float
    ) -> float:
        """The least number of tuples, 1 at least, that sums are divided by."""
        found = float(known) if known is not None else self.total(counted, confidence).low
        return max(1.0, found)

    def _slack(self, terms: Sequence[PlannedTerm]) -> float:
        """How far rounding may have moved a sum; 0 of integers and decimals."""
        return math.fsum(self._slack_of(t) for t in terms if not self._adds_nothing(t))

    def _slack_of(self, term: PlannedTerm) -> float:
        """The same of one term.

        What has cancelled out within keys, or in the messages that became weights, may lie at those keys that join
        with most.
        """
        parts = [self.built[i] for i in term.synopses]
        doubles = [b.linear.spec.dtype == "float64" for b in parts]
        if not any(doubles):
            return 0.0
        scale = abs(term.coefficient) / math.prod(b.scale for b in parts)
        additions = sum(b.additions for b, double in zip(parts, doubles, strict=True) if double)
        if len(parts) == 1:
            return scale * (slack_of(additions, parts[0].tally.mass) + parts[0].tally.slack)
        maps = [_absolute(b) for b in parts]
        known = [m for m in maps if m is not None]
        inside = [float(m.weights.sum()) if m is not None else 0.0 for m in maps]
        if len(known) < len(parts):
            known, inside = [], [0.0] * len(parts)
        # Of integers nothing is lost where they cancel.
        hidden = [max(b.tally.mass - i, 0.0) * d for b, i, d in zip(parts, inside, doubles, strict=True)]
        most = [_most(b, m, h) for b, m, h in zip(parts, maps, hidden, strict=True)]
        others = [math.prod(most[:i] + most[i + 1 :]) for i in range(len(parts))]
        mass = (float(exact_join(known, self._edges)) if known else 0.0) + _dot(hidden, others)
        if not known:
            # Rows of counters are multiplied by as many additions.
            additions += max(b.linear.spec.shape[1] for b in parts)
        return scale * (slack_of(additions, mass) + _dot([b.tally.slack for b in parts], others))

    def _adds_nothing(self, term: PlannedTerm) -> bool:
        """Whether no tuple of one of its tables weighs anything, which is counted beside every sketch."""
        return any(not self.built[i].tally.mass for i in term.synopses)

    def distinct(self, count: DistinctCount, confidence: float) -> Estimate:
        """See `Joined.distinct`."""
        from .distinct import count_distinct

        return count_distinct(count, [b.sketch for b in self.built], confidence)

    def counters(self, term: PlannedTerm) -> list[ConvolutionSketch]:
        """The counters that a term multiplies."""
        found = [self._first_rows(i, self._rows[self._cells(term)]).dense() for i in term.synopses]
        return [s for s in found if isinstance(s, ConvolutionSketch)]

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
        for term in self.plan.terms:
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


def _absolute(built: Built) -> ExactMap | None:
    """The map of a synopsis with absolute weights; None of one that is counters."""
    found = built.linear.exact
    return None if found is None else ExactMap(found.keys, np.abs(found.weights.astype(np.float64)))


def _most(built: Built, absolute: ExactMap | None, hidden: float) -> float:
    """How much one tuple of another table can meet: the heaviest key where there is one key, else everything."""
    alone = len(built.linear.spec.families) == 1
    if absolute is not None and alone:
        return float(absolute.weights.max(initial=0.0)) + hidden
    if absolute is None and alone:
        counters = built.linear.dense().counters
        return float(np.abs(counters.astype(np.float64)).max(initial=0.0)) + slack_of(
            built.additions, built.tally.mass
        )
    return built.tally.mass


def _dot(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(v * w for v, w in zip(values, weights, strict=True) if v)


def first_rows(sketch: SparseFirstSketch[ConvolutionSpec], rows: int) -> SparseFirstSketch[ConvolutionSpec]:
    """The sketch of fewer rows that the same tuples make."""
    if sketch.spec.rows == rows:
        return sketch
    spec = replace(sketch.spec, rows=rows)
    state = sketch.state()
    if "counters" in state:
        state["counters"] = state["counters"][:rows]
    return SparseFirstSketch.from_state(spec, state, sketch.limit_bytes)
