"""The synopses of a batch by Spark: one action, whose partial sketches are added up here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...optimizer.plan import Message, Plan
from ..execution.build import add_up
from ..execution.explanation import explained
from ..execution.messages import Messages
from ..execution.partial_aggregate import PARTIAL_SCHEMA, group_column, task
from ..execution.scan import PreparedScan, prepare
from ..materialized.definition import now
from ..spark.jobs import twice_if_worker_dies
from ..spark.worker import in_worker
from .cells import CELL_SCHEMA, Cut, add_up_cells, cell_task
from .changes import FILE, OFFSET, REASON
from .quarantine import write_rows
from .state import BAD_ROW, Sender

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ..sources.tables import Frames

Result = TypeVar("Result")


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
        self, frame: DataFrame, plan: Plan, times: str | None, cuts: tuple[Cut, ...]
    ) -> tuple[Sequence[Any], Mapping[Message, Sender]]:
        """See `Builder`."""
        assert self._messages is not None, "warmed"
        with _told(plan):
            if self._ahead is None:
                built_by, prepared = plan, self._prepared(_cut(frame, cuts), plan, times)
                frame = _partials(prepared, cuts)
            else:
                assert not cuts, "what is told apart hangs on the state before"
                built_by, prepared = self._ahead
            # In the thread of the stream, so that stopping it cancels the job.
            sent = _repeated(frame.toArrow).to_pylist()
            parts = add_up_cells(prepared, cuts, sent) if cuts else add_up(prepared, sent)
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

    def pass_over(self, frame: DataFrame) -> None:
        """See `Builder`."""
        _repeated(frame.write.format("noop").mode("append").save)

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
        aside = reduce(lambda a, b: a.unionByName(b), parts)
        write_rows(self.quarantined, batch, _repeated(aside.toArrow))


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


def _partials(prepared: PreparedScan, cuts: tuple[Cut, ...] = ()) -> DataFrame:
    if cuts:
        return prepared.columns.mapInArrow(
            in_worker(cell_task(prepared.sketches, prepared.feeds, cuts)), CELL_SCHEMA
        )
    return prepared.columns.mapInArrow(in_worker(task(prepared.sketches, prepared.feeds)), PARTIAL_SCHEMA)


def _repeated(action: Callable[[], Result]) -> Result:
    """An action of a batch; Spark itself repeats no task on one machine, and a stream is to outlive a worker."""
    return twice_if_worker_dies("a batch", action, "RESUME: the batch is read again")


def _told(plan: Plan) -> AbstractContextManager[None]:
    """Faults of a plan as errors of ours."""
    return explained(plan.query.sql, plan.scans[0].table, [a for s in plan.synopses for a in s.attributes])


def _all(messages: Sequence[Message]) -> list[Message]:
    return [m for message in messages for m in (message, *_all(message.messages))]
