"""A session: registered tables, settings, and the one way from SQL text to an answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EnvironmentFault, ParseError, SkimqlError, UnsupportedQuery
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
from ..parser.syntax import CreateSketches, ExplainSketches, Statement
from .answer import Answer, Message
from .catalog.catalog import Catalog
from .features import DISTINCT, GROUPING, RUNS
from .jobs import ProgressListener
from .kept import KeptSketches
from .keys import with_key_types
from .memory import Memory
from .select_run import SelectRun
from .settings import Settings
from .tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .guard import On
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
        self._started = False
        self._closed = False
        self._tables: Tables | None = None
        self._statistics: KeptStatistics | None = None

    def __repr__(self) -> str:
        where = self.catalog.where if self.catalog.lasting else "in memory"
        tables = ", ".join(self._tables.registered()) if self._tables is not None else ""
        state = "closed" if self._closed else "Spark not started" if self._spark is None else "on Spark"
        return f"<skimql.Session: {state}; catalog {where}; tables {tables or 'none registered'}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the registered tables; stop Spark where this session has started it. Closing twice is no fault."""
        if self._closed:
            return
        self._closed = True
        spark, self._spark = self._spark, None
        if spark is None or _is_gone(spark):
            return
        if self._started:
            spark.stop()
        elif self._tables is not None:
            self._tables.drop_views(spark)

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started on first use.

        Raises
        ------
        EnvironmentFault
            ``SKIMQL_SPARK_STOPPED`` if it was stopped, or this session closed.
        """
        if self._closed:
            raise EnvironmentFault("this session is closed", "SKIMQL_SPARK_STOPPED", hint="skimql.Session()")
        if self._spark is None:
            from .spark import running_spark, start_spark

            self._started = running_spark() is None
            self._spark = start_spark()
        if _is_gone(self._spark):
            raise _stopped()
        return self._spark

    @contextmanager
    def _awake(self) -> Iterator[None]:
        """A fault within is that Spark was stopped, where it was."""
        try:
            yield
        except SkimqlError:
            raise
        except Exception as fault:
            from .spark import is_stopped

            if self._spark is not None and is_stopped(self._spark):
                raise _stopped() from fault
            raise

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
        with self._awake():
            self.tables.register(name, source, options)
        if self._statistics is not None:
            self._statistics.drop(name)
        if self.catalog.lasting:
            self.memory.remember(name)
        else:
            # Sketches of what had that name before answer nothing any more.
            self.memory.forget_sketches_of(name)

    def sql(self, text: str, **values: Any) -> Answer | Any:
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
            For any statement that is not SkimQL's: it goes to Spark unchanged. (Typed as Any: which of them it is
            stands in the text, and most ask for answers.)

        Raises
        ------
        SkimqlError
            With line, caret, reason and way out; see `errors`.
        """
        with self._awake():
            if values:
                from .given import given

                with given(self, text, values) as whole:
                    return self.sql(whole)
            statement = parse_statement(text)
            if isinstance(statement, (ApproximateSelect, EstimateRows, Explain)):
                with self.tables.looked_up_once():
                    return self._run(statement)
            return self._run(statement)

    def _run(self, statement: Statement) -> Answer | DataFrame:
        match statement:
            case ApproximateSelect():
                return SelectRun(self, statement, self._resolved(statement)).answer()
            case EstimateRows():
                rows = resolve_rows(statement, self.tables, ansi=self._ansi())
                return SelectRun(self, statement.select, rows, counts_rows=True).answer()
            case CreateSketches():
                return self._create_sketches(statement)
            case ExplainSketches():
                from .workloads import Workloads

                return Workloads(self).explain(statement)
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
                return self._pass_through(statement.sql)
        from .stored import Keeper

        return Keeper(self).run(statement)

    def script(self, text: str) -> Iterator[tuple[str, Answer | Any]]:
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
        with self._awake():
            answer = SelectRun(self, statement, self._resolved(statement)).answer()
            exact = self.exact(statement.sql, exact_sql or statement.select_sql)
        from .compare import beside

        return beside(answer, exact)

    def guard(self, left: DataFrame, right: DataFrame, on: On, most: float | None = None) -> Answer:
        """How many rows an inner join of two DataFrames would have; an error above `most`. See `guard.guard`."""
        from .guard import guard

        with self._awake():
            return guard(self, left, right, on, most)

    def plan(self, text: str) -> Plan:
        """What an approximate query would build, without building it; of a grouped query, for one group."""
        statement = parse_statement(text)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery("only an approximate SELECT has a plan", "SKIMQL_NO_PLAN", text)
        return SelectRun(self, statement, self._resolved(statement)).sketch_plan()

    def _create_sketches(self, statement: CreateSketches) -> Answer:
        from .standing import selects_of
        from .workloads import Workloads

        queries = [
            self.typed(self._resolved(select, RUNS - GROUPING - DISTINCT)) for select in selects_of(statement)
        ]
        return Workloads(self).create(statement, queries)

    def typed(self, query: Query) -> Query:
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
        text += "\n" + SelectRun(self, select, query).plan_text()
        if query.groups:
            table = query.graph.vertices[query.groups[0].vertex].table
            text += (
                f"\n  the synopses of {table} once for every group; the groups are listed when the query runs"
            )
        return text

    def exact(self, sql: str, select_sql: str) -> Answer:
        """The result of `select_sql` as Spark runs it; `sql` is the statement, for errors."""
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
        return None if self._spark is not None and _is_gone(self._spark) else self._spark

    def _ansi(self) -> bool:
        return self.memory.circumstances().ansi


def _is_gone(spark: SparkSession) -> bool:
    from .spark import is_gone

    return is_gone(spark)


def _stopped() -> EnvironmentFault:
    return EnvironmentFault(
        "the Spark session that this session runs on was stopped",
        "SKIMQL_SPARK_STOPPED",
        hint="a new skimql.Session(), its tables registered again; sketches in a catalog folder are still there",
    )


def is_approximate(text: str) -> bool:
    """Whether a statement is a SELECT to be estimated; raises ParseError where it is malformed."""
    return isinstance(parse_statement(text), ApproximateSelect)
