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
    CreateContinuousViews,
    CreateStream,
    DescribeStream,
    DropStream,
    ExplainSketches,
    Part,
    ShowQueries,
    ShowStreams,
)
from ..catalog.streams import Continuous, StoredSet, StoredStream, StoredView
from ..materialized.names import is_taken, place_of
from ..results.answer import Answer
from ..results.columns import told_types
from .describe import describe_stream, explain, select, show_queries, show_streams
from .place import forget_folder, held_by, is_running, stream_folder
from .store import continuous, find_stream, find_views, forget_senders
from .views import planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    spark: Callable[[], SparkSession]

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
            case CreateContinuousViews():
                return self._create_views(statement)
            case ExplainSketches():
                return explain(catalog, statement.name.text)
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
                views = find_views(catalog, statement.sql, statement.name)
                self._mark([*views, *self._sharing(views)], paused=False)
                return self._run(views, [s for s in _streams_of(views) if self.runs().of(s) is None])
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
            return self._told([view], "no table is joined with its streams")
        self._refuse_running(view.streams, "", Part(view.name))
        names = frozenset(t.name.lower() for t in view.tables)
        ran = [s for s in view.streams if self.runs().stop(s)]
        for table in view.tables:
            self.context.tables.refresh(table.name)
            self.context.environment.remember(table.name)
        for stream in view.streams:
            forget_senders(self.context.catalog, self._stream(stream), names)
        sharing = [v for v in self._sharing([view]) if names & {t.name.lower() for t in v.tables}]
        others = ", ".join(v.name for v in sharing)
        told = [f"they are read again for {others} too"] if sharing else []
        return replace(self._run([view], ran), notes=tuple(told))

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
        if name.lower() in {*found.views, *found.sets} or (before is None and self._names_something(name)):
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
            if name.lower() in {*found.views, *found.sets} or self._names_something(name):
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
        self._refuse_taken(statement.name, sql, found, () if before is None else (before,))
        view = Creating(self.context).view(statement, found).view
        return self._put([view], () if before is None else (before,), (), sql, statement.name)

    def _create_views(self, statement: CreateContinuousViews) -> Answer:
        from .creating import Creating

        sql, name, found = statement.sql, statement.name, continuous(self.context.catalog)
        if name.text.lower() in found.sets and not statement.or_replace:
            way_out = f"CREATE OR REPLACE CONTINUOUS VIEWS {name.text} ..., TERMINATE {name.text}"
            raise _taken("set of continuous views", sql, name, way_out)
        before = found.members(name.text)
        others = _without(found, [v.name for v in before])
        if name.text.lower() not in found.sets:
            self._refuse_taken(name, sql, others, ())
        for member, _ in statement.members:
            self._refuse_taken(member, sql, others, before)
        planned = Creating(self.context).views(statement, others)
        return self._put([v.view for v in planned.views], before, [planned.stored], sql, name)

    def _refuse_taken(self, name: Part, sql: str, found: Continuous, before: Sequence[StoredView]) -> None:
        """Refuse the name of something else than what is replaced."""
        own = {v.name.lower() for v in before}
        low = name.text.lower()
        if low in own:
            return
        taken = low in found.streams or low in found.views or low in found.sets
        if taken or self._names_something(name.text):
            raise _taken("table, sketch, stream or view", sql, name, "another name")

    def _put(
        self,
        views: Sequence[StoredView],
        before: Sequence[StoredView],
        sets: Sequence[StoredSet],
        sql: str,
        name: Part,
    ) -> Answer:
        """Put views in the place of others, all or none, and start what they read."""
        streams = _streams_of(views)
        self._refuse_running(_streams_of([*views, *before]), sql, name)
        for table in (t for v in views for t in v.tables):
            self.context.environment.remember(table.name)
        batches = self._batches(streams)
        found = continuous(self.context.catalog)
        self._change(lambda now: _with(now, before, views, sets))
        try:
            return self._run(views, streams)
        except BaseException:
            if self._batches(streams) == batches:  # what has not begun is not there
                known = [s for n, s in found.sets.items() if any(v.set.lower() == n for v in before)]
                self._change(lambda now: _with(now, views, before, known))
            raise

    def _run(self, views: Sequence[StoredView], streams: Sequence[str]) -> Answer:
        """Start streams of views; with the trigger `available now`, wait until all that is there is taken."""
        from .creating import AVAILABLE_NOW
        from .spark_view import show

        trigger = views[0].settings.get("trigger", DEFAULT_TRIGGER)
        started: list[Run] = []
        try:
            started.extend(self.runs().start(self.context, s, trigger) for s in streams)
            for run in started if trigger == AVAILABLE_NOW else ():
                run.wait()
        except BaseException:
            for run in started:
                run.stop()
            raise
        show(self.spark(), self.context.catalog, views, self.runs().shown)
        return self._told(views)

    def _pause(self, statement: ControlQuery) -> Answer:
        views = find_views(self.context.catalog, statement.sql, statement.name)
        shared = self._sharing(views)
        self._refuse_running(_streams_of(views), statement.sql, statement.name)
        for stream in _streams_of(views):
            self.runs().stop(stream)
        self._mark([*views, *shared], paused=True)
        others = ", ".join(v.name for v in shared)
        standing = f"its streams stand still, and with them {others}"
        return self._told(views, *([standing] if shared else []))

    def _terminate(self, statement: ControlQuery) -> Answer:
        views = find_views(self.context.catalog, statement.sql, statement.name)
        self._refuse_running(_streams_of(views), statement.sql, statement.name)
        told = self._told(views, "terminated")
        for view in views:
            self.runs().forget_table(view)
        self._change(lambda now: _without(now, [v.name for v in views]))
        found = continuous(self.context.catalog)
        for stream in _streams_of(views):
            if not found.readers(stream):
                self.runs().stop(stream)
        return told

    def _drop_stream(self, statement: DropStream) -> Answer:
        catalog, name = self.context.catalog, statement.name.text
        found = continuous(catalog)
        if statement.if_exists and name.lower() not in found.streams:
            told = (f"there is no stream {name}",)
            return Answer(("stream",), (), exact=True, notes=told, types=told_types(("stream",), (), ()))
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

    def _batches(self, streams: Sequence[str]) -> list[int | None]:
        """The last batches of streams."""
        states = [self._stream(s).state for s in streams]
        return [None if s is None else s.batch for s in states]

    def _stream(self, name: str) -> StoredStream:
        return continuous(self.context.catalog).streams[name.lower()]

    def _sharing(self, views: Sequence[StoredView]) -> list[StoredView]:
        """The other views that read a stream of some views."""
        found, own = continuous(self.context.catalog), {v.name for v in views}
        others = {v.name: v for s in _streams_of(views) for v in found.readers(s)}
        return [v for n, v in sorted(others.items()) if n not in own]

    def _mark(self, views: Sequence[StoredView], *, paused: bool) -> None:
        names = {v.name.lower() for v in views}

        def marked(now: Continuous) -> Continuous:
            own = {n: replace(v, paused=paused) if n in names else v for n, v in now.views.items()}
            return replace(now, views=own)

        self._change(marked)

    def _told(self, views: Sequence[StoredView], *notes: str) -> Answer:
        found = continuous(self.context.catalog).views
        present = [found[v.name.lower()] for v in views]
        return replace(show_queries(self.context.catalog, *present), notes=notes)

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
        from .spark_view import is_ours

        if is_taken(self.context.catalog, name):
            return True
        return name in self.context.tables and not is_ours(self.spark(), name)


def _streams_of(views: Sequence[StoredView]) -> tuple[str, ...]:
    """The streams that views read, each once."""
    return tuple({s.lower(): s for v in views for s in v.streams}.values())


def _with(
    found: Continuous, before: Sequence[StoredView], views: Sequence[StoredView], sets: Sequence[StoredSet]
) -> Continuous:
    """With views, and the sets that they are of, in the place of others."""
    rest = _without(found, [v.name for v in before])
    return replace(
        rest,
        views={**rest.views, **{v.name.lower(): v for v in views}},
        sets={**rest.sets, **{s.name.lower(): s for s in sets}},
    )


def _without(found: Continuous, names: Sequence[str]) -> Continuous:
    """Without some views, and the sets that have none any more."""
    gone = {n.lower() for n in names}
    views = {n: v for n, v in found.views.items() if n not in gone}
    left = {v.set.lower() for v in views.values()}
    return replace(found, views=views, sets={n: s for n, s in found.sets.items() if n in left})


def _definition(stream: StoredStream) -> tuple[object, ...]:
    """What a DataFrame must have in common with the one that a stream was made of."""
    return stream.format, stream.columns, stream.times, stream.changes


def _taken(kind: str, sql: str, name: Part, hint: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"there is a {kind} {name.text} already", "SKIMQL_NAME_TAKEN", sql, place_of(name), hint
    )
