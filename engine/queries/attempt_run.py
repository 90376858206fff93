"""One attempt of a plan: what is built, sampled or read for it, and what then estimates every group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import BudgetExceeded, UnsupportedQuery
from ...optimizer.candidates.spending import MOST_RATE, SPENT
from ...optimizer.groups import per_group
from ...optimizer.physical import (
    ApartJoin,
    MaterializedJoin,
    Nothing,
    SampledQuery,
    SampleJoin,
    SketchJoin,
)
from ...optimizer.plan import Plan
from ...sketches.intervals.interval import exact
from ..materialized.query_cache import QueryCache
from ..results.estimator import Joined
from ..results.expressions import Evaluator
from ..results.rows import Estimated, GroupNumbers
from .planner import Planner
from .refusals import REFUSED, refuse_own_mistake

if TYPE_CHECKING:
    from ..catalog.form import Groups as CatalogGroups
    from ..catalog.form import Head
    from ..execution.groups import Groups
    from ..materialized.answer import GroupKey
    from ..synopses import Built
    from .backend import Backend, Ints

# Below it a sample holds nothing but its dense keys.
LEAST_RATE = 1e-9

# By so much a sample that takes too many bytes is made smaller.
SMALLER = 4.0


@dataclass
class GroupList:
    """The groups of a query, listed once and not before they are asked for.

    Attributes
    ----------
    planner : Planner
    backend : callable
        Gives where the tables are.
    known : Groups or None
        The groups, once they were listed.
    """

    planner: Planner
    backend: Callable[[], Backend]
    known: Groups | None = None

    def __call__(self) -> Groups:
        """The groups."""
        if self.known is None:
            self.known = self.backend().groups(self.planner.query, self.planner.settings.max_groups)
        return self.known


@dataclass(frozen=True)
class AttemptRun:
    """What an attempt needs to be run.

    Attributes
    ----------
    planner : Planner
    backend : callable
        Gives where the tables are.
    groups : GroupList
    most_message : int or None
        Bytes that an exact message of a count of distinct values may take.
    samples : int
        How many samples were taken before this one.
    """

    planner: Planner
    backend: Callable[[], Backend]
    groups: GroupList
    most_message: int | None
    samples: int = 0

    def estimated(
        self, attempt: Nothing | SketchJoin | SampleJoin | SampledQuery | ApartJoin | MaterializedJoin
    ) -> tuple[Estimated, tuple[str, ...], bool]:
        """What estimates the groups, what is to be told of it, and whether tables have changed since it was made."""
        match attempt:
            case Nothing():
                return self._nothing(attempt), (), False
            case SketchJoin():
                return self._sketched(attempt), (), False
            case SampleJoin():
                return self._sampled(attempt), (), False
            case SampledQuery():
                return *self._sampled_query(attempt), False
            case ApartJoin():
                return *self._apart(attempt), False
            case MaterializedJoin():
                return self._materialized()

    def _nothing(self, attempt: Nothing) -> Estimated:
        query = self.planner.query
        known = tuple(map(exact, attempt.known)) or tuple(
            exact(0 if a.function.startswith("count") else math.nan) for a in query.aggregates
        )
        plan = Plan(query, 0, (), (), (), (), ())
        one: dict[GroupNumbers, Evaluator] = {(): Evaluator(plan, None, 1.0, known=known)}
        return Estimated(query, {} if query.groups else one)

    def _sketched(self, attempt: SketchJoin) -> Estimated:
        query, planner = self.planner.query, self.planner
        groups = self.groups() if query.groups else None
        if groups is not None and not groups.number:
            return Estimated(query, {})
        if groups is not None and groups.number > planner.settings.max_groups:
            raise planner.too_many_groups()
        plans = per_group(attempt.plan, groups.counts) if groups is not None else (attempt.plan,)
        keeps = planner.settings.cache and groups is None
        cache = QueryCache(planner.context) if keeps and planner.context is not None else None
        readings = {} if cache is None else cache.readings(attempt.plan)
        built = self.backend().build(plans[0], self._message_bytes(attempt), groups)
        if cache is not None:
            cache.keep(attempt.plan, dict(enumerate(built)), readings)
        numbers = groups.combinations() if groups is not None else iter([()])
        several = len(planner.query.groups) and len({g.vertex for g in query.groups}) > 1
        evaluators = {
            n: self._evaluator(plan, planner.joined(attempt, plan, built), n)
            for n, plan in zip(numbers, plans, strict=True)
        }
        return Estimated(query, evaluators, listed=not several)

    def _message_bytes(self, attempt: SketchJoin) -> int | None:
        if attempt.plan.query.counts_distinct or math.isnan(attempt.predicted.half_width):
            return self.most_message
        return attempt.message_bytes

    def _sampled(self, attempt: SampleJoin) -> Estimated:
        query, settings = self.planner.query, self.planner.settings
        groups = self.groups() if query.groups else None
        expected = dict(enumerate(attempt.expected))
        plan = attempt.plan
        while True:
            joined = self.backend().sample(plan, settings.max_bytes, expected, groups)
            nbytes = next((j.nbytes for j in joined.values()), 0)
            sample, size = plan.sample, settings.size_bytes
            if size is None or sample is None or nbytes <= size or sample.rate < LEAST_RATE:
                break
            # What took more than the asked size is taken again, smaller.
            plan = replace(plan, sample=sample.smaller(0.9 * sample.rate * size / nbytes))
        spent = SPENT[self.samples] if attempt.enlarges else 1.0
        confidence = 1.0 - spent * (1.0 - settings.confidence)
        evaluators = {
            n: replace(self._evaluator(plan, j, n), confidence=confidence) for n, j in joined.items()
        }
        unmet = 0 if groups is None else groups.number - len(evaluators)
        return Estimated(query, evaluators, listed=False, unmet=unmet)

    def _sampled_query(self, attempt: SampledQuery) -> tuple[Estimated, tuple[str, ...]]:
        from ...parser.sampled_select import SampledQuery as Asked
        from ..execution.sampled_query import run_sampled
        from .sampled_groups import (
            SampledGroups,
            evaluators_of,
            most_unseen,
            told_of_groups,
            uncertain_groups,
            unseen_keys,
        )

        planner, settings = self.planner, self.planner.settings
        query, sizes = planner.query, planner.sampled(jobs=True)
        assert isinstance(query, Asked), "it was planned as one"
        assert planner.context is not None, "Spark runs it"
        most = settings.max_bytes if settings.size_bytes is None else settings.size_bytes
        spark, listener = planner.context.spark, planner.context.listener
        while True:
            text, rate, dense = attempt.sql, attempt.rate, attempt.dense
            added = sizes.added(attempt.way) if rate < 1.0 else None
            ends = None if added is None else added.ends
            try:
                found = run_sampled(
                    spark,
                    query,
                    text,
                    rate,
                    attempt.class_name,
                    most,
                    listener,
                    dense,
                    ends,
                )
            except UnsupportedQuery as fault:
                if fault.code == REFUSED:
                    refuse_own_mistake(planner.context, query.sql, query.exact_sql)
                raise
            if found is not None or attempt.rate < LEAST_RATE:
                break
            # What takes more than the asked size is taken again, smaller.
            attempt = sizes.resized(attempt, attempt.rate / SMALLER)
        if found is None:
            raise BudgetExceeded(
                f"{most:,} bytes are too few for a sample", sql=query.sql, hint="a larger SIZE"
            )
        spent = SPENT[self.samples] if attempt.enlarges else 1.0
        confidence = 1.0 - spent * (1.0 - settings.confidence)
        evaluators = evaluators_of(query, attempt.plan, found, confidence, sizes.extremes)
        told: tuple[str, ...] = (
            f"{_share(attempt.rate)} keys of {attempt.class_name} sampled"
            + (f", and {len(attempt.dense)} that many tuples have" if attempt.dense else "")
            + f": {found.keys:,} met",
        )
        if added is not None and added.why:
            told += (f"not certified: {added.why}",)
        if query.groups:
            told += told_of_groups(query, found, attempt.rate, settings.confidence)
            largest = most_unseen(found, unseen_keys(attempt.rate, settings.confidence))
            weak = uncertain_groups(query, found, evaluators, largest)
            known = SampledGroups(query, evaluators, listed=False, weak=weak, found=found, most=largest)
            return known, told
        return Estimated(query, evaluators, listed=False), told

    def _materialized(self) -> tuple[Estimated, tuple[str, ...], bool]:
        planner = self.planner
        assert planner.materialized is not None, "the catalog has it"
        supply = planner.lookup.supply(planner.query, planner.materialized, planner.settings)
        return self._of_groups(supply.plan, supply.joined), supply.notes, supply.stale

    def _apart(self, attempt: ApartJoin) -> tuple[Estimated, tuple[str, ...]]:
        from ..materialized.apart import Apart

        planner, settings, backend = self.planner, self.planner.settings, self.backend()
        made = Apart(planner.query, attempt, settings, planner.context)

        def build(head: Head, dense: Ints | None) -> tuple[CatalogGroups | None, tuple[Built, ...]]:
            return backend.apart(head, dense, settings.max_groups, planner.query.sql)

        answer, joined, notes = made.answer(build)
        if answer.number_of_groups > settings.max_groups:
            raise planner.too_many_groups()
        plan = replace(answer.plan, query=planner.query)
        return self._of_groups(plan, joined), notes

    def _of_groups(self, plan: Plan, joined: Mapping[GroupKey, Joined]) -> Estimated:
        """What estimates each group, by its values; without GROUP BY the one of no values."""
        query, confidence = self.planner.query, self.planner.settings.confidence
        grouped = {g.vertex for g in query.groups}
        # Groups that miss the asked error are run exactly by the numbers under which they were listed.
        listed = self.groups.known
        numbers = {} if listed is None else {repr(listed.values(n)): n for n in listed.combinations()}
        evaluators: dict[GroupNumbers, Evaluator] = {
            numbers.get(repr(values), (n,)) if grouped else (): Evaluator(plan, one, confidence, values)
            for n, (values, one) in enumerate(joined.items())
        }
        return Estimated(query, evaluators, listed=len(grouped) < 2)

    def _evaluator(self, plan: Plan, joined: Joined, numbers: GroupNumbers) -> Evaluator:
        values = self.groups().values(numbers) if numbers else ()
        return Evaluator(plan, joined, self.planner.settings.confidence, values)


def _share(rate: float) -> str:
    if rate == 1.0:
        return "all"
    return f"one in {1 / rate:,.0f}" if rate <= MOST_RATE else f"{rate:.0%} of the"
