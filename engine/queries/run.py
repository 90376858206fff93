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

from ...errors import AccuracyNotReached, DataError, EnvironmentFault, SkimqlError, UnsupportedQuery
from ...optimizer.plan import Plan
from ...parser.expressions import has_aggregate
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ...sketches.intervals.interval import USELESS, Estimate
from ..materialized.lookup import KeptSketches, Supply
from ..results.answer import Answer, answer_plan, nothing_joins, uncertified_answer, with_target
from ..results.columns import arrow_type
from ..results.estimator import SketchJoin
from ..settings import METHODS, PLANNED_METHODS, BadSetting, Settings
from .features import is_grouped

if TYPE_CHECKING:
    from ..session import Session
    from ..sources.tables import Frames
    from .distinct import DistinctRun
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
        self._check_method()
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
        if self.select.method == "skimmed" or self.select.method in PLANNED_METHODS:
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

    def sketch_plan(self) -> Plan:
        """The sketches that would be built, of a grouped query for one group."""
        from .sizing import chosen

        return chosen(self.typed, self._routed)

    def plan_text(self) -> str:
        """The plan as text: from kept sketches where they answer the whole query, else what would be done."""
        from ...optimizer.describe.plan import describe

        kept = (
            None
            if is_grouped(self.query)
            else KeptSketches(self.session.context).plan(self.select, self.typed)
        )
        if kept is not None and not kept.missing:
            return describe(kept.plan, [h.name for h in kept.heads])
        if self._is_distinct_planned:
            return self._distinct_run().explained()
        if is_grouped(self.query) or not self._is_planned:
            return describe(self.sketch_plan())
        if self._is_target_alone:
            run = self._sample_run()
            explained = run.explained() if run.applies() else None
            if explained is not None:
                return explained
        return self._planned_run().explained()

    @cached_property
    def _routed(self) -> Settings:
        """The settings, with the route by which sketches of these tables are made."""
        from .sizing import with_route

        return with_route(self.typed, self.settings, self.session.tables)

    def exact(self) -> Answer:
        """The SELECT as Spark runs it."""
        return self.session.exact(self.select.sql, self.select.select_sql)

    def _check_method(self) -> None:
        graph = self.query.graph
        if self.select.method == "hash" and any(
            len(graph.edges_at(v)) > 1 for v in range(len(graph.vertices))
        ):
            raise UnsupportedQuery(
                "a hash sketch has one join attribute; a table of this query has several",
                "SKIMQL_UNKNOWN_METHOD",
                self.select.sql,
                _span_of(self.select.clause_spans, "method"),
                "USING convolution",
            )

        if self.select.method == "skimmed" and is_grouped(self.query):
            raise UnsupportedQuery(
                "the sketches of groups are not skimmed",
                "SKIMQL_UNKNOWN_METHOD",
                self.select.sql,
                _span_of(self.select.clause_spans, "method"),
                "USING hash",
            )

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

    def _joined(self, supply: Supply) -> SketchJoin:
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
        if self._is_distinct_planned:
            return self._by_planned_distinct()
        if not self._is_planned:
            return None
        if self._is_target_alone:
            run = self._sample_run()
            sampled = run.answer() if run.applies() else None
            if sampled is not None:
                return self._finished(sampled)
        return self._finished(self._planned_run().answer())

    @property
    def _is_planned(self) -> bool:
        if self.typed.counts_distinct or not self.typed.graph.edges or self.settings.cache:
            return False
        if self.select.method is not None:
            return self.select.method in PLANNED_METHODS
        asked = self.settings.error is not None or self.settings.size_bytes is not None
        return asked and not self.settings.by_hand

    @property
    def _is_distinct_planned(self) -> bool:
        if is_grouped(self.query) or not self.typed.counts_distinct or self.query.empty:
            return False
        if self.settings.cache or self.settings.by_hand:
            return False
        return self.settings.error is not None or self.settings.size_bytes is not None

    def _distinct_run(self) -> DistinctRun:
        from .distinct import DistinctRun

        session = self.session
        return DistinctRun(
            session.own_spark,
            session.tables,
            self.typed,
            self._routed,
            session.statistics,
            session.listener,
        )

    def _by_planned_distinct(self) -> Answer:
        """The answer where distinct values are counted by synopses of a planned size, or exactly."""
        from ..execution.build import build
        from ..results.distinct import built_within
        from .distinct import RunExactly

        session, run, started = self.session, self._distinct_run(), time.perf_counter()
        try:
            (plan, note), built, notes = built_within(
                self.typed,
                run.plan,
                lambda planned, most: build(
                    session.own_spark, planned[0], session.tables, session.listener, most
                ),
            )
        except RunExactly:
            exact = self.exact()
            told = "run exactly: predicted to be the cheapest way to the asked error"
            return self._finished(replace(exact, notes=(*exact.notes, told)))
        return self._by_sketches(Supply(plan, built, (note, *notes), time.perf_counter() - started))

    @property
    def _is_target_alone(self) -> bool:
        settings = self.settings
        return settings.error is not None and self.select.method is None and settings.size_bytes is None

    def _sample_run(self) -> SampleRun:
        from .sampled import SampleRun

        session = self.session
        return SampleRun(
            session.own_spark, session.tables, self.typed, self.settings, self.exact, session.listener
        )

    def _planned_run(self) -> PlannedRun:
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
    UnsupportedQuery
        If there is no such method.
    """
    if statement.method is not None and statement.method not in METHODS:
        raise UnsupportedQuery(
            f"there is no method {statement.method} in this version",
            "SKIMQL_UNKNOWN_METHOD",
            statement.sql,
            _span_of(statement.clause_spans, "method"),
            "one of " + ", ".join(METHODS),
        )
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
