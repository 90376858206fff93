"""The executor: runs the attempts of a physical plan until one is enough, and keeps a record of each.

What one attempt gave decides what follows: a larger sample, the exact run, the groups that missed the asked error run
exactly. There is no other loop in which a query is run again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ...errors import DataError, EnvironmentFault, SkimqlError, UnsupportedQuery
from ...optimizer.candidates.spending import MOST_SPENT, SPENT
from ...optimizer.operator_tree import of_attempt, operators_of
from ...optimizer.operators import ESTIMATE, EXACT_RUN, PLANNING, Operator
from ...optimizer.physical import (
    ApartJoin,
    Attempt,
    Attempted,
    ExactRun,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    SampledQuery,
    SampleJoin,
    SketchJoin,
)
from ...parser.sampled_select import SampledQuery as AskedSample
from ...sketches.intervals.interval import Estimate
from ..execution import message_limit
from ..execution.message_limit import MessageTooLarge
from ..observed import Meter, Recorder, observed
from ..results.answer import (
    MET,
    UNKNOWN,
    Answer,
    half_width,
    target_state,
    targets_of,
    uncertified_answer,
    with_confidence,
    with_target,
)
from ..results.rows import Estimated, GroupNumbers
from .attempt_run import AttemptRun, GroupList
from .behavior import PARTLY, missed_fault, runs_in_full, with_exact_groups
from .planner import Planner

if TYPE_CHECKING:
    from ...optimizer.prediction.relation import RelationStatistics
    from .backend import Backend

# Where what unseen keys may add takes more than this part of the asked error, a larger sample is not enough.
MOST_UNSEEN = 0.5

TOO_DEAR = (
    "more keys would take, with those that were sampled, more than {:.2g} times as long as the exact run, which"
    " BEHAVIOR 'run_on_full_table' starts"
)

AT_ONCE = "the intervals of all groups that are shown hold at once, with a confidence of {:.3g}"

# A method as a note tells it, where its name with blanks does not.
METHOD_WORDS = {"exact": "exact messages"}

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
    meter : Meter or None
        Measures what each operator takes, for EXPLAIN ANALYZE.
    refines : bool
        Whether the answer of each attempt is shown, so that all of them together may cost twice the last at most.
    shown : callable, optional
        Is given an answer that one may stop at while what follows it runs: of a sample, since samples spend the
        confidence, and of what an exact run follows, which cannot miss.
    record : list of Attempted
    first : PhysicalPlan or None
        What was planned before anything ran.
    """

    planner: Planner
    backend: Callable[[], Backend]
    exact: Callable[[], Answer]
    by_hand: bool = False
    meter: Meter | None = None
    refines: bool = False
    shown: Callable[[Answer], None] | None = None
    record: list[Attempted] = field(default_factory=list)
    first: PhysicalPlan | None = None
    _recorder: Recorder = field(default_factory=Recorder)
    _plan: PhysicalPlan | None = None
    _notes: tuple[str, ...] = ()
    # Why nothing follows the last attempt, whose answer is there already.
    _stopped: tuple[str, ...] = ()
    _most_message: int | None = field(default_factory=lambda: message_limit.DEFAULT_LIMIT_BYTES)
    _too_large: frozenset[int] = frozenset()
    _known: tuple[RelationStatistics, ...] = ()

    @cached_property
    def _groups(self) -> GroupList:
        return GroupList(self.planner, self.backend)

    def answer(self) -> Answer:
        """The answer, or what the query's behaviour puts in its place where the asked error is missed.

        Raises
        ------
        AccuracyNotReached
            Where the asked error is missed and the behaviour is 'strict'.
        SkimqlError
            As planning and building.
        """
        *_, (last, _) = self._steps()
        return last

    def answers(self) -> Iterator[Answer]:
        """The answer of each attempt as it is there, the last one as `answer` gives it; raises as that does."""
        for found, final in self._steps():
            if final:
                yield found
                return
            yield self._so_far(found)

    def _so_far(self, found: Answer) -> Answer:
        """The answer of the last attempt, which misses the asked error."""
        so_far = replace(found, attempts=tuple(self.record), method=self.record[-1].attempt.method)
        error = self.planner.settings.error
        return so_far if error is None else with_target(so_far, error)

    def _steps(self) -> Iterator[tuple[Answer, bool]]:
        """The answers of all attempts, the last of them marked; what runs between two is recorded."""
        self._recorder.meter = self.meter
        steps = self._attempts()
        while True:
            with self._recorder.recording():
                step = next(steps, None)
            if step is None:
                return
            yield step

    def _attempts(self) -> Iterator[tuple[Answer, bool]]:
        with observed(PLANNING):
            plan = self._plan = self.first = (
                self.planner.anew(self._groups) if self.by_hand else self.planner.plan(self._groups)
            )
        attempt: Attempt | None = plan.attempt
        self._notes = plan.notes
        if self.meter is not None and not plan.statistics and not isinstance(attempt, MaterializedJoin):
            self._known = self._known_before()
        answer: Answer | None = None
        while attempt is not None:
            started = time.perf_counter()
            try:
                answer, estimated = self._run(attempt)
            except (MessageTooLarge, DataError, EnvironmentFault) as fault:
                tried, ran = self._plan, self._recorder.taken()
                with observed(PLANNING):
                    following = self._after_fault(attempt, fault)
                if following is None:
                    if answer is None:
                        raise
                    yield (
                        self._as_asked(
                            replace(answer, notes=(*answer.notes, f"nothing better: {fault.message}"))
                        ),
                        True,
                    )
                    return
                self._keep(attempt, "failed", math.nan, 0, started, fault.message, ran, tried)
                attempt = following
                continue
            try:
                following = self._after(attempt, answer, estimated, started)
            except EnvironmentFault as fault:
                # What would be tried next needs Spark to be planned.
                note = f"nothing better without Spark: {fault.message}"
                yield self._as_asked(replace(answer, notes=(*answer.notes, note))), True
                return
            if following is None and estimated is not None:
                answer = self._with_exact_groups(answer, estimated)
            if following is not None:
                spends = isinstance(attempt, (SampleJoin, SampledQuery)) and attempt.enlarges
                if self.shown is not None and (spends or _is_exact(following)):
                    self.shown(self._so_far(answer))
                yield answer, False
            attempt = following
        assert answer is not None, "every attempt gives an answer or raises"
        yield self._as_asked(answer), True

    def _known_before(self) -> tuple[RelationStatistics, ...]:
        """What is known of the tables without a job, where the plan has not asked: for predicted figures alone."""
        query = self.planner.query
        if query.sets is not None or not query.graph.vertices:
            return ()
        try:
            return self.backend().statistics(query, jobs=False)
        except SkimqlError:
            return ()

    def _run(self, attempt: Attempt) -> tuple[Answer, Estimated | None]:
        """What one attempt gives, and what estimated it where that was no exact run."""
        started = time.perf_counter()
        if isinstance(attempt, ExactRun):
            return self._exact(), None
        if isinstance(attempt, SampledQuery) and attempt.rate == 1.0 and self.planner.request.may_run:
            note = f"all keys of {attempt.class_name}: the query as Spark runs it"
            known = self._exact()
            told = (note, *([attempt.why] if attempt.why else []))
            return replace(known, notes=(*self._notes, *told, *known.notes)), None
        run = AttemptRun(self.planner, self.backend, self._groups, self._most_message, self._taken(attempt))
        notes = self._notes
        found, told, stale = run.estimated(attempt)
        if self.planner.settings.simultaneous and self.planner.query.groups:
            found, told = found.at_once(), (*told, AT_ONCE.format(self.planner.settings.confidence))
        built = time.perf_counter()
        with observed(ESTIMATE) as seen:
            answer = found.answer()
            seen.rows, seen.bytes_held = len(answer.rows), answer.bytes_used
            seen.half_width = _widest(answer)
        if stale:
            # The interval is one for the tables as they were.
            answer = uncertified_answer(answer)
        answer = with_confidence(answer, self.planner.settings.confidence)
        seconds = {"build": built - started, "answer": time.perf_counter() - built}
        return replace(
            answer,
            plan=answer.plan or (None if isinstance(attempt, Nothing) else attempt.plan),
            seconds=seconds,
            notes=(*notes, *told, *self._told(attempt), *answer.notes),
        ), found

    def _exact(self) -> Answer:
        """The exact run."""
        with observed(EXACT_RUN) as seen:
            answer = self.exact()
            seen.rows, seen.half_width = len(answer.rows), 0.0
        return answer

    def _told(self, attempt: Attempt) -> tuple[str, ...]:
        """What an attempt says of itself."""
        if isinstance(attempt, SampleJoin) and attempt.enlarges:
            sample = attempt.plan.sample
            assert sample is not None, "a sample join has a sample"
            return (f"one in {1 / sample.rate:,.0f} keys of {sample.class_name} sampled",)
        if isinstance(attempt, (SketchJoin, SampleJoin, ApartJoin)) and not math.isnan(
            attempt.predicted.half_width
        ):
            note = f"by {METHOD_WORDS.get(attempt.method, attempt.method.replace('_', ' '))}"
            if attempt.predicted.half_width > 0:
                note += f"; ±{attempt.predicted.half_width:.2g} of the value was predicted"
            return (note,)
        return ()

    def _after(
        self, attempt: Attempt, answer: Answer, estimated: Estimated | None, started: float
    ) -> Attempt | None:
        """What is run next, if anything."""
        target = self.planner.settings.error
        wide = _widest(answer)
        state = "shown" if target is None else self._state(answer, estimated, target)
        self._keep(attempt, state, wide, answer.bytes_used, started)
        if isinstance(attempt, SampledQuery) and state != MET:
            filling = self.planner.sampled(jobs=True).filling(
                attempt, answer.bytes_used, self._taken(attempt)
            )
            if filling is not None:
                return filling
        if state == MET or target is None or isinstance(attempt, (ExactRun, Nothing)):
            return None
        if isinstance(attempt, SampledQuery):
            return self._more_keys(attempt, wide, target)
        with observed(PLANNING):
            return self._following(attempt, estimated, target)

    def _following(self, attempt: Attempt, estimated: Estimated | None, target: float) -> Attempt | None:
        """What is run after an attempt that is not known to reach the asked error."""
        planner = self.planner
        if isinstance(attempt, MaterializedJoin):
            if not planner.request.asks_more_than_materialized:
                return None
            self._notes += ("kept sketches miss the asked error",)
            self._plan = planner.anew(self._groups)
            return self._plan.attempt
        if isinstance(attempt, SampleJoin) and attempt.enlarges:
            said = self._told(attempt)[0]
            self._notes += (f"{said}: not enough",)
            larger = self._larger(attempt, estimated, target)
            if larger is not None:
                return larger
            if planner.may_run_exactly:
                self._notes += ("run exactly: cheaper than a sample that meets the asked error",)
                return planner.exact()
            self._plan = planner.by_statistics(self._groups, planner.settings.fold_bytes)
            self._notes += self._plan.notes
            return self._plan.attempt
        return self._exactly(attempt)

    def _more_keys(self, attempt: SampledQuery, wide: float, target: float) -> SampledQuery | None:
        """A larger sample where the interval of one is too wide: what unseen keys may add is not known of any."""
        taken = sum(isinstance(a.attempt, SampledQuery) for a in self.record)
        if attempt.rate == 1.0 or not attempt.enlarges or wide <= target:
            return None
        self._notes += (f"one in {1 / attempt.rate:,.0f} keys of {attempt.class_name}: not enough",)
        from .sampled_plan import least_rate

        sizes = self.planner.sampled(jobs=True)
        if taken >= len(SPENT):
            return sizes.resized(attempt, 1.0) if self.refines else None
        larger = sizes.enlarged(attempt, wide / target)
        if larger.rate == 1.0 and self._runs_groups:
            return None
        tried = [a.attempt.rate for a in self.record if isinstance(a.attempt, SampledQuery)]
        if not self.refines:
            if larger.rate <= sizes.affordable(attempt, tried):
                return larger
            if not self._runs_groups:
                self._stopped = (TOO_DEAR.format(MOST_SPENT),)
            return None
        return sizes.resized(attempt, max(larger.rate, least_rate(tried)))

    @property
    def _runs_groups(self) -> bool:
        """Whether groups are run exactly in place of the whole query."""
        return self.planner.settings.behavior == PARTLY and bool(self.planner.query.groups)

    @staticmethod
    def _state(answer: Answer, estimated: Estimated | None, target: float) -> str:
        """Whether the answer reaches the asked error; of groups that a sample has not met that is not known."""
        state = target_state(answer, target)
        return UNKNOWN if state == MET and estimated is not None and estimated.unmet else state

    def _larger(self, attempt: SampleJoin, estimated: Estimated | None, target: float) -> SampleJoin | None:
        """A larger sample of keys, where chance makes the interval too wide and not what unseen keys may add."""
        from ..execution.sample_join import (
            SampleJoin as EvaluatedSample,
        )  # late: kept sketches answer without scipy

        if estimated is None or len(self._samples) >= len(SPENT):
            return None
        certain = {
            n: replace(e, joined=e.joined.without_unseen())
            for n, e in estimated.evaluators.items()
            if isinstance(e.joined, EvaluatedSample)
        }
        chance = _widest(replace(estimated, evaluators=certain).answer())
        if chance <= target or _widest(estimated.answer()) - chance > MOST_UNSEEN * target:
            return None
        larger = self.planner.enlarged(attempt, chance / target)
        return None if larger is None else self.planner.foreseen(larger, len(self._samples))

    def _taken(self, attempt: Attempt) -> int:
        """How many samples were taken before an attempt."""
        kind = SampledQuery if isinstance(attempt, SampledQuery) else SampleJoin
        return sum(isinstance(a.attempt, kind) for a in self.record)

    @property
    def _samples(self) -> list[Attempted]:
        return [a for a in self.record if isinstance(a.attempt, SampleJoin)]

    def _exactly(self, attempt: Attempt) -> Attempt | None:
        """The cheapest exact way, where that and what was tried cost little more than the exact run alone."""
        choice = None if self._plan is None else self._plan.choice
        failed = any(a.outcome == "failed" for a in self.record)
        if choice is None or failed or not self.planner.request.aims_freely:
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
        """What is run in the place of an attempt that failed: no messages, where these were too large.

        Where a value is no number that is added up, Spark says what the sum is.
        """
        if fault.code == "SKIMQL_NOT_FINITE" and self.planner.request.aims_freely:
            self._notes += (f"run exactly: {fault.message}",)
            return self.planner.exact()
        if not isinstance(attempt, SketchJoin):
            return None
        if self.planner.query.counts_distinct:
            return self._without(attempt, fault) if isinstance(fault, MessageTooLarge) else None
        failed = any(a.outcome == "failed" for a in self.record)
        if math.isnan(attempt.predicted.half_width) or failed or not self.planner.settings.fold_bytes:
            return None
        # Statistics were wrong; or products of counts leave 64 bits: sketches and samples multiply doubles.
        if isinstance(fault, MessageTooLarge) or fault.code == "SKIMQL_OVERFLOW":
            return self.planner.by_statistics(self._groups, 0).attempt
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
            if planner.request.sized_by_hand:
                return planner.by_hand(self._groups, self._too_large)
            return planner.by_distinct(self._groups, self._too_large).attempt
        except UnsupportedQuery:
            names = " and ".join(query.graph.vertices[v].alias for v in sorted(self._too_large))
            self._notes += (
                f"{names} joined by Spark: the keys take more than {message_limit.DEFAULT_LIMIT_BYTES:,} bytes",
            )
            self._most_message = None
            return attempt

    def _with_exact_groups(self, answer: Answer, estimated: Estimated) -> Answer:
        """The answer, its groups that are not known well enough run exactly where that is the behaviour."""
        planner, groups = self.planner, self._groups.known
        query, settings = planner.query, planner.settings
        if settings.behavior != PARTLY or not query.groups:
            return answer
        run: Callable[[Sequence[GroupNumbers]], Mapping[GroupNumbers, Sequence[Estimate]]]
        if isinstance(query, AskedSample):
            sampled = planner.sampled(jobs=True)
            run = partial(sampled.exact_groups, estimated=estimated)
        elif groups is None or settings.error is None:
            return answer
        else:
            run = partial(self.backend().exact_groups, query, groups)
        if self.shown is not None and self.record[-1].outcome != MET:
            self.shown(self._so_far(answer))
        return with_exact_groups(answer, estimated, settings.error, run, self._notes)

    def _as_asked(self, answer: Answer) -> Answer:
        settings, select = self.planner.settings, self.planner.select
        last = self.record[-1] if self.record else None
        method = last.attempt.method if last is not None else ""
        left = self._recorder.taken()
        if last is not None and any(o.kind != PLANNING for o in left):
            # What ran behind the last attempt: groups that missed, run exactly.
            more = tuple(o for o in left if o.kind != PLANNING)
            last = self.record[-1] = replace(last, operators=(*last.operators, *more))
        answer = replace(answer, attempts=tuple(self.record), method=method)
        ran = last is not None and isinstance(last.attempt, ExactRun)
        if ran:
            why = next((n for n in self._notes if n.startswith("run exactly")), "")
            why = why or "run exactly: predicted to be the cheapest way to the asked error"
            rest = tuple(n for n in self._notes if n != why)
            answer = replace(answer, notes=(*rest, why, *answer.notes))
        answer = replace(answer, notes=(*self.planner.query.warnings, *answer.notes, *self._stopped))
        if settings.error is None:
            return answer
        noted = with_target(answer, settings.error)
        if noted.target == MET and last is not None and last.outcome == UNKNOWN:
            noted = replace(noted, target=UNKNOWN)
        if noted.target == MET:
            return noted
        if settings.behavior == "strict":
            raise missed_fault(select, noted.notes[len(answer.notes) :], ran=ran)
        if not ran and runs_in_full(settings, self.planner.query):
            note = "run exactly, since the asked error was missed"
            if self.shown is not None:
                self.shown(noted)
            started = time.perf_counter()
            found = self._exact()
            self._keep(self.planner.exact(), "met", 0.0, 0, started)
            return replace(
                found,
                notes=(*noted.notes, note),
                attempts=tuple(self.record),
                method="exact_run",
                target=target_state(found, settings.error),
                targets=targets_of(found, settings.error),
            )
        if settings.behavior == "local_omit":
            return noted.omitting(settings.error)
        return noted

    def _keep(
        self,
        attempt: Attempt,
        outcome: str,
        wide: float,
        nbytes: int,
        started: float,
        note: str = "",
        ran: tuple[Operator, ...] | None = None,
        plan: PhysicalPlan | None = None,
    ) -> None:
        """Record an attempt, with what has run since the last one; predictions beside it where it is measured."""
        seconds, plan = time.perf_counter() - started, plan or self._plan
        assert plan is not None, "an attempt is planned"
        predicted: tuple[Operator, ...] = ()
        if self.meter is not None:
            counts = {} if self._groups.known is None else self._groups.known.counts
            predicted = operators_of(plan, attempt, plan.statistics or self._known, counts)
        ran = self._recorder.taken() if ran is None else ran
        operators = of_attempt(attempt, ran, predicted, first=not self.record)
        self.record.append(Attempted(attempt, outcome, wide, nbytes, seconds, note, operators))


def _is_exact(attempt: Attempt) -> bool:
    """Whether an attempt gives what Spark gives."""
    return isinstance(attempt, ExactRun) or (isinstance(attempt, SampledQuery) and attempt.rate == 1.0)


def _widest(answer: Answer) -> float:
    """The widest interval over its value; infinite where a value is not known at all."""
    wide = 0.0
    for cell in (c for row in answer.rows for c in row):
        if isinstance(cell, Estimate) and not cell.exact:
            known = cell.value and math.isfinite(cell.value)
            wide = max(wide, half_width(cell) / abs(cell.value) if known else math.inf)
    return wide
