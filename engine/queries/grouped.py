"""Queries with GROUP BY, HAVING, ORDER BY, LIMIT: one pass a table for all groups, an estimate for each.

Groups differ in the sketch of the grouped vertex only; the sketches of the others, and all hash families, are common.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from ...errors import DataError
from ...parser.join_graph import Query
from ..execution.build import build
from ..execution.exact_groups import exact_frame
from ..execution.grouping import Numbered, listed
from ..execution.known_groups import known_of
from ..results.answer import Answer
from ..results.distinct import built_within
from ..results.estimator import SketchJoin
from ..results.expressions import Evaluator
from ..results.having_order_limit import Row
from ..settings import Settings
from ..sources.tables import Frames
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from .group_rows import GroupRows, cell_misses, groups_text, with_count
from .sizing import chosen, chosen_groups


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
        query, count = with_count(self.query)
        shown = GroupRows(self.query, count)
        started = time.perf_counter()
        evaluators, groups = self._evaluators(query)
        self._seconds["build"] = time.perf_counter() - started
        started = time.perf_counter()
        rows = shown.rows(evaluators)
        notes = self._notes
        missed = self._missed(rows)
        if missed and groups is not None:
            evaluators = self._run_exactly(query, groups, evaluators, missed)
            rows = shown.rows(evaluators)
            notes += (f"{groups_text(len(missed))} run exactly, since the asked error was missed",)
        plan = evaluators[0].plan if evaluators else chosen(query, self.settings)
        answer = shown.answer(evaluators, rows, plan, notes)
        self._seconds["answer"] = time.perf_counter() - started - self._seconds.get("exact", 0.0)
        method = "constant" if query.empty else plan.method
        return replace(answer, seconds=self._seconds, method=method)

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

    def _missed(self, rows: Sequence[Row]) -> list[int]:
        """The groups to be run exactly: those that HAVING may keep and that miss the asked error."""
        target = self.settings.error
        if target is None or self.settings.behavior != "partial_run_on_base_table":
            return []
        return [r.number for r in rows if r.kept.may_hold and any(cell_misses(c, target) for c in r.cells)]

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
            message = f"the exact run of {groups_text(len(missed))} failed: {first_line(fault)}"
            raise DataError(message, "SKIMQL_EXACT_FAILED", query.sql) from fault
        self._seconds["exact"] = time.perf_counter() - started
        known = {number: known_of(query, found.get(number)) for number in missed}
        return [replace(e, known=known.get(n)) for n, e in enumerate(evaluators)]
