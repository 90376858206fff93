"""A session: registered tables, settings, and the one way from SQL text to an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..errors import AccuracyNotReached, ParseError, UnknownName, UnsupportedQuery
from ..optimizer.describe import describe
from ..optimizer.plan import Plan
from ..optimizer.route import routed
from ..parser.explain import explain
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
from .answer import Answer, answer_plan, nothing_joins, with_target
from .choice import chosen
from .compare import beside
from .exact import run_exact
from .groups import GROUPING, GroupedRun, is_grouped
from .jobs import ProgressListener
from .joined import SketchJoin
from .keys import with_key_types
from .maintain import Built, build
from .settings import METHODS, BadSetting, Settings
from .spark import SPARK_FAULTS, first_line, start_spark
from .standing import Workload, plan_workload_of, read_by, selects_of, stages_text
from .tables import Tables

# Features of a query beyond aggregates over one join tree that this engine runs.
RUNS = frozenset({"expression over aggregates", "bounds in SELECT"}) | GROUPING


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
        **overrides: Any,
    ) -> None:
        self.settings = replace(settings or Settings(), **overrides)
        self.listener = listener
        self._spark = spark
        self._tables: Tables | None = None
        self._workloads: dict[str, Workload] = {}

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started on first use."""
        if self._spark is None:
            self._spark = start_spark()
        return self._spark

    @property
    def tables(self) -> Tables:
        """Registered tables and Spark's own, by name."""
        if self._tables is None:
            self._tables = Tables(lambda: self.spark)
        return self._tables

    def table(self, name: str, source: str | Path | DataFrame, **options: Any) -> None:
        """Register a file, folder, DataFrame or Spark table under `name`.

        `options` go to Spark's reader, such as ``nullValue="NA"`` or ``format="csv"``.

        Raises
        ------
        DataError
            If the source does not exist or cannot be read.
        """
        self.tables.register(name, source, options)
        # Sketches of what had that name before answer nothing any more.
        self._workloads = {k: w for k, w in self._workloads.items() if not w.reads(name)}

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
                return self._explain_sketches(statement)
            case Explain():
                return Answer(("plan",), ((self._explained(statement),),), exact=True)
            case ExactSelect():
                return run_exact(self.spark, statement.sql, statement.select_sql, self.listener)
            case SetOption():
                self.settings = self.settings.with_text(
                    {statement.name.removeprefix("skimql."): statement.value}
                )
                return None
            case PassThrough():
                return self._pass_through(statement.sql)
        raise UnsupportedQuery(
            f"{type(statement).__name__} statements are not supported in this version",
            "SKIMQL_UNSUPPORTED_STATEMENT",
            text,
        )

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
        exact = run_exact(self.spark, statement.sql, exact_sql or statement.select_sql, self.listener)
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
            typed = with_key_types(query, self.tables, self._ansi())
            run = GroupedRun(self.spark, self.tables, typed, settings, self.listener)
            answer = run.answer()
            answer = replace(answer, bounds=settings.bounds, notes=(*query.warnings, *answer.notes))
            return self._as_asked(select, settings, answer)
        if query.empty:
            return replace(nothing_joins(query), bounds=settings.bounds)
        typed = with_key_types(query, self.tables, self._ansi())
        plan, built, source, build_seconds = self._sketches_for(select, typed, settings)
        started = time.perf_counter()
        answer = answer_plan(plan, SketchJoin(plan, built), settings.confidence)
        seconds = {"build": build_seconds, "answer": time.perf_counter() - started}
        notes = (*query.warnings, *source, *answer.notes)
        answer = replace(answer, seconds=seconds, bounds=settings.bounds, notes=notes)
        return self._as_asked(select, settings, answer)

    def _sketches_for(
        self, select: ApproximateSelect, query: Query, settings: Settings
    ) -> tuple[Plan, tuple[Built, ...], tuple[str, ...], float]:
        """Plan and sketches of a query, where they come from, and how long building them took.

        Sketches that the session keeps are taken where they answer just this question and the query asks for no
        size, seed or method of its own.
        """
        if not (select.options or select.method or select.seed is not None or select.size_bytes is not None):
            for workload in self._workloads.values():
                plan = workload.plan_for(query)
                if plan is not None:
                    return plan, read_by(plan, workload.built), (f"from the sketches {workload.name}",), 0.0
        plan = chosen(query, settings)
        started = time.perf_counter()
        built = build(self.spark, plan, self.tables, self.listener)
        return plan, built, (), time.perf_counter() - started

    def _create_sketches(self, statement: CreateSketches) -> Answer:
        """Plan the workload, build it in one pass per table and keep it; the stages of the plan as text."""
        name = statement.name.text
        if name.lower() in self._workloads and not statement.or_replace:
            raise UnsupportedQuery(
                f"there are sketches {name} already",
                "SKIMQL_SKETCHES_EXIST",
                statement.sql,
                (statement.name.span.start, statement.name.span.end),
                f"CREATE OR REPLACE SKETCHES {name} ...",
            )
        queries = [
            with_key_types(self._resolved(select, RUNS - GROUPING), self.tables, self._ansi())
            for select in selects_of(statement)
        ]
        standing = plan_workload_of(statement, queries, self.settings.seed, self.settings.sparse)
        plans = tuple(routed(plan, self.settings.route) for plan in standing.plans)
        standing = replace(standing, plans=plans)
        started = time.perf_counter()
        built = build(self.spark, standing.plans[0], self.tables, self.listener)
        workload = Workload(name, standing, built)
        self._workloads[name.lower()] = workload
        return Answer(
            ("plan",),
            ((stages_text(standing),),),
            exact=True,
            bytes_used=sum(b.sketch.nbytes for b in built),
            seconds={"build": time.perf_counter() - started},
        )

    def _explain_sketches(self, statement: ExplainSketches) -> Answer:
        workload = self._workloads.get(statement.name.text.lower())
        if workload is None:
            raise UnknownName(
                f"there are no sketches {statement.name.text}",
                sql=statement.sql,
                span=(statement.name.span.start, statement.name.span.end),
                hint=", ".join(w.name for w in self._workloads.values()) or "CREATE SKETCHES ...",
            )
        return Answer(("plan",), ((stages_text(workload.standing),),), exact=True)

    def _resolved(self, select: ApproximateSelect, known: frozenset[str] = RUNS) -> Query:
        return resolve(select, self.tables, ansi=self._ansi(), known=known)

    def _plan(self, query: Query, settings: Settings) -> Plan:
        return chosen(with_key_types(query, self.tables, self._ansi()), settings)

    def _explained(self, statement: Explain) -> str:
        """The resolved query and, as text, what would be built for it."""
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
        text += "\n" + describe(self._plan(query, self._settings_of(select)))
        if query.groups:
            table = query.graph.vertices[query.groups[0].vertex].table
            text += (
                f"\n  the synopses of {table} once for every group; the groups are listed when the query runs"
            )
        return text

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
            exact = run_exact(self.spark, statement.sql, statement.select_sql, self.listener)
            return replace(exact, notes=(*noted.notes, "run exactly, since the asked error was missed"))
        if settings.behavior == "local_omit":
            return noted.omitting(settings.error)
        return noted

    def _pass_through(self, sql: str) -> DataFrame:
        try:
            return self.spark.sql(sql)
        except SPARK_FAULTS as fault:
            raise ParseError(first_line(fault), "SKIMQL_SPARK_REFUSES", sql) from fault

    def _ansi(self) -> bool:
        return str(self.spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"


def is_approximate(text: str) -> bool:
    """Whether a statement is a SELECT to be estimated; raises ParseError where it is malformed."""
    return isinstance(parse_statement(text), ApproximateSelect)


def _span_of(spans: Mapping[str, Any], clause: str) -> tuple[int, int] | None:
    span = spans.get(clause)
    return (span.start, span.end) if span is not None else None
