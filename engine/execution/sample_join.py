"""A query on a sample of the keys of one join class, evaluated exactly, table by table.

The error depends on the sampled class alone, whatever the number of tables. The same scans draw tuples one by one; a
key of which enough are drawn is evaluated too, and what one that is not evaluated can add is bounded: see
`sketches.samples.dual_frame`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...optimizer.distinct_count import DistinctCount
from ...optimizer.plan import Plan, PlannedTerm
from ...sketches.intervals.interval import Estimate, clip, exact, uncertified
from ...sketches.intervals.rounding import slack_of
from ...sketches.samples.dual_frame import OVERLOOKED
from ...sketches.samples.known_keys import (
    JoinTerms,
    combined,
)
from ...sketches.samples.sample_join import (
    complete_ratio,
    complete_total,
    estimate_ratio,
    estimate_total,
    is_complete,
)
from ..sources.tables import Frames
from ..spark.jobs import ProgressListener
from .absolutes import with_absolutes
from .average_ranges import average_ranges
from .evaluation import Evaluation, counts
from .large_values import with_large
from .sample_tree import SampleTree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_LIMIT_BYTES = 256 << 20

BOUNDS_FAIL = "the bound on unseen keys does not hold with the asked confidence"

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SampleJoin:
    """The contributions of the sampled keys to every term of a plan.

    Attributes
    ----------
    terms : tuple of tuples of int
        The synopses of each term, by which it is known.
    contributions : JoinTerms
        One column for each of them.
    nbytes : int
        In-memory bytes of all messages, sampled and exact.
    scales : tuple of float
        For each term the factor that made its contributions integers.
    slacks : tuple of float
        For each term how far rounding may have moved its sums of doubles, where no key is left to chance.
    overlooked : float
        The chance with which what bounds unseen keys does not hold.
    averages : mapping
        By the terms of a ratio that is an average between which it lies for certain.
    """

    terms: tuple[tuple[int, ...], ...]
    contributions: JoinTerms
    nbytes: int
    scales: tuple[float, ...]
    slacks: tuple[float, ...]
    overlooked: float = 0.0
    averages: Mapping[tuple[tuple[PlannedTerm, ...], tuple[PlannedTerm, ...]], tuple[float, float]] = field(
        default_factory=dict
    )

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`; what is known of unseen keys bounds it in any case."""
        columns = combined(self.contributions, [self._coefficients(terms)])
        if not is_complete(columns):
            return self._leaving(confidence, lambda c: estimate_total(columns, c))
        known = self.known(terms)
        return complete_total(columns, 0, self._slack(terms)) if known is None else exact(known)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        columns = combined(self.contributions, [self._coefficients(top), self._coefficients(bottom)])
        if not is_complete(columns):
            found = self._leaving(confidence, lambda c: estimate_ratio(columns, c))
            ends = self.averages.get((tuple(top), tuple(bottom)))
            return found if ends is None or math.isnan(found.value) else clip(found, *ends)
        above, below = self.known(top), self.known(bottom)
        if above is None or below is None:
            return complete_ratio(columns, self._slack(top))
        return exact(Fraction(above) / Fraction(below)) if below else exact(math.nan)

    def without_unseen(self) -> SampleJoin:
        """The same as if no key were unseen: intervals are then as wide as chance alone makes them."""
        nothing = np.zeros_like(self.contributions.unseen)
        return replace(self, contributions=replace(self.contributions, unseen=nothing))

    def _leaving(self, confidence: float, estimate: Callable[[float], Estimate]) -> Estimate:
        """An estimate that leaves a part of its chance to fail to the bounds on unseen keys."""
        if confidence + self.overlooked >= 1.0:
            return uncertified(estimate(confidence), BOUNDS_FAIL)
        found = estimate(confidence + self.overlooked)
        return found if found.exact else replace(found, confidence=confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | Fraction | None:
        """See `Joined.known`; of integers and decimals alone, with all their digits."""
        total: Fraction | int = 0
        for term in terms:
            only = combined(self.contributions, [self._unit(term)])
            if not is_complete(only):
                return None
            found = complete_total(only, 0, self._slack([replace(term, coefficient=1.0)]))
            if not found.exact:
                return None
            total += (
                Fraction(found.value) * Fraction(repr(term.coefficient)) / Fraction(repr(self._scale(term)))
            )
        return int(total) if total.denominator == 1 else total

    def _slack(self, terms: Sequence[PlannedTerm]) -> float:
        """How far rounding may have moved sums of doubles before contributions were made of them."""
        return sum(abs(t.coefficient) * self.slacks[self.terms.index(t.synopses)] for t in terms)

    def _unit(self, term: PlannedTerm) -> Floats:
        unit = np.zeros(len(self.terms))
        unit[self.terms.index(term.synopses)] = 1.0
        return unit

    def _scale(self, term: PlannedTerm) -> float:
        return self.scales[self.terms.index(term.synopses)]

    def distinct(self, count: DistinctCount, confidence: float) -> Estimate:
        """Never asked: a plan that counts distinct values has no sample of join keys."""
        raise ValueError("distinct values are not counted on a sample of join keys")

    def _coefficients(self, terms: Sequence[PlannedTerm]) -> Floats:
        coefficients = np.zeros(len(self.terms))
        for term in terms:
            coefficients[self.terms.index(term.synopses)] += term.coefficient / self._scale(term)
        return coefficients


def run_sample(
    spark: SparkSession,
    plan: Plan,
    tables: Frames,
    listener: ProgressListener | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    expected: Mapping[int, float] | None = None,
    groups: Collection[int] = (),
) -> dict[tuple[int, ...], SampleJoin]:
    """Evaluate a plan with a sample: one scan for each vertex of its residual tree.

    Where vertices are grouped there is a join for each combination of groups that the sample has met, by the number
    of a group of each grouped vertex, ascending; without groups there is one, of no numbers.

    A second scan of each follows where keys turn up that are too heavy to be left to chance. `expected` are the
    tuples of the vertices of the query's join graph behind their filters, as far as they are known.

    Raises
    ------
    BudgetExceeded
        If what a table sends takes more than `limit_bytes`.
    UnsupportedQuery
        If Spark refuses an expression.
    """
    from .sample_scan import SampleScans  # late: it needs Spark

    def scans(plan: Plan, terms: Sequence[tuple[int, ...]]) -> SampleScans:
        tuples = [(expected or {}).get(v, math.inf) for v in plan.vertices]
        return SampleScans(spark, plan, terms, tables, listener, limit_bytes, tuples, groups)

    return sample_join(plan, scans)


def sample_join(
    plan: Plan, scans: Callable[[Plan, Sequence[tuple[int, ...]]], SampleTree]
) -> dict[tuple[int, ...], SampleJoin]:
    """Evaluate a plan with a sample on the scans that a backend makes for its terms."""
    sample = plan.sample
    assert sample is not None, "a plan without a sample is built from sketches"
    terms = tuple(dict.fromkeys(t.synopses for t in plan.terms))
    absolutes: dict[int, int] = {}
    if sample.rate == 1.0:
        plan, terms, absolutes = with_absolutes(plan, terms)
    asked = terms
    large: dict[int, tuple[int, int]] = {}
    if sample.is_guarded and sample.value_draws:
        plan, terms, large = with_large(plan, terms)
    made = scans(plan, terms)
    found = Evaluation(plan, terms, made, large).contributions(sample)
    found, terms = {n: _first(k, len(asked)) for n, k in found.items()}, asked
    overlooked = OVERLOOKED if sample.is_guarded else 0.0
    scales = made.term_scales[: len(terms)]
    doubles = [any(own) for own in zip(*made.doubles.values(), strict=True)]
    absolutes = {n: a for n, a in absolutes.items() if doubles[n]}
    counting = [n for n, t in enumerate(terms) if all(counts(plan, i) for i in t)]
    averages = average_ranges(plan, made) if sample.is_guarded else {}
    return {
        n: SampleJoin(
            terms,
            known,
            made.nbytes,
            scales,
            _slacks(terms, known, absolutes, counting),
            overlooked,
            averages,
        )
        for n, known in found.items()
    }


def _first(known: JoinTerms, columns: int) -> JoinTerms:
    return replace(known, terms=known.terms[:columns], unseen=known.unseen[:columns])


def _slacks(
    terms: Sequence[tuple[int, ...]], known: JoinTerms, absolutes: Mapping[int, int], counting: Sequence[int]
) -> tuple[float, ...]:
    """How far rounding may have moved each term: every tuple that adds something joins, and counts for one at least."""
    counted = max((known.total(n) for n in counting), default=0.0) if absolutes else 0.0
    return tuple(
        slack_of(len(term) * counted, known.total(absolutes[n])) if n in absolutes else 0.0
        for n, term in enumerate(terms)
    )
