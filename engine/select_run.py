"""One approximate SELECT: from kept sketches, by the planner's choice, or from sketches built now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import AccuracyNotReached, EnvironmentFault, UnsupportedQuery
from ..optimizer.plan import Plan
from ..parser.join_graph import Query
from ..parser.statement import ApproximateSelect
from .answer import Answer, answer_plan, nothing_joins, uncertified_answer, with_target
from .features import is_grouped
from .joined import SketchJoin
from .kept import KeptSketches, Supply
from .settings import METHODS, PLANNED_METHODS, BadSetting, Settings

if TYPE_CHECKING:
    from .planned_run import PlannedRun
    from .sample_run import SampleRun
    from .session import Session


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
    """

    session: Session
    select: ApproximateSelect
    query: Query

    @cached_property
    def settings(self) -> Settings:
        """The session's settings, then OPTIONS, then the clauses; raises as `settings_of`."""
        return settings_of(self.session.settings, self.select)

    @cached_property
    def typed(self) -> Query:
        """The query with the types of all keys, and of the values that it counts, known."""
        return self.session.typed(self.query)

    def answer(self) -> Answer:
        """The answer, or what the query's behaviour puts in its place where the asked error is missed."""
        self._check_method()
        if is_grouped(self.query):
            from .groups import GroupedRun

            session = self.session
            run = GroupedRun(session.spark, session.tables, self.typed, self._routed, session.listener)
            return self._as_asked(self._finished(run.answer()))
        if self.query.empty:
            return replace(nothing_joins(self.query), bounds=self.settings.bounds)
        kept = KeptSketches(self.session).supply(self.select, self.typed, self.settings)
        if kept is None:
            return self._as_asked(self._planned() or self._by_sketches(self._built()))
        answer = self._by_sketches(kept)
        if self._misses_what_is_asked(answer):
            answer = self._better_than_kept(answer)
        return self._as_asked(answer)

    def sketch_plan(self) -> Plan:
        """The sketches that would be built, of a grouped query for one group."""
        from .choice import chosen

        return chosen(self.typed, self._routed)

    def plan_text(self) -> str:
        """The plan as text: from kept sketches where they answer the whole query, else what would be done."""
        from ..optimizer.describe import describe

        kept = None if is_grouped(self.query) else KeptSketches(self.session).plan(self.select, self.typed)
        if kept is not None and not kept.missing:
            return describe(kept.plan) + f"\n  from the kept sketches {', '.join(h.name for h in kept.heads)}"
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
        from .choice import with_route

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
        from .skimmed import SkimmedJoin
        from .statistics import gather, heaviest_keys

        session = self.session
        known = gather(session.spark, session.tables, self.typed, session.statistics, session.listener)
        return SkimmedJoin(supply.plan, supply.built, heaviest_keys(known))

    def _built(self) -> Supply:
        """The synopses of the query, built now."""
        from .choice import chosen
        from .distinct import built_within
        from .maintain import build

        session = self.session
        started = time.perf_counter()
        plan, built, notes = built_within(
            self.typed,
            lambda too_large: chosen(self.typed, self._routed, too_large),
            lambda plan, most: build(session.spark, plan, session.tables, session.listener, most),
        )
        seconds = time.perf_counter() - started
        if self.settings.cache:
            KeptSketches(session).keep(plan, dict(enumerate(built)))
        return Supply(plan, built, notes, seconds)

    def _planned(self) -> Answer | None:
        """The answer by a method of the planner's choice, where an error, a size or such a method is asked."""
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
    def _is_target_alone(self) -> bool:
        settings = self.settings
        return settings.error is not None and self.select.method is None and settings.size_bytes is None

    def _sample_run(self) -> SampleRun:
        from .sample_run import SampleRun

        session = self.session
        return SampleRun(
            session.spark, session.tables, self.typed, self.settings, self.exact, session.listener
        )

    def _planned_run(self) -> PlannedRun:
        from .planned_run import PlannedRun

        session = self.session
        return PlannedRun(
            session.spark,
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
