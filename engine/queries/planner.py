"""The planner: a resolved query, what is asked of it and what is known of its tables, to a physical plan.

Candidates come from the catalog, from the files of large tables, and from statistics; there is no other place where it
is decided how a query is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ...errors import BudgetExceeded, SkimqlError, UnsupportedQuery
from ...optimizer.candidates.spending import SPENT
from ...optimizer.choose import choose, plan_of
from ...optimizer.combinations import route_fault, worker_reason
from ...optimizer.distinct import CODE as DISTINCT_JOIN
from ...optimizer.groups import ASSUMED_GROUPS, grouped_vertices
from ...optimizer.physical import (
    ApartJoin,
    Attempt,
    ExactRun,
    GroupValues,
    Nothing,
    PhysicalPlan,
    Predicted,
    SampleJoin,
    SketchJoin,
)
from ...optimizer.plan import Plan
from ...optimizer.route import routed
from ...parser.join_graph import Query
from ...parser.sampled_select import SampledQuery
from ...parser.statement import ApproximateSelect
from ..materialized.lookup import Found, MaterializedLookup
from ..results.estimator import SketchJoin as JoinedSketches
from ..settings import Settings
from .apart_plan import as_materialized, of_tables, refuse_sizes
from .request import Request
from .sizing import chosen, with_route, within
from .widths import (
    exact_instead,
    first_sample,
    large_enough,
    planned_distinct,
    planned_sample,
    planned_sketches,
)

if TYPE_CHECKING:
    from ...optimizer.candidates.candidate import Candidate, Choice
    from ...optimizer.candidates.first_sample import ClassSample
    from ...optimizer.candidates.value_draws import Summed
    from ...optimizer.prediction.relation import RelationStatistics
    from ..context import Context
    from ..execution.groups import Groups
    from ..synopses import Built
    from .backend import Backend
    from .footers import Footers
    from .sampled_plan import SampledPlan

# Of `skimql.max_bytes` so much is there for each tuple that is drawn.
DRAWN_BYTES = 64

UNKNOWN = Predicted()


@dataclass(frozen=True)
class Planner:
    """Plans one query.

    Attributes
    ----------
    context : Context or None
        None where there are no files and no catalog: in memory.
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
    refines : bool
        Whether the answer of each attempt is shown.
    """

    context: Context | None
    backend: Callable[[], Backend]
    select: ApproximateSelect
    query: Query
    settings: Settings
    counts_rows: bool = False
    refines: bool = False

    def plan(self, groups: Callable[[], Groups] | None) -> PhysicalPlan:
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
        if self.query.empty or self.query.limit == 0:
            return self._of(Nothing(self.query.empty or "LIMIT 0 shows no row"))
        if isinstance(self.query, SampledQuery):
            return self._of(self.sampled(jobs=groups is not None).first())
        if self.materialized is not None:
            return self._of(self.lookup.attempt(self.query, self.materialized))
        told = () if self.context is None else self.lookup.passed_over(self.select, self.query, self.settings)
        plan = self.anew(groups)
        return replace(plan, notes=(*told, *plan.notes)) if told else plan

    def anew(self, groups: Callable[[], Groups] | None) -> PhysicalPlan:
        """As `plan`, by nothing that is kept."""
        if self.request.keeps_keys:
            refuse_sizes(self.query, self.select)
        if self.request.sized_by_hand:
            return self._of(self._by_hand(groups))
        if self.query.counts_distinct:
            if self._exact_distinct_is_cheap:
                return self._of(self.exact())
            return self.by_distinct(groups)
        if not self.query.graph.edges:
            # One table: nothing is saved by not running it, but for what is to be kept.
            if self.request.may_run:
                return self._of(self.exact())
            return self._of(self._by_hand(groups))
        if self.request.aims_at_error_alone:
            if self._exact_is_cheap:
                return self._of(self.exact())
            if self.footers is not None and self.footers.large:
                if self.footers.filters_look_at_large and self.may_run_exactly:
                    return self._of(self.exact())
                first = self._first_sample(jobs=groups is not None)
                if first is not None:
                    return self._of(first)
        return self.by_statistics(groups, self.settings.fold_bytes)

    def by_statistics(self, groups: Callable[[], Groups] | None, fold_bytes: int) -> PhysicalPlan:
        """The choice among all candidates, by what is known of the tables or, where jobs may run, a pilot tells."""
        jobs = groups is not None
        statistics = self.backend().statistics(self.query, jobs=jobs)
        counts = dict.fromkeys(grouped_vertices(self.query), ASSUMED_GROUPS)
        if counts and jobs and self.request.aims_freely:
            # Of one group all else is cheapest: where the exact run is cheaper still, no group is listed.
            choice = self._choice(statistics, fold_bytes, dict.fromkeys(counts, 1))
            if choice.taken.method == "exact_run":
                attempt = self._attempt(choice, statistics, fold_bytes, counts, jobs=jobs)
                return replace(self._of(attempt), choice=choice, statistics=statistics)
        try:
            counts.update(self._counts(groups))
        except BudgetExceeded as fault:
            return self._without_synopses(fault, statistics, fold_bytes)
        choice = self._choice(statistics, fold_bytes, counts)
        attempt = self._attempt(choice, statistics, fold_bytes, counts, jobs=jobs)
        instead = exact_instead(attempt, choice, self.request.target)
        if instead is not None:
            choice, attempt = instead, self._attempt(instead, statistics, fold_bytes, counts, jobs=jobs)
        if (
            jobs
            and isinstance(attempt, (SketchJoin, ApartJoin))
            and math.prod(counts.values()) > self.settings.max_groups
        ):
            # A sample tells apart the groups that it meets only.
            return self._without_synopses(self.too_many_groups(), statistics, fold_bytes)
        notes: tuple[str, ...] = ()
        if (
            choice.objective.relative_error is None
            and self.request.target is not None
            and self.select.size_bytes is None
        ):
            refused = next((c.refused for c in choice.candidates if c.method == "exact_run"), "")
            if refused:
                notes = (f"nothing is predicted to meet the asked error, and an exact run {refused}",)
        plan = self._of(attempt)
        return replace(plan, choice=choice, statistics=statistics, notes=notes)

    def _without_synopses(
        self, fault: SkimqlError, statistics: tuple[RelationStatistics, ...], fold_bytes: int
    ) -> PhysicalPlan:
        """The exact run of a query that cannot have synopses, for `fault`; that where it may not be run."""
        if not self.request.aims_freely:
            raise fault
        choice = self._choice(statistics, fold_bytes, dict.fromkeys(grouped_vertices(self.query), 1))
        return self._exactly_for(fault, choice)

    def _exactly_for(self, fault: SkimqlError, choice: Choice) -> PhysicalPlan:
        """The exact run among the candidates of a choice; `fault` where it may not be run."""
        exact = next(c for c in choice.candidates if c.method == "exact_run")
        if exact.refused:
            raise fault
        predicted = Predicted(0.0, exact.cost.seconds, 0.0)
        return replace(
            self._of(replace(self.exact(), predicted=predicted)),
            notes=(f"run exactly: {fault.message}",),
        )

    def by_distinct(
        self, groups: Callable[[], Groups] | None, too_large: Collection[int] = ()
    ) -> PhysicalPlan:
        """The synopses of distinct values of the least size that is predicted to be enough, or the exact run."""
        from ...optimizer.prediction.most_of_key import of_plan
        from .distinct import DistinctPlan

        counts, many = dict.fromkeys(grouped_vertices(self.query), ASSUMED_GROUPS), None
        jobs = groups is not None

        def choice_for(counts: Mapping[int, int]) -> tuple[Choice, tuple[RelationStatistics, ...]]:
            made = DistinctPlan(
                self.query, self._routed, self.backend().relations, self.request.may_run, counts
            )
            return made.choice(too_large, jobs=jobs)

        try:
            found = None
            if counts and jobs and self.request.aims_freely:
                # As in `by_statistics`: for an exact run no group is listed.
                found = choice_for(dict.fromkeys(counts, 1))
            if found is None or found[0].taken.method != "exact_run":
                try:
                    counts.update(self._counts(groups))
                    if jobs and math.prod(counts.values()) > self.settings.max_groups:
                        raise self.too_many_groups()
                except BudgetExceeded as fault:
                    if not self.request.aims_freely:
                        raise
                    counts, many = dict.fromkeys(counts, 1), fault
                found = choice_for(counts)
            choice, statistics = found
        except UnsupportedQuery as fault:
            if fault.code != DISTINCT_JOIN or not self.request.aims_freely:
                raise
            # No synopsis counts these values; Spark does.
            known = self.backend().statistics(self.query, jobs=jobs)
            return self._without_synopses(fault, known, self.settings.fold_bytes)
        if many is not None:
            return self._exactly_for(many, choice)
        taken = choice.taken
        predicted = Predicted(taken.half_width(self.settings.confidence), taken.cost.seconds, taken.nbytes)
        if taken.method == "exact_run":
            exact = replace(self.exact(), predicted=predicted)
            return replace(self._of(exact), choice=choice, statistics=statistics)
        try:
            plan = chosen(self.query, self._routed, too_large, counts, taken.buckets)
        except BudgetExceeded as fault:
            if not self.request.aims_freely:
                raise
            return self._exactly_for(fault, choice)
        if choice.figures is not None:
            plan = of_plan(choice.figures, plan)
        sketches = planned_distinct(
            self.sketches(plan, predicted),
            choice,
            lambda: self.summed if jobs else (),
            self.settings.confidence,
            counts,
            self._target_of(choice),
        )
        instead = exact_instead(sketches, choice, self.request.target)
        if instead is not None:
            exact = replace(self.exact(), predicted=Predicted(0.0, instead.taken.cost.seconds, 0.0))
            return replace(self._of(exact), choice=instead, statistics=statistics)
        attempt = as_materialized(self.query, self.select, self.settings, sketches, {})
        return replace(self._of(attempt), choice=choice, statistics=statistics)

    def _target_of(self, choice: Choice) -> float | None:
        """The asked error, where it was chosen for one."""
        return None if choice.objective.relative_error is None else self.request.target

    @cached_property
    def request(self) -> Request:
        """What is asked of the query."""
        return Request(self.select, self.query, self.settings, self.counts_rows)

    @cached_property
    def _routed(self) -> Settings:
        if self.context is None:
            return replace(
                self.settings, route="arrow" if self.settings.route == "auto" else self.settings.route
            )
        return with_route(self.query, self.settings, self.context.tables)

    @property
    def lookup(self) -> MaterializedLookup:
        """Where kept sketches are looked for; there is a catalog where there is a context."""
        assert self.context is not None, "there is a catalog"
        return MaterializedLookup(self.context)

    @cached_property
    def materialized(self) -> Found | None:
        """What the catalog has for the query, looked for once; raises as `MaterializedLookup.find`."""
        return None if self.context is None else self.lookup.find(self.select, self.query, self.settings)

    def sampled(self, *, jobs: bool) -> SampledPlan:
        """The sizes of samples of a query that is run on them.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_CLAUSE`` for options that it has not.
        """
        from .sampled_plan import SampledPlan

        assert isinstance(self.query, SampledQuery), "it was read as one"
        assert self.context is not None, "Spark runs it"
        refuse_sizes(self.query, self.select)
        known = self._sampled_plans
        if jobs not in known:
            known[jobs] = SampledPlan(self.context, self.query, self.settings, jobs, self.refines)
        return known[jobs]

    @cached_property
    def _sampled_plans(self) -> dict[bool, SampledPlan]:
        return {}

    def exact(self) -> ExactRun:
        """The exact run, with what its cost is predicted to be where files tell."""
        return ExactRun(self.exact_sql)

    @property
    def exact_sql(self) -> str:
        """The SELECT as Spark runs it exactly: of ESTIMATE ROWS, the one whose rows it counts."""
        same = self.query.select_sql == self.select.select_sql
        return self.query.exact_sql if same else self.select.select_sql

    def exactly(self, choice: Choice, most_runs: float) -> Attempt | None:
        """The cheapest exact way among the candidates of a choice.

        None where there is none, or where it, what was taken and a pilot cost more than `most_runs` exact runs.
        """
        from ...optimizer.prediction.cost import pilots

        ways = [c for c in choice.candidates if c.method in ("exact", "exact_run") and not c.refused]
        run = next((c for c in choice.candidates if c.method == "exact_run"), None)
        if run is None or not ways:
            return None
        cheapest = min(ways, key=lambda c: c.cost.seconds)
        # What was looked at for the choice is paid for too.
        looked = 0.0 if choice.figures is None else pilots(choice.figures.relations).seconds
        if looked + choice.taken.cost.seconds + cheapest.cost.seconds > most_runs * run.cost.seconds:
            return None
        return self._attempt(replace(choice, taken=cheapest), (), self.settings.fold_bytes, {})

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
        from ..execution.groups import too_many

        return too_many(self.query, self.settings.max_groups)

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
        footers = self.footers
        known = footers is not None and footers.exact_seconds <= self.settings.max_exact_seconds
        return self.request.may_run and known

    @cached_property
    def summed(self) -> tuple[Summed, ...]:
        """What the query sums, with a glance at the values."""
        return self.backend().summed(self.query)

    @cached_property
    def footers(self) -> Footers | None:
        """What the files of the tables tell, where there are any."""
        if self.context is None:
            return None
        from .footers import Footers

        context = self.context
        return Footers(lambda: context.spark, context.tables, self.query, context.evaluate)

    @property
    def _exact_is_cheap(self) -> bool:
        """Whether the exact run surely costs less than finding out what else there is, by what files tell."""
        footers = self.footers
        if footers is None or footers.large or None in footers.tuples or not self.request.may_run:
            return False
        if max(footers.outputs, default=0.0) <= sum(t or 0.0 for t in footers.tuples):
            return True
        return footers.exact_seconds <= footers.looking_seconds

    @property
    def _exact_distinct_is_cheap(self) -> bool:
        """Whether files tell that distinct values are counted exactly for less than a pilot and synopses take."""
        footers = self.footers
        if footers is None or self.query.sets is not None or not self.request.aims_freely:
            return False
        if not footers.large:
            return self._exact_is_cheap
        return self.may_run_exactly and footers.exact_distinct_is_cheap

    def _of(self, attempt: Attempt) -> PhysicalPlan:
        # Where nothing has vertices the groups are of the query's own result.
        vertices = grouped_vertices(self.query) if self.query.graph.vertices else ()
        groups = tuple(
            GroupValues(
                v,
                self.query.graph.vertices[v].table,
                tuple(g.expression for g in self.query.groups if g.vertex == v),
            )
            for v in vertices
        )
        settings = self.settings
        return PhysicalPlan(
            self.query, groups, attempt, settings.error, settings.confidence, settings.behavior
        )

    def _by_hand(self, groups: Callable[[], Groups] | None) -> SketchJoin | ApartJoin:
        """`by_hand`, in the form in which what is built is kept."""
        return as_materialized(
            self.query, self.select, self.settings, self.by_hand(groups), self._counts(groups)
        )

    def by_hand(self, groups: Callable[[], Groups] | None, too_large: Collection[int] = ()) -> SketchJoin:
        """Sketches of the session's size; `too_large` are vertices whose exact messages are, see `choose`."""
        if self.settings.route == "jvm" and self.query.groups:
            raise route_fault(self.query.sql, worker_reason("hash", grouped=True))
        counts = self._counts(groups)
        if math.prod(counts.values()) > self.settings.max_groups:
            raise self.too_many_groups()
        return self.sketches(chosen(self.query, self._routed, too_large, counts))

    def _counts(self, groups: Callable[[], Groups] | None) -> dict[int, int]:
        """How many groups each grouped vertex has, where jobs may run; no groups are planned for as one."""
        if groups is None or not self.query.groups:
            return {}
        return {vertex: max(number, 1) for vertex, number in groups().counts.items()}

    def sketches(self, plan: Plan, predicted: Predicted = UNKNOWN) -> SketchJoin:
        """The attempt that builds a plan of sketches."""
        return SketchJoin(plan.method, plan, predicted, skim=self.select.method == "skimmed")

    def _first_sample(self, *, jobs: bool) -> SampleJoin | ExactRun | None:
        """What is tried on large tables before anything else is known; None where that is for statistics to say."""
        from ...optimizer.candidates.first_sample import MORE, is_worth_while
        from ...optimizer.candidates.first_sample import first_sample as sample_of
        from ...optimizer.candidates.value_draws import is_bounded
        from ...optimizer.messages import tree_of

        assert self.request.target is not None, "a sample is taken for an asked error"
        footers = self.footers
        assert footers is not None, "large tables are of files"
        sizes = footers.sizes_by(jobs=jobs)
        asked = partial(
            sample_of,
            self.query.graph,
            sizes,
            self.request.target,
            footers.values,
            most_drawn=self._most_drawn,
            grouped=grouped_vertices(self.query),
            jobs_count=self._jobs_count,
            told=self._keys_told,
            together=footers.together,
            countable=footers.countable,
        )
        # Groups and values are looked at only where a sample is worth while without: they make it dearer.
        sample = asked()
        if sample is not None and self.query.groups:
            groups = math.prod(footers.groups.values())
            sample = asked(groups=groups)
            asked = partial(asked, groups=groups)
        summed = footers.summed_by(jobs=jobs) if sample is not None else ()
        if summed:
            asked = partial(asked, summed=summed)
            sample = asked()
            if sample is not None and self.may_run_exactly:
                members = tree_of(self.query.graph).classes[sample.joined].vertices
                if not is_bounded(summed, members, sample.value_draws):
                    # Its interval would not be certified, and the exact run follow in any case.
                    return self.exact()
        if sample is None:
            return self.exact() if self.may_run_exactly else None
        expected = tuple(s.filtered for s in sizes)
        for more in MORE:
            sample = sample if more == 1.0 else asked(more=more)
            if sample is None:
                break
            attempt = SampleJoin("key_sample", self._sampled(sample), expected=expected, enlarges=True)
            found = self.foreseen(attempt, jobs=jobs)
            width = found.predicted.half_width
            if (
                not self._jobs_count
                or not self.may_run_exactly
                or is_worth_while(sample, width, self.request.target)
            ):
                return found
        return self.exact()

    def first_summed(self, *, jobs: bool) -> Sequence[Summed]:
        """What is known of the values that a first sample adds up."""
        return self.footers.summed_by(jobs=jobs) if self.footers is not None else ()

    def foreseen(self, attempt: SampleJoin, before: int = 0, *, jobs: bool = True) -> SampleJoin:
        """A sample without statistics with what its intervals will be; `before` are the samples taken before it."""
        assert self.footers is not None, "large tables are of files"
        confidence = 1.0 - SPENT[min(before, len(SPENT) - 1)] * (1.0 - self.settings.confidence)
        summed, groups = self.first_summed(jobs=jobs), self.footers.groups
        return first_sample(attempt, self.footers, summed, confidence, groups, jobs=jobs)

    @property
    def _jobs_count(self) -> bool:
        """Whether what Spark's jobs take is held against a first sample."""
        return True

    @property
    def _keys_told(self) -> dict[int, float]:
        """By vertex the distinct keys that its table has in the class of a first sample, by those looked at."""
        from ...optimizer.candidates.first_sample import sampled_class

        assert self.footers is not None, "large tables are of files"
        sizes = [t or 0.0 for t in self.footers.tuples]
        joined = sampled_class(self.query.graph, sizes)
        return {v: k.distinct(sizes[v]) for (v, c), k in self.footers.keys_seen.items() if c == joined}

    @property
    def _most_drawn(self) -> float:
        """Most tuples of a table that are drawn beside a sample of its keys."""
        return self.settings.max_bytes / DRAWN_BYTES

    def _sampled(self, sample: ClassSample) -> Plan:
        sampled = replace(sample, rate=min(sample.rate, 1.0))
        return choose(self.query, self.settings.seed, 0, 0, sample=sampled)

    def _attempt(
        self,
        choice: Choice,
        statistics: tuple[RelationStatistics, ...],
        fold_bytes: int,
        groups: dict[int, int],
        *,
        jobs: bool = True,
    ) -> Attempt:
        taken = choice.taken
        predicted = Predicted(taken.half_width(choice.objective.confidence), taken.cost.seconds, taken.nbytes)
        if taken.method == "exact_run":
            return replace(self.exact(), predicted=predicted)
        if taken.method == "sample_sketch" or (self.settings.cache and taken.sample is not None):
            return of_tables(self.query, self.settings, taken, predicted, groups)
        plan = plan_of(self.query, choice, self.settings.seed, self.settings.sparse)
        if plan.sample is not None:
            expected = tuple(math.inf if s.tuples is None else s.tuples for s in statistics)
            method = self.select.method or taken.method
            summed = self.summed if jobs else ()

            def of_plan(plan: Plan, predicted: Predicted) -> SampleJoin:
                sampled = SampleJoin(method, self._with_draws(plan, taken, expected), predicted, expected)
                return planned_sample(sampled, choice, summed, self.settings.confidence, groups)

            return large_enough(of_plan(plan, predicted), choice, self._target_of(choice), of_plan)
        route = "arrow" if self.settings.route == "auto" else self.settings.route
        attempt = self.sketches(routed(within(plan, self.settings), route), predicted)
        attempt = replace(
            attempt, method=self.select.method or taken.method, message_bytes=fold_bytes or None
        )
        summed = self.summed if jobs else ()
        confidence, target = self.settings.confidence, self._target_of(choice)
        attempt = planned_sketches(attempt, choice, summed, confidence, groups, target)
        return as_materialized(self.query, self.select, self.settings, attempt, groups)

    def _with_draws(self, plan: Plan, taken: Candidate, expected: Sequence[float]) -> Plan:
        """The plan with tuples drawn beside the sampled keys, where an error is asked for that unseen keys may miss."""
        sample, error = plan.sample, self.request.target
        if sample is None or error is None or sample.rate == 1.0 or self.settings.size_bytes is not None:
            return plan
        tuples = [expected[plan.vertices[v]] for v, _ in sample.members]
        if not all(map(math.isfinite, tuples)):
            return plan
        from ...optimizer.candidates.tuple_draws import PART, tuple_draws
        from ...optimizer.candidates.value_draws import MOST_DEAR, times_means, value_draws

        left = max(taken.predicted.answer, 1.0)
        # A key may add its tuples times the largest value, but of values that are drawn.
        dear, together = times_means(self.summed)
        times = max((t for t in (*dear, together) if t <= MOST_DEAR), default=1.0)
        draws = tuple_draws(tuples, min(tuples), left, error, self._most_drawn, PART / times)
        members = [plan.vertices[v] for v, _ in sample.members]
        valued = value_draws(self.summed, members, tuples, left, error, sample.rate, draws)
        values = tuple(d for _, d in valued)
        return replace(
            plan, sample=replace(sample, row_rates=draws.rates, hits=draws.hits, value_draws=values)
        )

    def _choice(
        self, statistics: tuple[RelationStatistics, ...], fold_bytes: int, groups: dict[int, int]
    ) -> Choice:
        from .choice import choose_candidate

        return choose_candidate(self.request, statistics, fold_bytes, groups)
