"""One batch of a stream: skipped if the state has it, else built in one pass, added, and the state replaced.

Nothing is acknowledged before the state is on disk. What is Spark's is behind `Builder`; without Spark the same code
runs on Arrow tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ...errors import DataError, StreamError
from ...optimizer.plan import Message, Plan, Synopsis
from ..catalog.catalog import Catalog
from ..catalog.streams import StoredStream
from ..materialized.definition import now
from ..synopses import Built
from .checkpoint import mismatch
from .dense_keys import candidates
from .sinks import SINK, write_row
from .state import Sender, StreamState, bad_rows, batch_plan, events, overflow, times_of
from .store import Loaded, continuous, load, save
from .views import PlannedView, readers

Frame = TypeVar("Frame", contravariant=True)


class Builder(Protocol[Frame]):
    """Makes the synopses of a batch."""

    def build(
        self, frame: Frame, plan: Plan, times: str | None
    ) -> tuple[Sequence[Built], Mapping[Message, Sender]]:
        """The synopses of a plan of one scan, in its order, and what static tables have sent for them."""

    def quarantine(self, frame: Frame, batch: int) -> None:
        """Write the rows that could not be read where people find them; twice is once."""


@dataclass
class Batches(Generic[Frame]):
    """Takes the batches of one stream, one after the other.

    Parameters
    ----------
    catalog : Catalog
        For this stream alone: no other thread uses it.
    name : str
        Of the stream.
    builder : Builder
    checkpoint : str
        The id of Spark's query.
    """

    catalog: Catalog
    name: str
    builder: Builder[Frame]
    checkpoint: str = ""
    _loaded: Loaded | None = field(default=None, repr=False)
    _stream: StoredStream | None = field(default=None, repr=False)

    def start(self) -> Loaded:
        """The state as it is in the catalog; raises as `store.load`."""
        self._stream = self._now()
        views = readers(continuous(self.catalog), self.name)
        self._loaded = load(self.catalog, self._stream, views[0].view.seed if views else 0)
        return self._loaded

    @property
    def state(self) -> StreamState:
        """The state after the last batch."""
        loaded = self._loaded or self.start()
        return loaded.state

    @property
    def stream(self) -> StoredStream:
        """The stream as it was when its state was last read or written."""
        assert self._stream is not None, "started"
        return self._stream

    def missing(self) -> tuple[Synopsis, ...]:
        """What views need, and the state does not have."""
        state, views = self.state, readers(continuous(self.catalog), self.name)
        needed = dict.fromkeys(s for v in views for s in v.synopses_of(self.name))
        return tuple(s for s in needed if state.summary(s, views[0].view.seed) is None)

    def catch_up(self, past: Frame) -> bool:
        """Give what is missing the events of all batches so far, `past`; whether it is these that `past` has.

        The state stays that after the same batch. Where events and deletions are not as many as were counted, the files
        are not those that were read, and what is missing begins with the next batch.

        Raises
        ------
        SkimqlError
            As `__call__`; the state is then as it was.
        """
        state, stream, missing = self.state, self.stream, self.missing()
        assert self._loaded is not None, "started"
        views = readers(continuous(self.catalog), self.name)
        asked = dict.fromkeys(s for v in views for s in v.asked_of(self.name))
        own = [s for s in asked if s in missing or any(s == candidates(m) for m in missing)]
        plan = batch_plan(views[0].query, views[0].view.seed, stream, own)
        built, messages = self.builder.build(past, plan, times_of(stream))
        found = dict(zip(plan.synopses, built, strict=True))
        for counted in (events(stream.name), bad_rows(stream)):
            if counted is not None and state.tally(counted) != found.pop(counted).tally:
                return False
        after = state.with_past(found, messages, plan.seed)
        save(self.catalog, stream, self._loaded.file, after)
        self._stream = self._now()
        self._loaded = Loaded(after, self._stream.state)
        return True

    def __call__(self, frame: Frame, batch: int) -> None:
        """Take a batch.

        Raises
        ------
        StreamError
            ``SKIMQL_CHECKPOINT_MISMATCH`` for a batch that is not the next one; ``SKIMQL_BAD_ROWS`` where a view wants
            to stop at a row that cannot be read; as `StreamState.after` and `save`. The state is then that before it.
        """
        state = self.state
        if state.batch is not None and batch <= state.batch:
            return
        if batch != state.next_batch:
            raise mismatch(self.name, f"batch {batch} arrives, and the state waits for {state.next_batch}")
        assert self._stream is not None, "started"
        assert self._loaded is not None, "started"
        stream, views = self._stream, readers(continuous(self.catalog), self.name)
        if not views:
            raise StreamError(f"no view reads stream {self.name} any more", "SKIMQL_NO_STREAM")
        plan = self._plan(views)
        try:
            built, messages = self.builder.build(frame, plan, times_of(stream))
        except DataError as fault:
            if fault.code == "SKIMQL_OVERFLOW":
                raise overflow(batch) from fault
            raise
        self._look_at_bad_rows(frame, batch, plan, built, views)
        after = state.after(
            batch, self.checkpoint, dict(zip(plan.synopses, built, strict=True)), messages, now(), plan.seed
        )
        self._write_rows(views, after, batch)
        save(self.catalog, stream, self._loaded.file, after)
        self._stream = self._now()
        self._loaded = Loaded(after, self._stream.state)

    def _write_rows(self, views: Sequence[PlannedView], after: StreamState, batch: int) -> None:
        found = continuous(self.catalog)
        for view in (v for v in views if SINK in v.view.settings):
            others = [s.lower() for s in view.view.streams if s.lower() != self.name.lower()]
            states = {s: load(self.catalog, found.streams[s], view.view.seed).state for s in others}
            write_row(view, {**states, self.name.lower(): after}, self.name, batch)

    def _plan(self, views: Sequence[PlannedView]) -> Plan:
        assert self._stream is not None, "started"
        synopses = dict.fromkeys(s for v in views for s in v.asked_of(self.name))
        return batch_plan(views[0].query, views[0].view.seed, self._stream, synopses)

    def _look_at_bad_rows(
        self, frame: Frame, batch: int, plan: Plan, built: Sequence[Built], views: Sequence[PlannedView]
    ) -> None:
        assert self._stream is not None, "started"
        counted = bad_rows(self._stream)
        bad = 0 if counted is None else built[plan.synopses.index(counted)].tally.tuples
        if not bad:
            return
        strict = next((v.view.name for v in views if v.view.settings.get("bad_rows") == "fail"), None)
        if strict is not None:
            raise StreamError(
                f"batch {batch} of stream {self.name} has {bad:,} rows that cannot be read, and view {strict} wants"
                " to stop there (bad_rows = 'fail')",
                "SKIMQL_BAD_ROWS",
                hint="take the rows out of the source, or CREATE OR REPLACE the view WITH (bad_rows = 'count')",
            )
        self.builder.quarantine(frame, batch)

    def _now(self) -> StoredStream:
        found = continuous(self.catalog).streams.get(self.name.lower())
        if found is None or (self._stream is not None and found.id != self._stream.id):
            raise StreamError(
                f"stream {self.name} was dropped or replaced meanwhile",
                "SKIMQL_STATE_CHANGED",
                hint="SHOW STREAMS",
            )
        return found
