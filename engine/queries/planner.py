"""The planner: a resolved query, what is asked of it and what is known of its tables, to a physical plan.

Candidates come from the catalog, from the files of large tables, and from statistics; there is no other place where it
is decided how a query is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import AccuracyNotReached, BudgetExceeded, UnsupportedQuery
from ...optimizer.choose import ClassSample, choose, grouped_vertices, plan_of
from ...optimizer.physical import (
    Attempt,
    ExactRun,
    GroupValues,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    Predicted,
    SampleJoin,
    SketchJoin,
)
from ...optimizer.plan import Plan
from ...optimizer.route import routed
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ...sketches.intervals.interval import rows_for
from ..materialized.lookup import KeptSketches
from ..results.estimator import SketchJoin as JoinedSketches
from ..settings import PLANNED_METHODS, Settings
from .sizing import chosen, with_route, within

if TYPE_CHECKING:
    from ...optimizer.candidates.candidate import Candidate, Choice, NoMethod
    from ...optimizer.objective import Objective
    from ...optimizer.prediction.relation import RelationStatistics
    from ..context import Context
    from ..execution.backend import Backend, GroupsOf
    from ..execution.partial_aggregate import Built
    from .footers import Footers

# Of what is kept where the asked error is out of reach.
BEST_EFFORT_BYTES = 16 << 20

# What this engine can carry out.
METHODS = ("exact", "hash", "convolution", "key_sample", "two_level", "sampled_messages", "exact_run")

UNKNOWN = Predicted()

# Groups that a query is taken to have before they are listed.
ASSUMED_GROUPS = 10

# Joined tuples for each tuple that is read, up to which an exact run is started without statistics.
MOST_TIMES_INPUT = 100.0


@dataclass(frozen=True)
class Planner:
    """Plans one query.

    Attributes
    ----------
    context : Context
    backend : callable
        Gives where the tables are; not called for what the catalog answers.
    select : ApproximateSelect
        The statement.
    query : Query
        With the types of all keys known; of a grouped one with a COUNT(*).
    settings : Settings
        The session's, then OPTIONS, then the clauses.
    counts_rows : bool
        Whether it is ESTIMATE ROWS: the join is never run.
    """

    context: Context
    backend: Callable[[], Backend]
    select: ApproximateSelect
    query: Query
    settings: Settings
    counts_rows: bool = False

    def plan(self, groups: Callable[[], GroupsOf] | None) -> PhysicalPlan:
        """How the query is answered.

        Parameters
        ----------
        groups : callable or None
            Lists the groups of a grouped query; None where no job may run: the plan is then made by what is known.

        Raises
        ------
        UnsupportedQuery
            If a forced method does not apply.
        BudgetExceeded
            If the asked size is too small for any method.
        AccuracyNotReached
            If no method within `max_bytes` is predicted to meet the asked error, and running exactly is no candidate.
        """
        if self.query.empty:
            return self._of(Nothing(self.query.empty))
        materialized = self.materialized()
        if materialized is not None:
            return self._of(materialized)
        return self.anew(groups)

    def anew(self, groups: Callable[[], GroupsOf] | None) -> PhysicalPlan:
        """As `plan`, by nothing that is kept."""
        if self.sized_by_hand:
            return self._of(self.by_hand(groups))
        if not self.query.graph.edges:
            # One table: nothing is saved by not running it.
            return self._of(self.exact())
        if self._is_target_alone:
            if self._exact_is_cheap:
                return self._of(self.exact())
            if self.footers.large:
                first = self._first_sample(jobs=groups is not None)
                if first is not None:
                    return self._of(first)
        return self.by_statistics(groups, self.settings.fold_bytes)

    def by_statistics(self, groups: Callable[[], GroupsOf] | None, fold_bytes: int) -> PhysicalPlan:
        """The choice among all candidates, by what is known of the tables or, where jobs may run, a pilot tells."""
        jobs = groups is not None
        statistics = self.backend().statistics(self.query, jobs=jobs)
        counts = dict.fromkeys(grouped_vertices(self.query), ASSUMED_GROUPS)
        if counts and groups is not None:
            counts.update(groups().counts)
        choice = self._choice(statistics, fold_bytes, counts)
        attempt = self._attempt(choice, statistics, fold_bytes)
        notes: tuple[str, ...] = ()
        if (
            choice.objective.relative_error is None
            and self._target is not None
            and self.select.size_bytes is None
        ):
            refused = next((c.refused for c in choice.candidates if c.method == "exact_run"), "")
            if refused:
                notes = (f"nothing is predicted to meet the asked error, and an exact run {refused}",)
        plan = self._of(attempt)
        return replace(plan, choice=choice, statistics=statistics, notes=notes)

    def materialized(self) -> MaterializedJoin | None:
        """The query from what the catalog keeps, some or all of it; raises as `KeptSketches.supply`."""
        if self.query.groups or self.query.having is not None:
            return None
        return KeptSketches(self.context).attempt(self.select, self.query, self.settings)

    def exact(self) -> ExactRun:
        """The exact run, with what its cost is predicted to be where files tell."""
        return ExactRun(self.select.select_sql)

    def joined(self, attempt: SketchJoin, plan: Plan, built: Sequence[Built]) -> JoinedSketches:
        """The finished synopses of an attempt, ready to be asked."""
        if self.select.method != "skimmed" or self.query.counts_distinct:
            return JoinedSketches(plan, built)
        from ..results.skimmed import SkimmedJoin
        from ..statistics.gather import heaviest_keys

        known = self.backend().statistics(self.query, jobs=True)
        return SkimmedJoin(plan, built, heaviest_keys(known))

    def too_many_groups(self) -> BudgetExceeded:
        """The refusal of more groups than can have synopses of their own."""
        from ..execution.grouping import too_many

        return too_many(self.query, self.settings.max_groups)

    @property
    def asks_more_than_kept(self) -> bool:
        """Whether the statement itself asks for an error, and not what to do where it is missed."""
        asked = self.select.accuracy
        return asked.relative_error is not None and asked.behavior is None

    def enlarged(self, attempt: SampleJoin, excess: float) -> SampleJoin | None:
        """A larger sample after one whose interval was `excess` times too wide; None where exact is cheaper."""
        from ...optimizer.candidates.first_sample import enlarged

        sample = attempt.plan.sample
        rate = enlarged(sample.rate, excess) if sample is not None and attempt.enlarges else None
        if rate is None or sample is None:
            return None
        return replace(attempt, plan=replace(attempt.plan, sample=replace(sample, rate=min(rate, 1.0))))

    @property
    def may_run_exactly(self) -> bool:
        """Whether the exact run puts out no more than can be awaited, by what files tell."""
        known = [t for t in self.footers.tuples if t is not None]
        return not self.counts_rows and self.footers.output <= MOST_TIMES_INPUT * sum(known)

    @cached_property
    def footers(self) -> Footers:
        """What the files of the tables tell."""
        from .footers import Footers

        return Footers(self.context.spark, self.context.tables, self.query)

    @property
    def sized_by_hand(self) -> bool:
        """Whether sketches of the session's size are wanted, whatever is predicted of them."""
        settings, select = self.settings, self.select
        if settings.by_hand or settings.cache or self.query.counts_distinct:
            return True
        if select.method is not None:
            return select.method not in PLANNED_METHODS
        return settings.error is None and settings.size_bytes is None

    @property
    def _is_target_alone(self) -> bool:
        return self._target is not None and self.select.method is None and self.settings.size_bytes is None

    @property
    def _target(self) -> float | None:
        """The error that is planned for: with USING the one that the statement asks for."""
        if self.select.method is not None:
            return self.select.accuracy.relative_error
        return self.settings.error

    @property
    def _exact_is_cheap(self) -> bool:
        """Whether the exact run surely costs less than finding out what else there is, by what files tell."""
        return (
            not self.counts_rows
            and not self.footers.large
            and self.footers.output <= sum(t or 0.0 for t in self.footers.tuples)
        )

    def _of(self, attempt: Attempt) -> PhysicalPlan:
        groups = tuple(
            GroupValues(
                v,
                self.query.graph.vertices[v].table,
                tuple(g.expression for g in self.query.groups if g.vertex == v),
            )
            for v in grouped_vertices(self.query)
        )
        settings = self.settings
        return PhysicalPlan(
            self.query, groups, attempt, settings.error, settings.confidence, settings.behavior
        )

    def by_hand(self, groups: Callable[[], GroupsOf] | None, too_large: Collection[int] = ()) -> SketchJoin:
        """Sketches of the session's size; `too_large` are vertices whose exact messages are, see `choose`."""
        counts = groups().counts if groups is not None and self.query.groups else {}
        settings = with_route(self.query, self.settings, self.context.tables)
        return self.sketches(chosen(self.query, settings, too_large, counts))

    def sketches(self, plan: Plan, predicted: Predicted = UNKNOWN) -> SketchJoin:
        """The attempt that builds a plan of sketches."""
        methods = [s.method for s in plan.synopses if s.attributes]
        method = self.select.method or (methods[0] if methods else "exact")
        if len(set(methods)) > 1 and self.select.method is None:
            method = "convolution" if "convolution" in methods else methods[0]
        return SketchJoin(method, plan, predicted, skim=self.select.method == "skimmed")

    def _first_sample(self, *, jobs: bool) -> SampleJoin | ExactRun | None:
        """What is tried on large tables before anything else is known; None where that is for statistics to say."""
        from ...optimizer.candidates.first_sample import first_sample

        assert self._target is not None, "a sample is taken for an asked error"
        footers = self.footers
        sizes = footers.sizes if jobs else footers.bare_sizes
        error = self._target / math.sqrt(ASSUMED_GROUPS if self.query.groups else 1)
        sample = first_sample(self.query.graph, sizes, error, footers.values)
        if sample is None:
            return self.exact() if self.may_run_exactly else None
        expected = tuple(s.kept for s in sizes)
        return SampleJoin("key_sample", self._sampled(sample), expected=expected, enlarges=True)

    def _sampled(self, sample: ClassSample) -> Plan:
        sampled = replace(sample, rate=min(sample.rate, 1.0))
        return choose(self.query, self.settings.seed, 0, 0, sample=sampled)

    def _attempt(
        self, choice: Choice, statistics: tuple[RelationStatistics, ...], fold_bytes: int
    ) -> Attempt:
        taken = choice.taken
        predicted = Predicted(taken.half_width(choice.objective.confidence), taken.cost.seconds, taken.nbytes)
        if taken.method == "exact_run":
            return replace(self.exact(), predicted=predicted)
        plan = plan_of(self.query, choice, self.settings.seed, self.settings.sparse)
        if plan.sample is not None:
            expected = tuple(math.inf if s.tuples is None else s.tuples for s in statistics)
            return SampleJoin(taken.method, plan, predicted, expected)
        route = "arrow" if self.settings.route == "auto" else self.settings.route
        attempt = self.sketches(routed(within(plan, self.settings), route), predicted)
        return replace(attempt, method=taken.method, message_bytes=fold_bytes or None)

    def _choice(
        self, statistics: tuple[RelationStatistics, ...], fold_bytes: int, groups: dict[int, int]
    ) -> Choice:
        from ...optimizer.candidates.candidate import NoMethod
        from ...optimizer.candidates.enumerate import choose_method
        from ...optimizer.messages import tree_of

        objective = self._objective(fold_bytes, groups)
        try:
            return choose_method(tree_of(self.query.graph), statistics, objective)
        except NoMethod as fault:
            best = self._best_effort(fault, statistics, objective)
            if best is not None:
                return best
            reasons = "; ".join(dict.fromkeys(f"{c.name}: {c.refused}" for c in fault.candidates[:4]))
            if self.select.method is not None:
                code, hint = "SKIMQL_UNKNOWN_METHOD", "another method, or no USING"
                raise UnsupportedQuery(
                    f"{self.select.method} cannot answer this: {reasons}", code, self.query.sql, hint=hint
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
                hint="a larger skimql.max_bytes, or EXACT SELECT ...",
            ) from fault

    def _best_effort(
        self, fault: NoMethod, statistics: tuple[RelationStatistics, ...], objective: Objective
    ) -> Choice | None:
        """The least predicted error where nothing meets the asked one and the exact run would not end."""
        from ...optimizer.candidates.candidate import NoMethod
        from ...optimizer.candidates.enumerate import choose_method
        from ...optimizer.messages import tree_of
        from ...optimizer.prediction.cost import MOST_OUTPUT

        exact = next((c for c in fault.candidates if c.method == "exact_run"), None)
        hopeless = self.counts_rows or (exact is not None and bool(exact.refused))
        if not hopeless or self.select.method is not None or objective.size_bytes is not None:
            return None
        size = min(self.settings.max_bytes, BEST_EFFORT_BYTES)
        try:
            choice = choose_method(
                tree_of(self.query.graph),
                statistics,
                replace(objective, relative_error=None, size_bytes=size),
            )
        except NoMethod as nothing:
            told = exact.refused if exact is not None else f"would put out {MOST_OUTPUT:.2g} joined tuples"
            raise BudgetExceeded(
                f"an exact run {told}, and no sketch fits: {nothing}",
                sql=self.query.sql,
                hint="a larger skimql.max_bytes",
            ) from nothing
        candidates: tuple[Candidate, ...] = (*choice.candidates, *([exact] if exact is not None else []))
        return replace(choice, candidates=candidates)

    def _objective(self, fold_bytes: int, groups: dict[int, int]) -> Objective:
        from ...optimizer.objective import Objective

        rows = self.settings.rows or rows_for(self.settings.confidence)
        size, error = self.settings.size_bytes, self._target
        if size is None and error is None:
            # Nothing is asked: as many bytes as sketches of the session's size take.
            size = 8 * rows * self.settings.buckets * len(self.query.graph.vertices)
        aggregates = {a.function for a in self.query.aggregates}
        methods = tuple(m for m in METHODS if m != "exact_run") if self.counts_rows else METHODS
        return Objective(
            # The tuples of a group are a part of all: what is known of it is known so much worse.
            relative_error=None if error is None else error / math.sqrt(math.prod(groups.values())),
            confidence=self.settings.confidence,
            size_bytes=size,
            max_bytes=self.settings.max_bytes,
            fold_bytes=fold_bytes,
            method=self.select.method,
            methods=methods,
            rows=rows,
            columns=1 if aggregates <= {"count"} else 2,
            groups=tuple(groups.items()),
        )
