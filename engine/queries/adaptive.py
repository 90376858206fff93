"""The executor: runs the attempts of a physical plan until one is enough, and keeps a record of each.

What one attempt gave decides what follows: a larger sample, the exact run, the groups that missed the asked error run
exactly. There is no other loop in which a query is run again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...errors import AccuracyNotReached, DataError, EnvironmentFault, UnsupportedQuery
from ...optimizer.groups import per_group
from ...optimizer.physical import (
    Attempt,
    Attempted,
    ExactRun,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    SampleJoin,
    SketchJoin,
)
from ...optimizer.plan import Plan
from ...sketches.intervals.interval import Estimate, exact
from ..execution import message_limit
from ..execution.message_limit import MessageTooLarge
from ..materialized.lookup import MaterializedLookup
from ..results.answer import Answer, half_width, misses, uncertified_answer, with_target
from ..results.estimator import Joined
from ..results.expressions import Evaluator
from ..results.rows import Estimated, GroupNumbers, groups_text
from .planner import Planner
from .settings_of import span_of

if TYPE_CHECKING:
    from ..execution.groups import Groups
    from .backend import Backend

# Samples of one query, the first among them.
MOST_SAMPLES = 3

# A method as a note tells it, where its name with blanks does not.
METHOD_WORDS = {"exact": "exact messages"}

# Below it a sample holds nothing but its dense keys.
LEAST_RATE = 1e-9

# After an attempt that missed, the exact run is started where both together cost no more than so many exact runs.
MOST_EXACT_RUNS = 1.3


@dataclass
class AdaptiveRun:
    """One run of one query.

    Attributes
    ----------
    planner : Planner
    backend : callable
        Gives where the tables are.
    exact : callable
        Runs the query exactly.
    by_hand : bool
        Whether sketches of the session's size are built, whatever else there is.
    """

    planner: Planner
    backend: Callable[[], Backend]
    exact: Callable[[], Answer]
    by_hand: bool = False
    record: list[Attempted] = field(default_factory=list)
    _plan: PhysicalPlan | None = None
    _groups: Groups | None = None
    _notes: tuple[str, ...] = ()
    _most_message: int | None = field(default_factory=lambda: message_limit.DEFAULT_LIMIT_BYTES)
    _too_large: frozenset[int] = frozenset()

    def answer(self) -> Answer:
        """The answer, or what the query's behaviour puts in its place where the asked error is missed.

        Raises
        ------
        AccuracyNotReached
            Where the asked error is missed and the behaviour is 'strict'.
        SkimqlError
            As planning and building.
        """
        plan = self._plan = (
            self.planner.anew(self._listed) if self.by_hand else self.planner.plan(self._listed)
        )
        attempt: Attempt | None = plan.attempt
        self._notes = plan.notes
        answer: Answer | None = None
        while attempt is not None:
            started = time.perf_counter()
            try:
                answer, estimated = self._run(attempt)
            except (MessageTooLarge, DataError, EnvironmentFault) as fault:
                following = self._after_fault(attempt, fault)
                if following is None:
                    if answer is None:
                        raise
                    return self._as_asked(
                        replace(answer, notes=(*answer.notes, f"nothing better: {fault.message}"))
                    )
                self._keep(attempt, "failed", math.nan, 0, started, fault.message)
                attempt = following
                continue
            try:
                following = self._after(attempt, answer, estimated, started)
            except EnvironmentFault as fault:
                # What would be tried next needs Spark to be planned.
                note = f"nothing better without Spark: {fault.message}"
                return self._as_asked(replace(answer, notes=(*answer.notes, note)))
            if following is None and estimated is not None:
                answer = self._with_exact_groups(answer, estimated)
            attempt = following
        assert answer is not None, "every attempt gives an answer or raises"
        return self._as_asked(answer)

    def _listed(self) -> Groups:
        """The groups of the query, listed once."""
        if self._groups is None:
            self._groups = self.backend().groups(self.planner.query, self.planner.settings.max_groups)
        return self._groups

    def _run(self, attempt: Attempt) -> tuple[Answer, Estimated | None]:
        """What one attempt gives, and what estimated it where that was no exact run."""
        started = time.perf_counter()
        stale, notes = False, self._notes
        match attempt:
            case ExactRun():
                return self.exact(), None
            case Nothing():
                found = self._nothing(attempt)
            case SketchJoin():
                found = self._sketched(attempt)
            case SampleJoin():
                found = self._sampled(attempt)
            case MaterializedJoin():
                found, told, stale = self._materialized()
                notes += told
        built = time.perf_counter()
        answer = found.answer()
        if stale:
            # The interval is one for the tables as they were.
            answer = uncertified_answer(answer)
        seconds = {"build": built - started, "answer": time.perf_counter() - built}
        return replace(
            answer,
            plan=answer.plan or (None if isinstance(attempt, Nothing) else attempt.plan),
            seconds=seconds,
            notes=(*notes, *self._told(attempt), *answer.notes),
        ), found

    def _told(self, attempt: Attempt) -> tuple[str, ...]:
        """What an attempt says of itself."""
        if isinstance(attempt, SampleJoin) and attempt.enlarges:
            sample = attempt.plan.sample
            assert sample is not None, "a sample join has a sample"
            return (f"one in {1 / sample.rate:,.0f} keys of {sample.class_name} sampled",)
        if isinstance(attempt, (SketchJoin, SampleJoin)) and not math.isnan(attempt.predicted.half_width):
            note = f"by {METHOD_WORDS.get(attempt.method, attempt.method.replace('_', ' '))}"
            if attempt.predicted.half_width > 0:
                note += f"; ±{attempt.predicted.half_width:.2g} of the value was predicted"
            return (note,)
        return ()

    def _nothing(self, attempt: Nothing) -> Estimated:
        query = self.planner.query
        known = tuple(exact(0 if a.function.startswith("count") else math.nan) for a in query.aggregates)
        plan = Plan(query, 0, (), (), (), (), ())
        one: dict[GroupNumbers, Evaluator] = {(): Evaluator(plan, None, 1.0, known=known)}
        self._notes += (attempt.reason,)
        return Estimated(query, {} if query.groups else one)

    def _sketched(self, attempt: SketchJoin) -> Estimated:
        query, planner = self.planner.query, self.planner
        groups = self._listed() if query.groups else None
        if groups is not None and not groups.number:
            return Estimated(query, {})
        if groups is not None and groups.number > planner.settings.max_groups:
            raise planner.too_many_groups()
        plans = per_group(attempt.plan, groups.counts) if groups is not None else (attempt.plan,)
        built = self.backend().build(plans[0], self._message_bytes(attempt), groups)
        if planner.settings.cache and groups is None and planner.context is not None:
            MaterializedLookup(planner.context).keep(attempt.plan, dict(enumerate(built)))
        numbers = groups.combinations() if groups is not None else iter([()])
        several = len(planner.query.groups) and len({g.vertex for g in query.groups}) > 1
        evaluators = {
            n: self._evaluator(plan, planner.joined(attempt, plan, built), n)
            for n, plan in zip(numbers, plans, strict=True)
        }
        return Estimated(query, evaluators, listed=not several)

    def _message_bytes(self, attempt: SketchJoin) -> int | None:
        if attempt.plan.query.counts_distinct or math.isnan(attempt.predicted.half_width):
            return self._most_message
        return attempt.message_bytes

    def _sampled(self, attempt: SampleJoin) -> Estimated:
        query, settings = self.planner.query, self.planner.settings
        groups = self._listed() if query.groups else None
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
        evaluators = {n: self._evaluator(plan, j, n) for n, j in joined.items()}
        unmet = 0 if groups is None else groups.number - len(evaluators)
        return Estimated(query, evaluators, listed=False, unmet=unmet)

    def _materialized(self) -> tuple[Estimated, tuple[str, ...], bool]:
        planner, confidence = self.planner, self.planner.settings.confidence
        assert planner.context is not None, "there is a catalog"
        lookup = MaterializedLookup(planner.context)
        if planner.query.groups:
            found = lookup.grouped(planner.select, planner.query, planner.settings)
            assert found is not None, "the catalog has it"
            evaluators: dict[GroupNumbers, Evaluator] = {
                (n,): Evaluator(found.plan, joined, confidence, values)
                for n, (values, joined) in enumerate(found.joined.items())
            }
            return Estimated(planner.query, evaluators), found.notes, found.stale
        supply = lookup.supply(planner.select, planner.query, planner.settings)
        assert supply is not None, "the catalog has it"
        joined = supply.joined or planner.joined(SketchJoin("", supply.plan), supply.plan, supply.built)
        evaluator = Evaluator(supply.plan, joined, confidence)
        return Estimated(planner.query, {(): evaluator}), supply.notes, supply.stale

    def _evaluator(self, plan: Plan, joined: Joined, numbers: GroupNumbers) -> Evaluator:
        values = self._groups.values(numbers) if self._groups is not None and numbers else ()
        return Evaluator(plan, joined, self.planner.settings.confidence, values)

    def _after(
        self, attempt: Attempt, answer: Answer, estimated: Estimated | None, started: float
    ) -> Attempt | None:
        """What is run next, if anything."""
        target, planner = self.planner.settings.error, self.planner
        wide = _widest(answer)
        met = target is None or not any(misses(c, target) for row in answer.rows for c in row)
        outcome = "shown" if target is None else "met" if met else "missed"
        self._keep(attempt, outcome, wide, answer.bytes_used, started)
        if met or target is None or isinstance(attempt, (ExactRun, Nothing)):
            return None
        if isinstance(attempt, MaterializedJoin):
            if not planner.asks_more_than_materialized:
                return None
            self._notes += ("kept sketches miss the asked error",)
            self._plan = planner.anew(self._listed)
            return self._plan.attempt
        if isinstance(attempt, SampleJoin) and attempt.enlarges:
            said = self._told(attempt)[0]
            self._notes += (f"{said}: not enough",)
            samples = sum(isinstance(a.attempt, SampleJoin) for a in self.record)
            larger = planner.enlarged(attempt, wide / target) if samples < MOST_SAMPLES else None
            if larger is not None:
                return larger
            if planner.may_run_exactly:
                self._notes += ("run exactly: cheaper than a sample that meets the asked error",)
                return planner.exact()
            self._plan = planner.by_statistics(self._listed, planner.settings.fold_bytes)
            self._notes += self._plan.notes
            return self._plan.attempt
        return self._exactly(attempt)

    def _exactly(self, attempt: Attempt) -> Attempt | None:
        """The cheapest exact way, where that and what was tried cost little more than the exact run alone."""
        choice = None if self._plan is None else self._plan.choice
        failed = any(a.outcome == "failed" for a in self.record)
        if choice is None or failed or not self.planner.aims_freely:
            return None
        following = self.planner.exactly(choice, MOST_EXACT_RUNS)
        if isinstance(following, ExactRun):
            self._notes += ("run exactly, since the asked error was missed and that costs little more",)
        elif following is not None:
            self._notes += (f"by {attempt.method.replace('_', ' ')}: the asked error was missed",)
        return following

    def _after_fault(
        self, attempt: Attempt, fault: MessageTooLarge | DataError | EnvironmentFault
    ) -> Attempt | None:
        """What is run in the place of an attempt that failed: no messages, where these were too large."""
        if not isinstance(attempt, SketchJoin):
            return None
        if self.planner.query.counts_distinct:
            return self._without(attempt, fault) if isinstance(fault, MessageTooLarge) else None
        failed = any(a.outcome == "failed" for a in self.record)
        if math.isnan(attempt.predicted.half_width) or failed or not self.planner.settings.fold_bytes:
            return None
        # Statistics were wrong; or products of counts leave 64 bits: sketches and samples multiply doubles.
        if isinstance(fault, MessageTooLarge) or fault.code == "SKIMQL_OVERFLOW":
            return self.planner.by_statistics(self._listed, 0).attempt
        return None

    def _without(self, attempt: SketchJoin, fault: MessageTooLarge) -> Attempt | None:
        """A count of distinct values without a message that is too large to be sent.

        Where they cannot be counted without it, Spark joins it into the scan, as large as it is.
        """
        query, relation, planner = self.planner.query, fault.relation, self.planner
        senders = {
            v
            for v, vertex in enumerate(query.graph.vertices)
            if (vertex.table, vertex.filter) == (relation.table, relation.filter)
        }
        if senders <= self._too_large or self._most_message is None:
            return None
        self._too_large |= senders
        try:
            if planner.sized_by_hand:
                return planner.by_hand(self._listed, self._too_large)
            return planner.by_distinct(self._listed, self._too_large).attempt
        except UnsupportedQuery:
            names = " and ".join(query.graph.vertices[v].alias for v in sorted(self._too_large))
            self._notes += (
                f"{names} joined by Spark: the keys take more than {message_limit.DEFAULT_LIMIT_BYTES:,} bytes",
            )
            self._most_message = None
            return attempt

    def _with_exact_groups(self, answer: Answer, estimated: Estimated) -> Answer:
        """The answer, the groups that miss the asked error run exactly where that is the behaviour."""
        settings = self.planner.settings
        partial = settings.behavior == "partial_run_on_base_table" and settings.error is not None
        if not partial or self._groups is None or settings.error is None:
            return answer
        missed = estimated.missed(settings.error)
        if not missed:
            return answer
        started = time.perf_counter()
        known: Mapping[GroupNumbers, Sequence[Estimate]] = self.backend().exact_groups(
            self.planner.query, self._groups, missed
        )
        note = f"{groups_text(len(missed))} run exactly, since the asked error was missed"
        found = estimated.with_known(known).answer()
        seconds = {**answer.seconds, "exact": time.perf_counter() - started}
        return replace(found, seconds=seconds, notes=(*self._notes, note, *found.notes))

    def _as_asked(self, answer: Answer) -> Answer:
        settings, select = self.planner.settings, self.planner.select
        last = self.record[-1] if self.record else None
        method = last.attempt.method if last is not None else ""
        answer = replace(answer, attempts=tuple(self.record), method=method)
        if last is not None and isinstance(last.attempt, ExactRun):
            why = next((n for n in self._notes if n.startswith("run exactly")), "")
            why = why or "run exactly: predicted to be the cheapest way to the asked error"
            rest = tuple(n for n in self._notes if n != why)
            return replace(answer, notes=(*self.planner.query.warnings, *rest, why, *answer.notes))
        answer = replace(answer, notes=(*self.planner.query.warnings, *answer.notes))
        if settings.error is None:
            return answer
        met, noted = with_target(answer, settings.error)
        if met:
            return noted
        if settings.behavior == "strict":
            raise AccuracyNotReached(
                noted.notes[len(answer.notes)],
                sql=select.sql,
                span=span_of(select.clause_spans, "error"),
                hint="more buckets: OPTIONS (buckets = ...), or BEHAVIOR 'run_on_full_table'",
            )
        if settings.behavior in ("run_on_full_table", "partial_run_on_base_table") and not (
            settings.behavior == "partial_run_on_base_table" and self.planner.query.groups
        ):
            note = "run exactly, since the asked error was missed"
            found = self.exact()
            self._keep(self.planner.exact(), "met", 0.0, 0, time.perf_counter())
            return replace(found, notes=(*noted.notes, note), attempts=tuple(self.record), method="exact_run")
        if settings.behavior == "local_omit":
            return noted.omitting(settings.error)
        return noted

    def _keep(
        self, attempt: Attempt, outcome: str, wide: float, nbytes: int, started: float, note: str = ""
    ) -> None:
        self.record.append(Attempted(attempt, outcome, wide, nbytes, time.perf_counter() - started, note))


def _widest(answer: Answer) -> float:
    """The widest interval over its value; infinite where a value is not known at all."""
    wide = 0.0
    for cell in (c for row in answer.rows for c in row):
        if isinstance(cell, Estimate) and not cell.exact:
            known = cell.value and math.isfinite(cell.value)
            wide = max(wide, half_width(cell) / abs(cell.value) if known else math.inf)
    return wide
