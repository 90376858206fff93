"""Exact messages: Spark aggregates the sender by its key, and joins the result into the receiver's scan as a weight.

A message is collected before it is used, so that its size is known and bounded; the receiver's rows are never
multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...optimizer.operators import MESSAGE, relation_name
from ...optimizer.plan import Message, Plan
from ..observed import Observation, observed
from ..sources.filters import filtered
from ..sources.keys import key_column, key_text
from ..sources.tables import Frames
from ..sources.weights import WeightColumn, product, slack_total, total, weight_column
from ..spark.arrow_frames import frame_of
from ..spark.jobs import ProgressListener, run_job
from .message_limit import DEFAULT_LIMIT_BYTES, MessageTooLarge


@dataclass(frozen=True, slots=True)
class Sent:
    """A message: its rows (None if it stays with Spark), and the column with the weight of each of its variants."""

    rows: pa.Table | None
    frame: DataFrame
    weights: dict[Message, WeightColumn]


@dataclass(frozen=True, slots=True)
class Join:
    """A message as a join: its frame, its key, the condition as SQL, and its kind, inner or left."""

    relation: Message
    frame: DataFrame
    key: str
    condition: str
    kind: str


class Messages:
    """The exact messages of a plan, each sent when first needed.

    Parameters
    ----------
    spark, plan, tables, listener
        As for `maintain.build`.
    limit_bytes : int or None
        Bytes that one message may take, at 8 bytes a key and 8 a weight. None leaves messages with Spark, which joins
        them as it sees fit, whatever their size.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        tables: Frames,
        listener: ProgressListener | None = None,
        limit_bytes: int | None = DEFAULT_LIMIT_BYTES,
    ) -> None:
        self._spark, self._tables, self._sql = spark, tables, plan.query.sql
        self._listener, self._limit = listener, limit_bytes
        self._variants: dict[Message, dict[Message, None]] = {}
        self._sent: dict[Message, Sent] = {}
        for synopsis in plan.synopses:
            self._register(synopsis.messages)

    @property
    def nbytes(self) -> int:
        """Bytes of all messages that have arrived."""
        return sum(s.rows.nbytes for s in self._sent.values() if s.rows is not None)

    def joined(
        self, frame: DataFrame, receivers: Sequence[tuple[Message, ...]]
    ) -> tuple[DataFrame, dict[Message, Column]]:
        """The frame with every message joined in, and of each relation whether the tuple has a partner.

        Parameters
        ----------
        frame : DataFrame
            The receiving table.
        receivers : sequence of tuples of Message
            What each virtual relation of the table receives. A message that all of them receive drops the tuples
            without a partner; of the others a column tells.

        Raises
        ------
        BudgetExceeded
            If a message takes more bytes than the limit.
        """
        present: dict[Message, Column] = {}
        for join in self.joins(receivers):
            frame = frame.join(join.frame, F.expr(join.condition), join.kind)
            if join.kind == "left":
                present[join.relation] = F.col(join.key).isNotNull()
        return frame, present

    def joins(self, receivers: Sequence[tuple[Message, ...]]) -> list[Join]:
        """The joins of `joined`; raises as it does."""
        relations = [{m.relation for m in messages} for messages in receivers]
        found = []
        for relation in dict.fromkeys(m.relation for messages in receivers for m in messages):
            sent = self._receive(relation)
            key = f"`{self._name(relation, 'key')}`"
            kind = "inner" if all(relation in r for r in relations) else "left"
            frame = sent.frame if sent.rows is None else F.broadcast(sent.frame)
            found.append(Join(relation, frame, key, f"{key_text(relation.receiver)} = {key}", kind))
        return found

    def weights(self, messages: Iterable[Message]) -> list[WeightColumn]:
        """The weight that each message adds to a tuple of the joined frame; 0 without a partner."""
        return [self._sent[m.relation].weights[m] for m in messages]

    def weight_range(self, message: Message) -> tuple[float, float]:
        """The least and the greatest weight of a message that has arrived; unbounded where it stays with Spark."""
        sent = self._sent[message.relation]
        if sent.rows is None:
            return -math.inf, math.inf
        variants = list(self._variants[message.relation])
        column = sent.rows[self._name(message.relation, f"weight {variants.index(message)}")]
        ends, scale = pc.min_max(column), sent.weights[message].scale
        if ends["min"].as_py() is None:
            return 0.0, 0.0
        return min(ends["min"].as_py() / scale, 0.0), max(ends["max"].as_py() / scale, 0.0)

    def sent(self) -> Iterator[tuple[Message, pa.ChunkedArray, pa.ChunkedArray]]:
        """Keys and weights of every message that has arrived, in each of its variants."""
        for relation, found in self._sent.items():
            for number, variant in enumerate(self._variants[relation]):
                if found.rows is not None:
                    weights = found.rows[self._name(relation, f"weight {number}")]
                    yield variant, found.rows[self._name(relation, "key")], weights

    def _register(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._register(message.messages)
            self._variants.setdefault(message.relation, {}).setdefault(message)

    def _receive(self, relation: Message) -> Sent:
        if relation not in self._sent:
            with observed(MESSAGE, relation_name(relation.table, relation.filter)) as seen:
                self._sent[relation] = self._send(relation, list(self._variants[relation]), seen)
        return self._sent[relation]

    def _send(self, relation: Message, variants: Sequence[Message], seen: Observation) -> Sent:
        frame = filtered(self._tables.frame(relation.table), [relation.filter])
        key = self._name(relation, "key")
        frame = frame.where(key_column(relation.sender).isNotNull())
        own = {w: weight_column(frame, w, self._sql) for w in dict.fromkeys(v.weight for v in variants)}
        frame, _ = self.joined(frame, [v.messages for v in variants])
        columns = [product([own[v.weight], *self.weights(v.messages)]) for v in variants]
        names = [self._name(relation, f"weight {n}") for n in range(len(variants))]
        sums = [F.expr(total(c)).alias(n) for c, n in zip(columns, names, strict=True)]
        slacks = {n: s for n, c in zip(names, columns, strict=True) if (s := slack_total(c)) is not None}
        sums += [F.expr(s).alias(f"{n} slack") for n, s in slacks.items()]
        grouped = frame.groupBy(key_column(relation.sender).alias(key)).agg(*sums)
        weights = {
            v: WeightColumn(
                f"coalesce(`{n}`, {_ZEROS[c.dtype]})",
                c.dtype,
                c.scale,
                f"coalesce(`{n} slack`, 0D)" if n in slacks else None,
            )
            for v, c, n in zip(variants, columns, names, strict=True)
        }
        if self._limit is None:
            return Sent(None, grouped, weights)
        most = self._limit // (8 * (1 + len(sums)))
        rows = run_job(
            self._spark, f"message from {relation.table}", grouped.limit(most + 1).toArrow, self._listener
        )
        seen.rows, seen.bytes_held = rows.num_rows, rows.nbytes
        if rows.num_rows > most:
            raise MessageTooLarge(relation, self._limit, self._sql)
        return Sent(rows, frame_of(self._spark, rows), weights)

    def _name(self, relation: Message, part: str) -> str:
        number = list(self._variants).index(relation)
        return f"skimql message {number} {part}"


_ZEROS = {"int64": "0L", "float64": "0D"}
