"""Joins of kept samples of one key class: `KeySample`s, and two levels with a sample for the other keys."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...optimizer.distinct_count import DistinctCount
from ...optimizer.plan import PlannedTerm
from ...sketches.hashing.family import Family
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.samples.known_keys import JoinTerms, KnownKeys, combined, join_terms
from ...sketches.samples.sample_join import (
    estimate_average,
    estimate_join,
    estimate_ratio,
    estimate_total,
    is_complete,
)


@dataclass(frozen=True, slots=True)
class SampledWeight:
    """A weight of a sampled table: the sample, its column there, and the factor that made it an integer.

    `signed` says whether some tuple weighs less than 0, or was deleted: else no key that is not known does.
    """

    sample: Any
    column: str
    scale: float
    signed: bool = True


@dataclass(frozen=True, slots=True)
class _Table:
    """A sampled table with what its tuples tell of the keys that are not known."""

    weights: tuple[SampledWeight, ...]

    @property
    def hashing(self) -> tuple[Family, int]:
        """See `SampledTable`."""
        found: tuple[Family, int] = self.weights[0].sample.hashing
        return found

    def known(self, columns: Sequence[str]) -> KnownKeys:
        """See `SampledTable`."""
        known: KnownKeys = self.weights[0].sample.known(columns)
        positive = {w.column for w in self.weights if not w.signed}
        lowest = [0.0 if c in positive else low for c, low in zip(columns, known.unseen[:, 0], strict=True)]
        return replace(known, unseen=np.stack([np.array(lowest), known.unseen[:, 1]], axis=1))


@dataclass(frozen=True)
class MaterializedSamples(ABC):
    """What kept samples of join keys have in common, whatever is beside them; see `Joined`.

    Attributes
    ----------
    weights : mapping of int to SampledWeight
        By the numbers of a plan's synopses.
    """

    weights: Mapping[int, SampledWeight]

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all synopses."""
        return sum({id(w.sample): int(w.sample.nbytes) for w in self.weights.values()}.values())

    @abstractmethod
    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """See `Joined.known`."""

    def distinct(self, count: DistinctCount, confidence: float) -> Estimate:
        """Never asked: distinct values are counted by level sketches and pair samples."""
        raise ValueError("distinct values are not counted on a sample of join keys")

    def _known_ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm]) -> Estimate | None:
        """The exact ratio of two sums that are known; NULL of nothing."""
        above, below = self.known(top), self.known(bottom)
        if above is None or below is None:
            return None
        return exact(Fraction(above) / Fraction(below)) if below else exact(math.nan)

    def _factor(self, term: PlannedTerm) -> float:
        return term.coefficient / math.prod(self.weights[i].scale for i in term.synopses)


@dataclass(frozen=True)
class MaterializedSampleJoin(MaterializedSamples):
    """Kept samples of one class, by the numbers of a plan's synopses; see `Joined`."""

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`; the exact totals of the tables improve that of one term."""
        known = self.known(terms)
        if known is not None:
            return exact(known)
        if len(terms) != 1:
            factors = np.array([self._factor(t) for t in terms])
            return estimate_total(combined(self._joined(terms), [factors]), confidence)
        own = self._of(terms[0])
        tables = [_Table((w,)) for w in own]
        return times(estimate_join(tables, [w.column for w in own], confidence), self._factor(terms[0]))

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        known = self._known_ratio(top, bottom)
        if known is not None:
            return known
        both = [*top, *bottom]
        if len(both) == 2:
            pairs = list(zip(self._of(top[0]), self._of(bottom[0]), strict=True))
            if all(a.sample is b.sample for a, b in pairs):
                tables = [_Table(pair) for pair in pairs]
                sums, counts = [a.column for a, _ in pairs], [b.column for _, b in pairs]
                try:
                    found = estimate_average(tables, sums, counts, confidence)
                except ValueError:
                    pass  # no sampled key joins: told below
                else:
                    return times(found, self._factor(top[0]) / self._factor(bottom[0]))
        factors, first = np.array([self._factor(t) for t in both]), np.arange(len(both)) < len(top)
        parts = [np.where(first, factors, 0.0), np.where(first, 0.0, factors)]
        return estimate_ratio(combined(self._joined(both), parts), confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """See `Joined.known`."""
        total: int | float | Fraction = 0
        for term in terms:
            joined = self._joined([term])
            if not is_complete(joined):
                return None
            found = estimate_total(joined, 0.5)
            if not found.exact:
                return None
            scale = math.prod(self.weights[i].scale for i in term.synopses)
            total += Fraction(found.value) * Fraction(repr(term.coefficient)) / Fraction(repr(scale))
        return int(total) if isinstance(total, Fraction) and total.denominator == 1 else total

    def _of(self, term: PlannedTerm) -> list[SampledWeight]:
        return [self.weights[i] for i in term.synopses]

    def _joined(self, terms: Sequence[PlannedTerm]) -> JoinTerms:
        """What the keys known in all tables contribute: a column for each term."""
        tables = []
        for position in range(len(terms[0].synopses)):
            own = tuple(self.weights[t.synopses[position]] for t in terms)
            tables.append(_Table(own).known([w.column for w in own]))
        return join_terms(tables)


def times(estimate: Estimate, factor: float) -> Estimate:
    """An estimate multiplied by a constant."""
    ends = sorted((estimate.low * factor, estimate.high * factor))
    return replace(estimate, value=estimate.value * factor, low=ends[0], high=ends[1])
