"""Statements about streams and continuous views."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import StreamError, UnsupportedQuery
from ...parser.syntax import (
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
from ..catalog.streams import Continuous, StoredStream, StoredView
from ..materialized.names import is_taken, place_of
from ..results.answer import Answer
from .describe import describe_stream, select, show_queries, show_streams
from .place import forget_folder, held_by, is_running, stream_folder
from .store import continuous, find_stream, find_view, forget_senders
from .views import planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..context import Context
    from .running import Run, Runs

_SELECT_ALL = re.compile(
    r"\s*SELECT\s+\*\s+FROM\s+(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*;?\s*", re.IGNORECASE
)
_REFRESH = re.compile(r"\s*REFRESH\s+(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*;?\s*", re.IGNORECASE)
DEFAULT_TRIGGER = "1 second"


def view_in(text: str, views: Mapping[str, StoredView]) -> StoredView | None:
    """The continuous view whose rows a statement asks for: ``SELECT * FROM view``, and nothing else."""
    return _named(_SELECT_ALL.fullmatch(text), views)


def refreshed_in(text: str, views: Mapping[str, StoredView]) -> StoredView | None:
    """The continuous view of ``REFRESH view``; what else Spark refreshes is Spark's."""
    return _named(_REFRESH.fullmatch(text), views)


def _named(found: re.Match[str] | None, views: Mapping[str, StoredView]) -> StoredView | None:
    if found is None:
        return None
    return views.get((found["plain"] or found["quoted"].replace("``", "`")).lower())


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
        catalog = self.context.catalog
        match statement:
            case CreateStream():
                return self._create_stream(statement)
            case CreateContinuousView():
                return self._create_view(statement)
            case ShowStreams():
                return show_streams(catalog)
            case DescribeStream():
                return describe_stream(catalog, find_stream(catalog, statement.sql, statement.name))
            case DropStream():
                return self._drop_stream(statement)
            case ShowQueries():
                return show_queries(catalog, extended=statement.extended)
            case ControlQuery(action="pause"):
                return self._pause(statement)
            case ControlQuery(action="resume"):
                view = find_view(catalog, statement.sql, statement.name)
                self._mark([view, *self._sharing(view)], paused=False)
                return self._run(view, [s for s in view.streams if self.runs().of(s) is None])
            case ControlQuery():
                return self._terminate(statement)
        raise AssertionError(f"{type(statement).__name__} is no statement about streams")

    def select(self, view: StoredView) -> Answer:
        """What a view has now; needs no Spark."""
        return select(self.context.catalog, view, bounds=self.context.settings.bounds)

    def refresh(self, view: StoredView) -> Answer:
        """Read the tables beside the streams of a view again; later events are joined with what is there now.

        Raises
        ------
        StreamError
            ``SKIMQL_STREAM_RUNS`` if another process runs a stream of the view.
        """
        if not view.tables:
            return self._told(view, "no table is joined with its streams")
        self._refuse_running(view.streams, "", Part(view.name))
        names = frozenset(t.name.lower() for t in view.tables)
        ran = [s for s in view.streams if self.runs().stop(s)]
        for table in view.tables:
            self.context.tables.refresh(table.name)
            self.context.environment.remember(table.name)
        for stream in view.streams:
            forget_senders(self.context.catalog, self._stream(stream), names)
        sharing = [v for v in self._sharing(view) if names & {t.name.lower() for t in v.tables}]
        others = ", ".join(v.name for v in sharing)
        told = [f"they are read again for {others} too"] if sharing else []
        return replace(self._run(view, ran), notes=tuple(told))

    def _create_stream(self, statement: CreateStream) -> Answer:
        from .creating import Creating

        catalog, sql, name = self.context.catalog, statement.sql, statement.name.text
        found = continuous(catalog)
        before = found.streams.get(name.lower())
        if before is not None and statement.if_not_exists:
            told = (f"there is a stream {name} already",)
            return Answer(("stream",), ((before.name,),), exact=True, notes=told)
        if before is not None and not statement.or_replace:
            way_out = f"CREATE OR REPLACE STREAM {name} ..., DROP STREAM {name}"
            raise _taken("stream", sql, statement.name, way_out)
        if name.lower() in found.views or (before is None and self._names_something(name)):
            raise _taken("table, sketch or view", sql, statement.name, "another name")
        stream = Creating(self.context).stream(statement)
        stream_folder(catalog, stream)
        if before is not None:
            self._refuse_running([before.name], sql, statement.name)
            replaced = replace(found, streams={**found.streams, name.lower(): stream})
            for view in replaced.readers(name):
                planned(view, replaced.streams)  # with the new columns
            self.runs().stop(name)
        self._change(lambda now: replace(now, streams={**now.streams, name.lower(): stream}))
        if before is not None:
            forget_folder(catalog, before)
        return show_streams(catalog, name)

    def stream(
        self, name: str, frame: DataFrame, deletes: str | None, weight: str | None, changes: str | None
    ) -> Answer:
        """Make a streaming DataFrame a stream, or give it to the stream of that name and definition."""
        from .creating import Creating

        catalog = self.context.catalog
        stream = Creating(self.context).of_frame(name, frame, deletes, weight, changes)
        stream_folder(catalog, stream)
        found = continuous(catalog)
        before = found.streams.get(name.lower())
        if before is None:
            if name.lower() in found.views or self._names_something(name):
                raise _taken("table, sketch or view", "", Part(name), "another name")
            self._change(lambda now: replace(now, streams={**now.streams, name.lower(): stream}))
        elif _definition(before) != _definition(stream):
            raise _taken(
                "stream of other columns or signs", "", Part(name), f"DROP STREAM {name}, another name"
            )
        self.runs().frames[name.lower()] = frame
        return show_streams(catalog, name)

    def _create_view(self, statement: CreateContinuousView) -> Answer:
        from .creating import Creating

        catalog, sql, name = self.context.catalog, statement.sql, statement.name.text
        found = continuous(catalog)
        before = found.views.get(name.lower())
        if before is not None and not statement.or_replace:
            way_out = f"CREATE OR REPLACE CONTINUOUS VIEW {name} ..., TERMINATE {name}"
            raise _taken("continuous view", sql, statement.name, way_out)
        if name.lower() in found.streams or (before is None and self._names_something(name)):
            raise _taken("table, sketch or stream", sql, statement.name, "another name")
        view = Creating(self.context).view(statement, found).view
        self._refuse_running(view.streams, sql, statement.name)
        for table in view.tables:
            self.context.environment.remember(table.name)
        files = self._files(view)
        self._change(lambda now: replace(now, views={**now.views, name.lower(): view}))
        try:
            return self._run(view, view.streams)
        except BaseException:
            if self._files(view) == files:  # what has not begun is not there
                self._change(lambda now: replace(now, views=_with(now.views, name, before)))
            raise

    def _run(self, view: StoredView, streams: Sequence[str]) -> Answer:
        """Start streams of a view; with the trigger `available now`, wait until all that is there is taken."""
        from .creating import AVAILABLE_NOW

        trigger = view.settings.get("trigger", DEFAULT_TRIGGER)
        started: list[Run] = []
        try:
            started.extend(self.runs().start(self.context, s, trigger) for s in streams)
            for run in started if trigger == AVAILABLE_NOW else ():
                run.wait()
        except BaseException:
            for run in started:
                run.stop()
            raise
        return self._told(view)

    def _pause(self, statement: ControlQuery) -> Answer:
        view = find_view(self.context.catalog, statement.sql, statement.name)
        shared = self._sharing(view)
        self._refuse_running(view.streams, statement.sql, statement.name)
        for stream in view.streams:
            self.runs().stop(stream)
        self._mark([view, *shared], paused=True)
        others = ", ".join(v.name for v in shared)
        return self._told(view, *([f"its streams stand still, and with them {others}"] if shared else []))

    def _terminate(self, statement: ControlQuery) -> Answer:
        view = find_view(self.context.catalog, statement.sql, statement.name)
        self._refuse_running(view.streams, statement.sql, statement.name)
        told = self._told(view, "terminated")
        self.runs().forget_table(view)
        self._change(lambda now: replace(now, views=_with(now.views, view.name, None)))
        found = continuous(self.context.catalog)
        for stream in view.streams:
            if not found.readers(stream):
                self.runs().stop(stream)
        return told

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
        self._refuse_running([name], statement.sql, statement.name)
        self.runs().stop(name)
        self._change(
            lambda now: replace(now, streams={n: s for n, s in now.streams.items() if n != name.lower()})
        )
        forget_folder(catalog, stream)
        return Answer(("stream",), ((stream.name,),), exact=True, notes=("dropped",))

    def _change(self, change: Callable[[Continuous], Continuous]) -> None:
        self.context.catalog.change_streams(lambda now, _: change(now))

    def _files(self, view: StoredView) -> list[str | None]:
        """The files of the states that a view reads."""
        states = [self._stream(s).state for s in view.streams]
        return [None if s is None else s.file for s in states]

    def _stream(self, name: str) -> StoredStream:
        return continuous(self.context.catalog).streams[name.lower()]

    def _sharing(self, view: StoredView) -> list[StoredView]:
        """The other views that read a stream of a view."""
        found = continuous(self.context.catalog)
        others = {v.name: v for s in view.streams for v in found.readers(s)}
        return [v for n, v in sorted(others.items()) if n != view.name]

    def _mark(self, views: Sequence[StoredView], *, paused: bool) -> None:
        names = {v.name.lower() for v in views}

        def marked(now: Continuous) -> Continuous:
            own = {n: replace(v, paused=paused) if n in names else v for n, v in now.views.items()}
            return replace(now, views=own)

        self._change(marked)

    def _told(self, view: StoredView, *notes: str) -> Answer:
        present = continuous(self.context.catalog).views[view.name.lower()]
        return replace(show_queries(self.context.catalog, present), notes=notes)

    def _refuse_running(self, streams: Sequence[str], sql: str, name: Part) -> None:
        """Refuse to change what another process runs."""
        for stream in streams:
            if self.runs().of(stream) is None and is_running(self.context.catalog, self._stream(stream)):
                held = held_by(self.context.catalog, self._stream(stream))
                raise StreamError(
                    f"another process runs stream {stream}{held}",
                    "SKIMQL_STREAM_RUNS",
                    sql,
                    place_of(name),
                    "the statement in the session that runs it",
                )

    def _names_something(self, name: str) -> bool:
        return is_taken(self.context.catalog, name) or name in self.context.tables


def _with(views: Mapping[str, StoredView], name: str, view: StoredView | None) -> dict[str, StoredView]:
    """The views with another one, or none, of a name."""
    others = {n: v for n, v in views.items() if n != name.lower()}
    return others if view is None else {**others, name.lower(): view}


def _definition(stream: StoredStream) -> tuple[object, ...]:
    """What a DataFrame must have in common with the one that a stream was made of."""
    return stream.format, stream.columns, stream.times, stream.changes


def _taken(kind: str, sql: str, name: Part, hint: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"there is a {kind} {name.text} already", "SKIMQL_NAME_TAKEN", sql, place_of(name), hint
    )
