"""From the estimators of every group to the rows of an answer: HAVING, ORDER BY, LIMIT, and what is uncertain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...parser.join_graph import Aggregate, Query, Term
from ...sketches.intervals.interval import Estimate, uncertified
from .answer import MET, Answer, state_of
from .expressions import Cell, Evaluator
from .having_order_limit import Row, Truth, condition, show

CHOSEN = "rows that are uncertain were chosen for their estimates, which such a choice makes err its way"

GroupNumbers = tuple[int, ...]


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
    """

    query: Query
    evaluators: Mapping[GroupNumbers, Evaluator]
    listed: bool = True
    unmet: int = 0

    @cached_property
    def rows(self) -> dict[GroupNumbers, Row]:
        """The rows of all groups but those that are known to join nothing, before ORDER BY and LIMIT."""
        found = {}
        for number, (group, evaluator) in enumerate(self.evaluators.items()):
            there = self._there(evaluator)
            if there.possible == {False}:
                continue
            cells = tuple(evaluator.cell(item.expression) for item in self.query.items)
            keys = tuple(evaluator.cell(key.expression) for key in self.query.order)
            passes = there if self.query.having is None else condition(evaluator, self.query.having)
            value = passes.value if there.value or passes.value is None else False
            found[group] = Row(number, cells, Truth(value, passes.possible | (there.possible - {True})), keys)
        return found

    def _there(self, evaluator: Evaluator) -> Truth:
        """Whether a tuple joins in the group; without groups there is a row in any case."""
        if not self.query.groups:
            return Truth(True, frozenset((True,)))
        count = _count_of(self.query)
        known = evaluator.known
        if not known and count >= len(evaluator.plan.aggregates):
            # Distinct values of one table: what is kept of a group is of tuples that are there.
            return Truth(True, frozenset((True,)))
        estimate = known[count] if known else evaluator.aggregate(evaluator.plan.aggregates[count])
        if estimate.exact:
            return Truth(estimate.value > 0, frozenset((estimate.value > 0,)))
        if estimate.high <= 0:
            # By its interval too, nothing joins here.
            return Truth(False, frozenset((False,)))
        possible = frozenset((True, False) if estimate.low <= 0 else (True,))
        return Truth(self.listed or estimate.value > 0, possible)

    def missed(self, target: float) -> list[GroupNumbers]:
        """The groups that may be shown and whose estimates miss a relative error."""
        return [
            n
            for n, r in self.rows.items()
            if r.passes.may_hold and any(state_of(c, target) != MET for c in r.cells)
        ]

    def answer(self) -> Answer:
        """The rows after HAVING, ORDER BY and LIMIT. The confidence of an interval is that of one group."""
        query = self.query
        shown = show(list(self.rows.values()), query)
        rows = [_chosen(r.cells) if u else r.cells for r, u in zip(shown.rows, shown.uncertain, strict=True)]
        estimates = [c for row in rows for c in row if isinstance(c, Estimate)]
        notes: tuple[str, ...] = ()
        if shown.doubtful:
            what = "left out by HAVING" if query.having is not None else "of which nothing was met"
            notes = (f"{groups_text(shown.doubtful)} {what} may belong to the answer",)
        if self.unmet:
            notes += (f"{groups_text(self.unmet)} that the sample has not met may belong to the answer",)
        one = next(iter(self.evaluators.values()), None)
        return Answer(
            tuple(item.name for item in query.items),
            tuple(rows),
            plan=None if one is None else one.plan,
            bytes_used=one.joined.nbytes if one is not None and one.joined is not None else 0,
            notes=(*notes, *dict.fromkeys(n for e in estimates for n in e.notes)),
            uncertain=shown.uncertain if query.leaves_rows_out else None,
        )

    def with_known(self, known: Mapping[GroupNumbers, Sequence[Estimate]]) -> Estimated:
        """The same with the aggregates of some groups known exactly."""
        return replace(
            self,
            evaluators={
                n: replace(e, known=known[n]) if n in known else e for n, e in self.evaluators.items()
            },
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


def _chosen(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of a row that its estimates have let in: these err towards the choice, as the best of many do."""
    return tuple(uncertified(c, CHOSEN) if isinstance(c, Estimate) and not c.exact else c for c in cells)
