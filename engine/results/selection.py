"""Which groups are shown because of their estimates, and how much wider the intervals of these have to be.

Of many groups those are let in by HAVING or come first by ORDER BY ... LIMIT that came out large. If R of m groups are
shown and each has an interval that fails with chance alpha R / m, the expected share of the shown ones that miss is
alpha at most: the false coverage rate [1]_. Groups of which it is certain, at a much higher confidence, that they
belong to the answer or do not, are not chosen by chance: they are not among the m [2]_.

References
----------
.. [1] Y. Benjamini and D. Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected
   parameters", JASA 100, 2005.
.. [2] T. Zrnic and W. Fithian, "Locally simultaneous inference", Annals of Statistics 52, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...parser.expressions import has_aggregate
from ...parser.join_graph import Query
from ...sketches.intervals.interval import Estimate, uncertified
from .expressions import Cell
from .having_order_limit import Row, is_cut, surely_within

CHOSEN = "rows that are uncertain were chosen for their estimates, which such a choice makes err its way"
WIDENED = (
    "rows are chosen by their estimates: intervals are wider, so that {:.3g} of the shown ones miss at most"
)

# Of the chance that an interval fails, the part in which a group is wrongly taken to be shown, or not, for certain.
SCREENED = 0.1

# Where HAVING keeps fewer rows, that any are shown may be chance.
FEW = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """How the intervals of the shown rows are made.

    Attributes
    ----------
    decided : frozenset of int
        The numbers of rows that belong to the answer for certain.
    share_decided, share : float
        Of the chance that an interval fails: for these rows, and for the others.
    certified : bool
        Whether the others are certified: not where perhaps nothing would be shown.
    """

    decided: frozenset[int]
    share_decided: float
    share: float
    certified: bool = True

    def share_of(self, row: Row) -> float:
        """Of the chance that an interval fails, the part for the intervals of a row."""
        return self.share_decided if row.number in self.decided else self.share


def is_chosen(query: Query) -> bool:
    """Whether estimates decide which rows belong to the answer."""
    having = query.having is not None and has_aggregate(query.having)
    return having or (is_cut(query) and any(has_aggregate(o.expression) for o in query.order))


def confidence_of_chosen(query: Query, confidence: float, groups: int) -> float:
    """The confidence that sketches must reach which tell what is chosen for certain."""
    return 1 - (1 - confidence) * SCREENED / max(groups, 1) if is_chosen(query) else confidence


def selection(shown: Sequence[Row], screened: Sequence[Row], query: Query, unmet: int = 0) -> Selection:
    """How the intervals of the shown rows are made.

    Parameters
    ----------
    shown : sequence of Row
        The rows of the answer.
    screened : sequence of Row
        All rows, with intervals that fail with the chance `SCREENED` all together.
    query : Query
    unmet : int
        Groups that may be there and have no row.
    """
    may = _may_be_within(screened, query)
    by_number = {r.number: r for r in screened}
    end = None if query.limit is None else query.offset + query.limit

    def surely(row: Row) -> bool:
        return row.passes.must_hold and (not is_cut(query) or surely_within(row, screened, query, end))

    decided = frozenset(r.number for r in shown if surely(by_number[r.number]))
    estimated = {r.number for r in shown if _is_estimated(r)}
    undecided = len(estimated - decided)
    # A row that is surely within and is not shown does not exist: what is shown is what is decided, or may be.
    candidates = sum(
        1 for r, m in zip(screened, may, strict=True) if m and r.number not in decided and _is_estimated(r)
    )
    share = min(undecided / max(candidates + unmet, 1), 1.0)
    if query.having is None or sum(1 for r in screened if r.passes.value is True) >= FEW:
        return Selection(decided, 1 - SCREENED, (1 - SCREENED) * share)
    return Selection(decided, SCREENED, (1 - SCREENED) * share, certified=bool(decided))


def widened(cell: Cell, wide: Cell) -> Cell:
    """A cell with the interval that it has at a higher confidence as well; its value stays."""
    if not isinstance(cell, Estimate) or not isinstance(wide, Estimate) or cell.exact or wide.exact:
        return cell
    if math.isnan(cell.low) or math.isnan(wide.low):
        return cell
    return replace(
        cell,
        low=min(cell.low, wide.low),
        high=max(cell.high, wide.high),
        certified=cell.certified and wide.certified,
        notes=tuple(dict.fromkeys((*cell.notes, *wide.notes))),
    )


def chosen(cell: Cell) -> Cell:
    """A cell of a row that its estimates have let in, with nothing to make up for it."""
    return uncertified(cell, CHOSEN) if isinstance(cell, Estimate) and not cell.exact else cell


def _is_estimated(row: Row) -> bool:
    return any(isinstance(c, Estimate) and not c.exact for c in row.cells)


def _may_be_within(rows: Sequence[Row], query: Query) -> Sequence[bool]:
    """Which rows some of the values in all intervals let in; by the first key of ORDER BY alone."""
    may = [r.passes.may_hold for r in rows]
    if not is_cut(query) or query.limit is None:
        return may
    ends = [_ends(r.keys[0]) for r in rows]
    if any(e is None for e in ends):
        return may
    low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    if query.order[0].descending:
        low, high = -high, -low
    # How many rows surely come before: all of their interval lies below all of the row's own.
    sure = np.array([r.passes.must_hold for r in rows], dtype=bool)
    before = np.searchsorted(np.sort(high[sure]), low, side="left")
    return [m and b < query.offset + query.limit for m, b in zip(may, before.tolist(), strict=True)]


def _ends(cell: Any) -> tuple[float, float] | None:
    if isinstance(cell, Estimate):
        return None if math.isnan(cell.low) else (float(cell.low), float(cell.high))
    if isinstance(cell, (int, float)) and not isinstance(cell, bool) and not math.isnan(cell):
        return float(cell), float(cell)
    return None
