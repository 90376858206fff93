"""The rows of a grouped query from what is known of each group: HAVING, ORDER BY, LIMIT. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...optimizer.plan import Plan
from ...parser.join_graph import Aggregate, Query, Term
from ...sketches.intervals.interval import Estimate, uncertified
from ..results.answer import Answer, misses
from ..results.expressions import Cell, Evaluator
from ..results.having_order_limit import Row, Truth, condition, show

CHOSEN = "rows that are uncertain were chosen for their estimates, which such a choice makes err its way"


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of a query.

    Parameters
    ----------
    query : Query
        As it was asked.
    count : int
        Which of the aggregates of the evaluators counts what joins, see `with_count`; negative where all groups are
        known to be there.
    """

    query: Query
    count: int

    def rows(self, evaluators: Sequence[Evaluator]) -> list[Row]:
        """The rows of all groups but those that are known to join nothing."""
        rows = []
        for number, evaluator in enumerate(evaluators):
            there = self._there(evaluator)
            if there.possible == {False}:
                continue
            cells = tuple(evaluator.cell(item.expression) for item in self.query.items)
            keys = tuple(evaluator.cell(key.expression) for key in self.query.order)
            passes = there if self.query.having is None else condition(evaluator, self.query.having)
            possible = passes.possible | (there.possible - {True})
            rows.append(Row(number, cells, Truth(passes.value, possible), keys))
        return rows

    def _there(self, evaluator: Evaluator) -> Truth:
        """Whether a tuple joins in the group; without groups, or a count of what joins, there is a row in any case."""
        if not self.query.groups or self.count < 0:
            return Truth(True, frozenset((True,)))
        known = evaluator.known
        estimate = known[self.count] if known else evaluator.aggregate(evaluator.plan.aggregates[self.count])
        if estimate.exact:
            return Truth(estimate.value > 0, frozenset((estimate.value > 0,)))
        if estimate.high <= 0:
            # By its interval too, nothing joins here.
            return Truth(False, frozenset((False,)))
        return Truth(True, frozenset((True, False) if estimate.low <= 0 else (True,)))

    def answer(
        self, evaluators: Sequence[Evaluator], rows: Sequence[Row], plan: Plan, notes: tuple[str, ...] = ()
    ) -> Answer:
        """The rows that HAVING, ORDER BY and LIMIT leave."""
        shown = show(rows, self.query)
        if shown.doubtful:
            notes += (f"{groups_text(shown.doubtful)} left out by HAVING may belong to the answer",)
        cells = [_chosen(r.cells) if u else r.cells for r, u in zip(shown.rows, shown.uncertain, strict=True)]
        estimates = [c for row in cells for c in row if isinstance(c, Estimate)]
        decided = self.query.having is not None or self.query.limit is not None or self.query.offset > 0
        return Answer(
            tuple(item.name for item in self.query.items),
            tuple(cells),
            plan=plan,
            bytes_used=_bytes(evaluators),
            notes=(*notes, *dict.fromkeys(n for e in estimates for n in e.notes)),
            uncertain=shown.uncertain if decided else None,
        )


def with_count(query: Query) -> tuple[Query, int]:
    """The query with a COUNT(*) among its aggregates, and where: it tells whether a group joins anything."""
    for i, aggregate in enumerate(query.aggregates):
        if aggregate.function == "count" and aggregate.total == (Term(),):
            return query, i
    if not query.groups:
        return query, -1
    count = Aggregate("count", "count(1)", (Term(),), (Term(),), query.groups[0].span)
    return replace(query, aggregates=(*query.aggregates, count)), len(query.aggregates)


def _chosen(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of a row that its estimates have let in: these err towards the choice, as the best of many do."""
    return tuple(uncertified(c, CHOSEN) if isinstance(c, Estimate) and not c.exact else c for c in cells)


def cell_misses(cell: Cell, target: float) -> bool:
    """Whether an estimate misses an asked error."""
    return isinstance(cell, Estimate) and not cell.exact and misses(cell, target)


def _bytes(evaluators: Sequence[Evaluator]) -> int:
    """In-memory bytes of the synopses, which all groups read together."""
    joined = evaluators[0].joined if evaluators else None
    return joined.nbytes if joined else 0


def groups_text(number: int) -> str:
    """So many groups."""
    return f"{number:,} group" + ("" if number == 1 else "s")
