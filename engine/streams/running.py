"""Streams that run in this process: Spark's queries, each with its checkpoint, its lock and its batches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from py4j.protocol import Py4JError

from ...errors import SkimqlError, StreamError
from ...optimizer.plan import Message, Plan
from ..catalog.catalog import Catalog
from ..catalog.streams import FRAME, StoredStream
from ..execution.build import add_up
from ..execution.explanation import explained
from ..execution.messages import Messages
from ..execution.partial_aggregate import PARTIAL_SCHEMA, task
from ..execution.scan import PreparedScan, prepare
from ..materialized.definition import now
from ..sources.settings_followed import ANSI, TIME_ZONE
from ..spark.checkpoints import write_without_shells
from ..spark.isolation import moved
from ..spark.session import SPARK_FAULTS, first_line
from ..spark.shipping import ship
from ..synopses import Built
from .batches import Batches
from .checkpoint import batch_to_repeat, read_checkpoint, uncommit
from .creating import AVAILABLE_NOW
from .frames import whole_rows
from .past import past_of
from .place import lock_of, stream_folder
from .state import BAD_ROW, READ_AS_TEXT, Sender, batch_plan, times_of
from .store import continuous, tell_fault
from .views import readers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..context import Context
    from ..sources.tables import Frames

_POLL_SECONDS = 0.05
# What a call of a JVM ends with that has died.
_UNREACHED = (*SPARK_FAULTS, Py4JError, OSError)


@dataclass
class SparkBuilder:
    """Makes the synopses of a batch by one action; what static tables send is collected once, when it starts.

    Where Spark's own micro-batches end in partial sketches (`ahead`), the action adds these up alone.
    """

    spark: SparkSession
    tables: Frames
    quarantined: Path
    _messages: Messages | None = field(default=None, repr=False)
    _read_at: str = ""
    _ahead: tuple[Plan, PreparedScan] | None = field(default=None, repr=False)

    def warm(self, plan: Plan) -> None:
        """Collect what static tables send; raises as `Messages`."""
        self._messages, self._read_at = Messages(self.spark, plan, self.tables), now()
        with explained(plan.query.sql, plan.scans[0].table, ()):
            self._messages.joins([s.messages for s in plan.synopses])

    def ahead(self, frame: DataFrame, plan: Plan, times: str | None) -> DataFrame:
        """The partial sketches of each micro-batch of a streaming DataFrame.

        So Spark reads the columns alone that are needed, and plans a batch once: what `foreachBatch` gives has every
        column of the stream, row by row.
        """
        with _told(plan):
            prepared = self._prepared(frame, plan, times)
        self._ahead = plan, prepared
        return _partials(prepared)

    def build(
        self, frame: DataFrame, plan: Plan, times: str | None
    ) -> tuple[Sequence[Built], Mapping[Message, Sender]]:
        """See `Builder`."""
        assert self._messages is not None, "warmed"
        with _told(plan):
            if self._ahead is None:
                built_by, prepared = plan, self._prepared(frame, plan, times)
                frame = _partials(prepared)
            else:
                built_by, prepared = self._ahead
            # In the thread of the stream, so that stopping it cancels the job.
            parts = add_up(prepared, frame.toArrow().to_pylist())
        wanted = {m for s in plan.synopses for m in _all(s.messages)}
        senders = {
            m: Sender.of(k.to_numpy(), w.to_numpy(), self._read_at)
            for m, k, w in self._messages.sent()
            if m in wanted
        }
        number = {s: i for i, s in enumerate(built_by.synopses)}
        return [parts[number[s]] for s in plan.synopses], senders

    def _prepared(self, frame: DataFrame, plan: Plan, times: str | None) -> PreparedScan:
        assert self._messages is not None, "warmed"
        return prepare(plan, plan.scans[0], frame, self._messages, times)

    def quarantine(self, frame: DataFrame, batch: int) -> None:
        """See `Builder`; a second action, where there are such rows."""
        from pyspark.sql import functions as F

        bad = frame.where(F.col(f"`{BAD_ROW}`").isNotNull())
        reason = F.lit("the row does not parse as the columns of the stream")
        rows = bad.select(
            F.col(f"`{BAD_ROW}`").alias("row"), reason.alias("reason"), F.col("`skimql file`").alias("file")
        )
        rows.coalesce(1).write.mode("overwrite").json(str(self.quarantined / f"batch={batch}"))


def _partials(prepared: PreparedScan) -> DataFrame:
    return prepared.columns.mapInArrow(task(prepared.sketches, prepared.feeds), PARTIAL_SCHEMA)


def _told(plan: Plan) -> AbstractContextManager[None]:
    """Faults of a plan as errors of ours."""
    return explained(plan.query.sql, plan.scans[0].table, [a for s in plan.synopses for a in s.attributes])


def _all(messages: Sequence[Message]) -> list[Message]:
    return [m for message in messages for m in (message, *_all(message.messages))]


@dataclass
class Run:
    """One stream that runs, or has run, in this process."""

    stream: StoredStream
    query: StreamingQuery
    batches: Batches[Any]
    lock: FileLock
    faults: list[SkimqlError] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

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
    """The streams that one session runs."""

    _runs: dict[str, Run] = field(default_factory=dict)
    frames: dict[str, DataFrame] = field(default_factory=dict)

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
        needed = dict.fromkeys(s for v in views for s in v.asked_of(stream.name))
        plan = batch_plan(views[0].query, views[0].view.seed, stream, needed)
        ship(context.spark)
        write_without_shells(context.spark)
        builder.warm(plan)
        self.stop(name)
        lock = lock_of(own, stream)
        try:
            lock.acquire()
        except Timeout as fault:
            raise StreamError(
                f"another process runs stream {name}",
                "SKIMQL_STREAM_RUNS",
                hint="PAUSE there; SHOW QUERIES tells",
            ) from fault
        try:
            frame = frame_of(context.spark, stream, self.frames.get(name.lower()))
            batches = Batches(own, stream.name, builder)
            _catch_up(batches, context.spark, folder / "checkpoint")
            if stream.format not in READ_AS_TEXT:  # of those, rows that cannot be read are asked for as well
                frame = builder.ahead(frame, plan, times_of(stream))
            run = _started(batches, stream, frame, trigger, folder / "checkpoint", lock)
        except BaseException:
            lock.release()
            raise
        self._runs[name.lower()] = run
        threading.Thread(target=_watch, args=(run,), name=f"stream {name}", daemon=True).start()
        return run

    def stop(self, name: str) -> bool:
        """Stop a stream; whether it ran here."""
        run = self._runs.pop(name.lower(), None)
        if run is None:
            return False
        active = run.active
        run.stop()
        return active

    def stop_all(self) -> None:
        """Stop whatever runs."""
        for name in list(self._runs):
            self.stop(name)


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
) -> Run:
    """Spark's query on a stream, once state and checkpoint are seen to belong together."""
    loaded = batches.start()
    again = batch_to_repeat(stream.name, loaded.state, read_checkpoint(checkpoint), lost=bool(loaded.lost))
    if again is not None:
        uncommit(checkpoint, again)
    faults: list[SkimqlError] = []
    stopping = threading.Event()

    def take(frame: DataFrame, batch: int) -> None:
        batches.checkpoint = batches.checkpoint or read_checkpoint(checkpoint).id
        try:
            batches(frame, batch)
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
    return Run(stream, query, batches, lock, faults, stopping)


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
        return moved(given, spark)
    reader = spark.readStream.format(stream.format).options(**stream.options)
    if stream.format == "rate":
        return reader.load()
    return whole_rows(reader, stream, stream.source)


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
