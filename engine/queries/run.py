"""One approximate SELECT: from kept sketches, by the planner's choice, or from sketches built now."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import AccuracyNotReached, DataError, EnvironmentFault, SkimqlError
from ...optimizer.methods import METHODS, Asked, check, counts_distinct, is_grouped, is_linear
from ...optimizer.plan import Plan
from ...parser.expressions import has_aggregate
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ...sketches.intervals.interval import USELESS, Estimate
from ..materialized.lookup import KeptSketches, Supply
from ..results.answer import Answer, answer_plan, nothing_joins, uncertified_answer, with_target
from ..results.columns import arrow_type
from ..results.estimator import Joined, SketchJoin
from ..settings import BadSetting, Settings

if TYPE_CHECKING:
    from ..session import Session
    from ..sources.tables import Frames
    from .planned import PlannedRun
    from .sampled import SampleRun

# What a BIGINT holds, as a double.
LARGEST_COUNT = float(1 << 63)


@dataclass(frozen=True)
class SelectRun:
    """One SELECT of a session.

    Attributes
    ----------
    session : Session
        Whose tables, sketches, statistics and Spark are used.
    select : ApproximateSelect
    query : Query
        The resolved SELECT.
    counts_rows : bool
        Whether it is ESTIMATE ROWS: a join too large for BIGINT is still to be told.
    """

    session: Session
    select: ApproximateSelect
    query: Query
    counts_rows: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The session's settings, then OPTIONS, then the clauses; raises as `settings_of`."""
        return settings_of(self.session.settings, self.select)

    @cached_property
    def typed(self) -> Query:
        """The query with the types of all keys, and of the values that it counts, known."""
        return self.session.typed(self.query)

    def answer(self) -> Answer:
        """The answer, or what the query's behaviour puts in its place where the asked error is missed.

        Whatever path gave it, its values are of the types that Spark gives the exact ones. Where Spark cannot compute
        a value, for a tuple that may join nothing, only the tuples that join are looked at.

        Raises
        ------
        DataError
            If an estimate does not fit the type of its column.
        """
        answer = self._of_what_joins()
        aggregated = tuple(has_aggregate(item.expression) for item in self.query.items)
        kinds = answer.types or self._types(answer)
        presented = replace(
            answer,
            rows=tuple(tuple(map(_plainest, row, kinds)) for row in answer.rows),
            columns=tuple(item.name for item in self.query.items),
            aggregated=aggregated,
            types=kinds,
            bounds=self.settings.bounds,
            notes=tuple(f"{n}: {self._way_to_tell}" if n == USELESS else n for n in answer.notes),
        )
        try:
            # An estimate out of the range of its type is told here, not when it is read.
            presented.result  # noqa: B018
        except DataError as fault:
            hint = "the sum of CAST(... AS DOUBLE), or SUM(1D) in place of COUNT(*)"
            raise DataError(fault.message, fault.code, self.select.sql, hint=hint) from fault
        return presented

    @property
    def _way_to_tell(self) -> str:
        """What helps where an interval is wider than its value."""
        if self.settings.error is not None:
            return "a smaller error in ERROR WITHIN would tell"
        sketched = self.query.counts_distinct or not self.query.graph.edges or self.settings.cache
        planned = not sketched and not is_grouped(self.query) and self.select.method is None
        if planned and not self.settings.by_hand:
            return "ERROR WITHIN 5% would tell"
        return "more buckets would tell: OPTIONS (buckets = ...)"

    def _types(self, answer: Answer) -> tuple[pa.DataType | None, ...]:
        """The Arrow types of the result's columns: by rule where all have one, else by Spark's analysis."""
        kinds = tuple(arrow_type(item.type) for item in self.query.items)
        if self.counts_rows and not abs(answer.value or 0) < LARGEST_COUNT:
            return (pa.float64(),)
        if None not in kinds or not self.session.spark_runs:
            return kinds
        from .exact import result_types

        return result_types(self.session.own_spark, self.select.select_sql) or kinds

    def _of_what_joins(self) -> Answer:
        self.check()
        try:
            return self._answer()
        except Exception as fault:
            # A failing scan has imported pyspark already; without it no value can have failed.
            if not self._may_fail_apart(fault):
                raise
            return self._of_contributing(fault)

    def _may_fail_apart(self, fault: Exception) -> bool:
        """Whether a value could not be computed that the user's own query may never compute."""
        if "pyspark" not in sys.modules or not self.query.graph.edges or self.query.sets is not None:
            return False
        if self.settings.route == "jvm" or not self._is_by_sketches:
            return False
        from ..execution.contributing import is_of_a_value

        return is_of_a_value(fault) and getattr(fault, "code", "") != "SKIMQL_EXACT_FAILED"

    def _of_contributing(self, fault: Exception) -> Answer:
        """The answer from the tuples that join, by sketches; `fault` again where that fails too."""
        from ..execution.contributing import contributing
        from ..spark.session import SPARK_FAULTS, first_line

        session, settings = self.session, replace(self.settings, route="arrow", cache=False)
        try:
            query, frames = contributing(self.typed, session.tables)
            if is_grouped(query):
                from .grouped import GroupedRun

                run = GroupedRun(session.own_spark, frames, query, settings, session.listener)
                answer = self._finished(run.answer())
            else:
                answer = self._by_sketches(self._built(query, frames, settings))
        except (SkimqlError, *SPARK_FAULTS):
            raise fault from None
        told = fault.__cause__ if isinstance(fault, SkimqlError) and fault.__cause__ else fault
        note = f"only the tuples that join were looked at, since others have values that fail: {first_line(told)}"
        return self._as_asked(replace(answer, notes=(*answer.notes, note)))

    def _answer(self) -> Answer:
        if is_grouped(self.query):
            kept_groups = self._kept_groups()
            if kept_groups is not None:
                return self._as_asked(kept_groups)
            from .grouped import GroupedRun

            session = self.session
            run = GroupedRun(session.own_spark, session.tables, self.typed, self._routed, session.listener)
            return self._as_asked(self._finished(run.answer()))
        if self.query.empty:
            return replace(nothing_joins(self.query), bounds=self.settings.bounds)
        kept = KeptSketches(self.session.context).supply(self.select, self.typed, self.settings)
        if kept is None:
            planned = self._planned()
            return self._as_asked(self._by_sketches(self._built()) if planned is None else planned)
        answer = self._by_sketches(kept)
        if self._misses_what_is_asked(answer):
            answer = self._better_than_kept(answer)
        return self._as_asked(answer)

    def _kept_groups(self) -> Answer | None:
        """The answer of a grouped query from kept sketches; None where they do not answer it."""
        query = self.query
        if query.empty or not query.groups or not self.session.catalog.manifest.sketches:
            return None
        from ..results.expressions import Evaluator
        from .group_rows import GroupRows, with_count

        started = time.perf_counter()
        # Of one table every group is there; what joins is counted.
        counted, count = (self.typed, -1) if query.counts_distinct else with_count(self.typed)
        if query.counts_distinct and query.graph.edges:
            return None
        kept = KeptSketches(self.session.context).grouped(self.select, counted, self.settings)
        if kept is None:
            return None
        evaluators = [
            Evaluator(kept.plan, joined, self.settings.confidence, group)
            for group, joined in kept.joined.items()
        ]
        shown = GroupRows(self.typed, count)
        answer = shown.answer(evaluators, shown.rows(evaluators), kept.plan, kept.notes)
        if kept.stale:
            answer = uncertified_answer(answer)
        return self._finished(
            replace(answer, seconds={"build": 0.0, "answer": time.perf_counter() - started})
        )

    def sketch_plan(self) -> Plan:
        """The sketches that would be built, of a grouped query for one group."""
        from .sizing import chosen

        self.check()
        return chosen(self.typed, self._routed)

    def plan_text(self) -> str:
        """The plan as text: from kept sketches where they answer the whole query, else what would be done."""
        from ...optimizer.describe.plan import describe

        self.check()
        if not self.query.groups or not self.query.graph.edges or not self.query.counts_distinct:
            found = KeptSketches(self.session.context).answer(self.select, self.typed, self.settings)
            if found is not None:
                return describe(found[0].plan, [h.name for h in found[0].heads])
        if is_grouped(self.query) or not self.is_planned:
            return describe(self.sketch_plan())
        if self.is_target_alone:
            run = self.sample_run()
            explained = run.explained() if run.applies() else None
            if explained is not None:
                return explained
        return self.planned_run().explained()

    @cached_property
    def _routed(self) -> Settings:
        """The settings, with the route by which sketches of these tables are made."""
        from .sizing import with_route

        return with_route(self.typed, self.settings, self.session.tables)

    def exact(self) -> Answer:
        """The SELECT as Spark runs it."""
        return self.session.exact(self.select.sql, self.select.select_sql)

    def check(self) -> None:
        """Refuse what is asked where nothing honours it; see `methods.check`."""
        settings = self.settings
        places = {name: (s.start, s.end) for name, s in self.select.clause_spans.items()}
        check(self.query, Asked(settings.by_hand, settings.cache, settings.route, places))

    def _finished(self, answer: Answer) -> Answer:
        notes = (*self.query.warnings, *answer.notes)
        return replace(answer, bounds=self.settings.bounds, notes=notes)

    def _by_sketches(self, supply: Supply) -> Answer:
        """The answer from linear sketches."""
        started = time.perf_counter()
        answer = answer_plan(supply.plan, self._joined(supply), self.settings.confidence)
        if supply.stale:
            # The interval is one for the tables as they were.
            answer = uncertified_answer(answer)
        seconds = {"build": supply.build_seconds, "answer": time.perf_counter() - started}
        return self._finished(replace(answer, seconds=seconds, notes=(*supply.notes, *answer.notes)))

    def _joined(self, supply: Supply) -> Joined:
        if supply.joined is not None:
            return supply.joined
        if self.select.method != "skimmed":
            return SketchJoin(supply.plan, supply.built)
        from ..results.skimmed import SkimmedJoin
        from ..statistics.gather import gather, heaviest_keys

        session = self.session
        known = gather(session.own_spark, session.tables, self.typed, session.statistics, session.listener)
        return SkimmedJoin(supply.plan, supply.built, heaviest_keys(known))

    def _built(
        self, query: Query | None = None, frames: Frames | None = None, settings: Settings | None = None
    ) -> Supply:
        """The synopses of the query, built now; of another query than its own, over other frames, where given."""
        from ..execution.build import build
        from ..results.distinct import built_within
        from .sizing import chosen

        session = self.session
        asked, own = query or self.typed, settings or self._routed
        started = time.perf_counter()
        plan, built, notes = built_within(
            asked,
            lambda too_large: chosen(asked, own, too_large),
            lambda plan, most: build(
                session.own_spark, plan, frames or session.tables, session.listener, most
            ),
        )
        seconds = time.perf_counter() - started
        if own.cache:
            KeptSketches(session.context).keep(plan, dict(enumerate(built)))
        return Supply(plan, built, notes, seconds)

    def _planned(self) -> Answer | None:
        """The answer by a method of the planner's choice, where an error, a size or such a method is asked."""
        if not self.is_planned:
            return None
        if self.is_target_alone:
            run = self.sample_run()
            sampled = run.answer() if run.applies() else None
            if sampled is not None:
                return self._finished(sampled)
        return self._finished(self.planned_run().answer())

    @property
    def _is_by_sketches(self) -> bool:
        """Whether sketches as they are would answer with the method that is asked for, if any is."""
        method = self.select.method
        return method is None or METHODS[method].synopsis or counts_distinct(method)

    @property
    def is_planned(self) -> bool:
        """Whether the planner chooses the method, or the size of the one that is asked for."""
        settings, method = self.settings, self.select.method
        if self.typed.counts_distinct or not self.typed.graph.edges:
            return False
        if method is not None and not is_linear(method):
            return True
        # Sketches that are kept, or asked for, take the size that is asked; without one it is planned for the error.
        by_size = settings.size_bytes is not None and not settings.cache and method is None
        by_error = settings.error is not None and (method is None or METHODS[method].error == "planned")
        return (by_error or by_size) and not settings.by_hand

    @property
    def is_target_alone(self) -> bool:
        settings = self.settings
        alone = self.select.method is None and settings.size_bytes is None and not settings.cache
        return settings.error is not None and alone

    def sample_run(self) -> SampleRun:
        from .sampled import SampleRun

        session = self.session
        return SampleRun(
            session.own_spark, session.tables, self.typed, self.settings, self.exact, session.listener
        )

    def planned_run(self) -> PlannedRun:
        from .planned import PlannedRun

        session = self.session
        return PlannedRun(
            session.own_spark,
            session.tables,
            self.typed,
            self.settings,
            session.statistics,
            self.exact,
            session.listener,
            KeptSketches(session.context).keep if self.settings.cache else None,
        )

    def _misses_what_is_asked(self, answer: Answer) -> bool:
        """Whether the statement itself asks for an error that an answer misses, and not what to do then."""
        asked = self.select.accuracy
        return (
            asked.relative_error is not None
            and asked.behavior is None
            and not with_target(answer, asked.relative_error)[0]
        )

    def _better_than_kept(self, answer: Answer) -> Answer:
        """What is found now where kept sketches miss the error that the statement asks for; else their answer."""
        try:
            planned = self._planned()
        except EnvironmentFault as fault:
            return replace(answer, notes=(*answer.notes, f"nothing better without Spark: {fault.message}"))
        if planned is None:
            return answer
        return replace(planned, notes=("kept sketches miss the asked error", *planned.notes))

    def _as_asked(self, answer: Answer) -> Answer:
        settings = self.settings
        if settings.error is None:
            return answer
        met, noted = with_target(answer, settings.error)
        if met:
            return noted
        if settings.behavior == "strict":
            raise AccuracyNotReached(
                noted.notes[len(answer.notes)],
                sql=self.select.sql,
                span=_span_of(self.select.clause_spans, "error"),
                hint="more buckets: OPTIONS (buckets = ...), or BEHAVIOR 'run_on_full_table'",
            )
        if settings.behavior in ("run_on_full_table", "partial_run_on_base_table"):
            note = "run exactly, since the asked error was missed"
            return replace(self.exact(), notes=(*noted.notes, note))
        if settings.behavior == "local_omit":
            return noted.omitting(settings.error)
        return noted


def _plainest(cell: Any, kind: pa.DataType | None) -> Any:
    """The cell, an exact ratio as the DOUBLE that it is in the result."""
    value: object = cell.value if isinstance(cell, Estimate) else None
    if isinstance(value, Fraction) and (kind is None or pa.types.is_float64(kind)):
        return replace(cell, value=float(value), low=float(value), high=float(value))
    return cell


def settings_of(ours: Settings, statement: ApproximateSelect) -> Settings:
    """Settings of a session, with those of a statement's OPTIONS and clauses over them.

    Raises
    ------
    BadSetting
        If an option does not exist, or cannot take its value.
    """
    try:
        settings = ours.with_text(statement.options)
        asked = statement.accuracy
        clauses: Mapping[str, Any] = {
            "error": asked.relative_error,
            "confidence": asked.confidence,
            "behavior": asked.behavior,
            "seed": statement.seed,
            "size_bytes": statement.size_bytes,
        }
        return replace(settings, **{k: v for k, v in clauses.items() if v is not None})
    except BadSetting as fault:
        span = _span_of(statement.clause_spans, "options")
        raise BadSetting(fault.message, fault.code, statement.sql, span, fault.hint) from fault


def _span_of(spans: Mapping[str, Any], clause: str) -> tuple[int, int] | None:
    span = spans.get(clause)
    return (span.start, span.end) if span is not None else None
