"""A session: registered tables, settings, and the one way from SQL text to an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UnknownName, UnsupportedQuery
from ..optimizer.methods import ANSWERED, DISTINCT, GROUPING
from ..optimizer.physical import PhysicalPlan
from ..parser.file_tables import with_file_tables
from ..parser.join_graph import Query
from ..parser.sampled_select import SampledQuery
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
from ..parser.syntax import STREAM_STATEMENTS, CreateSketches, ExplainSketches, Part, Statement
from .catalog.catalog import Catalog
from .context import Context
from .faults import as_ours
from .queries.resolving import Resolving, by_sample
from .queries.run import SelectRun
from .results.answer import Answer, Message
from .settings import Settings
from .sources.environment import Environment
from .sources.paths import is_readable
from .sources.reading import read_statement
from .sources.tables import Tables
from .spark.jobs import ProgressListener
from .spark.own import OwnSpark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from .queries.guard import On
    from .statistics.gather import KnownStatistics
    from .statistics.of_table import TableStatistics
    from .streams.handle import ContinuousView
    from .streams.running import Runs
    from .streams.statements import StreamStatements


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
    spark_conf : mapping of str to str, optional
        Settings of the Spark session that is started when first needed, such as ``spark.master``.
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
        spark_conf: Mapping[str, str] | None = None,
        **overrides: Any,
    ) -> None:
        self.settings = replace(settings or Settings(), **overrides)
        self.listener = listener
        self.catalog = catalog if isinstance(catalog, Catalog) else Catalog(catalog)
        self._own = OwnSpark(spark, spark_conf or {})
        self._tables: Tables | None = None
        self._statistics: KnownStatistics | None = None
        self._runs: Runs | None = None

    def __repr__(self) -> str:
        where = self.catalog.where if self.catalog.lasting else "in memory"
        tables = ", ".join(self._tables.registered()) if self._tables is not None else ""
        return f"<skimql.Session: {self._own!r}; catalog {where}; tables {tables or 'none registered'}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the registered tables; stop Spark where this session has started it. Closing twice is no fault."""
        self._own.close(self._leave_streams)

    def _leave_streams(self) -> None:
        if self._runs is not None:
            self._runs.stop_all()
            self._runs.forget_tables()

    def view(self, name: str) -> ContinuousView:
        """A continuous view of the catalog: its `answer`, its rows as a `table` of Spark, and `on_batch`.

        Raises
        ------
        UnknownName
            ``SKIMQL_UNKNOWN_STREAM`` if there is none of that name.
        """
        from .streams.handle import ContinuousView
        from .streams.store import find_view

        found = find_view(self.catalog, "", Part(name))
        return ContinuousView(found.name, self.context, self._running_streams, lambda: self.spark)

    def finish_streams(self) -> None:
        """Stop the streams that this session runs, each when the batch that it is at is in its state."""
        if self._runs is not None:
            self._runs.finish_all()

    def stop_spark(self) -> None:
        """End Spark where this session has started it, or is starting it in another thread; it starts anew when needed.

        Settings, kept sketches and tables of files stay; DataFrames go with their Spark session, and its streams stop.
        Also for a Spark whose JVM has died.
        """
        self._own.stop(self._stop_streams, self._forget_frames)

    def _stop_streams(self) -> None:
        if self._runs is not None:
            self._runs.stop_all()
            self._runs = None

    def _forget_frames(self) -> None:
        self._statistics = None
        if self._tables is not None:
            self._tables.forget_frames()

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started on first use.

        Raises
        ------
        EnvironmentFault
            ``SKIMQL_SPARK_STOPPED`` if it was stopped, or this session closed.
        """
        return self._own.needed()

    @property
    def spark_runs(self) -> bool:
        """Whether there is a Spark session already."""
        return self._own.running() is not None

    @property
    def spark_state(self) -> str:
        """``none``, ``starting`` or ``ready``, as this session knows without asking; costs nothing, from any thread."""
        return self._own.state

    @property
    def tables(self) -> Tables:
        """Registered tables and Spark's own, by name."""
        if self._tables is None:
            self._tables = Tables(lambda: self.spark, self.catalog)
        return self._tables

    @property
    def environment(self) -> Environment:
        """What the catalog remembers of tables and of Spark's settings."""
        return Environment(self.catalog, self.tables, lambda: self.spark, self._own.running)

    @property
    def statistics(self) -> KnownStatistics:
        """What the session knows of the virtual relations of its queries."""
        if self._statistics is None:
            from .statistics.gather import KnownStatistics

            self._statistics = KnownStatistics()
        return self._statistics

    def table_statistics(self, name: str) -> TableStatistics:
        """What is known of a table without a job: its tuples, and the statistics that queries have gathered."""
        from .statistics.of_table import table_statistics

        return table_statistics(self.tables, self._statistics, name, time.time(), spark_runs=self.spark_runs)

    @property
    def context(self) -> Context:
        """What the session's statements run with, its settings as they are now."""
        return Context(
            self.tables,
            self.catalog,
            self.settings,
            self.listener,
            lambda: self.spark,
            self._own.running,
            lambda: self.statistics,
            self._evaluated,
        )

    def _evaluated(self, expression: str, tuples: pa.Table) -> pa.Array:
        """See `Evaluate`."""
        from .memory_backend.expressions import evaluate

        return evaluate(expression, tuples, self.environment.circumstances().time_zone).data

    def table(self, name: str, source: str | Path | DataFrame | Sequence[str | Path], **options: Any) -> None:
        """Register a file, folder, list of files, DataFrame or Spark table under `name`.

        `options` go to Spark's reader, such as ``nullValue="NA"`` or ``format="csv"``.

        Raises
        ------
        DataError
            If the source does not exist or cannot be read.
        """
        if self._own.running() is None and self.tables.is_remembered(name, source, options):
            return
        with self._own.awake():
            self.tables.register(name, source, options)
        if self._statistics is not None:
            self._statistics.drop(name)
        if self.catalog.lasting:
            self.environment.remember(name)
        else:
            # Sketches of what had that name before answer nothing any more.
            self.environment.forget_sketches_of(name)

    def stream(
        self,
        name: str,
        frame: DataFrame,
        deletes: str | None = None,
        weight: str | None = None,
        changes: str | None = None,
    ) -> Answer:
        """Make a streaming DataFrame a stream; in a later session, give it to the stream of that name again.

        Parameters
        ----------
        name : str
        frame : DataFrame
            One that streams, from any source that Spark can read again.
        deletes, weight, changes : str, optional
            How often an event counts: one of ``DELETES WHEN``, ``WEIGHT`` and ``CHANGES`` of ``CREATE STREAM``.

        Raises
        ------
        StreamError
            ``SKIMQL_NOT_STREAMING``; ``SKIMQL_STREAM_CATALOG`` if the session's catalog is no local folder.
        UnsupportedQuery
            ``SKIMQL_NAME_TAKEN`` if the name stands for something else.
        """
        with self._own.awake():
            return self._streams().stream(name, frame, deletes, weight, changes)

    def sql(self, text: str, **values: Any) -> Answer | DataFrame:
        """Run one statement.

        Parameters
        ----------
        text : str
        **values
            What stands for ``{name}`` in the text, as in Spark's ``sql``: DataFrames as tables, numbers, texts and
            dates as literals. Without any, braces are text.

        Returns
        -------
        Answer
            For what is SkimQL's own: ``SELECT APPROXIMATE``, ``EXACT SELECT``, ``EXPLAIN``, statements about sketches.
        Message
            An `Answer` without rows, for ``SET skimql.<name> = value``.
        DataFrame
            For any statement that is not SkimQL's: it goes to Spark unchanged.

        Which of them it is stands in the text: `answer` is for those who know, and check types.

        Raises
        ------
        SkimqlError
            With line, caret, reason and way out; see `errors`.
        """
        if values:
            from .queries.given import given

            with given(self.tables, text, values) as whole:
                return self.sql(whole)
        try:
            with self._own.awake():
                text = self._with_file_tables(text)
                with self.tables.statement(text):
                    return self._run(self._read(text))
        except Exception as fault:
            ours = as_ours(fault, text)
            if ours is None:
                raise
            raise ours from fault

    def answer(self, text: str, **values: Any) -> Answer:
        """As `sql`, for a statement that is SkimQL's own: an Answer, to a type checker too.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_NOT_AN_ANSWER`` for any other; it is not run.
        """
        statement = parse_statement(text)
        if isinstance(statement, PassThrough) and self._of_a_view(statement.sql) is None:
            raise UnsupportedQuery(
                "this statement is Spark's, which gives a DataFrame and no answer",
                "SKIMQL_NOT_AN_ANSWER",
                text,
                hint="session.sql(...)",
            )
        result = self.sql(text, **values)
        assert isinstance(result, Answer), "a statement of ours gives an answer"
        return result

    def _with_file_tables(self, text: str) -> str:
        """The text with names for its files in FROM, which are registered under their paths."""
        text, files = with_file_tables(text, is_readable)
        for path in files:
            self.tables.register(path, path, {})
        return text

    def _read(self, text: str) -> Statement:
        """One statement, as the Spark session would read it."""
        return read_statement(text, self.environment.circumstances)

    def _run(self, statement: Statement) -> Answer | DataFrame:
        match statement:
            case ApproximateSelect():
                return self._run_of(statement, self._resolved(statement)).answer()
            case EstimateRows():
                rows = self._resolving.rows(statement)
                return self._run_of(statement.select, rows, counts_rows=True).answer()
            case CreateSketches():
                return self._create_sketches(statement)
            case ExplainSketches():
                of_streams = self.catalog.manifest.continuous
                if statement.name.text.lower() in {*of_streams.sets, *of_streams.views}:
                    return self._streams().run(statement)
                from .materialized.workloads import Workloads

                return Workloads(self.context).explain(statement)
            case Explain():
                return Answer(("plan",), ((self._explained(statement),),), exact=True, is_text=True)
            case ExactSelect():
                return self.exact(statement.sql, statement.select_sql)
            case SetOption():
                self.settings = self.settings.with_text(
                    {statement.name.removeprefix("skimql."): statement.value}
                )
                return Message.of(f"{statement.name} = {statement.value}")
            case PassThrough():
                of_a_view = self._of_a_view(statement.sql)
                return self._pass_through(statement.sql) if of_a_view is None else of_a_view()
        if isinstance(statement, STREAM_STATEMENTS):
            return self._streams().run(statement)
        from .materialized.statements import SketchStatements

        return SketchStatements(self.context).run(statement)

    def _of_a_view(self, sql: str) -> Callable[[], Answer] | None:
        """What a statement asks of a continuous view, which nothing but the name in it tells from one of Spark's."""
        views = self.catalog.manifest.continuous.views
        if not views:
            return None
        from .streams.statements import refreshed_in, view_in

        for named, run in ((view_in, self._streams().select), (refreshed_in, self._streams().refresh)):
            view = named(sql, views)
            if view is not None:
                return partial(run, view)
        return None

    def _streams(self) -> StreamStatements:
        from .streams.statements import StreamStatements

        return StreamStatements(self.context, self._running_streams, lambda: self.spark)

    def _running_streams(self) -> Runs:
        """The streams that this session runs."""
        if self._runs is None:
            from .streams.running import Runs

            self._runs = Runs()
        return self._runs

    def script(self, text: str) -> Iterator[tuple[str, Answer | DataFrame]]:
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
        text = self._with_file_tables(text)
        statement = self._read(text)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery(
                "only an approximate SELECT has an exact answer to compare with",
                "SKIMQL_NOTHING_TO_COMPARE",
                text,
                hint="SELECT APPROXIMATE ...",
            )
        with self._own.awake(), self.tables.statement(text):
            run = self._run_of(statement, self._resolved(statement))
            answer = run.answer()
            exact = self.exact(statement.sql, exact_sql or run.exact_sql)
        from .results.compare import beside

        return beside(answer, exact)

    def refine(self, text: str) -> Iterator[Answer]:
        """Better and better answers to an approximate SELECT with ERROR WITHIN, from larger and larger samples.

        Parameters
        ----------
        text : str

        Yields
        ------
        Answer
            Of every attempt, the last one as `sql` gives it: the asked error is reached, or the answer is exact.
            Whoever stops before has the last answer with its interval, whose confidence holds wherever one stops: it
            is spent over the answers. All of them together take about twice as long as the last at most.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_NOT_AN_ANSWER`` for any other statement, ``SKIMQL_CLAUSE`` where no error is asked for.
        SkimqlError
            As `sql`.
        """
        text = self._with_file_tables(text)
        statement = self._read(text)
        if not isinstance(statement, ApproximateSelect):
            message = "only the answer to an approximate SELECT becomes better"
            raise UnsupportedQuery(message, "SKIMQL_NOT_AN_ANSWER", text, hint="SELECT APPROXIMATE ...")
        with self._own.awake(), self.tables.statement(text):
            answers = self._run_of(statement, self._resolved(statement)).answers()
        return self._refined(text, answers)

    def _refined(self, text: str, answers: Iterator[Answer]) -> Iterator[Answer]:
        """The answers, each made when it is asked for as a statement of its own."""
        while True:
            try:
                with self._own.awake(), self.tables.statement(text):
                    answer = next(answers, None)
            except Exception as fault:
                ours = as_ours(fault, text)
                if ours is None:
                    raise
                raise ours from fault
            if answer is None:
                return
            yield answer

    def guard(self, left: DataFrame, right: DataFrame, on: On, most: float | None = None) -> Answer:
        """How many rows an inner join of two DataFrames would have; an error above `most`. See `guard.guard`."""
        from .queries.guard import guard

        def ask(frames: Mapping[str, DataFrame], text: str) -> Answer:
            apart = Session(self.spark, self.settings, self.listener)
            for name, frame in frames.items():
                apart.table(name, frame)
            return apart.answer(text)

        with self._own.awake():
            return guard(ask, left, right, on, most)

    def sketches(self, name: str) -> pa.Table:
        """A kept sketch as a table of sketches in bytes, which ``skim_join_size`` and the like read.

        See `materialized.sketch_column.sketch_table`.
        """
        from .materialized.sketch_column import sketch_table

        return sketch_table(self.catalog.load(name))

    def plan(self, text: str) -> PhysicalPlan:
        """How an approximate query would be answered, by what is known without a job."""
        text = self._with_file_tables(text)
        statement = self._read(text)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery("only an approximate SELECT has a plan", "SKIMQL_NO_PLAN", text)
        with self.tables.statement(text):
            return self._run_of(statement, self._resolved(statement)).plan()

    def schema(self, text: str) -> pa.Schema:
        """The columns that the answer to an approximate SELECT has, without running it.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_NOT_AN_ANSWER`` if the statement is no SELECT to be estimated.
        """
        text = self._with_file_tables(text)
        statement = self._read(text)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery(
                "only a SELECT to be estimated has an answer that is a table",
                "SKIMQL_NOT_AN_ANSWER",
                text,
                hint="SELECT APPROXIMATE ...",
            )
        with self._own.awake(), self.tables.statement(text):
            return self._run_of(statement, self._resolved(statement)).empty().arrow().schema

    def _run_of(self, select: ApproximateSelect, query: Query, *, counts_rows: bool = False) -> SelectRun:
        if isinstance(query, SampledQuery):
            select = by_sample(select)
        return SelectRun(self.context, select, query, self.typed, self.exact, counts_rows)

    def _create_sketches(self, statement: CreateSketches) -> Answer:
        from .materialized.declared import selects_of
        from .materialized.workloads import Workloads

        queries = [
            self.typed(self._resolved(select, ANSWERED - GROUPING - DISTINCT))
            for select in selects_of(statement)
        ]
        return Workloads(self.context).create(statement, queries)

    def typed(self, query: Query) -> Query:
        """The query with the types of all keys, and of the values that it counts, known."""
        return self._resolving.typed(query)

    def _resolved(self, select: ApproximateSelect, known: frozenset[str] = ANSWERED) -> Query:
        with self._streams_named():
            return self._resolving.select(select, known)

    @contextmanager
    def _streams_named(self) -> Iterator[None]:
        """A name that is not known within may be a stream's, which a query cannot read."""
        try:
            yield
        except UnknownName as fault:
            if not self.catalog.manifest.continuous.streams:
                raise
            from .streams.store import refuse_asked

            refuse_asked(self.catalog, fault)
            raise

    @property
    def _resolving(self) -> Resolving:
        return Resolving(self.context)

    def _explained(self, statement: Explain) -> str:
        """The resolved query and, as text, what would be built for it."""
        from .queries.explain import explained

        match statement.statement:
            case ApproximateSelect() as select:
                with self._streams_named():
                    query = self._resolving.to_be_explained(select)
            case EstimateRows() as rows:
                select, query = rows.select, self._resolving.rows(rows)
            case ExactSelect() as plain:
                rows_of_plan = self._pass_through(f"EXPLAIN {plain.select_sql}").collect()
                return str(rows_of_plan[0][0])
        run = self._run_of(select, query, counts_rows=isinstance(statement.statement, EstimateRows))
        return explained(run, statement.format, analyze=statement.analyze)

    def exact(self, sql: str, select_sql: str, query: Query | None = None) -> Answer:
        """The result of `select_sql` as Spark runs it; `sql` is the statement, for errors; see `run_exact`."""
        from .queries.exact import run_exact

        def select(text: str) -> DataFrame:
            return self._spark_sql(sql, text)

        return run_exact(self.spark, sql, select_sql, select, self.listener, query)

    def _pass_through(self, sql: str) -> DataFrame:
        if self.catalog.manifest.continuous.views:
            from .streams.spark_view import show_named

            show_named(self.spark, self.catalog, sql, self._running_streams().shown)
        return self._spark_sql(sql, sql)

    def _spark_sql(self, sql: str, text: str) -> DataFrame:
        """What Spark makes of `text`, a part of the statement `sql`; raises ParseError where it refuses it."""
        from .queries.pass_through import run_by_spark
        from .spark.session import SPARK_FAULTS, first_line

        try:
            return run_by_spark(self.tables, self.spark, text)
        except SPARK_FAULTS as fault:
            from .queries.refusals import refusal

            raise refusal(first_line(fault), sql, text, self.tables.at_hand()) from fault
