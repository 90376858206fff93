"""A session: registered tables, settings, and the one way from SQL text to an answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AccuracyNotReached, EnvironmentFault, ParseError, UnsupportedQuery
from ..optimizer.plan import Plan
from ..parser.join_graph import Query
from ..parser.resolve import resolve, resolve_rows
from ..parser.statement import (
    ApproximateSelect,
    EstimateRows,
    ExactSelect,
    Explain,
    PassThrough,
    SetOption,
    parse_statement,
    split_statements,
)
from ..parser.syntax import CreateSketches, ExplainSketches
from .answer import Answer, answer_plan, nothing_joins, uncertified_answer, with_target
from .catalog.catalog import Catalog
from .features import DISTINCT, GROUPING, RUNS, is_grouped
from .jobs import ProgressListener
from .joined import SketchJoin
from .kept import KeptSketches, Supply
from .keys import with_key_types
from .memory import Memory
from .settings import METHODS, PLANNED_METHODS, BadSetting, Settings
from .tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .planned_run import PlannedRun
    from .sample_run import SampleRun
    from .statistics import KeptStatistics


class Session:
    """Answers SQL on registered tables.

    Parameters
    ----------
    spark : SparkSession, optional
        The session to run on; without it the running one, or a new quiet local one when first needed.
    settings : Settings, optional
        Defaults for every query.
    listener : ProgressListener, optional
        Is told how far scans and exact runs are.
    catalog : str, Path or Catalog, optional
        Folder or URI in which sketches, and the schemas of tables, are kept; without it they live as long as the
        session.
    **overrides
        Single settings by name: ``Session(seed=7, buckets=8192)``.

    Examples
    --------
    >>> session = Session()                                                     # doctest: +SKIP
    >>> session.table("flights", "flights.parquet")                             # doctest: +SKIP
    >>> session.sql("SELECT APPROXIMATE COUNT(*) FROM flights a JOIN flights b ON a.dest = b.dest")  # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        settings: Settings | None = None,
        listener: ProgressListener | None = None,
        catalog: str | Path | Catalog | None = None,
        **overrides: Any,
    ) -> None:
        self.settings = replace(settings or Settings(), **overrides)
        self.listener = listener
        self.catalog = catalog if isinstance(catalog, Catalog) else Catalog(catalog)
        self._spark = spark
        self._tables: Tables | None = None
        self._statistics: KeptStatistics | None = None

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started on first use."""
        if self._spark is None:
            from .spark import start_spark

            self._spark = start_spark()
        return self._spark

    @property
    def tables(self) -> Tables:
        """Registered tables and Spark's own, by name."""
        if self._tables is None:
            self._tables = Tables(lambda: self.spark, self.catalog)
        return self._tables

    @property
    def memory(self) -> Memory:
        """What the catalog remembers of tables and of Spark's settings."""
        return Memory(self.catalog, self.tables, lambda: self.spark, self._running)

    @property
    def statistics(self) -> KeptStatistics:
        """What the session knows of the virtual relations of its queries."""
        if self._statistics is None:
            from .statistics import KeptStatistics

            self._statistics = KeptStatistics()
        return self._statistics

    def table(self, name: str, source: str | Path | DataFrame, **options: Any) -> None:
        """Register a file, folder, DataFrame or Spark table under `name`.

        `options` go to Spark's reader, such as ``nullValue="NA"`` or ``format="csv"``.

        Raises
        ------
        DataError
            If the source does not exist or cannot be read.
        """
        if self._running() is None and self.tables.is_remembered(name, source, options):
            return
        self.tables.register(name, source, options)
        if self._statistics is not None:
            self._statistics.drop(name)
        if self.catalog.lasting:
            self.memory.remember(name)
        else:
            # Sketches of what had that name before answer nothing any more.
            self.memory.forget_sketches_of(name)

    def sql(self, text: str) -> Answer | DataFrame | None:
        """Run one statement.

        Returns
        -------
        Answer
            For ``SELECT APPROXIMATE`` and ``EXACT SELECT``.
        DataFrame
            For any statement that is not SkimQL's: it goes to Spark unchanged.
        None
            For ``SET skimql.<name> = value``.

        Raises
        ------
        SkimqlError
            With line, caret, reason and way out; see `errors`.
        """
        statement = parse_statement(text)
        match statement:
            case ApproximateSelect():
                return self._approximate(statement, self._resolved(statement))
            case EstimateRows():
                rows = resolve_rows(statement, self.tables, ansi=self._ansi())
                return self._approximate(statement.select, rows)
            case CreateSketches():
                return self._create_sketches(statement)
            case ExplainSketches():
                from .workloads import Workloads

                return Workloads(self).explain(statement)
            case Explain():
                return Answer(("plan",), ((self._explained(statement),),), exact=True)
            case ExactSelect():
                return self._exact(statement.sql, statement.select_sql)
            case SetOption():
                self.settings = self.settings.with_text(
                    {statement.name.removeprefix("skimql."): statement.value}
                )
                return None
            case PassThrough():
                return self._pass_through(statement.sql)
        from .stored import Keeper

        return Keeper(self).run(statement)

    def script(self, text: str) -> Iterator[tuple[str, Answer | DataFrame | None]]:
        """Run the statements of a script one after the other, as they are asked for: (statement, result)."""
        for statement in split_statements(text):
            yield statement.sql, self.sql(statement.sql)

    def compare(self, text: str, exact_sql: str | None = None) -> Answer:
        """An approximate query with the exact values, run by Spark, beside its estimates.

        Parameters
        ----------
        text : str
            A SELECT to be estimated.
        exact_sql : str, optional
            Another SELECT that gives the same columns exactly, where running the join itself would take too long.

        Raises
        ------
        UnsupportedQuery
            If the statement is not a SELECT to be estimated.
        """
        statement = parse_statement(text)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery(
                "only an approximate SELECT has an exact answer to compare with",
                "SKIMQL_NOTHING_TO_COMPARE",
                text,
                hint="SELECT APPROXIMATE ...",
            )
        answer = self._approximate(statement, self._resolved(statement))
        exact = self._exact(statement.sql, exact_sql or statement.select_sql)
        from .compare import beside

        return beside(answer, exact)

    def plan(self, text: str) -> Plan:
        """What an approximate query would build, without building it; of a grouped query, for one group."""
        statement = parse_statement(text)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery("only an approximate SELECT has a plan", "SKIMQL_NO_PLAN", text)
        return self._plan(self._resolved(statement), self._settings_of(statement))

    def _approximate(self, select: ApproximateSelect, query: Query) -> Answer:
        settings = self._settings_of(select)
        if select.method == "hash" and any(
            len(query.graph.edges_at(v)) > 1 for v in range(len(query.graph.vertices))
        ):
            raise UnsupportedQuery(
                "a hash sketch has one join attribute; a table of this query has several",
                "SKIMQL_UNKNOWN_METHOD",
                select.sql,
                _span_of(select.clause_spans, "method"),
                "USING convolution",
            )
        if is_grouped(query):
            from .choice import with_route
            from .groups import GroupedRun

            typed = self._typed(query)
            routed = with_route(typed, settings, self.tables)
            run = GroupedRun(self.spark, self.tables, typed, routed, self.listener)
            answer = run.answer()
            answer = replace(answer, bounds=settings.bounds, notes=(*query.warnings, *answer.notes))
            return self._as_asked(select, settings, answer)
        if query.empty:
            return replace(nothing_joins(query), bounds=settings.bounds)
        typed = self._typed(query)
        kept = KeptSketches(self).supply(select, typed, settings)
        if kept is None:
            sampled = self._sampled(select, typed, settings)
            answer = sampled or self._answered(self._built(typed, settings), typed, settings)
        else:
            answer = self._answered(kept, typed, settings)
            if self._misses_what_is_asked(select, answer):
                answer = self._better_than_kept(select, typed, settings, answer)
        return self._as_asked(select, settings, answer)

    def _better_than_kept(
        self, select: ApproximateSelect, query: Query, settings: Settings, answer: Answer
    ) -> Answer:
        """A sample taken now where kept sketches miss the error that the statement asks for; else their answer."""
        try:
            sampled = self._sampled(select, query, settings)
        except EnvironmentFault as fault:
            return replace(answer, notes=(*answer.notes, f"nothing better without Spark: {fault.message}"))
        if sampled is None:
            return answer
        return replace(sampled, notes=("kept sketches miss the asked error", *sampled.notes))

    def _misses_what_is_asked(self, select: ApproximateSelect, answer: Answer) -> bool:
        """Whether the statement itself asks for an error that an answer misses, and not what to do then."""
        asked = select.accuracy
        return (
            asked.relative_error is not None
            and asked.behavior is None
            and not with_target(answer, asked.relative_error)[0]
        )

    def _answered(self, supply: Supply, query: Query, settings: Settings) -> Answer:
        """The answer from linear sketches."""
        started = time.perf_counter()
        answer = answer_plan(supply.plan, SketchJoin(supply.plan, supply.built), settings.confidence)
        if supply.stale:
            # The interval is one for the tables as they were.
            answer = uncertified_answer(answer)
        seconds = {"build": supply.build_seconds, "answer": time.perf_counter() - started}
        notes = (*query.warnings, *supply.notes, *answer.notes)
        return replace(answer, seconds=seconds, bounds=settings.bounds, notes=notes)

    def _sampled(self, select: ApproximateSelect, query: Query, settings: Settings) -> Answer | None:
        """The answer by a method of the planner's choice, where an error, a size or such a method is asked."""
        if not self._is_planned(select, query, settings):
            return None
        if self._is_target_alone(select, settings):
            run = self._sample_run(select, query, settings)
            if run.applies():
                answer = run.answer()
                return replace(answer, bounds=settings.bounds, notes=(*query.warnings, *answer.notes))
        answer = self._planned_run(select, query, settings).answer()
        return replace(answer, bounds=settings.bounds, notes=(*query.warnings, *answer.notes))

    def _is_planned(self, select: ApproximateSelect, query: Query, settings: Settings) -> bool:
        if query.counts_distinct or not query.graph.edges or settings.cache:
            return False
        if select.method is not None:
            return select.method in PLANNED_METHODS
        return not settings.by_hand and (settings.error is not None or settings.size_bytes is not None)

    def _is_target_alone(self, select: ApproximateSelect, settings: Settings) -> bool:
        return settings.error is not None and select.method is None and settings.size_bytes is None

    def _sample_run(self, select: ApproximateSelect, query: Query, settings: Settings) -> SampleRun:
        from .sample_run import SampleRun

        exact = partial(self._exact, select.sql, select.select_sql)
        return SampleRun(self.spark, self.tables, query, settings, exact, self.listener)

    def _planned_run(self, select: ApproximateSelect, query: Query, settings: Settings) -> PlannedRun:
        from .planned_run import PlannedRun

        exact = partial(self._exact, select.sql, select.select_sql)
        return PlannedRun(self.spark, self.tables, query, settings, self.statistics, exact, self.listener)

    def _built(self, query: Query, settings: Settings) -> Supply:
        """The synopses of a query, built now."""
        from .choice import chosen, with_route
        from .distinct import built_within
        from .maintain import build

        started = time.perf_counter()
        settings = with_route(query, settings, self.tables)
        plan, built, notes = built_within(
            query,
            lambda too_large: chosen(query, settings, too_large),
            lambda plan, message_bytes: build(self.spark, plan, self.tables, self.listener, message_bytes),
        )
        seconds = time.perf_counter() - started
        if settings.cache:
            KeptSketches(self).keep(plan, dict(enumerate(built)))
        return Supply(plan, built, notes, seconds)

    def _create_sketches(self, statement: CreateSketches) -> Answer:
        from .standing import selects_of
        from .workloads import Workloads

        queries = [
            self._typed(self._resolved(select, RUNS - GROUPING - DISTINCT))
            for select in selects_of(statement)
        ]
        return Workloads(self).create(statement, queries)

    def _typed(self, query: Query) -> Query:
        """The query with the types of all keys, and of the values that it counts, known."""
        keyed = query
        if any(None in edge.key_types for edge in query.graph.edges):
            keyed = with_key_types(query, self.tables, self._ansi(), KeptSketches(self).key_types())
        if not query.counts_distinct:
            return keyed
        from .distinct import with_counted_types

        return with_counted_types(keyed, self.tables)

    def _resolved(self, select: ApproximateSelect, known: frozenset[str] = RUNS) -> Query:
        return resolve(select, self.tables, ansi=self._ansi(), known=known)

    def _plan(self, query: Query, settings: Settings) -> Plan:
        from .choice import chosen, with_route

        return chosen(self._typed(query), with_route(query, settings, self.tables))

    def _explained(self, statement: Explain) -> str:
        """The resolved query and, as text, what would be built for it."""
        from ..parser.explain import explain

        match statement.statement:
            case ApproximateSelect() as select:
                query = resolve(select, self.tables, ansi=self._ansi(), strict=False)
            case EstimateRows() as rows:
                select, query = rows.select, resolve_rows(rows, self.tables, ansi=self._ansi())
            case ExactSelect() as plain:
                explained = self._pass_through(f"EXPLAIN {plain.select_sql}").collect()
                return str(explained[0][0])
        text = explain(query, statement.format)
        if statement.format != "text" or query.empty or any(f.name not in RUNS for f in query.features):
            return text
        text += "\n" + self._plan_text(select, query)
        if query.groups:
            table = query.graph.vertices[query.groups[0].vertex].table
            text += (
                f"\n  the synopses of {table} once for every group; the groups are listed when the query runs"
            )
        return text

    def _plan_text(self, select: ApproximateSelect, query: Query) -> str:
        """The plan as text: from kept sketches where they answer the whole query, else what would be built."""
        from ..optimizer.describe import describe

        kept = None if is_grouped(query) else KeptSketches(self).plan(select, self._typed(query))
        if kept is None or kept.missing:
            settings, typed = self._settings_of(select), self._typed(query)
            if not is_grouped(query) and self._is_planned(select, typed, settings):
                if self._is_target_alone(select, settings):
                    run = self._sample_run(select, typed, settings)
                    if run.applies():
                        return run.explained()
                return self._planned_run(select, typed, settings).explained()
            return describe(self._plan(query, settings))
        return describe(kept.plan) + f"\n  from the kept sketches {', '.join(h.name for h in kept.heads)}"

    def _settings_of(self, statement: ApproximateSelect) -> Settings:
        """The session's settings, then OPTIONS, then the clauses."""
        if statement.method is not None and statement.method not in METHODS:
            raise UnsupportedQuery(
                f"there is no method {statement.method} in this version",
                "SKIMQL_UNKNOWN_METHOD",
                statement.sql,
                _span_of(statement.clause_spans, "method"),
                "one of " + ", ".join(METHODS),
            )
        try:
            settings = self.settings.with_text(statement.options)
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
            raise BadSetting(
                fault.message,
                fault.code,
                statement.sql,
                _span_of(statement.clause_spans, "options"),
                fault.hint,
            ) from fault

    def _as_asked(self, statement: ApproximateSelect, settings: Settings, answer: Answer) -> Answer:
        """The answer, or what the query's behaviour puts in its place where the asked error is missed."""
        if settings.error is None:
            return answer
        met, noted = with_target(answer, settings.error)
        if met:
            return noted
        if settings.behavior == "strict":
            raise AccuracyNotReached(
                noted.notes[len(answer.notes)],
                sql=statement.sql,
                span=_span_of(statement.clause_spans, "error"),
                hint="more buckets: OPTIONS (buckets = ...), or BEHAVIOR 'run_on_full_table'",
            )
        if settings.behavior in ("run_on_full_table", "partial_run_on_base_table"):
            exact = self._exact(statement.sql, statement.select_sql)
            return replace(exact, notes=(*noted.notes, "run exactly, since the asked error was missed"))
        if settings.behavior == "local_omit":
            return noted.omitting(settings.error)
        return noted

    def _exact(self, sql: str, select_sql: str) -> Answer:
        from .exact import run_exact

        self.tables.show_spark(select_sql)
        return run_exact(self.spark, sql, select_sql, self.listener)

    def _pass_through(self, sql: str) -> DataFrame:
        from .spark import SPARK_FAULTS, first_line

        self.tables.show_spark(sql)
        try:
            return self.spark.sql(sql)
        except SPARK_FAULTS as fault:
            raise ParseError(first_line(fault), "SKIMQL_SPARK_REFUSES", sql) from fault

    def _running(self) -> SparkSession | None:
        """The Spark session if there is one already."""
        if self._spark is None and "pyspark" in sys.modules:
            from pyspark.sql import SparkSession

            return SparkSession.getActiveSession()
        return self._spark

    def _ansi(self) -> bool:
        return self.memory.circumstances().ansi


def is_approximate(text: str) -> bool:
    """Whether a statement is a SELECT to be estimated; raises ParseError where it is malformed."""
    return isinstance(parse_statement(text), ApproximateSelect)


def _span_of(spans: Mapping[str, Any], clause: str) -> tuple[int, int] | None:
    span = spans.get(clause)
    return (span.start, span.end) if span is not None else None
