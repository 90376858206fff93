"""One batch of a stream: skipped if the state has it, else built in one pass, added, and the state replaced.

Nothing is acknowledged before the state is on disk. What is Spark's is behind `Builder`; without Spark the same code
runs on Arrow tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ...errors import DataError, StreamError
from ...optimizer.plan import Message, Plan, Synopsis
from ...parser.fragment import quote_name
from ..catalog.catalog import Catalog
from ..catalog.streams import FRAME, StoredStream
from ..materialized.definition import now
from .cells import Cut
from .changes import no_before_image, refusal, updates
from .checkpoint import mismatch
from .dense_keys import candidates
from .panes import SplitPlan, split_plan, with_cells
from .planned import PlannedView, domains_of
from .sinks import SINK, write_row
from .state import Clock, Sender, StreamState, bad_rows, batch_plan, events, overflow, times_of
from .store import Loaded, continuous, load, load_other, save
from .views import readers
from .windows import Windows

Frame = TypeVar("Frame", contravariant=True)


class Builder(Protocol[Frame]):
    """Makes the synopses of a batch."""

    def build(
        self, frame: Frame, plan: Plan, times: str | None, cuts: tuple[Cut, ...]
    ) -> tuple[Sequence[Any], Mapping[Message, Sender]]:
        """The synopses of a plan of one scan, in its order, and what static tables have sent for them.

        Each is a `Built`; of those that a cut tells apart a mapping of `Cell` to `Piece`.
        """

    def pass_over(self, frame: Frame) -> None:
        """Run a batch for what Spark keeps of it, and for nothing else."""

    def quarantine(self, frame: Frame, batch: int, ahead: Mapping[str, int]) -> None:
        """Write the rows that are not counted where people find them; twice is once.

        `ahead` has, by columns of time, the moment behind which events are too far ahead of the others.
        """


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
        """What views need that is not told apart, and the state does not have.

        Without what is joined with a table that has been read again: the events before had it as it was then.
        """
        state, views = self.state, readers(continuous(self.catalog), self.name)
        needed = dict.fromkeys(s for v in views for s in v.synopses_of(self.name))
        lacking = (s for s in needed if state.summary(s, views[0].view.seed) is None)
        return tuple(s for s in lacking if not state.read_again(s))

    def catch_up(self, past: Frame) -> bool:
        """Give what is missing the events of all batches so far, `past`; whether it is these that `past` has.

        The state stays that after the same batch. Where events and deletions are not as many as were counted, the files
        are not those that were read; they, and change records without an image that is needed now, are left alone:
        what is missing begins with the next batch.

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
        plan = batch_plan(views[0].query, views[0].view.seed, stream, own, domains_of(views))
        try:
            built, messages = self.builder.build(past, plan, times_of(stream, plan.synopses), ())
        except DataError as fault:
            if refusal(stream, state.next_batch - 1, fault) is not None:
                return False
            raise
        found = dict(zip(plan.synopses, built, strict=True))
        for counted in (events(stream.name), bad_rows(stream), updates(stream)):
            if counted is not None and state.tally(counted) != found.pop(counted).tally:
                return False
        after = state.with_past(found, messages, plan.seed)
        save(self.catalog, stream, self._loaded.file, after)
        self._stream = self._now()
        self._loaded = Loaded(after, self._stream.state)
        return True

    def __call__(self, frame: Frame, batch: int) -> bool:
        """Take a batch; whether it was not in the state yet.

        Raises
        ------
        StreamError
            ``SKIMQL_CHECKPOINT_MISMATCH`` for a batch that is not the next one; ``SKIMQL_BAD_ROWS`` where a view wants
            to stop at a row that cannot be read; as `StreamState.after` and `save`. The state is then that before it.
        """
        state = self.state
        assert self._stream is not None, "started"
        if state.batch is not None and batch <= state.batch:
            # Spark's own state of a stream is written by running its batches: the next one begins with it.
            if self._stream.dedup or self._stream.format == FRAME:
                self.builder.pass_over(frame)
            return False
        if batch != state.next_batch:
            raise mismatch(self.name, f"batch {batch} arrives, and the state waits for {state.next_batch}")
        assert self._loaded is not None, "started"
        stream, views = self._stream, readers(continuous(self.catalog), self.name)
        if not views:
            raise StreamError(f"no view reads stream {self.name} any more", "SKIMQL_NO_STREAM")
        split = self._plan(views)
        plan, first = split.plan, len(split.plan.synopses) - len(split.needs)
        try:
            also = [t for c in split.cuts for t in (*_time(c.split.windows), *c.split.groups)]
            times = times_of(stream, plan.synopses, also)
            built, messages = self.builder.build(frame, plan, times, split.cuts)
        except DataError as fault:
            if fault.code == "SKIMQL_OVERFLOW":
                raise overflow(batch) from fault
            refused = refusal(stream, batch, fault)
            if refused is not None:
                raise refused from fault
            raise
        self._look_at_updates(batch, plan, built)
        whole = dict(zip(plan.synopses[:first], built[:first], strict=True))
        after = state.after(batch, self.checkpoint, whole, messages, now("milliseconds"), plan.seed)
        pieces = dict(zip(split.needs, built[first:], strict=True))
        after = with_cells(state, after, stream, batch, pieces, self._least(views))
        self._look_at_bad_rows(frame, after, batch, views)
        self._write_rows(views, after, batch)
        save(self.catalog, stream, self._loaded.file, after)
        self._stream = self._now()
        self._loaded = Loaded(after, self._stream.state)
        return True

    def _write_rows(self, views: Sequence[PlannedView], after: StreamState, batch: int) -> None:
        for view in (v for v in views if SINK in v.view.settings):
            others = [s.lower() for s in view.view.streams if s.lower() != self.name.lower()]
            states = {s: load_other(self.catalog, s, view.view.seed) for s in others}
            write_row(view, {**states, self.name.lower(): after}, self.name, batch)

    def _plan(self, views: Sequence[PlannedView]) -> SplitPlan:
        assert self._stream is not None, "started"
        synopses = dict.fromkeys(s for v in views for s in v.asked_of(self.name))
        plan = batch_plan(views[0].query, views[0].view.seed, self._stream, synopses, domains_of(views))
        needs = (n for v in views for n in v.needs_of(self.name))
        return split_plan(plan, self._stream, needs, self.state)

    def _least(self, views: Sequence[PlannedView]) -> dict[Windows, int | None]:
        """The first pane that some view still shows, of windows that close by the lesser of their watermarks."""
        own = self.name.lower()
        least: dict[Windows, list[int | None]] = {}
        others: dict[str, StreamState] = {}
        for view in (v for v in views if v.windows):
            for name, windows in view.windows.items():
                if name == own:
                    low = windows.lowest(self.state.clocks.get(windows, Clock()).latest)
                else:
                    if name not in others:
                        others[name] = load_other(self.catalog, name, view.view.seed)
                    low = windows.lowest(others[name].clocks.get(windows, Clock()).before)
                least.setdefault(view.windows[own], []).append(low)
        return {
            w: None if None in lows else min(n for n in lows if n is not None) for w, lows in least.items()
        }

    def _look_at_bad_rows(
        self, frame: Frame, after: StreamState, batch: int, views: Sequence[PlannedView]
    ) -> None:
        """Put the rows of a batch aside that cannot be read, and the events that are too far ahead of the others."""
        assert self._stream is not None, "started"
        counted = bad_rows(self._stream)
        bad = 0 if counted is None else after.tally(counted).tuples - self.state.tally(counted).tuples
        ahead = {w: c for w, c in after.clocks.items() if c.ahead > self.state.clocks.get(w, Clock()).ahead}
        strict = [v for v in views if v.view.settings.get("bad_rows") == "fail"]
        if bad and strict:
            raise StreamError(
                f"batch {batch} of stream {self.name} has {bad:,} rows that cannot be read, and view"
                f" {strict[0].view.name} wants to stop there (bad_rows = 'fail')",
                "SKIMQL_BAD_ROWS",
                hint="take the rows out of the source, or CREATE OR REPLACE the view WITH (bad_rows = 'count')",
            )
        for view in strict:
            windows = view.windows.get(self.name.lower())
            if windows in ahead:
                raise StreamError(
                    f"batch {batch} of stream {self.name} has events that are too far ahead of the others by"
                    f" {windows.time}, and view {view.view.name} wants to stop there (bad_rows = 'fail')",
                    "SKIMQL_BAD_ROWS",
                    hint="take them out of the source, or CREATE OR REPLACE the view WITH (bad_rows = 'count'), or with"
                    " a longer ahead",
                )
        if bad or ahead:
            late = {w.time: c.latest for w, c in ahead.items() if c.latest is not None}
            self.builder.quarantine(frame, batch, late)

    def _look_at_updates(self, batch: int, plan: Plan, built: Sequence[Any]) -> None:
        assert self._stream is not None, "started"
        counted = updates(self._stream)
        tally = None if counted is None else built[plan.synopses.index(counted)].tally
        if tally is not None and tally.tuples and not tally.negative:
            what = f"{tally.tuples:,} updates have an update_postimage alone"
            raise no_before_image(self._stream, batch, what)

    def _now(self) -> StoredStream:
        found = continuous(self.catalog).streams.get(self.name.lower())
        if found is None or (self._stream is not None and found.id != self._stream.id):
            raise StreamError(
                f"stream {self.name} was dropped or replaced meanwhile",
                "SKIMQL_STATE_CHANGED",
                hint="SHOW STREAMS",
            )
        return found


def _time(windows: Windows | None) -> tuple[str, ...]:
    return () if windows is None else (quote_name(windows.time),)
