"""CREATE STREAM and CREATE CONTINUOUS VIEW: what is meant, checked before anything is kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...errors import ParseError, SkimqlError, StreamError, UnsupportedQuery
from ...optimizer.methods import KEY_SAMPLE, SAMPLE_SKETCH
from ...optimizer.plan import Message, Plan, Synopsis, Weight
from ...parser.join_graph import Query, Span, TableSchema
from ...parser.result_types import digits, summed
from ...parser.sketch import resolve_append
from ...parser.syntax import AppendSketch, CreateContinuousView, CreateContinuousViews, CreateStream, Part
from ..catalog.streams import DEBEZIUM, DELTA, FRAME, Continuous, StoredStream
from ..execution.partial_aggregate import LONGEST_INTEGER_DECIMAL, no_doubles
from ..materialized.definition import now, refuse_unstable
from ..materialized.names import place_of
from ..queries.settings_of import settings_of
from ..synopses import Built
from .change_sources import columns_read, refuse_table_folder, rows_of_changes
from .dedup import INTERVAL, dedup_of
from .kafka import KAFKA, refuse_options, source_of
from .planned import PlannedView, with_group_types
from .refusals import unsupported
from .sinks import SINK
from .view_sets import PlannedSet, define_set
from .views import define, select_of
from .windows import WORDS, bad_setting, check_windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..context import Context

AVAILABLE_NOW = "available now"
_FOLDERS = ("json", "csv", "parquet")
_RATE = (("timestamp", "timestamp"), ("value", "bigint"))
_WITH = ("trigger", "bad_rows", SINK, *WORDS)


@dataclass(frozen=True)
class Creating:
    """Statements of one session that create something."""

    context: Context

    def stream(self, statement: CreateStream) -> StoredStream:
        """The stream that a statement defines; it has a new id.

        Raises
        ------
        StreamError
            For a source that is not supported or not there.
        UnsupportedQuery
            If Spark refuses the columns, or the signs are no whole numbers.
        """
        from ..sources.schemas import schema_of

        sql, name = statement.sql, statement.name.text
        if statement.format == KAFKA:
            refuse_options(statement)
            source_of(self.context.spark)
        columns = statement.columns
        place = (columns[0].name.span.start, columns[-1].type.span.end)
        ddl = ", ".join(f"{_quoted(c.name.text)} {c.type.text}" for c in columns)
        schema = schema_of(name, self._empty(ddl, sql, place))
        if statement.changes is not None:
            schema = replace(schema, columns=columns_read(statement, schema.columns))
        if statement.format == "rate" and tuple((c.name, c.type) for c in schema.columns) != _RATE:
            raise StreamError(
                "a stream from RATE has the columns (timestamp TIMESTAMP, value BIGINT)",
                "SKIMQL_BAD_COLUMNS",
                sql,
                place,
                "CREATE STREAM s (timestamp TIMESTAMP, value BIGINT) FROM RATE '' OPTIONS (rowsPerSecond = 10)",
            )
        source = statement.path.text
        if statement.format in _FOLDERS:
            source = _folder(source, sql, statement.path)
            refuse_table_folder(source, sql, place_of(statement.path))
        return self._stored(statement, schema, source)

    def _stored(self, statement: CreateStream, schema: TableSchema, source: str) -> StoredStream:
        times = self._times(statement, schema)
        dedup, within = dedup_of(statement, schema)
        here = self.context.environment.circumstances()
        return StoredStream(
            schema.name,
            os.urandom(16).hex(),
            schema.columns,
            statement.format,
            source,
            dict(statement.options),
            times,
            _signs(statement),
            here.ansi,
            here.time_zone,
            here.settings,
            now(),
            changes="" if statement.changes is None else statement.changes.text,
            dedup=dedup,
            within=within,
        )

    def of_frame(
        self,
        name: str,
        frame: DataFrame,
        deletes: str | None = None,
        weight: str | None = None,
        changes: str | None = None,
    ) -> StoredStream:
        """The stream that is a streaming DataFrame; `deletes`, `weight` or `changes` as the clauses of the statement.

        Raises
        ------
        StreamError
            ``SKIMQL_NOT_STREAMING`` for a DataFrame that is none.
        UnsupportedQuery
            As `stream`.
        """
        from ..sources.schemas import schema_of

        if not frame.isStreaming:
            raise StreamError(
                f"the DataFrame of {name} does not stream",
                "SKIMQL_NOT_STREAMING",
                hint=f'session.table("{name}", df)',
            )
        statement = statement_of(name, deletes, weight, changes)
        schema = schema_of(name, rows_of_changes(name, frame, changes))
        return self._stored(statement, schema, "")

    def view(self, statement: CreateContinuousView, found: Continuous) -> PlannedView:
        """The view that a statement defines, planned.

        Raises
        ------
        SkimqlError
            With carets that point into the statement.
        """
        sql, options, place = statement.sql, options_of(statement), place_of(statement.query)
        try:
            shown = define(
                statement.name.text,
                statement.query.text,
                self.context.tables,
                found,
                self.context.settings,
                lambda query: self._typed(query, found),
                options,
                sql,
            )
        except SkimqlError as fault:
            # The SELECT is a text of its own here.
            span = fault.span
            if span is not None and fault.sql != sql:
                span = (span[0] + place[0], span[1] + place[0])
            raise type(fault)(fault.message, fault.code, sql, span or place, fault.hint) from fault
        if shown.error is not None:
            from .pilot import for_error

            shown = for_error(self.context, shown, found.streams, sql, place)
        elif not settings_of(self.context.settings, select_of(statement.query.text, sql)).by_hand:
            from .by_error import of_many_streams
            from .pilot import of_least_error

            sampled = of_many_streams(shown, found.streams)
            shown = sampled if self._sum_of_doubles(sampled, found) is None else shown
            told = of_least_error(self.context, shown, found.streams)
            shown = told if self._sum_of_doubles(told, found) is None else shown
        self._check(shown, found, sql, place, {statement.name.text.lower()})
        return shown

    def views(self, statement: CreateContinuousViews, found: Continuous) -> PlannedSet:
        """The set of views that a statement defines, planned together; `found` has none of them.

        Raises
        ------
        SkimqlError
            With carets that point into the statement.
        """
        planned = define_set(
            statement,
            self.context.tables,
            found,
            self.context.settings,
            lambda query: self._typed(query, found),
            options_of(statement),
            lambda maps: self._first_events(maps, found),
        )
        for shown, (_, part) in zip(planned.views, statement.members, strict=True):
            self._check(shown, found, statement.sql, place_of(part), set())
        return planned

    def _first_events(self, maps: Plan, found: Continuous) -> dict[Synopsis, Built]:
        """The maps of the first events of every stream in a plan; raises as `pilot_of`."""
        from .domains import no_first_events
        from .pilot import pilot_of

        streams = [found.streams[scan.table.lower()] for scan in maps.scans]
        return pilot_of(self.context, maps, streams, no_first_events)

    def _typed(self, query: Query, found: Continuous) -> Query:
        """The query with the types of its keys, groups and counted values."""
        from ..results.distinct import with_counted_types
        from ..sources.keys import with_key_types

        types = _Types(self, found)
        keyed = with_key_types(query, None, self.context.environment.circumstances().ansi, types)
        vertices = query.graph.vertices
        grouped = [types[vertices[g.vertex].table, g.expression] for g in keyed.groups]
        known = with_group_types(keyed, grouped)
        return with_counted_types(known, None, types) if known.counts_distinct else known

    def _check(
        self, shown: PlannedView, found: Continuous, sql: str, place: tuple[int, int], own: set[str]
    ) -> None:
        """Refuse a view of unstable expressions, or of another seed than the views beside it but for `own`."""
        for s in shown.plan.synopses:
            expressions = (s.filter, s.weight.expression, *(k for a in s.attributes for k in a.keys))
            refuse_unstable(sql, expressions, self.context.environment.own_functions)
        self._refuse_doubles(shown, found, sql, place)
        groups = [g.expression for g in shown.query.groups]
        refuse_unstable(sql, groups, self.context.environment.own_functions)
        view = shown.view
        others = [v for s in view.streams for v in found.readers(s) if v.name.lower() not in own]
        odd = next((v for v in others if v.seed != view.seed), None)
        if odd is not None:
            raise StreamError(
                f"the sketches of a stream are of one seed: view {odd.name} has {odd.seed}, this one {view.seed}",
                "SKIMQL_STREAM_SEED",
                sql,
                place,
                f"SET skimql.seed = {odd.seed}",
            )

    def _refuse_doubles(
        self, shown: PlannedView, found: Continuous, sql: str, place: tuple[int, int]
    ) -> None:
        """Refuse sums on key samples that no integer holds; `sketch_plan` would, when the first batch comes."""
        doubles = self._sum_of_doubles(shown, found)
        if doubles is not None:
            raise no_doubles(doubles, sql, place)

    def _sum_of_doubles(self, shown: PlannedView, found: Continuous) -> str | None:
        """An argument of a sum on samples of keys that no integer holds."""
        synopses = shown.plan.synopses
        every = shown.plan.method == SAMPLE_SKETCH
        sampled = [s for s in synopses if every or s.method == KEY_SAMPLE]
        weights = [(s.table, s.weight) for s in sampled]
        weights += [(m.table, m.weight) for s in sampled for m in _every(s.messages)]
        types = _Types(self, found)
        for table, weight in dict.fromkeys(weights):
            if weight.expression is None or weight.presence:
                continue
            kind = types[table, weight.expression]
            short = kind.startswith("decimal") and digits(kind)[0] <= LONGEST_INTEGER_DECIMAL
            if summed(kind) != "bigint" and not short:
                return weight.expression
        return None

    def type_of(self, schema: TableSchema, expression: str) -> str:
        """The Spark type of an expression over a stream."""
        ddl = ", ".join(f"{_quoted(c.name)} {c.type}" for c in schema.columns)
        fields = self._empty(ddl).selectExpr(expression).schema.fields
        return str(fields[0].dataType.simpleString())

    def _empty(self, ddl: str, sql: str = "", place: tuple[int, int] | None = None) -> DataFrame:
        from ..spark.session import SPARK_FAULTS, first_line

        try:
            return self.context.spark.createDataFrame([], ddl)
        except SPARK_FAULTS as fault:
            raise UnsupportedQuery(
                f"Spark refuses the columns: {first_line(fault)}", "SKIMQL_BAD_COLUMNS", sql, place
            ) from fault

    def _times(self, statement: CreateStream, schema: TableSchema) -> str | None:
        """How often an event counts; raises UnsupportedQuery for a weight that is no whole number."""
        place = statement.deletes or statement.weight
        if place is None:
            return None
        from ..materialized.building import Source, weights_of

        asked = AppendSketch(
            statement.sql,
            statement.name,
            (statement.name,),
            deletes=statement.deletes,
            weight=statement.weight,
        )
        times = resolve_append(asked, {statement.name.text: schema}).times
        refuse_unstable(statement.sql, [times], self.context.environment.own_functions)
        ddl = ", ".join(f"{_quoted(c.name)} {c.type}" for c in schema.columns)
        try:
            weights_of(Source(schema.name, self._empty(ddl), times=times), [Weight()], statement.sql)
        except SkimqlError as fault:
            span = place_of(place)
            raise type(fault)(fault.message, fault.code, statement.sql, span, fault.hint) from fault
        return times


def statement_of(
    name: str, deletes: str | None = None, weight: str | None = None, changes: str | None = None
) -> CreateStream:
    """The statement that would make a stream of a DataFrame with these signs; carets of errors point into it.

    Raises
    ------
    ParseError
        If several are given, or `changes` is no kind of change records.
    """
    given = [n for n, v in (("deletes", deletes), ("weight", weight), ("changes", changes)) if v is not None]
    if len(given) > 1:
        raise ParseError(f"{given[0]} and {given[1]} exclude each other", hint="keep one of them")
    if changes is not None and changes.lower() not in (DEBEZIUM, DELTA):
        raise ParseError(
            f"there are no change records {changes!r}", hint=f"changes='{DEBEZIUM}' or '{DELTA}'"
        )
    sql = f"CREATE STREAM {_quoted(name)}"
    named = Part(name, Span(len("CREATE STREAM "), len(sql)))
    parts: list[Part | None] = []
    for clause, text in (("DELETES WHEN", deletes), ("WEIGHT", weight)):
        if text is not None:
            sql = f"{sql} {clause} "
            parts.append(Part(text, Span(len(sql), len(sql) + len(text))))
            sql += text
        else:
            parts.append(None)
    kind = None if changes is None else Part(changes.lower())
    return CreateStream(sql, named, (), FRAME, Part(""), deletes=parts[0], weight=parts[1], changes=kind)


def _every(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        yield message
        yield from _every(message.messages)


class _Types(Mapping[tuple[str, str], str]):
    """The types of key expressions over streams and tables, by Spark's analysis."""

    def __init__(self, creating: Creating, found: Continuous) -> None:
        self._creating, self._found = creating, found

    def __getitem__(self, asked: tuple[str, str]) -> str:
        from ..sources.keys import expression_type

        table, expression = asked
        stream = self._found.streams.get(table.lower())
        if stream is None:
            return expression_type(self._creating.context.tables, table, expression, "")
        return self._creating.type_of(stream.schema, expression)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def __len__(self) -> int:
        return 0


def options_of(statement: CreateContinuousView | CreateContinuousViews) -> dict[str, str]:
    """What WITH says.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_UNSUPPORTED`` for what streams do not do yet, ``SKIMQL_BAD_SETTING`` for what they never will.
    """
    found: dict[str, Any] = dict(statement.settings)
    for name, value in found.items():
        if name not in _WITH:
            raise bad_setting(
                f"there is no setting {name!r} of a continuous view", ", ".join(_WITH), statement.sql
            )
        if name == "bad_rows" and value not in ("count", "fail"):
            raise bad_setting(f"bad_rows cannot be {value!r}", "bad_rows = 'count' or 'fail'", statement.sql)
        if name == SINK:
            from ..sources.paths import absolute, is_remote

            if is_remote(value):
                raise unsupported(f"a sink at {value}", "sink = 'folder' on this machine", statement.sql)
            found[name] = absolute(value)
        if name == "trigger":
            found[name] = _trigger(value, statement.sql)
    return {**found, **check_windows(found, statement.sql)}


def _trigger(value: str, sql: str) -> str:
    text = " ".join(value.lower().replace("_", " ").split())
    if text.startswith(("continuous", "real time", "realtime")):
        raise unsupported(f"the trigger {value!r}, which is no micro-batch", "trigger = '1 second'", sql)
    if text in (AVAILABLE_NOW, "availablenow"):
        return AVAILABLE_NOW
    if not INTERVAL.fullmatch(text):
        raise bad_setting(f"{value!r} is no trigger", "trigger = '1 second' or 'available now'", sql)
    return text


def _signs(statement: CreateStream) -> str:
    if statement.deletes is not None:
        return f"DELETES WHEN {statement.deletes.text}"
    if statement.changes is not None:
        return f"CHANGES {statement.changes.text.upper()}"
    return "" if statement.weight is None else f"WEIGHT {statement.weight.text}"


def _folder(path: str, sql: str, part: Part) -> str:
    from ..sources.paths import absolute, is_remote

    if is_remote(path):
        return path
    if not os.path.isdir(path):
        raise StreamError(
            f"there is no folder {path}",
            "SKIMQL_NO_SUCH_FILE",
            sql,
            place_of(part),
            "the folder that files come into",
        )
    return absolute(path)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
