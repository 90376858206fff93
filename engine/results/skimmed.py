"""USING skimmed: dense keys are taken out of hash sketches before these are multiplied (US 2006/0143170).

The candidates for dense keys are the heaviest keys that statistics know of any table of the join; a table with several
join keys has none, and is multiplied as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...optimizer.plan import PlannedTerm
from ...sketches.intervals.interval import Estimate, clip
from ...sketches.joins.convolution import ConvolutionSketch
from ...sketches.joins.skim import Skimmed, skim
from ...sketches.joins.skim_join import skimmed_average, skimmed_join
from .estimator import SketchJoin

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SkimmedJoin(SketchJoin):
    """Hash sketches with their dense keys apart.

    Attributes
    ----------
    candidates : ndarray of int64, shape (n,)
        Keys that may be dense, ascending.
    """

    candidates: Ints

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`; sums of several terms, and DOUBLE weights, are multiplied as they are."""
        parts = self.skimmed(terms)
        if parts is None or self.known(terms) is not None:
            return super().total(terms, confidence, bounded=bounded)
        found = skimmed_join(parts, self._edges, confidence)
        (scaled,) = self._terms(terms)
        estimate = _times(found, scaled.coefficient)
        return clip(estimate, *self._bounds(terms)) if bounded and not self.deletions else estimate

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        above, below = self.skimmed(top), self.skimmed(bottom)
        known = self.known(top) is not None or self.known(bottom) is not None
        if above is None or below is None or known:
            return super().ratio(top, bottom, confidence)
        (scaled,), (count,) = self._terms(top), self._terms(bottom)
        found = skimmed_average(above, below, self._edges, confidence)
        return _times(found, scaled.coefficient / count.coefficient)

    def skimmed(self, terms: Sequence[PlannedTerm]) -> list[Skimmed] | None:
        """The skimmed sketches of a sum of one term of integers; None of others."""
        if len(terms) != 1:
            return None
        (term,) = terms
        if any(self.built[i].linear.spec.dtype != "int64" for i in term.synopses):
            return None
        rows = self._rows[self._cells(term)]
        return [self._of(i, rows) for i in term.synopses]

    def _of(self, synopsis: int, rows: int) -> Skimmed:
        """One object for each synopsis, so that a self-join is seen as one."""
        if synopsis not in self._cache:
            sketch = self._first_rows(synopsis, rows).dense()
            assert isinstance(sketch, ConvolutionSketch), "hash sketches are skimmed"
            attributes = len(sketch.spec.families)
            keys = self.candidates if attributes == 1 else self.candidates[:0]
            self._cache[synopsis] = skim(sketch, [keys] * attributes)
        return self._cache[synopsis]

    @cached_property
    def _cache(self) -> dict[int, Skimmed]:
        return {}


def _times(estimate: Estimate, factor: float) -> Estimate:
    ends = sorted((estimate.low * factor, estimate.high * factor))
    return Estimate(
        estimate.value * factor,
        ends[0],
        ends[1],
        estimate.confidence,
        estimate.certified,
        estimate.basis,
        estimate.notes,
    )
