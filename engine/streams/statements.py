"""Statements about streams and continuous views."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...errors import SkimqlError, StreamError, UnsupportedQuery
from ...parser.join_graph import Query, TableSchema
from ...parser.sketch import resolve_append
from ...parser.syntax import (
    AppendSketch,
    Command,
    ControlQuery,
    CreateContinuousView,
    CreateStream,
    DescribeStream,
    DropStream,
    Part,
    ShowQueries,
    ShowStreams,
)
from ..catalog.secrets import redacted
from ..catalog.streams import Continuous, StoredStream, StoredView
from ..materialized.definition import now, refuse_unstable
from ..materialized.names import is_taken, place_of
from ..results.answer import Answer
from .state import READ_AS_TEXT, StreamState, bad_rows, events
from .store import Loaded, continuous, find_stream, find_view, load
from .views import PlannedView, answer, define, planned, unsupported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..context import Context
    from .running import Run, Runs

_SELECT_ALL = re.compile(r"\s*SELECT\s+\*\s+FROM\s+(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*;?\s*", re.IGNORECASE)
_RATE = (("timestamp", "timestamp"), ("value", "bigint"))
_WITH = ("trigger", "bad_rows")
_NOT_YET = {
    "window": "windows",
    "slide": "windows",
    "watermark": "windows",
    "time": "windows",
    "sink": "sinks",
}
STREAMS = ("stream", "format", "source", "signs", "state", "batch", "events", "deletions", "bad", "bytes", "updated")
QUERIES = ("query", "streams", "state", "events", "deletions", "bad", "batch", "bytes", "updated")


def view_in(text: str, catalog_views: Mapping[str, StoredView]) -> StoredView | None:
    """The continuous view whose rows a statement asks for: ``SELECT * FROM view``, and nothing else."""
    found = _SELECT_ALL.fullmatch(text)
    if found is None:
        return None
    name = found["plain"] or found["quoted"].replace("``", "`")
    return catalog_views.get(name.lower())


@dataclass
class StreamStatements:
    """Runs the statements about streams for a session."""

    context: Context
    runs: Callable[[], Runs]

    def run(self, statement: Command) -> Answer:
        """Run one of the statements of this module.

        Raises
        ------
        SkimqlError
            With the place in the statement; whatever fails, the catalog is as it was.
        """
        match statement:
            case CreateStream():
                return self._create_stream(statement)
            case CreateContinuousView():
                return self._create_view(statement)
            case ShowStreams():
                found = continuous(self.context.catalog).streams
                rows = tuple(self._stream_row(s) for _, s in sorted(found.items()))
                return Answer(STREAMS, rows, exact=True)
            case DescribeStream():
                return self._describe(find_stream(self.context.catalog, statement.sql, statement.name))
            case DropStream():
                return self._drop_stream(statement)
            case ShowQueries():
                return self._show_queries(statement.extended)
            case ControlQuery(action="pause"):
                return self._pause(statement)
            case ControlQuery(action="resume"):
                return self._resume(statement)
            case ControlQuery():
                return self._terminate(statement)
        raise AssertionError(f"{type(statement).__name__} is no statement about streams")

    def select(self, view: StoredView) -> Answer:
        """What a view has now; needs no Spark."""
        found = continuous(self.context.catalog)
        shown, loaded = self._loaded(found, view)
        notes = [
            f"the newest state of {name} is damaged, this is the one before it: {one.lost}"
            for name, one in loaded.items()
            if one.lost
        ]
        given = answer(shown, {n: one.state for n, one in loaded.items()}, self.context.settings.bounds)
        return replace(given, notes=(*given.notes, *notes))

    def _loaded(self, found: Continuous, view: StoredView) -> tuple[PlannedView, dict[str, Loaded]]:
        catalog = self.context.catalog
        loaded = {s.lower(): load(catalog, found.streams[s.lower()], view.seed) for s in view.streams}
        return planned(view, found.streams), loaded

    def _create_stream(self, statement: CreateStream) -> Answer:
        from .running import no_folder, stream_folder

        catalog, sql, name = self.context.catalog, statement.sql, statement.name.text
        found = continuous(catalog)
        before = found.streams.get(name.lower())
        if before is not None and statement.if_not_exists:
            return Answer(("stream",), ((before.name,),), exact=True, notes=(f"there is a stream {name} already",))
        if before is not None and not statement.or_replace:
            raise _taken("stream", sql, statement.name, f"CREATE OR REPLACE STREAM {name} ..., DROP STREAM {name}")
        if name.lower() in found.views or (before is None and self._names_something(name)):
            raise _taken("table or view", sql, statement.name, "another name")
        if statement.format not in ("json", "csv", "parquet", "rate"):
            raise unsupported(
                f"a stream from {statement.format.upper()}",
                "FROM JSON, CSV or PARQUET 'folder', or RATE",
                sql,
                place_of(statement.path),
            )
        stream = self._defined(statement)
        try:
            stream_folder(catalog, stream)
        except StreamError:
            raise no_folder(catalog) from None
        if before is not None:
            self._refuse_running(before, sql, statement.name)
            self.runs().stop(name)
            _plan_all(replace(found, streams={**found.streams, name.lower(): stream}), name)

        def change(now_there: Continuous, _: object) -> Continuous:
            return replace(now_there, streams={**now_there.streams, name.lower(): stream})

        catalog.change_streams(change)
        return Answer(STREAMS, (self._stream_row(stream),), exact=True)

    def _defined(self, statement: CreateStream) -> StoredStream:
        from ..sources.tables import schema_of
        from ..spark.session import SPARK_FAULTS, first_line

        sql, name = statement.sql, statement.name.text
        ddl = ", ".join(f"`{c.name.text.replace('`', '``')}` {c.type.text}" for c in statement.columns)
        try:
            schema = schema_of(name, self.context.spark.createDataFrame([], ddl))
        except SPARK_FAULTS as fault:
            raise UnsupportedQuery(
                f"Spark refuses the columns: {first_line(fault)}",
                "SKIMQL_BAD_COLUMNS",
                sql,
                (statement.columns[0].name.span.start, statement.columns[-1].type.span.end),
            ) from fault
        if statement.format == "rate" and tuple((c.name, c.type) for c in schema.columns) != _RATE:
            raise StreamError(
                "a stream from RATE has the columns (timestamp TIMESTAMP, value BIGINT)",
                "SKIMQL_BAD_COLUMNS",
                sql,
                (statement.columns[0].name.span.start, statement.columns[-1].type.span.end),
                "CREATE STREAM name (timestamp TIMESTAMP, value BIGINT) FROM RATE '' OPTIONS (rowsPerSecond = 10)",
            )
        times = self._times(statement, schema)
        here = self.context.environment.circumstances()
        source = statement.path.text
        if statement.format != "rate":
            source = _folder(source, sql, statement.path)
        signs = ""
        if statement.deletes is not None:
            signs = f"DELETES WHEN {statement.deletes.text}"
        elif statement.weight is not None:
            signs = f"WEIGHT {statement.weight.text}"
        return StoredStream(
            name,
            os.urandom(16).hex(),
            schema.columns,
            statement.format,
            source,
            dict(statement.options),
            times,
            signs,
            here.ansi,
            here.time_zone,
            here.settings,
            now(),
        )

    def _times(self, statement: CreateStream, schema: TableSchema) -> str | None:
        """How often an event counts; raises UnsupportedQuery for a weight that is no whole number."""
        if statement.deletes is None and statement.weight is None:
            return None
        asked = AppendSketch(
            statement.sql, statement.name, (statement.name,), deletes=statement.deletes, weight=statement.weight
        )
        times = resolve_append(asked, {statement.name.text: schema}).times
        assert times is not None, "one of them is given"
        refuse_unstable(statement.sql, [times], self.context.environment.own_functions)
        from ..materialized.building import Source, weights_of
        from ...optimizer.plan import Weight

        place = statement.deletes or statement.weight
        assert place is not None, "one of them is given"
        empty = self._empty(schema)
        try:
            weights_of(Source(schema.name, empty, times=times), [Weight()], statement.sql)
        except SkimqlError as fault:
            raise type(fault)(fault.message, fault.code, statement.sql, place_of(place), fault.hint) from fault
        return times

    def _empty(self, schema: TableSchema) -> DataFrame:
        ddl = ", ".join(f"`{c.name.replace('`', '``')}` {c.type}" for c in schema.columns)
        return self.context.spark.createDataFrame([], ddl)

    def _create_view(self, statement: CreateContinuousView) -> Answer:
        catalog, sql, name = self.context.catalog, statement.sql, statement.name.text
        found = continuous(catalog)
        before = found.views.get(name.lower())
        if before is not None and not statement.or_replace:
            raise _taken(
                "continuous view", sql, statement.name, f"CREATE OR REPLACE CONTINUOUS VIEW {name} ..., TERMINATE {name}"
            )
        if name.lower() in found.streams or (before is None and self._names_something(name)):
            raise _taken("table or stream", sql, statement.name, "another name")
        options = _options(statement)
        place = place_of(statement.query)
        try:
            shown = define(
                name,
                statement.query.text,
                self.context.tables,
                found.streams,
                self.context.settings,
                lambda query: self._typed(query, found),
                options,
                sql,
            )
        except SkimqlError as fault:
            # The SELECT is a text of its own here; carets point into the statement.
            span = None if fault.span is None or fault.sql == sql else (fault.span[0] + place[0], fault.span[1] + place[0])
            raise type(fault)(fault.message, fault.code, sql, span or fault.span or place, fault.hint) from fault
        self._refuse_unstable(shown, sql)
        view = shown.view
        others = [v for s in view.streams for v in found.readers(s) if v.name.lower() != name.lower()]
        odd = next((v for v in others if v.seed != view.seed), None)
        if odd is not None:
            raise StreamError(
                f"the sketches of a stream are of one seed: view {odd.name} has {odd.seed}, and this one {view.seed}",
                "SKIMQL_STREAM_SEED",
                sql,
                place,
                f"SET skimql.seed = {odd.seed}",
            )
        for stream in view.streams:
            self._refuse_running(found.streams[stream.lower()], sql, statement.name)
        for table in view.tables:
            self.context.environment.remember(table.name)

        def change(now_there: Continuous, _: object) -> Continuous:
            return replace(now_there, views={**now_there.views, name.lower(): view})

        catalog.change_streams(change)
        try:
            return self._run(view, [])
        except BaseException:
            # What does not start was not created.
            def undo(now_there: Continuous, _: object) -> Continuous:
                views = {n: v for n, v in now_there.views.items() if n != name.lower()}
                return replace(now_there, views=views if before is None else {**views, name.lower(): before})

            started = any(self._state(s).batch is not None for s in view.streams)
            if not started:
                catalog.change_streams(undo)
            raise

    def _state(self, stream: str) -> StreamState:
        found = continuous(self.context.catalog)
        return load(self.context.catalog, found.streams[stream.lower()], 0).state

    def _typed(self, query: Query, found: Continuous) -> Query:
        from ..sources.keys import with_key_types

        return with_key_types(query, None, self.context.environment.circumstances().ansi, _Types(self, found))

    def _refuse_unstable(self, shown: PlannedView, sql: str) -> None:
        for s in shown.plan.synopses:
            expressions = (s.filter, s.weight.expression, *(k for a in s.attributes for k in a.keys))
            refuse_unstable(sql, expressions, self.context.environment.own_functions)

    def _run(self, view: StoredView, notes: Sequence[str]) -> Answer:
        """Start the streams of a view; with the trigger `available now`, wait until all that is there is taken."""
        from .running import AVAILABLE_NOW, DEFAULT_TRIGGER

        trigger = view.settings.get("trigger", DEFAULT_TRIGGER)
        started: list[Run] = []
        try:
            for stream in view.streams:
                started.append(self.runs().start(self.context, stream, trigger))
            if trigger == AVAILABLE_NOW:
                for run in started:
                    run.wait()
        except BaseException:
            for run in started:
                run.stop()
            raise
        return replace(Answer(QUERIES, (self._query_row(view),), exact=True), notes=tuple(notes))

    def _pause(self, statement: ControlQuery) -> Answer:
        view = find_view(self.context.catalog, statement.sql, statement.name)
        shared = self._sharing(view)
        for stream in view.streams:
            self._refuse_running(self._stream(stream), statement.sql, statement.name)
        for stream in view.streams:
            self.runs().stop(stream)
        self._mark([view, *shared], paused=True)
        note = [f"its streams stand still, and with them {', '.join(v.name for v in shared)}"] if shared else []
        return self._told(view.name, note)

    def _resume(self, statement: ControlQuery) -> Answer:
        view = find_view(self.context.catalog, statement.sql, statement.name)
        self._mark([view, *self._sharing(view)], paused=False)
        return self._run(replace(view, paused=False), [])

    def _terminate(self, statement: ControlQuery) -> Answer:
        view = find_view(self.context.catalog, statement.sql, statement.name)
        for stream in view.streams:
            self._refuse_running(self._stream(stream), statement.sql, statement.name)
        row = self._query_row(view)

        def change(now_there: Continuous, _: object) -> Continuous:
            return replace(now_there, views={n: v for n, v in now_there.views.items() if n != view.name.lower()})

        self.context.catalog.change_streams(change)
        found = continuous(self.context.catalog)
        for stream in view.streams:
            if not found.readers(stream):
                self.runs().stop(stream)
        return replace(Answer(QUERIES, (row,), exact=True), notes=("terminated",))

    def _drop_stream(self, statement: DropStream) -> Answer:
        catalog, name = self.context.catalog, statement.name.text
        found = continuous(catalog)
        if statement.if_exists and name.lower() not in found.streams:
            return Answer(("stream",), (), exact=True, notes=(f"there is no stream {name}",))
        stream = find_stream(catalog, statement.sql, statement.name)
        reading = found.readers(name)
        if reading:
            raise UnsupportedQuery(
                f"view {reading[0].name} reads stream {stream.name}",
                "SKIMQL_STREAM_IS_READ",
                statement.sql,
                place_of(statement.name),
                "; ".join(f"TERMINATE {v.name}" for v in reading),
            )
        self._refuse_running(stream, statement.sql, statement.name)
        self.runs().stop(name)

        def change(now_there: Continuous, _: object) -> Continuous:
            return replace(now_there, streams={n: s for n, s in now_there.streams.items() if n != name.lower()})

        catalog.change_streams(change)
        return Answer(("stream",), ((stream.name,),), exact=True, notes=("dropped",))

    def _describe(self, stream: StoredStream) -> Answer:
        row = dict(zip(STREAMS, self._stream_row(stream), strict=True))
        told: list[tuple[str, Any]] = [
            *row.items(),
            ("columns", ", ".join(f"{c.name} {c.type}" for c in stream.columns)),
            ("options", ", ".join(f"{n} = {v}" for n, v in sorted(stream.options.items()))),
            ("views", ", ".join(v.name for v in continuous(self.context.catalog).readers(stream.name))),
            ("ansi", stream.ansi),
            ("time_zone", stream.time_zone),
            ("created", stream.created),
            ("fault", stream.fault),
        ]
        rows = tuple((name, "" if value is None else str(value)) for name, value in told)
        return Answer(("property", "value"), rows, exact=True)

    def _show_queries(self, extended: bool) -> Answer:
        found = continuous(self.context.catalog)
        rows, names = [], QUERIES
        for _, view in sorted(found.views.items()):
            row = self._query_row(view)
            rows.append((*row, *self._extended(view)) if extended else row)
        if extended:
            names = (*QUERIES, "value", "half_width", "fault", "select")
        return Answer(names, tuple(rows), exact=True)

    def _extended(self, view: StoredView) -> tuple[Any, ...]:
        from ..results.answer import half_width

        given = self.select(view)
        cell = given.rows[0][0] if given.rows else None
        value, width = (cell.value, half_width(cell)) if hasattr(cell, "low") else (cell, None)
        faults = [self._stream(s).fault for s in view.streams]
        return (None if value is None else float(value), width, "; ".join(f for f in faults if f), view.select)

    def _query_row(self, view: StoredView) -> tuple[Any, ...]:
        found = continuous(self.context.catalog)
        shown, loaded = self._loaded(found, view)
        figures = [self._figures(found.streams[n], one.state) for n, one in loaded.items()]
        states = {self._running_state(found.streams[n]) for n in loaded}
        state = next((s for s in ("failed", "stopped", "running") if s in states), "stopped")
        if view.paused and state == "stopped":
            state = "paused"
        own = [
            one.state.summaries[s].built.sketch.nbytes
            for n, one in loaded.items()
            for s in shown.synopses_of(n)
            if s in one.state.summaries
        ]
        return (
            view.name,
            ", ".join(view.streams),
            state,
            sum(f[0] for f in figures),
            sum(f[1] for f in figures),
            sum(f[2] for f in figures),
            ", ".join("none" if one.state.batch is None else str(one.state.batch) for one in loaded.values()),
            sum(own),
            max((one.state.updated for one in loaded.values()), default=""),
        )

    def _stream_row(self, stream: StoredStream) -> tuple[Any, ...]:
        state = load(self.context.catalog, stream, 0).state
        counted, deleted, bad = self._figures(stream, state)
        return (
            stream.name,
            stream.format,
            redacted(stream.source),
            stream.signs,
            self._running_state(stream),
            state.batch,
            counted,
            deleted,
            bad,
            state.nbytes,
            state.updated,
        )

    def _figures(self, stream: StoredStream, state: StreamState) -> tuple[int, int, int]:
        """Events, deletions among them, and rows that could not be read."""
        tally, unread = state.tally(events(stream.name)), bad_rows(stream)
        bad = 0 if unread is None else state.tally(unread).tuples
        return tally.tuples - bad, tally.negative, bad

    def _running_state(self, stream: StoredStream) -> str:
        from .running import is_running

        if is_running(self.context.catalog, stream):
            return "running"
        return "failed" if stream.fault else "stopped"

    def _stream(self, name: str) -> StoredStream:
        return continuous(self.context.catalog).streams[name.lower()]

    def _sharing(self, view: StoredView) -> list[StoredView]:
        """The other views that read a stream of a view."""
        found = continuous(self.context.catalog)
        others = {v.name: v for s in view.streams for v in found.readers(s)}
        return [v for n, v in sorted(others.items()) if n != view.name]

    def _mark(self, views: Sequence[StoredView], *, paused: bool) -> None:
        def change(now_there: Continuous, _: object) -> Continuous:
            marked = {v.name.lower(): replace(now_there.views[v.name.lower()], paused=paused) for v in views}
            return replace(now_there, views={**now_there.views, **marked})

        self.context.catalog.change_streams(change)

    def _told(self, name: str, notes: Sequence[str]) -> Answer:
        view = continuous(self.context.catalog).views[name.lower()]
        return replace(Answer(QUERIES, (self._query_row(view),), exact=True), notes=tuple(notes))

    def _refuse_running(self, stream: StoredStream, sql: str, name: Part) -> None:
        """Refuse to change what another process runs."""
        from .running import is_running

        if self.runs().of(stream.name) is None and is_running(self.context.catalog, stream):
            raise StreamError(
                f"another process runs stream {stream.name}",
                "SKIMQL_STREAM_RUNS",
                sql,
                place_of(name),
                "the statement in the session that runs it",
            )

    def _names_something(self, name: str) -> bool:
        return is_taken(self.context.catalog, name) or name in self.context.tables


class _Types(Mapping[tuple[str, str], str]):
    """The types of key expressions over streams and tables, by Spark's analysis."""

    def __init__(self, statements: StreamStatements, found: Continuous) -> None:
        self._statements, self._found = statements, found

    def get(self, asked: tuple[str, str], default: Any = None) -> Any:
        """The type of an expression over a table."""
        return self[asked]

    def __getitem__(self, asked: tuple[str, str]) -> str:
        from ..sources.keys import expression_type

        table, expression = asked
        stream = self._found.streams.get(table.lower())
        tables = self._statements.context.tables
        if stream is None:
            return expression_type(tables, table, expression, "")
        kind: str = self._statements._empty(stream.schema).selectExpr(expression).schema.fields[0].dataType.simpleString()
        return kind

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def _options(statement: CreateContinuousView) -> dict[str, str]:
    """What WITH says, checked."""
    found = dict(statement.settings)
    for name, value in found.items():
        if name in _NOT_YET:
            raise unsupported(f"WITH ({name} = ...): {_NOT_YET[name]}", f"WITH without {name}", statement.sql)
        if name not in _WITH:
            raise StreamError(
                f"there is no setting {name!r} of a continuous view",
                "SKIMQL_BAD_SETTING",
                statement.sql,
                hint=f"one of {', '.join(_WITH)}",
            )
        if name == "bad_rows" and value not in ("count", "fail"):
            raise StreamError(
                f"bad_rows is 'count' or 'fail', and not {value!r}", "SKIMQL_BAD_SETTING", statement.sql,
                hint="WITH (bad_rows = 'fail')",
            )
        if name == "trigger":
            found[name] = _trigger(value, statement.sql)
    return found


def _trigger(value: str, sql: str) -> str:
    text = " ".join(value.lower().replace("_", " ").split())
    if text in ("continuous", "real time", "realtime") or text.startswith(("continuous ", "real time ")):
        raise unsupported(f"the trigger {value!r}, which is no micro-batch", "trigger = '1 second'", sql)
    if text in ("available now", "availablenow"):
        return "available now"
    if not re.fullmatch(r"\d+ (millisecond|second|minute|hour|day)s?", text):
        raise StreamError(
            f"{value!r} is no trigger", "SKIMQL_BAD_SETTING", sql, hint="trigger = '1 second' or 'available now'"
        )
    return text


def _folder(path: str, sql: str, part: Part) -> str:
    from ..sources.paths import absolute, is_remote

    if is_remote(path):
        return path
    if not os.path.isdir(path):
        raise StreamError(
            f"there is no folder {path}", "SKIMQL_NO_SUCH_FILE", sql, place_of(part), "the folder that files come into"
        )
    return absolute(path)


def _plan_all(found: Continuous, stream: str) -> None:
    """Raise what a view would say of a stream that was replaced."""
    for view in found.readers(stream):
        planned(view, found.streams)


def _taken(kind: str, sql: str, name: Part, hint: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"there is a {kind} {name.text} already", "SKIMQL_NAME_TAKEN", sql, place_of(name), hint
    )
