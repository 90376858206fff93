"""Streams that run in this process: Spark's queries, each with its checkpoint, its lock and its batches."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ...errors import SkimqlError, StreamError
from ...optimizer.plan import Message, Plan
from ..catalog.catalog import Catalog
from ..catalog.folder import LocalFolder
from ..catalog.streams import StoredStream
from ..execution.build import add_up
from ..execution.explanation import explained
from ..execution.messages import Messages
from ..execution.partial_aggregate import PARTIAL_SCHEMA, task
from ..execution.scan import prepare
from ..materialized.definition import now
from ..sources.settings_followed import ANSI, TIME_ZONE
from ..spark.session import SPARK_FAULTS, first_line
from ..spark.shipping import ship
from ..synopses import Built
from .batches import Batches
from .checkpoint import batch_to_repeat, read_checkpoint, uncommit
from .state import BAD_ROW, READ_AS_TEXT, Sender, batch_plan
from .store import continuous, tell_fault
from .views import readers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..context import Context
    from ..sources.tables import Frames

FOLDER = "streams"  # of the catalog's; in it a folder of each stream, by its id
DEFAULT_TRIGGER = "1 second"
AVAILABLE_NOW = "available now"
_POLL_SECONDS = 0.2


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
        self, frame: DataFrame, plan: Plan, times: str | None
    ) -> tuple[Sequence[Built], Mapping[Message, Sender]]:
        """See `Builder`."""
        assert self._messages is not None, "warmed"
        scan = plan.scans[0]
        with explained(plan.query.sql, scan.table, [a for s in plan.synopses for a in s.attributes]):
            prepared = prepare(plan, scan, frame, self._messages, times)
            # In the thread of the stream, so that stopping it cancels the job.
            rows = prepared.columns.mapInArrow(task(prepared.sketches, prepared.feeds), PARTIAL_SCHEMA).toArrow()
            parts = add_up(prepared, rows.to_pylist())
        wanted = {m for s in plan.synopses for m in _all(s.messages)}
        senders = {
            m: Sender.of(k.to_numpy(), w.to_numpy(), self._read_at)
            for m, k, w in self._messages.sent()
            if m in wanted
        }
        return [parts[i] for i in range(len(plan.synopses))], senders

    def quarantine(self, frame: DataFrame, batch: int) -> None:
        """See `Builder`; a second action, where there are such rows."""
        from pyspark.sql import functions as F

        bad = frame.where(F.col(f"`{BAD_ROW}`").isNotNull())
        reason = F.lit("the row does not parse as the columns of the stream")
        rows = bad.select(F.col(f"`{BAD_ROW}`").alias("row"), reason.alias("reason"), F.col("`skimql file`").alias("file"))
        rows.coalesce(1).write.mode("overwrite").json(str(self.quarantined / f"batch={batch}"))


def _all(messages: Sequence[Message]) -> list[Message]:
    return [m for message in messages for m in (message, *_all(message.messages))]


@dataclass
class Run:
    """One stream that runs, or has run, in this process."""

    stream: StoredStream
    query: StreamingQuery
    batches: Batches[Any]
    lock: FileLock
    fault: SkimqlError | None = None

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return bool(self.query.isActive)

    def stop(self) -> None:
        """End it; a batch that was on its way is read again by the next start."""
        with contextlib.suppress(*SPARK_FAULTS):
            self.query.stop()
        self.lock.release()

    def wait(self) -> None:
        """Until it has taken all that was there; raises what stopped it."""
        try:
            while not self.query.awaitTermination(_POLL_SECONDS):
                pass
        except KeyboardInterrupt:
            self.stop()
            raise
        except SPARK_FAULTS as fault:
            self.lock.release()
            raise self.fault or StreamError(
                f"stream {self.stream.name} stopped: {first_line(fault)}", "SKIMQL_STREAM_FAILED"
            ) from fault
        self.lock.release()


@dataclass
class Runs:
    """The streams that one session runs."""

    _runs: dict[str, Run] = field(default_factory=dict)

    def of(self, stream: str) -> Run | None:
        """The run of a stream that goes on."""
        run = self._runs.get(stream.lower())
        return run if run is not None and run.active else None

    def fault(self, stream: str) -> SkimqlError | None:
        """Why the last run of a stream ended."""
        run = self._runs.get(stream.lower())
        return None if run is None else run.fault

    def start(self, context: Context, name: str, trigger: str) -> Run:
        """Start a stream, or start it anew with the views that it has now.

        Raises
        ------
        StreamError
            ``SKIMQL_STREAM_RUNS`` if another process runs it; ``SKIMQL_CHECKPOINT_MISMATCH``;
            ``SKIMQL_STREAM_SETTINGS`` if the Spark session would read its batches in another way.
        """
        self.stop(name)
        folder = stream_folder(context.catalog, continuous(context.catalog).streams[name.lower()])
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as fault:
            raise StreamError(
                f"another process runs stream {name}", "SKIMQL_STREAM_RUNS", hint="PAUSE there; SHOW QUERIES tells"
            ) from fault
        try:
            run = self._started(context, name, trigger, folder, lock)
        except BaseException:
            lock.release()
            raise
        self._runs[name.lower()] = run
        return run

    def _started(self, context: Context, name: str, trigger: str, folder: Path, lock: FileLock) -> Run:
        own = Catalog(context.catalog.folder)
        stream = continuous(own).streams[name.lower()]
        spark, checkpoint = context.spark, folder / "checkpoint"
        _refuse_other_settings(context, stream)
        builder = SparkBuilder(spark, context.tables, folder / "quarantine")
        batches = Batches(own, stream.name, builder)
        loaded = batches.start()
        again = batch_to_repeat(stream.name, loaded.state, read_checkpoint(checkpoint), lost=bool(loaded.lost))
        if again is not None:
            uncommit(checkpoint, again)
        views = readers(continuous(own), stream.name)
        needed = dict.fromkeys(s for v in views for s in v.synopses_of(stream.name))
        ship(spark)
        builder.warm(batch_plan(views[0].query, views[0].view.seed, stream, needed))
        found: list[Run] = []
        faults: list[SkimqlError] = []

        def take(frame: DataFrame, batch: int) -> None:
            batches.checkpoint = batches.checkpoint or read_checkpoint(checkpoint).id
            try:
                batches(frame, batch)
            except SkimqlError as fault:
                faults.append(fault)
                for run in found:
                    run.fault = fault
                tell_fault(own, stream, fault.message)
                raise

        writer = frame_of(spark, stream).writeStream.foreachBatch(take).outputMode("append")
        writer = writer.option("checkpointLocation", str(checkpoint))
        asked = {"availableNow": True} if trigger == AVAILABLE_NOW else {"processingTime": trigger}
        try:
            query = writer.trigger(**asked).start()
        except SPARK_FAULTS as fault:
            raise StreamError(
                f"Spark does not start stream {stream.name}: {first_line(fault)}", "SKIMQL_STREAM_FAILED"
            ) from fault
        run = Run(stream, query, batches, lock)
        found.append(run)
        run.fault = faults[0] if faults else None
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


def stream_folder(catalog: Catalog, stream: StoredStream) -> Path:
    """Where a stream has its checkpoint, lock and bad rows.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_CATALOG`` if the catalog is no local folder.
    """
    if not isinstance(catalog.folder, LocalFolder):
        raise no_folder(catalog)
    return Path(catalog.folder.path) / FOLDER / stream.id


def no_folder(catalog: Catalog) -> StreamError:
    """The error for a catalog that keeps no streams."""
    where = f"in {catalog.where}" if catalog.lasting else "in memory"
    return StreamError(
        f"streams need a catalog in a local folder, and this session has one {where}",
        "SKIMQL_STREAM_CATALOG",
        hint="skimql.Session(catalog='folder')",
    )


def is_running(catalog: Catalog, stream: StoredStream) -> bool:
    """Whether some process runs a stream."""
    path = stream_folder(catalog, stream) / "lock"
    if not path.exists():
        return False
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def frame_of(spark: SparkSession, stream: StoredStream) -> DataFrame:
    """The streaming DataFrame of a stream."""
    from pyspark.sql import functions as F

    reader = spark.readStream.format(stream.format).options(**stream.options)
    if stream.format == "rate":
        return reader.load()
    ddl = stream.ddl
    if stream.format in READ_AS_TEXT:
        # One row set for all queries: no row is read only as far as a query needs it.
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=BAD_ROW, columnPruning="false")
        ddl = f"{ddl}, `{BAD_ROW}` STRING"
    frame = reader.schema(ddl).load(stream.source)
    if stream.format in READ_AS_TEXT:
        frame = frame.select("*", F.col("_metadata.file_path").alias("skimql file"))
    return frame


def _refuse_other_settings(context: Context, stream: StoredStream) -> None:
    here = context.environment.circumstances()
    wanted = (stream.ansi, stream.time_zone, stream.settings)
    if (here.ansi, here.time_zone, here.settings) == wanted:
        return
    before, after = ({ANSI: str(a).lower(), TIME_ZONE: z, **dict(s)} for a, z, s in (wanted, (here.ansi, here.time_zone, here.settings)))
    differing = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
    raise StreamError(
        f"stream {stream.name} was created under other settings of Spark: {', '.join(differing)}",
        "SKIMQL_STREAM_SETTINGS",
        hint="; ".join(f"SET {n} = {before.get(n, '(its default)')}" for n in differing),
    )
