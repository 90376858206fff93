"""Queries with GROUP BY, HAVING, ORDER BY, LIMIT: one pass a table for all groups, an estimate for each.

Groups differ in the sketch of the grouped vertex only; the sketches of the others, and all hash families, are common.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from ...errors import DataError
from ...parser.join_graph import Aggregate, Query, Term
from ...sketches.intervals.interval import Estimate, uncertified
from ..execution.build import build
from ..execution.exact_groups import exact_frame
from ..execution.grouping import Numbered, listed
from ..execution.known_groups import known_of
from ..results.answer import Answer, misses
from ..results.distinct import built_within
from ..results.estimator import SketchJoin
from ..results.expressions import Cell, Evaluator
from ..results.having_order_limit import Row, Truth, condition, show
from ..settings import Settings
from ..sources.tables import Frames
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from .sizing import chosen, chosen_groups

CHOSEN = "rows that are uncertain were chosen for their estimates, which such a choice makes err its way"


@dataclass
class GroupedRun:
    """One run of a grouped query.

    Parameters
    ----------
    spark : SparkSession
    tables : Frames
    query : Query
        With every `key_types` of its edges known.
    settings : Settings
    listener : ProgressListener, optional
    """

    spark: SparkSession
    tables: Frames
    query: Query
    settings: Settings
    listener: ProgressListener | None = None
    _seconds: dict[str, float] = field(default_factory=dict)
    _notes: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """A row for every group that is not known to join nothing, after HAVING, ORDER BY and LIMIT.

        With BEHAVIOR 'partial_run_on_base_table' the groups that miss the asked error are exact. The confidence of an
        interval is that of one group.

        Raises
        ------
        BudgetExceeded
            If there are more groups than ``skimql.max_groups``, or SIZE is too small for their sketches.
        DataError, UnsupportedQuery
            As `build`; also for groups that only Spark can compare.
        """
        query, count = _with_count(self.query)
        started = time.perf_counter()
        evaluators, groups = self._evaluators(query)
        self._seconds["build"] = time.perf_counter() - started
        started = time.perf_counter()
        rows = self._rows(evaluators, count)
        notes = self._notes
        missed = self._missed(rows)
        if missed and groups is not None:
            evaluators = self._run_exactly(query, groups, evaluators, missed)
            rows = self._rows(evaluators, count)
            notes += (f"{_groups(len(missed))} run exactly, since the asked error was missed",)
        shown = show(rows, self.query)
        self._seconds["answer"] = time.perf_counter() - started - self._seconds.get("exact", 0.0)
        if shown.doubtful:
            notes += (f"{_groups(shown.doubtful)} left out by HAVING may belong to the answer",)
        cells = [_chosen(r.cells) if u else r.cells for r, u in zip(shown.rows, shown.uncertain, strict=True)]
        estimates = [c for row in cells for c in row if isinstance(c, Estimate)]
        decided = self.query.having is not None or self.query.limit is not None or self.query.offset > 0
        return Answer(
            tuple(item.name for item in self.query.items),
            tuple(cells),
            plan=evaluators[0].plan if evaluators else chosen(query, self.settings),
            bytes_used=_bytes(evaluators),
            seconds=self._seconds,
            notes=(*notes, *dict.fromkeys(n for e in estimates for n in e.notes)),
            uncertain=shown.uncertain if decided else None,
        )

    def _evaluators(self, query: Query) -> tuple[list[Evaluator], Numbered | None]:
        """An evaluator for each group, all on the same sketches, and the groups where the query has any."""
        settings = self.settings
        if query.empty:
            # No tuple joins: no groups, or one row where nothing is grouped.
            plan, known = chosen(query, settings), known_of(query, None)
            return [] if query.groups else [Evaluator(plan, None, settings.confidence, known=known)], None
        if not query.groups:
            plan, built, self._notes = built_within(
                query,
                lambda too_large: chosen(query, settings, too_large),
                lambda plan, most: build(self.spark, plan, self.tables, self.listener, most),
            )
            return [Evaluator(plan, SketchJoin(plan, built), settings.confidence)], None
        groups = listed(self.spark, self.tables, query, settings.max_groups, self.listener)
        if not groups.values:
            return [], groups
        plans, built, self._notes = built_within(
            query,
            lambda too_large: chosen_groups(query, len(groups.values), settings, too_large),
            lambda plans, most: build(self.spark, plans[0], groups, self.listener, most),
        )
        pairs = zip(plans, groups.values, strict=True)
        return [
            Evaluator(plan, SketchJoin(plan, built), settings.confidence, group) for plan, group in pairs
        ], groups

    def _rows(self, evaluators: Sequence[Evaluator], count: int) -> list[Row]:
        """The rows of all groups but those that are known to join nothing."""
        rows = []
        for number, evaluator in enumerate(evaluators):
            there = self._there(evaluator, count)
            if there.possible == {False}:
                continue
            cells = tuple(evaluator.cell(item.expression) for item in self.query.items)
            keys = tuple(evaluator.cell(key.expression) for key in self.query.order)
            kept = there if self.query.having is None else condition(evaluator, self.query.having)
            possible = kept.possible | (there.possible - {True})
            rows.append(Row(number, cells, Truth(kept.value, possible), keys))
        return rows

    def _there(self, evaluator: Evaluator, count: int) -> Truth:
        """Whether a tuple joins in the group; without groups there is a row in any case."""
        if not self.query.groups:
            return Truth(True, frozenset((True,)))
        known = evaluator.known
        estimate = known[count] if known else evaluator.aggregate(evaluator.plan.aggregates[count])
        if estimate.exact:
            return Truth(estimate.value > 0, frozenset((estimate.value > 0,)))
        if estimate.high <= 0:
            # By its interval too, nothing joins here.
            return Truth(False, frozenset((False,)))
        return Truth(True, frozenset((True, False) if estimate.low <= 0 else (True,)))

    def _missed(self, rows: Sequence[Row]) -> list[int]:
        """The groups to be run exactly: those that HAVING may keep and that miss the asked error."""
        target = self.settings.error
        if target is None or self.settings.behavior != "partial_run_on_base_table":
            return []
        return [r.number for r in rows if r.kept.may_hold and any(_missed(c, target) for c in r.cells)]

    def _run_exactly(
        self, query: Query, groups: Numbered, evaluators: Sequence[Evaluator], missed: Sequence[int]
    ) -> list[Evaluator]:
        """The evaluators, those of some groups with their aggregates from Spark."""
        started = time.perf_counter()
        try:
            frame = exact_frame(query, groups, missed)
            found = {
                r["number"]: r.asDict()
                for r in run_job(self.spark, "exact groups", frame.collect, self.listener)
            }
        except SPARK_FAULTS as fault:
            message = f"the exact run of {_groups(len(missed))} failed: {first_line(fault)}"
            raise DataError(message, "SKIMQL_EXACT_FAILED", query.sql) from fault
        self._seconds["exact"] = time.perf_counter() - started
        known = {number: known_of(query, found.get(number)) for number in missed}
        return [replace(e, known=known.get(n)) for n, e in enumerate(evaluators)]


def _with_count(query: Query) -> tuple[Query, int]:
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


def _missed(cell: Cell, target: float) -> bool:
    return isinstance(cell, Estimate) and not cell.exact and misses(cell, target)


def _bytes(evaluators: Sequence[Evaluator]) -> int:
    """In-memory bytes of the synopses, which all groups read together."""
    joined = evaluators[0].joined if evaluators else None
    return joined.nbytes if joined else 0


def _groups(number: int) -> str:
    return f"{number:,} group" + ("" if number == 1 else "s")
