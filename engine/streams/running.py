"""Streams that run in this process: Spark's queries, each with its checkpoint, its lock and its batches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from py4j.protocol import Py4JError

from ...errors import SkimqlError, StreamError
from ...optimizer.plan import Message, Plan
from ..catalog.catalog import Catalog
from ..catalog.streams import DEBEZIUM, FRAME, StoredStream, StoredView
from ..execution.build import add_up
from ..execution.explanation import explained
from ..execution.messages import Messages
from ..execution.partial_aggregate import PARTIAL_SCHEMA, group_column, task
from ..execution.scan import prepare
from ..materialized.definition import now
from ..sources.settings_followed import ANSI, TIME_ZONE
from ..spark.isolation import moved
from ..spark.session import SPARK_FAULTS, first_line
from ..spark.shipping import ship
from .batches import Batches
from .cells import CELL_SCHEMA, Cut, add_up_cells, cell_task
from .changes import ENVELOPES_AS_TEXT, FILE, OFFSET, REASON, image_schema, rows
from .checkpoint import batch_to_repeat, read_checkpoint, uncommit
from .creating import AVAILABLE_NOW
from .dedup import deduplicated
from .kafka import KAFKA, messages
from .listeners import Listener, tell
from .place import held_by, lock_of, say_holder, stream_folder
from .quarantine import write_rows
from .state import BAD_ROW, READ_AS_TEXT, Sender, batch_plan
from .store import continuous, tell_fault
from .views import readers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..context import Context
    from ..sources.tables import Frames

_POLL_SECONDS = 0.05
# The column with the file that a row of text was in.
# What a call of a JVM ends with that has died.
_UNREACHED = (*SPARK_FAULTS, Py4JError, OSError)


@dataclass
class SparkBuilder:
    """Makes the synopses of a batch by one action; what static tables send is collected once, when it starts."""

    spark: SparkSession
    tables: Frames
    quarantined: Path
    _messages: Messages | None = field(default=None, repr=False)
    _read_at: str = ""

    def warm(self, plan: Plan) -> None:
        """Collect what static tables send; raises as `Messages`."""
        self._messages, self._read_at = Messages(self.spark, plan, self.tables), now()
        with explained(plan.query.sql, plan.scans[0].table, ()):
            self._messages.joins([s.messages for s in plan.synopses])

    def build(
        self, frame: DataFrame, plan: Plan, times: str | None, cuts: tuple[Cut, ...]
    ) -> tuple[Sequence[Any], Mapping[Message, Sender]]:
        """See `Builder`."""
        assert self._messages is not None, "warmed"
        scan = plan.scans[0]
        with explained(plan.query.sql, scan.table, [a for s in plan.synopses for a in s.attributes]):
            prepared = prepare(plan, scan, _cut(frame, cuts), self._messages, times)
            if cuts:
                work = cell_task(prepared.sketches, prepared.feeds, cuts), CELL_SCHEMA
            else:
                work = task(prepared.sketches, prepared.feeds), PARTIAL_SCHEMA
            # In the thread of the stream, so that stopping it cancels the job.
            rows = prepared.columns.mapInArrow(*work).toArrow().to_pylist()
            parts = add_up_cells(prepared, cuts, rows) if cuts else add_up(prepared, rows)
        wanted = {m for s in plan.synopses for m in _all(s.messages)}
        senders = {
            m: Sender.of(k.to_numpy(), w.to_numpy(), self._read_at)
            for m, k, w in self._messages.sent()
            if m in wanted
        }
        return [parts[i] for i in range(len(plan.synopses))], senders

    def pass_over(self, frame: DataFrame) -> None:
        """See `Builder`."""
        frame.write.format("noop").mode("append").save()

    def quarantine(self, frame: DataFrame, batch: int, ahead: Mapping[str, int]) -> None:
        """See `Builder`; a second action, where there are such rows."""
        from pyspark.sql import functions as F

        own = [n for n in frame.columns if not n.startswith("skimql ")]
        text = F.to_json(F.struct(*(F.col(_quoted(n)) for n in own)))
        rows = [
            (_after(frame, n, latest), text, F.lit(f"{n} is too far ahead of the others"))
            for n, latest in ahead.items()
        ]
        if BAD_ROW in frame.columns:
            bad, reason = (
                F.col(_quoted(BAD_ROW)),
                F.lit("the row does not parse as the columns of the stream"),
            )
            rows = [(w & bad.isNull(), t, r) for w, t, r in rows]
            rows.append((bad.isNotNull(), bad, F.col(_quoted(REASON)) if REASON in frame.columns else reason))
        file = F.col(_quoted(FILE)) if FILE in frame.columns else F.lit(None).cast("string")
        offset = [F.col(_quoted(OFFSET)).alias("offset")] if OFFSET in frame.columns else []
        parts = [
            frame.where(which).select(row.alias("row"), reason.alias("reason"), file.alias("file"), *offset)
            for which, row, reason in rows
        ]
        write_rows(self.quarantined, batch, reduce(lambda a, b: a.unionByName(b), parts).toArrow())


def _after(frame: DataFrame, time: str, latest: int) -> Column:
    """Which events are later than a moment in microseconds."""
    from pyspark.sql import functions as F

    if frame.schema[time].dataType.typeName() == "timestamp":
        return F.col(_quoted(time)) > F.timestamp_micros(F.lit(latest))
    wall = datetime(1970, 1, 1) + timedelta(microseconds=latest)
    return F.col(_quoted(time)) > F.expr(f"TIMESTAMP_NTZ'{wall.isoformat(' ')}'")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _cut(frame: DataFrame, cuts: Sequence[Cut]) -> DataFrame:
    """The events with a column for each cut, of their time and the values of their groups."""
    from pyspark.sql import functions as F

    columns = {}
    for number, cut in enumerate(cuts):
        split = cut.split
        times = [] if split.windows is None else [F.col(_quoted(split.windows.time))]
        values = [c.alias(f"c{n}") for n, c in enumerate([*times, *map(F.expr, split.groups)])]
        columns[group_column(number)] = F.struct(*values)
    return frame.withColumns(columns) if columns else frame


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
        needed = dict.fromkeys(s for v in views for s, _ in v.needs_of(stream.name))
        ship(context.spark)
        builder.warm(batch_plan(views[0].query, views[0].view.seed, stream, needed))
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
            run = _started(
                Batches(own, stream.name, builder),
                stream,
                frame,
                trigger,
                folder / "checkpoint",
                lock,
                self.listeners,
            )
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
            spark.catalog.dropTempView(view.name)

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
            if batches(frame, batch):
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
    from pyspark.sql import functions as F

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
    ddl = stream.ddl if stream.changes != DEBEZIUM else image_schema(stream)
    if stream.changes == DEBEZIUM and stream.format in ENVELOPES_AS_TEXT:
        reader, ddl = reader.format("text"), "value STRING"
    elif stream.format in READ_AS_TEXT:
        # One row set for all queries: no row is read only as far as a query needs it.
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=BAD_ROW, columnPruning="false")
        ddl = f"{ddl}, `{BAD_ROW}` STRING"
    frame = reader.schema(ddl).load(stream.source)
    if stream.format in READ_AS_TEXT:
        frame = frame.select("*", F.col("_metadata.file_path").alias(FILE))
    return deduplicated(stream, rows(stream, frame))


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
