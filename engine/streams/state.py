"""The state of a stream: every synopsis that views have of it, and the last batch whose events they have.

A value that changes batch by batch and knows neither Spark nor files. What is in it depends on the events of each
batch alone: replaying a batch from the state before it gives the same counters, bit for bit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import StreamError
from ...optimizer.domain_partition import DomainPartition
from ...optimizer.plan import Message, Plan, Scan, Synopsis, Weight
from ...parser.join_graph import Query
from ...sketches.samples.key_sample import BatchSample
from ...sketches.samples.sample_sketch import BatchSampleSketch
from ..catalog.streams import StoredStream
from ..synopses import Built, Tally
from . import changes
from .cells import Cell, Split
from .dense_keys import NONE, heaviest, split
from .windows import Windows

BAD_ROW = changes.BAD_ROW
# The parts of the domains of join classes, by the names of the classes.
Domains = tuple[tuple[str, DomainPartition], ...]
READ_AS_TEXT = ("json", "csv", "kafka")


@dataclass(frozen=True, slots=True)
class Summary:
    """One synopsis with what it has, the first batch that is in it, and the keys that may be dense in it."""

    built: Built
    since: int
    dense: NDArray[np.int64] = field(default_factory=lambda: NONE, compare=False)

    @property
    def nbytes(self) -> int:
        """In-memory bytes of the sketch and of the keys."""
        return int(self.built.sketch.nbytes + self.dense.nbytes)


@dataclass(frozen=True, slots=True)
class Sender:
    """What a static table has sent, as far as telling it from another needs, and when it was read (UTC, ISO 8601).

    `checksum` is of the keys and of integer weights; doubles, whose sums depend on their order, are in `total`. Events
    before batch `since` were joined with the table as it was before.
    """

    checksum: str
    total: float
    at: str
    since: int = 0

    @classmethod
    def of(cls, keys: NDArray[np.int64], weights: NDArray[Any], at: str) -> Sender:
        """What was sent: keys, each once in any order, and the weight of each."""
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weights[order]
        integers = weights.dtype == np.int64
        parts = [keys, weights] if integers else [keys]
        text = b"".join(p.astype(p.dtype.newbyteorder("<")).tobytes() for p in parts)
        mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        total = 0.0 if integers else float(np.dot(weights, 1.0 + (mixed >> np.uint64(11)) / 2.0**53))
        return cls(hashlib.sha256(text).hexdigest(), total, at)

    def same(self, other: Sender) -> bool:
        """Whether both have sent the same."""
        return self.checksum == other.checksum and math.isclose(self.total, other.total, rel_tol=1e-9)


@dataclass(frozen=True, slots=True)
class Parts:
    """A synopsis cell by cell, and the first batch that is in it."""

    cells: Mapping[Cell, Built]
    since: int

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all its sketches."""
        return sum(b.sketch.nbytes for b in self.cells.values())


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of the events of a stream, as the windows of a view tell it.

    Attributes
    ----------
    latest : int or None
        The newest event, in microseconds; None before any.
    before : int or None
        The newest event of all batches but the last: by it the last one was told what is too late.
    late : int
        Events that came behind the watermark and were counted, as their pane was there.
    dropped, ahead, untimed : int
        Events that are in no window: whose pane was gone, too far ahead of the others, without a time.
    """

    latest: int | None = None
    before: int | None = None
    late: int = 0
    dropped: int = 0
    ahead: int = 0
    untimed: int = 0


@dataclass(frozen=True, slots=True)
class StreamState:
    """Of one stream, after a whole batch.

    Attributes
    ----------
    id : str
        That of the stream.
    seed : int
        Of all its sketches.
    batch : int or None
        The last batch that it has; None before the first.
    checkpoint : str
        The id that Spark gave the query whose batches it has; empty before the first.
    summaries : mapping of Synopsis to Summary
    messages : mapping of Message to Sender
        What static tables have sent.
    updated : str
        When the last batch came in.
    parts : mapping of (Synopsis, Split) to Parts
        The synopses that are told apart by panes or groups.
    clocks : mapping of Windows to Clock
        How far the time of the events is.
    """

    id: str
    seed: int
    batch: int | None = None
    checkpoint: str = ""
    summaries: Mapping[Synopsis, Summary] = field(default_factory=dict)
    messages: Mapping[Message, Sender] = field(default_factory=dict)
    updated: str = ""
    parts: Mapping[tuple[Synopsis, Split], Parts] = field(default_factory=dict)
    clocks: Mapping[Windows, Clock] = field(default_factory=dict)

    @property
    def next_batch(self) -> int:
        """The batch that it waits for."""
        return 0 if self.batch is None else self.batch + 1

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all its sketches."""
        return sum(s.nbytes for s in self.summaries.values()) + sum(p.nbytes for p in self.parts.values())

    def summary(self, synopsis: Synopsis, seed: int) -> Summary | None:
        """What it has of a synopsis of a seed; nothing hangs on the seed where there is no key."""
        return self.summaries.get(synopsis) if seed == self.seed or not synopsis.attributes else None

    def cells(self, need: tuple[Synopsis, Split], seed: int) -> Parts | None:
        """The same of a synopsis that is told apart."""
        return self.parts.get(need) if seed == self.seed or not need[0].attributes else None

    def tally(self, synopsis: Synopsis) -> Tally:
        """What is known exactly of the tuples of a synopsis."""
        found = self.summaries.get(synopsis)
        return Tally() if found is None else found.built.tally

    def after(
        self,
        batch: int,
        checkpoint: str,
        built: Mapping[Synopsis, Built],
        messages: Mapping[Message, Sender],
        at: str,
        seed: int | None = None,
    ) -> StreamState:
        """The state with the events of a batch; synopses that are not among `built` are not needed any more.

        Of another `seed` than before, sketches by a key begin anew.

        Raises
        ------
        StreamError
            ``SKIMQL_STREAM_OVERFLOW`` if a sum leaves 64 bits, ``SKIMQL_STREAM_TYPE`` if values are of other types
            than before.
        """
        self._refuse_other_tables(messages)
        found = {}
        kept, keys = split(built)
        for synopsis, new in kept.items():
            own = keys.get(synopsis)
            old = self.summary(synopsis, self.seed if seed is None else seed)
            if old is None:
                found[synopsis] = Summary(net(new), batch, heaviest(new.sketch, None, own))
                continue
            whole = added(old.built, new, batch)
            before = getattr(old.built.sketch, "exact", None)
            found[synopsis] = Summary(whole, old.since, heaviest(whole.sketch, before, own, old.dense))
        return replace(
            self,
            seed=self.seed if seed is None else seed,
            batch=batch,
            checkpoint=checkpoint,
            summaries=found,
            messages={
                m: self.messages.get(m, replace(sender, since=batch)) for m, sender in messages.items()
            },
            updated=at,
        )

    def without_senders(self, tables: frozenset[str]) -> StreamState:
        """The state that takes what tables, in small letters, send next for what they have."""
        kept = {m: s for m, s in self.messages.items() if not tables & _tables(m)}
        return self if len(kept) == len(self.messages) else replace(self, messages=kept)

    def read_again(self, synopsis: Synopsis) -> bool:
        """Whether a table that is joined into a synopsis may have been read again after the first batch."""
        joined = {m for s in (*self.summaries, *(s for s, _ in self.parts)) for m in s.messages}
        return any(
            self.messages[m].since > 0 if m in self.messages else m in joined for m in synopsis.messages
        )

    def with_past(
        self, built: Mapping[Synopsis, Built], messages: Mapping[Message, Sender], seed: int
    ) -> StreamState:
        """The state after the same batch, with further synopses of the events of all batches.

        Raises
        ------
        StreamError
            ``SKIMQL_STATIC_CHANGED``, as `after`.
        """
        self._refuse_other_tables(messages)
        kept = {s: f for s, f in self.summaries.items() if seed == self.seed or not s.attributes}
        own, keys = split(built)
        new = {s: Summary(net(b), 0, heaviest(b.sketch, None, keys.get(s))) for s, b in own.items()}
        return replace(
            self,
            seed=seed,
            summaries={**kept, **new},
            messages={**messages, **self.messages},
        )

    def _refuse_other_tables(self, messages: Mapping[Message, Sender]) -> None:
        for message, sender in messages.items():
            before = self.messages.get(message)
            if before is not None and not before.same(sender):
                raise StreamError(
                    f"table {message.table} is another than it was at {before.at}, when its tuples were joined in",
                    "SKIMQL_STATIC_CHANGED",
                    hint="REFRESH the view: later events are joined with the table as it is; or the table as it was,"
                    " and RESUME; or CREATE OR REPLACE STREAM ..., which begins anew",
                )


def _tables(message: Message) -> set[str]:
    return {message.table.lower()}.union(*map(_tables, message.messages))


def net(new: Built) -> Built:
    """What a batch has made of a synopsis as it is kept: of a sample without what was deleted again."""
    sketch: Any = new.sketch
    kept: Any = sketch.net() if isinstance(sketch, (BatchSample, BatchSampleSketch)) else sketch
    return replace(new, sketch=kept)


def added(mine: Built, new: Built, batch: int) -> Built:
    """What there was and what a batch adds; raises as `StreamState.after`."""
    if mine.scale != new.scale or mine.sketch.spec != new.sketch.spec:
        raise StreamError(
            f"values of batch {batch} are of another type than those before",
            "SKIMQL_STREAM_TYPE",
            hint="CREATE OR REPLACE the view over the values as they are now",
        )
    sketch: Any = mine.sketch.copy()
    tally = replace(mine.tally)
    try:
        sketch.merge(new.sketch)
        tally.add(new.tally)
    except (OverflowError, ValueError) as fault:
        raise overflow(batch) from fault
    return Built(sketch, tally, mine.scale)


def total(built: Sequence[Built]) -> Built:
    """Synopses of one kind, one at least, added up."""
    if len(built) == 1:
        return built[0]
    sketch: Any = built[0].sketch.copy()
    tally = replace(built[0].tally)
    try:
        for other in built[1:]:
            sketch.merge(other.sketch)
            tally.add(other.tally)
    except (OverflowError, ValueError) as fault:
        raise StreamError(
            "a sum over a window leaves 64 bits, or the range of DOUBLE",
            "SKIMQL_STREAM_OVERFLOW",
            hint="CREATE OR REPLACE the view with SUM(CAST(... AS DOUBLE))",
        ) from fault
    return Built(sketch, tally, built[0].scale)


def overflow(batch: int) -> StreamError:
    """The error for a sum that does not fit."""
    return StreamError(
        f"a sum leaves 64 bits, or the range of DOUBLE, in batch {batch}; the state is that before it",
        "SKIMQL_STREAM_OVERFLOW",
        hint="CREATE OR REPLACE the view with SUM(CAST(... AS DOUBLE))",
    )


def events(stream: str) -> Synopsis:
    """What counts all events of a stream: its tally has how many there were, and how many of them delete."""
    return Synopsis(stream, None, (), Weight(), "total", 1, 2)


def bad_rows(stream: StoredStream) -> Synopsis | None:
    """What counts the rows that could not be read; None of formats that have none."""
    if stream.format not in READ_AS_TEXT:
        return None
    # Every one weighs 0: the tally has how many there were.
    return Synopsis(stream.name, f"`{BAD_ROW}` IS NOT NULL", (), Weight(), "total", 1, 2)


def times_of(stream: StoredStream, synopses: Iterable[Synopsis] = (), also: Iterable[str] = ()) -> str | None:
    """How often an event counts, as SQL of type BIGINT; a row that could not be read does not.

    `synopses` are those to be built, and `also` what tells them apart: a change record that lacks what they need of it
    fails the scan.
    """
    times = None if stream.times is None else f"coalesce(CAST(({stream.times}) AS BIGINT), 0L)"
    if stream.changes:
        times = changes.times(stream, changes.columns_needed(synopses, also))
    if bad_rows(stream) is None:
        return times
    return f"CASE WHEN `{BAD_ROW}` IS NULL THEN {times or '1L'} ELSE 0L END"


def batch_plan(
    query: Query,
    seed: int,
    stream: StoredStream,
    synopses: Iterable[Synopsis],
    partitions: Domains = (),
) -> Plan:
    """What one pass over a batch builds: the synopses of views, the count of events, and that of bad rows.

    `partitions` are those of all classes of which a synopsis is of a part alone.
    """
    bad = bad_rows(stream)
    counted = (events(stream.name), bad, changes.updates(stream))
    every = tuple(dict.fromkeys([*synopses, *(s for s in counted if s is not None)]))
    check_cells(every, partitions)
    scan = Scan(stream.name, tuple(range(len(every))))
    return Plan(query, seed, every, (scan,), (), (), (), partitions=partitions)


def check_cells(synopses: Iterable[Synopsis], partitions: Domains) -> None:
    """Raise ValueError unless each synopsis of a part is of one that there is: it would get all tuples else."""
    domains = dict(partitions)
    for s in (s for s in synopses if s.cell):
        counts = [domains[a.class_name].count if a.class_name in domains else 1 for a in s.attributes]
        if len(s.cell) != len(counts) or max(counts) == 1:
            raise ValueError(f"the domains of a sketch of {s.table} have no parts")
        if not all(0 <= part < count for part, count in zip(s.cell, counts, strict=True)):
            raise ValueError(f"a sketch of {s.table} is of a part that its domain has not")
