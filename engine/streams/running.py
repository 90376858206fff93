"""Streams that run in this process: Spark's queries, each with its checkpoint, its lock and its batches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ...errors import DataError, SkimqlError, StreamError
from ..catalog.catalog import Catalog
from ..catalog.streams import FRAME, StoredStream, StoredView
from ..sources.settings_followed import ANSI, TIME_ZONE
from ..spark.checkpoints import without_shells
from ..spark.isolation import moved
from ..spark.java_faults import Py4JError
from ..spark.session import SPARK_FAULTS, first_line
from ..spark.shipping import ship
from .batches import Batches
from .changes import rows
from .checkpoint import batch_to_repeat, read_checkpoint, uncommit
from .creating import AVAILABLE_NOW
from .dedup import deduplicated
from .file_schemas import other_types, refuse_lacking
from .frames import whole_rows
from .kafka import KAFKA, messages
from .listeners import Listener, tell
from .past import files_of, past_of
from .place import held_by, lock_of, say_holder, stream_folder
from .planned import PlannedView, domains_of
from .spark_builder import SparkBuilder
from .state import READ_AS_TEXT, batch_plan, times_of
from .store import continuous, tell_fault
from .views import readers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..context import Context

_POLL_SECONDS = 0.05
# What a call of a JVM ends with that has died.
_UNREACHED = (*SPARK_FAULTS, Py4JError, OSError)


@dataclass
class Run:
    """One stream that runs, or has run, in this process."""

    stream: StoredStream
    query: StreamingQuery
    batches: Batches[Any]
    lock: FileLock
    faults: list[SkimqlError] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def active(self) -> bool:
        """Whether it goes on; not where its JVM has died."""
        try:
            return bool(self.query.isActive)
        except _UNREACHED:
            return False

    def stop(self) -> None:
        """End it; a batch that was on its way is read again by the next start."""
        self.stopping.set()
        with contextlib.suppress(*_UNREACHED):
            self.query.stop()
        self.lock.release()

    def finish(self) -> None:
        """End it after the batch that is on its way."""
        with self.busy:
            self.stopping.set()
        self.stop()

    def wait(self) -> None:
        """Until it has taken all that was there; raises what stopped it."""
        try:
            while self.active:
                time.sleep(_POLL_SECONDS)
            self.query.awaitTermination()
        except KeyboardInterrupt:
            self.stop()
            raise
        except SPARK_FAULTS as fault:
            self.lock.release()
            if self.faults:
                raise self.faults[0] from fault
            raise StreamError(
                f"stream {self.stream.name} stopped: {first_line(fault)}", "SKIMQL_STREAM_FAILED"
            ) from fault
        self.lock.release()


@dataclass
class Runs:
    """The streams that one session runs, who is told of their batches, and the views that its Spark knows as tables."""

    _runs: dict[str, Run] = field(default_factory=dict)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    listeners: dict[str, list[Listener]] = field(default_factory=dict)
    shown: dict[str, SparkSession] = field(default_factory=dict)

    def of(self, stream: str) -> Run | None:
        """The run of a stream that goes on."""
        run = self._runs.get(stream.lower())
        return run if run is not None and run.active else None

    def start(self, context: Context, name: str, trigger: str) -> Run:
        """Start a stream, or start it anew with the views that it has now.

        Raises
        ------
        StreamError
            ``SKIMQL_STREAM_RUNS`` if another process runs it; ``SKIMQL_CHECKPOINT_MISMATCH``;
            ``SKIMQL_STREAM_SETTINGS`` if the Spark session would read its batches in another way.
        """
        own = Catalog(context.catalog.folder)
        stream = continuous(own).streams[name.lower()]
        _refuse_other_settings(context, stream)
        folder = stream_folder(own, stream)
        folder.mkdir(parents=True, exist_ok=True)
        builder = SparkBuilder(context.spark, context.tables, folder / "quarantine")
        views = readers(continuous(own), stream.name)
        asked = dict.fromkeys(s for v in views for s in v.asked_of(stream.name))
        domains = domains_of(views)
        plan = batch_plan(views[0].query, views[0].view.seed, stream, asked, domains)
        needed = [s for v in views for s, _ in v.needs_of(stream.name)]
        ship(context.spark)
        builder.warm(batch_plan(views[0].query, views[0].view.seed, stream, [*asked, *needed], domains))
        self.stop(name)
        lock = lock_of(own, stream)
        try:
            lock.acquire()
        except Timeout as fault:
            raise StreamError(
                f"another process runs stream {name}{held_by(own, stream)}",
                "SKIMQL_STREAM_RUNS",
                hint="PAUSE there; SHOW QUERIES tells",
            ) from fault
        say_holder(own, stream)
        try:
            frame = frame_of(context.spark, stream, self.frames.get(name.lower()))
            batches = Batches(own, stream.name, builder)
            _catch_up(batches, context.spark, folder / "checkpoint")
            if _has_one_plan(stream, views):
                frame = builder.ahead(frame, plan, times_of(stream, plan.synopses))
            stateless = not stream.dedup and stream.format != FRAME
            with without_shells(context.spark) if stateless else contextlib.nullcontext():
                run = _started(batches, stream, frame, trigger, folder / "checkpoint", lock, self.listeners)
        except BaseException:
            lock.release()
            raise
        self._runs[name.lower()] = run
        threading.Thread(target=_watch, args=(run,), name=f"stream {name}", daemon=True).start()
        return run

    def forget_table(self, view: StoredView) -> None:
        """Let Spark forget a view that it knows as a table."""
        spark = self.shown.pop(view.known_as, None)
        if spark is not None:
            from .spark_view import forget

            forget(spark, view.name)

    def forget_tables(self) -> None:
        """Let Spark forget all of them."""
        if self.shown:
            from .spark_view import forget

            for known_as, spark in self.shown.items():
                with contextlib.suppress(*_UNREACHED):
                    forget(spark, known_as.rpartition(" ")[0])
            self.shown.clear()

    def stop(self, name: str) -> bool:
        """Stop a stream; whether it ran here."""
        run = self._runs.pop(name.lower(), None)
        if run is None:
            return False
        active = run.active
        run.stop()
        return active

    def finish_all(self) -> None:
        """End whatever runs, each stream after the batch that it is at."""
        for name in list(self._runs):
            self._runs.pop(name).finish()

    def stop_all(self) -> None:
        """Stop whatever runs."""
        for name in list(self._runs):
            self.stop(name)


def _has_one_plan(stream: StoredStream, views: Sequence[PlannedView]) -> bool:
    """Whether all batches of a stream are built alike, by nothing but their partial sketches.

    Not where rows that cannot be read are asked for as well, change records are refused by what views need now, or
    panes and groups hang on the state before.
    """
    told_apart = any(v.told_apart for v in views)
    return not (stream.format in READ_AS_TEXT or stream.changes or told_apart)


def _catch_up(batches: Batches[Any], spark: SparkSession, checkpoint: Path) -> None:
    """Give new sketches the events that the stream has read already, where these can be read again."""
    loaded = batches.start()
    if loaded.state.batch is not None and batches.missing():
        past = past_of(spark, batches.stream, checkpoint, loaded.state.batch)
        if past is not None:
            batches.catch_up(past)


def _started(
    batches: Batches[Any],
    stream: StoredStream,
    frame: DataFrame,
    trigger: str,
    checkpoint: Path,
    lock: FileLock,
    listeners: dict[str, list[Listener]],
) -> Run:
    """Spark's query on a stream, once state and checkpoint are seen to belong together."""
    loaded = batches.start()
    again = batch_to_repeat(stream.name, loaded.state, read_checkpoint(checkpoint), lost=bool(loaded.lost))
    if again is not None:
        uncommit(checkpoint, again)
    faults: list[SkimqlError] = []
    stopping, busy = threading.Event(), threading.Lock()

    def take(frame: DataFrame, batch: int) -> None:
        with busy:
            if stopping.is_set():
                raise StreamError(f"stream {stream.name} stops before batch {batch}", "SKIMQL_STREAM_FAILED")
            take_now(frame, batch)

    def take_now(frame: DataFrame, batch: int) -> None:
        batches.checkpoint = batches.checkpoint or read_checkpoint(checkpoint).id
        try:
            files = files_of(checkpoint, batch) if stream.format == "parquet" and not stream.changes else ()
            refuse_lacking(stream, batch, files)
            if _taken(batches, frame, batch, files):
                tell(batches.catalog, stream.name, listeners)
        except SkimqlError as fault:
            # A batch that was cut short by stopping the stream is read again: nothing has failed.
            if not stopping.is_set():
                faults.append(fault)
                tell_fault(batches.catalog, stream, fault.message)
            raise

    writer = frame.writeStream.foreachBatch(take).outputMode("append")
    writer = writer.option("checkpointLocation", str(checkpoint))
    try:
        if trigger == AVAILABLE_NOW:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=trigger).start()
    except SPARK_FAULTS as fault:
        raise StreamError(
            f"Spark does not start stream {stream.name}: {first_line(fault)}", "SKIMQL_STREAM_FAILED"
        ) from fault
    return Run(stream, query, batches, lock, faults, stopping, busy)


def _taken(batches: Batches[Any], frame: DataFrame, batch: int, files: Sequence[str]) -> bool:
    """Whether a batch was new; where it cannot be read for what its files are, they are told."""
    try:
        return batches(frame, batch)
    except DataError as fault:
        other = other_types(batches.stream, batch, files)
        if other is None:
            raise
        raise other from fault


def _watch(run: Run) -> None:
    """When a stream has ended, for whatever reason, it runs no more, and why it did is kept."""
    with contextlib.suppress(Py4JError, OSError):
        try:
            run.query.awaitTermination()
        except SPARK_FAULTS as fault:
            if not run.faults and not run.stopping.is_set():
                with contextlib.suppress(SkimqlError):
                    tell_fault(run.batches.catalog, run.stream, first_line(fault))
    run.lock.release()


def frame_of(spark: SparkSession, stream: StoredStream, given: DataFrame | None = None) -> DataFrame:
    """The streaming DataFrame of a stream; `given` is the user's own.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_FRAME`` if it is one that this session was not given.
    """
    if stream.format == FRAME:
        if given is None:
            raise StreamError(
                f"stream {stream.name} is a DataFrame that this session does not have",
                "SKIMQL_STREAM_FRAME",
                hint=f'session.stream("{stream.name}", df), then RESUME',
            )
        return rows(stream, moved(given, spark))
    if stream.format == KAFKA:
        return deduplicated(stream, rows(stream, messages(spark, stream)))
    reader = spark.readStream.format(stream.format).options(**stream.options)
    if stream.format == "rate":
        return reader.load()
    return deduplicated(stream, whole_rows(reader, stream, stream.source))


def _refuse_other_settings(context: Context, stream: StoredStream) -> None:
    here = context.environment.circumstances()
    wanted = (stream.ansi, stream.time_zone, stream.settings)
    if (here.ansi, here.time_zone, here.settings) == wanted:
        return
    before, after = (
        {ANSI: str(a).lower(), TIME_ZONE: z, **dict(s)}
        for a, z, s in (wanted, (here.ansi, here.time_zone, here.settings))
    )
    differing = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
    raise StreamError(
        f"stream {stream.name} was created under other settings of Spark: {', '.join(differing)}",
        "SKIMQL_STREAM_SETTINGS",
        hint="; ".join(f"SET {n} = {before.get(n, '(its default)')}" for n in differing),
    )
