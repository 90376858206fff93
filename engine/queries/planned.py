"""Queries planned by statistics: the method is the planner's choice, by error target, size, or a forced method."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import AccuracyNotReached, BudgetExceeded, DataError, UnsupportedQuery
from ...optimizer.candidates.candidate import Choice, NoMethod
from ...optimizer.candidates.enumerate import choose_method
from ...optimizer.choose import plan_of
from ...optimizer.describe.choice import describe_choice
from ...optimizer.messages import tree_of
from ...optimizer.objective import Objective
from ...optimizer.plan import Plan
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import rows_for
from ..execution.build import build
from ..execution.message_size import MessageTooLarge
from ..execution.sample_join import run_sample
from ..results.answer import Answer, answer_plan
from ..results.estimator import Joined, SketchJoin
from ..settings import Settings
from ..sources.tables import Tables
from ..spark.jobs import ProgressListener
from ..statistics.gather import KeptStatistics, gather

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below it a sample holds nothing but its dense keys.
LEAST_RATE = 1e-9

# Of what is kept where the asked error is out of reach.
BEST_EFFORT_BYTES = 16 << 20

# What this engine can carry out.
METHODS = ("exact", "hash", "convolution", "key_sample", "two_level", "sampled_messages", "exact_run")


@dataclass(frozen=True)
class PlannedRun:
    """One query, planned by what is known of its tables.

    Attributes
    ----------
    spark, tables, settings, listener
        The session's.
    query : Query
        With every key type known.
    kept : KeptStatistics
        The session's; what is found is added.
    exact : callable
        Runs the query exactly.
    """

    spark: SparkSession
    tables: Tables
    query: Query
    settings: Settings
    kept: KeptStatistics
    exact: Callable[[], Answer]
    listener: ProgressListener | None = None

    def answer(self) -> Answer:
        """The answer by the chosen method.

        Raises
        ------
        UnsupportedQuery
            If a forced method does not apply.
        BudgetExceeded
            If the asked size is too small for any method.
        AccuracyNotReached
            If no method within `max_bytes` is predicted to meet the asked error, and running exactly is no candidate.
        """
        started = time.perf_counter()
        fold_bytes = self.settings.fold_bytes
        while True:
            choice = self.choice(self.statistics, fold_bytes)
            if choice.taken.method == "exact_run":
                exact = self.exact()
                note = "run exactly: predicted to be the cheapest way to the asked error"
                return replace(exact, notes=(*exact.notes, note))
            plan = self.plan(choice)
            try:
                plan, joined = self._within_size(plan)
            except MessageTooLarge:
                # The statistics were wrong: no messages then.
                if not fold_bytes:
                    raise
                fold_bytes = 0
                continue
            except DataError as fault:
                # Products of counts beyond 64 bits: sketches and samples multiply doubles.
                if fault.code != "SKIMQL_OVERFLOW" or not fold_bytes:
                    raise
                fold_bytes = 0
                continue
            answer = answer_plan(plan, joined, self.settings.confidence)
            width = choice.taken.half_width(self.settings.confidence)
            note = f"by {choice.taken.name}"
            if width > 0:
                note += f"; ±{width:.2g} of the value was predicted"
            if choice.objective.relative_error is None and self.settings.error is not None:
                refused = next(c.refused for c in choice.candidates if c.method == "exact_run")
                note += f"; nothing meets the asked error, and an exact run {refused}"
            seconds = {"build": time.perf_counter() - started}
            return replace(answer, notes=(note, *answer.notes), seconds=seconds)

    def explained(self) -> str:
        """The choice as text, by what is known without a job."""
        known = gather(self.spark, self.tables, self.query, self.kept, pilot=False)
        choice = self.choice(known, self.settings.fold_bytes)
        return describe_choice(choice, self.query.graph, known, time.time())

    @cached_property
    def statistics(self) -> tuple[RelationStatistics, ...]:
        """What is known of each vertex, after a pilot where nothing was."""
        return gather(self.spark, self.tables, self.query, self.kept, self.listener)

    def choice(self, statistics: tuple[RelationStatistics, ...], fold_bytes: int) -> Choice:
        """The planner's choice; raises as `answer`."""
        try:
            return choose_method(tree_of(self.query.graph), statistics, self._objective(fold_bytes))
        except NoMethod as fault:
            best = self._best_effort(fault, statistics, fold_bytes)
            if best is not None:
                return best
            reasons = "; ".join(dict.fromkeys(f"{c.name}: {c.refused}" for c in fault.candidates[:4]))
            if self.query.method is not None:
                code, hint = "SKIMQL_UNKNOWN_METHOD", "another method, or no USING"
                raise UnsupportedQuery(
                    f"{self.query.method} cannot answer this: {reasons}", code, self.query.sql, hint=hint
                ) from fault
            if self.settings.size_bytes is not None:
                raise BudgetExceeded(
                    f"{self.settings.size_bytes:,} bytes are too few: {reasons}",
                    sql=self.query.sql,
                    hint="a larger SIZE",
                ) from fault
            raise AccuracyNotReached(
                f"no method is predicted to meet the asked error: {reasons}",
                sql=self.query.sql,
                hint="a larger skimql.max_bytes or skimql.max_exact_seconds, or EXACT SELECT ...",
            ) from fault

    def _best_effort(
        self, fault: NoMethod, statistics: tuple[RelationStatistics, ...], fold_bytes: int
    ) -> Choice | None:
        """The least predicted error where nothing meets the asked one and the exact run would not end."""
        exact = next((c for c in fault.candidates if c.method == "exact_run"), None)
        if exact is None or not exact.refused or self.query.method is not None:
            return None
        size = min(self.settings.max_bytes, BEST_EFFORT_BYTES)
        objective = replace(self._objective(fold_bytes), relative_error=None, size_bytes=size)
        try:
            choice = choose_method(tree_of(self.query.graph), statistics, objective)
        except NoMethod as nothing:
            raise BudgetExceeded(
                f"an exact run {exact.refused}, and no sketch fits: {nothing}",
                sql=self.query.sql,
                hint="a larger skimql.max_bytes",
            ) from nothing
        return replace(choice, candidates=(*choice.candidates, exact))

    def plan(self, choice: Choice) -> Plan:
        """The plan that carries out a choice."""
        return plan_of(self.query, choice, self.settings.seed, self.settings.sparse)

    def _within_size(self, plan: Plan) -> tuple[Plan, Joined]:
        """Run a plan; a sample that took more than the asked size is taken again, smaller."""
        while True:
            joined = self._run(plan)
            size, sample = self.settings.size_bytes, plan.sample
            if size is None or sample is None or joined.nbytes <= size or sample.rate < LEAST_RATE:
                return plan, joined
            smaller = replace(sample, rate=0.9 * sample.rate * size / joined.nbytes)
            plan = replace(plan, sample=smaller)

    def _run(self, plan: Plan) -> Joined:
        if plan.sample is not None:
            tuples = {v: s.tuples for v, s in enumerate(self.statistics) if s.tuples is not None}
            return run_sample(self.spark, plan, self.tables, self.listener, self.settings.max_bytes, tuples)
        message_bytes = self.settings.fold_bytes or None
        return SketchJoin(plan, build(self.spark, plan, self.tables, self.listener, message_bytes))

    def _objective(self, fold_bytes: int) -> Objective:
        rows = self.settings.rows or rows_for(self.settings.confidence)
        size = self.settings.size_bytes
        if size is None and self.settings.error is None:
            # Nothing is asked: as many bytes as sketches of the session's size take.
            size = 8 * rows * self.settings.buckets * len(self.query.graph.vertices)
        aggregates = {a.function for a in self.query.aggregates}
        return Objective(
            relative_error=self.settings.error,
            confidence=self.settings.confidence,
            size_bytes=size,
            max_bytes=self.settings.max_bytes,
            fold_bytes=fold_bytes,
            max_exact_seconds=self.settings.max_exact_seconds,
            method=self.query.method,
            methods=METHODS,
            rows=rows,
            columns=1 if aggregates <= {"count"} else 2,
        )
