"""Queries planned by statistics: the method is the planner's choice, by error target, size, or a forced method."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import AccuracyNotReached, BudgetExceeded, DataError, UnsupportedQuery
from ...optimizer.candidates.candidate import Choice, NoMethod
from ...optimizer.candidates.enumerate import choose_method
from ...optimizer.choose import plan_of
from ...optimizer.describe.choice import describe_choice
from ...optimizer.messages import tree_of
from ...optimizer.methods import CHOSEN, METHODS, is_linear
from ...optimizer.objective import Objective
from ...optimizer.plan import Plan
from ...optimizer.prediction.relation import RelationStatistics
from ...optimizer.route import routed
from ...parser.join_graph import Query
from ...sketches.intervals.interval import rows_for
from ..execution.build import build
from ..execution.message_limit import MessageTooLarge
from ..execution.sample_join import run_sample
from ..results.answer import Answer, answer_plan
from ..results.estimator import Joined, SketchJoin
from ..results.skimmed import SkimmedJoin
from ..settings import Settings
from ..sources.tables import Tables
from ..spark.jobs import ProgressListener
from ..statistics.gather import KeptStatistics, gather, heaviest_keys
from ..synopses import Built

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below it a sample holds nothing but its dense keys.
LEAST_RATE = 1e-9

# Of what is kept where the asked error is out of reach.
BEST_EFFORT_BYTES = 16 << 20


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
    keep : callable, optional
        Keeps the sketches of a plan; only such methods are candidates then as the catalog can keep.
    """

    spark: SparkSession
    tables: Tables
    query: Query
    settings: Settings
    kept: KeptStatistics
    exact: Callable[[], Answer]
    listener: ProgressListener | None = None
    keep: Callable[[Plan, Mapping[int, Built]], None] | None = None

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
        fold_bytes = self.fold_bytes
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
                other = "" if self._forced else f", and an exact run {refused}"
                said = f"{self._forced} is not predicted to meet" if self._forced else "nothing meets"
                note += f"; {said} the asked error{other}"
            seconds = {"build": time.perf_counter() - started}
            method = self.query.method or choice.taken.method
            return replace(answer, notes=(note, *answer.notes), seconds=seconds, method=method)

    def explained(self) -> str:
        """The choice as text, by what is known without a job."""
        known = gather(self.spark, self.tables, self.query, self.kept, pilot=False)
        choice = self.choice(known, self.fold_bytes)
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
            sized = any(c.method == self._forced and c.error > 0 for c in fault.candidates)
            if self.query.method is not None and not sized:
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
                hint="OPTIONS (cache = false)"
                if self.keep
                else "a larger skimql.max_bytes, or EXACT SELECT ...",
            ) from fault

    def _best_effort(
        self, fault: NoMethod, statistics: tuple[RelationStatistics, ...], fold_bytes: int
    ) -> Choice | None:
        """The least predicted error where nothing meets the asked one and the exact run would not end."""
        exact = next((c for c in fault.candidates if c.method == "exact_run"), None)
        if exact is None or not exact.refused or self.keep is not None:
            return None
        if self._forced is not None and not is_linear(self._forced):
            return None
        size = min(self.settings.max_bytes, BEST_EFFORT_BYTES)
        objective = replace(self._objective(fold_bytes), relative_error=None, size_bytes=size)
        try:
            choice = choose_method(tree_of(self.query.graph), statistics, objective)
        except NoMethod as nothing:
            if self._forced is not None:
                return None
            raise BudgetExceeded(
                f"an exact run {exact.refused}, and no sketch fits: {nothing}",
                sql=self.query.sql,
                hint="a larger skimql.max_bytes",
            ) from nothing
        return replace(choice, candidates=(*choice.candidates, exact))

    def plan(self, choice: Choice) -> Plan:
        """The plan that carries out a choice."""
        plan = plan_of(self.query, choice, self.settings.seed, self.settings.sparse)
        jvm = self.settings.route == "jvm" and plan.sample is None
        return routed(plan, "jvm") if jvm else plan

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
            most = self.settings.max_bytes
            return run_sample(self.spark, plan, self.tables, self.listener, most, tuples)[()]
        built = build(self.spark, plan, self.tables, self.listener, self.fold_bytes or None)
        if self.keep is not None:
            self.keep(plan, dict(enumerate(built)))
        if self.query.method == "skimmed":
            return SkimmedJoin(plan, built, heaviest_keys(self.statistics))
        return SketchJoin(plan, built)

    @property
    def fold_bytes(self) -> int:
        """Bytes of an exact message; none where sketches are to be kept, which stand for one table."""
        return 0 if self.keep is not None else self.settings.fold_bytes

    @property
    def _able(self) -> tuple[str, ...]:
        """The methods that may be taken."""
        able = dict.fromkeys((*CHOSEN, *([self.query.method] if self.query.method else [])))
        route = "jvm" if self.settings.route == "jvm" else None
        return tuple(
            name
            for name in able
            if (self.keep is None or METHODS[name].stored)
            and (route is None or route in METHODS[name].routes)
        )

    @property
    def _forced(self) -> str | None:
        """The method that is asked for; convolution sketches of tables with one join attribute are hash sketches."""
        graph, method = self.query.graph, self.query.method
        single = all(len(graph.edges_at(v)) == 1 for v in range(len(graph.vertices)))
        return "hash" if method == "convolution" and single else method

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
            method=self._forced,
            methods=self._able,
            rows=rows,
            columns=1 if aggregates <= {"count"} else 2,
        )
