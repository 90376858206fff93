"""From the estimators of every group to the rows of an answer: HAVING, ORDER BY, LIMIT, and what is uncertain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...parser.expressions import has_aggregate
from ...parser.join_graph import Aggregate, Query, Term
from ...sketches.intervals.interval import Estimate
from .answer import MET, Answer, state_of
from .conditions import Truth, condition, item_cell
from .expressions import Cell, Evaluator
from .having_order_limit import Row, Shown, edge, show
from .selection import SCREENED, WIDENED, chosen, is_chosen, selection, widened

GroupNumbers = tuple[int, ...]
PERHAPS = "a value that is known for its group is of a group that may join nothing"


@dataclass(frozen=True)
class Estimated:
    """What estimates every group of a query, all on the same synopses.

    Attributes
    ----------
    query : Query
        A grouped one with a COUNT(*), see `with_count`.
    evaluators : mapping of tuples of int to Evaluator
        By the numbers of a group; of an ungrouped query one, of no numbers.
    listed : bool
        Whether every group is in a table: one whose estimate is 0 is shown all the same, as it may join something.
    unmet : int
        Groups that may be there and that a sample has not met.
    weak : frozenset of int
        The places of groups that are uncertain whatever their estimates: a sample has met little of them.
    """

    query: Query
    evaluators: Mapping[GroupNumbers, Evaluator]
    listed: bool = True
    unmet: int = 0
    weak: frozenset[int] = frozenset()

    @cached_property
    def rows(self) -> dict[GroupNumbers, Row]:
        """The rows of all groups but those that are known to join nothing, before ORDER BY and LIMIT."""
        found = {}
        for number, (group, evaluator) in enumerate(self.evaluators.items()):
            row = self._row(number, evaluator)
            if row is not None:
                found[group] = row
        return found

    def _row(self, number: int, evaluator: Evaluator, cells: Sequence[Cell] | None = None) -> Row | None:
        """The row of a group, with the cells if they are known; None where nothing joins."""
        count = self._count(evaluator)
        there = self._there(count)
        if there.possible == {False}:
            return None
        if cells is None:
            cells = [item_cell(evaluator, item.expression) for item in self.query.items]
            if count is not None and False in there.possible:
                cells = [_if_there(c, count) for c in cells]
        keys = tuple(item_cell(evaluator, key.expression) for key in self.query.order)
        passes = there if self.query.having is None else condition(evaluator, self.query.having)
        value = passes.value if there.value or passes.value is None else False
        return Row(number, tuple(cells), Truth(value, passes.possible | (there.possible - {True})), keys)

    def _count(self, evaluator: Evaluator) -> Estimate | None:
        """How many tuples join in the group; None where there is a row in any case."""
        if not self.query.groups:
            return None
        count = _count_of(self.query)
        known = evaluator.known
        if not known and count >= len(evaluator.plan.aggregates):
            # Distinct values of one table: what is kept of a group is of tuples that are there.
            return None
        return known[count] if known else evaluator.aggregate(evaluator.plan.aggregates[count])

    def _there(self, estimate: Estimate | None) -> Truth:
        """Whether there is a row of a group in which so many tuples join."""
        if estimate is None:
            return Truth(True, frozenset((True,)))
        if estimate.exact:
            return Truth(estimate.value > 0, frozenset((estimate.value > 0,)))
        if estimate.high <= 0:
            # By its interval too, nothing joins here.
            return Truth(False, frozenset((False,)))
        possible = frozenset((True, False) if estimate.low <= 0 else (True,))
        return Truth(self.listed or estimate.value > 0, possible)

    def missed(self, target: float) -> list[GroupNumbers]:
        """The groups that may be shown and whose estimates miss a relative error."""
        shown = {r.number: cells for r, cells in zip(self._shown.rows, self._cells, strict=True)}
        return [
            n
            for n, r in self.rows.items()
            if r.passes.may_hold and any(state_of(c, target) != MET for c in shown.get(r.number, r.cells))
        ]

    def at_edge(self) -> list[GroupNumbers]:
        """The groups of which it is uncertain whether LIMIT lets them in, by the first key of ORDER BY."""
        return [n for n, r in self.rows.items() if r.number in self._edge]

    @cached_property
    def _edge(self) -> frozenset[int]:
        return edge(list(self.rows.values()), self.query)

    @property
    def shown_rows(self) -> tuple[Row, ...]:
        """The rows that are shown, in their order."""
        return self._shown.rows

    @cached_property
    def _shown(self) -> Shown:
        return show(list(self.rows.values()), self.query)

    @property
    def _is_chosen(self) -> bool:
        """Whether it is by their estimates that rows are shown."""
        return is_chosen(self.query) or (bool(self.query.groups) and not self.listed)

    @cached_property
    def _cells(self) -> list[tuple[Cell, ...]]:
        """Those of the shown rows, with intervals that hold though the rows were chosen."""
        shown = self._shown.rows
        if not self._is_chosen or not any(
            isinstance(c, Estimate) and not c.exact for r in shown for c in r.cells
        ):
            return [r.cells for r in shown]
        number = len(self.evaluators) + self.unmet
        evaluators = list(self.evaluators.values())
        screened = []
        for row in self.rows.values():
            strict = _at(evaluators[row.number], SCREENED / number)
            screened.append(self._row(row.number, strict, row.cells) or row)
        made = selection(shown, screened, self.query, self.unmet)
        found = []
        for row in shown:
            strict = _at(evaluators[row.number], made.share_of(row))
            wide = (item_cell(strict, item.expression) for item in self.query.items)
            cells = tuple(widened(c, w) for c, w in zip(row.cells, wide, strict=True))
            sure = made.certified or row.number in made.decided
            found.append(cells if sure else tuple(map(chosen, cells)))
        return found

    def answer(self) -> Answer:
        """The rows after HAVING, ORDER BY and LIMIT. The confidence of an interval is that of one group."""
        query, shown, rows = self.query, self._shown, self._cells
        estimates = [c for row in rows for c in row if isinstance(c, Estimate)]
        notes: tuple[str, ...] = ()
        if shown.doubtful:
            what = "left out by HAVING" if query.having is not None else "of which nothing was met"
            notes = (f"{groups_text(shown.doubtful)} {what} may belong to the answer",)
        if self.unmet:
            notes += (f"{groups_text(self.unmet)} that the sample has not met may belong to the answer",)
        if rows != [r.cells for r in shown.rows]:
            notes += (WIDENED.format(1 - next(iter(self.evaluators.values())).confidence),)
        one = next(iter(self.evaluators.values()), None)
        return Answer(
            tuple(item.name for item in query.items),
            tuple(rows),
            plan=None if one is None else one.plan,
            bytes_used=one.joined.nbytes if one is not None and one.joined is not None else 0,
            notes=(*notes, *dict.fromkeys(n for e in estimates for n in e.notes)),
            uncertain=tuple(
                u or r.number in self.weak for u, r in zip(shown.uncertain, shown.rows, strict=True)
            )
            if query.leaves_rows_out
            else None,
        )

    def at_once(self) -> Estimated:
        """The same with intervals that hold for all groups and aggregates together (Bonferroni)."""
        items = sum(has_aggregate(i.expression) for i in self.query.items)
        share = 1 / max((len(self.evaluators) + self.unmet) * items, 1)
        return replace(self, evaluators={n: _at(e, share) for n, e in self.evaluators.items()})

    def with_known(self, known: Mapping[GroupNumbers, Sequence[Estimate]]) -> Estimated:
        """The same with the aggregates of some groups known exactly."""
        return replace(
            self,
            evaluators={
                n: replace(e, known=known[n]) if n in known else e for n, e in self.evaluators.items()
            },
        )


def _if_there(cell: Cell, count: Estimate) -> Cell:
    """What is known exactly of a group that may not be there is not exact: there may be no such row."""
    if not isinstance(cell, Estimate) or not cell.exact:
        return cell
    return replace(
        cell,
        value=float(cell.value),
        low=float(cell.low),
        high=float(cell.high),
        confidence=count.confidence,
        certified=count.certified,
        basis=count.basis,
        notes=(*cell.notes, PERHAPS),
    )


def with_count(query: Query) -> Query:
    """A grouped query with a COUNT(*) among its aggregates: it tells whether a group joins anything."""
    if not query.groups or _count_of(query) >= 0:
        return query
    count = Aggregate("count", "count(1)", (Term(),), (Term(),), query.groups[0].span, asked=False)
    return replace(query, aggregates=(*query.aggregates, count))


def groups_text(number: int) -> str:
    """``1 group``, ``2 groups``."""
    return f"{number:,} group" + ("" if number == 1 else "s")


def _count_of(query: Query) -> int:
    counts = (i for i, a in enumerate(query.aggregates) if a.function == "count" and a.total == (Term(),))
    return next(counts, -1)


def _at(evaluator: Evaluator, share: float) -> Evaluator:
    """The evaluator with intervals that fail with a share of the chance."""
    return replace(evaluator, confidence=1 - (1 - evaluator.confidence) * share)
