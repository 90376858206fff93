"""A topic of Kafka as a streaming source of Spark in Python, over `confluent-kafka`; for where Spark's own has no jar.

A partition of the topic is one task. Which offsets a batch has, Spark keeps in the checkpoint; no group commits
anything. Offsets that the broker has no more are an error, not a gap.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

# Before Spark 4.2 sources in Python have no limits.
LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None

if TYPE_CHECKING:
    from confluent_kafka import Consumer

if TYPE_CHECKING or LIMITS:
    from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
else:
    SupportsTriggerAvailableNow = object

NAME = "skimql_kafka"
SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT"
_ARROW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
_SECONDS = 10.0  # for one answer of a broker
_PATIENCE = 6  # answers without a message
_MESSAGES = 10_000  # of one Arrow batch


def shares(lags: Mapping[str, int], most: int) -> dict[str, int]:
    """How many messages of each partition a batch of at most so many takes: evenly, what one lacks goes to others."""
    taken, left = {}, most
    for number, (partition, lag) in enumerate(sorted(lags.items(), key=lambda pair: (pair[1], pair[0]))):
        taken[partition] = min(lag, left // (len(lags) - number))
        left -= taken[partition]
    return taken


@dataclass
class Range(InputPartition):
    """The offsets of one partition that a task reads: from `start`, before `end`."""

    partition: int
    start: int
    end: int


class KafkaSource(DataSource):
    """The source; options: `subscribe`, `kafka.*` for librdkafka, `startingoffsets`, `maxoffsetspertrigger`."""

    @classmethod
    def name(cls) -> str:
        """Under which Spark knows it."""
        return NAME

    def schema(self) -> str:
        """Of the messages; as Spark's own source has them."""
        return SCHEMA

    def streamReader(self, schema: Any) -> TopicReader:
        """What Spark asks for offsets and messages."""
        return TopicReader(dict(self.options))


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One topic. Offsets are those of Spark's own source: by topic and partition."""

    def __init__(self, options: Mapping[str, str]) -> None:
        options = {n.lower(): v for n, v in options.items()}
        self.topic = options["subscribe"]
        self.config = {n.removeprefix("kafka."): v for n, v in options.items() if n.startswith("kafka.")}
        self.earliest = options.get("startingoffsets", "earliest") == "earliest"
        most = options.get("maxoffsetspertrigger")
        self.most = None if most is None else int(most)
        self._last: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, dict[str, int]]:
        """Where a stream begins that has no checkpoint."""
        return {self.topic: {p: low if self.earliest else high for p, (low, high) in self._known().items()}}

    def getDefaultReadLimit(self) -> Any:
        """At most so many messages a batch."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        return ReadAllAvailable() if self.most is None else ReadMaxRows(self.most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take what is there now, and nothing that comes later."""
        self._last = {p: high for p, (_, high) in self._known().items()}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, dict[str, int]]:
        """Where the next batch ends."""
        known = self._known()
        ends = {p: high for p, (_, high) in known.items()}
        if self._last is not None:
            ends = {p: min(end, self._last[p]) for p, end in ends.items() if p in self._last}
        if start is None:
            return {self.topic: ends}
        begins = {p: int(offset) for p, offset in start[self.topic].items()}
        for partition, begin in begins.items():
            low, high = known.get(partition, (0, 0))
            if not low <= begin <= high:
                raise ValueError(
                    f"partition {partition} of topic {self.topic} has offsets {low} to {high}, and the stream is at"
                    f" {begin}: messages are lost, or the topic is another"
                )
        ends = {p: max(ends.get(p, 0), begins.get(p, 0)) for p in {**begins, **ends}}
        if LIMITS and isinstance(limit, ReadMaxRows):
            taken = shares({p: end - begins.get(p, 0) for p, end in ends.items()}, limit.max_rows)
            ends = {p: begins.get(p, 0) + n for p, n in taken.items()}
        return {self.topic: ends}

    def partitions(self, start: Any, end: Any) -> Sequence[Range]:
        """One task for each partition with messages."""
        begins = start[self.topic]
        ranges = [Range(int(p), int(begins.get(p, 0)), int(n)) for p, n in sorted(end[self.topic].items())]
        return [r for r in ranges if r.end > r.start]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages of a range, as Arrow batches."""
        from confluent_kafka import KafkaError, TopicPartition

        place = partition.partition
        with self._consumer() as consumer:
            low, _ = consumer.get_watermark_offsets(TopicPartition(self.topic, place), timeout=_SECONDS)
            if low > partition.start:
                raise ValueError(f"offsets {partition.start} to {low - 1} of {self.topic}/{place} are gone")
            consumer.assign([TopicPartition(self.topic, place, partition.start)])
            at, waited = partition.start, 0
            while at < partition.end:
                messages = consumer.consume(min(_MESSAGES, partition.end - at), timeout=_SECONDS)
                found = []
                for message in messages:
                    fault = message.error()
                    if fault is None:
                        at = int(message.offset() or 0) + 1
                        if at <= partition.end:
                            found.append(message)
                    elif fault.code() == KafkaError._PARTITION_EOF:
                        at = max(at, int(message.offset() or 0))
                    else:
                        raise ValueError(f"Kafka says of {self.topic}/{place}: {fault.str()}")
                waited = 0 if found else waited + 1
                if waited > _PATIENCE:
                    raise ValueError(f"no message of {self.topic}/{place} from offset {at} came in time")
                if found:
                    yield self._batch(found)

    def commit(self, end: Any) -> None:
        """Nothing: the checkpoint knows."""

    def stop(self) -> None:
        """Nothing is held open."""

    def _batch(self, messages: Sequence[Any]) -> pa.RecordBatch:
        columns = [
            [m.key() for m in messages],
            [m.value() for m in messages],
            [self.topic] * len(messages),
            [m.partition() for m in messages],
            [m.offset() for m in messages],
        ]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)

    def _known(self) -> dict[str, tuple[int, int]]:
        """The first offset that a partition has, and the one that the next message gets."""
        from confluent_kafka import TopicPartition

        with self._consumer() as consumer:
            found = consumer.list_topics(self.topic, timeout=_SECONDS).topics[self.topic]
            if found.error is not None or not found.partitions:
                raise ValueError(f"there is no topic {self.topic}: {found.error}")
            own = [TopicPartition(self.topic, p) for p in sorted(found.partitions)]
            return {str(p.partition): consumer.get_watermark_offsets(p, timeout=_SECONDS) for p in own}

    @contextlib.contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        from confluent_kafka import Consumer

        ours = {"group.id": "skimql", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({**self.config, **ours, "auto.offset.reset": "error"})
        try:
            yield consumer
        finally:
            consumer.close()
