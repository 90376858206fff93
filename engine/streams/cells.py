"""The events of a batch told apart by panes of time and by groups: each cell has a sketch of its own, from one pass.

Runs in Spark's Python workers; nothing here needs Spark itself. What is in which cell depends on the events and on the
state before the batch alone, not on how Spark has cut the batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..execution.partial_aggregate import (
    PARTIAL_SCHEMA,
    Feed,
    Partial,
    SketchPlan,
    cut,
    feed_batch,
    feed_together,
    joining,
    received,
    sent_row,
    together,
)
from ..synopses import Built, Tally
from .windows import FIRST, LAST, MOST_PANES, Windows

# A pane (0 of what has no windows), and the values of a group as text (empty of what has no groups).
Cell = tuple[int, str]
# The group of all that have no synopsis of their own.
OTHER = "other"
# What stands in the place of a pane: of events without a time, behind the kept panes, too far ahead; too many panes.
UNTIMED, DROPPED, BEYOND, TOO_MANY = -(1 << 62), -(1 << 61), 1 << 61, 1 << 62
NO_PANES = frozenset((UNTIMED, DROPPED, BEYOND, TOO_MANY))

CELL_SCHEMA = PARTIAL_SCHEMA + ", pane BIGINT, cell STRING, latest BIGINT, late BIGINT"
_FIELDS = (("pane", pa.int64()), ("cell", pa.string()), ("latest", pa.int64()), ("late", pa.int64()))


@dataclass(frozen=True, slots=True)
class Split:
    """How the events of a stream are told apart: by panes, by groups, or both.

    Attributes
    ----------
    windows : Windows or None
    groups : tuple of str
        Spark SQL.
    most : int
        Groups of a pane that have synopses of their own; 0 without groups.
    """

    windows: Windows | None = None
    groups: tuple[str, ...] = ()
    most: int = 0


WHOLE = Split()


@dataclass(frozen=True, slots=True)
class Cut:
    """A split, and what the state before a batch says of it.

    Attributes
    ----------
    split : Split
    low, high : int or None
        The first and the last pane that events may be in; None for any.
    closed : int or None
        The watermark.
    synopses : frozenset of int
        Those that are told apart so, by their numbers in the plan of the batch.
    clock : int or None
        The one whose events move the watermark and are counted where they are left out.
    rooms : mapping of (int, int) to (frozenset of str, int)
        By synopsis and pane, the groups that it has, and how many more it may have; `Split.most` where nothing is said.
    """

    split: Split
    low: int | None = None
    high: int | None = None
    closed: int | None = None
    synopses: frozenset[int] = frozenset()
    clock: int | None = None
    rooms: Mapping[tuple[int, int], tuple[frozenset[str], int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a batch adds to a cell: its newest time, and how many of its events came behind the watermark."""

    built: Built
    latest: int | None = None
    late: int = 0


class Prepared(Protocol):
    """A pass over a batch; see `scan.PreparedScan`."""

    @property
    def sketches(self) -> dict[int, SketchPlan]:
        """The sketch of each synopsis, by its number in the plan."""

    @property
    def scales(self) -> dict[int, float]:
        """The factor that made its weights integers."""


@dataclass(slots=True)
class _Part:
    partial: Partial
    latest: int | None = None
    late: int = 0

    def merge(self, other: _Part) -> None:
        self.partial.merge(other.partial)
        self.late += other.late
        if other.latest is not None:
            self.latest = other.latest if self.latest is None else max(self.latest, other.latest)


@dataclass
class Cells:
    """Feeds sketches as `feed_batch` does, and those that are told apart cell by cell."""

    cuts: tuple[Cut, ...]
    parts: dict[tuple[int, Cell], _Part] = field(default_factory=dict)
    _panes: dict[int, set[int]] = field(default_factory=dict)
    _new: dict[tuple[int, int], set[str]] = field(default_factory=dict)

    def __call__(self, batch: pa.RecordBatch, feed: Feed, parts: Mapping[int, Partial]) -> None:
        """Add the tuples of a batch; `parts` are of sketches that are not told apart, the others' stay empty."""
        if feed.group is None:
            feed_batch(batch, feed, parts)
            return
        number, own = next((n, c) for n, c in enumerate(self.cuts) if feed.members[0][0] in c.synopses)
        seen = self._panes.setdefault(number, set())
        tuples = joining(batch, feed)
        if not tuples.num_rows or len(seen) > MOST_PANES:
            return
        columns = tuples.column(feed.group).flatten()
        keeps_time = own.clock in feed.members[0]
        feeds = _of_one_size(feed, parts)
        if own.split.windows is None:
            self._by_groups(tuples, columns, 0, own, feeds, parts)
            return
        moments, panes = _panes_of(columns[0], own)
        if keeps_time:
            tuples = tuples.append_column("skimql moment", pa.array(moments))
        for pane, of_pane in cut(tuples, panes):
            if pane in NO_PANES and not keeps_time:
                continue
            seen.add(pane)
            if len(seen) > MOST_PANES:
                self._give_up(own)
                return
            self._by_groups(of_pane, of_pane.column(feed.group).flatten()[1:], pane, own, feeds, parts)

    def _by_groups(
        self,
        tuples: pa.RecordBatch,
        columns: list[pa.Array],
        pane: int,
        own: Cut,
        feeds: Sequence[Feed],
        parts: Mapping[int, Partial],
    ) -> None:
        if not columns:
            self._add(tuples, (pane, ""), own, feeds, parts)
            return
        codes, texts = _groups_of(columns)
        for code, of_group in cut(tuples, codes):
            self._add(of_group, (pane, texts[code]), own, feeds, parts)
        for i in (i for feed in feeds for i in feed.synopses):
            known, room = own.rooms.get((i, pane), (frozenset(), own.split.most))
            unknown = self._new.setdefault((i, pane), set())
            unknown.update(set(texts) - known)
            # The first ones in order have the room, whichever come first: so it is wherever the batch is cut.
            for text in sorted(unknown)[room:]:
                unknown.discard(text)
                gone = self.parts.pop((i, (pane, text)))
                self.part(i, (pane, OTHER), parts).merge(gone)

    def part(self, i: int, cell: Cell, parts: Mapping[int, Partial]) -> _Part:
        """The sketch of a cell, made where it is new; `parts` has an empty one."""
        found = self.parts.get((i, cell))
        if found is None:
            found = self.parts[i, cell] = _Part(Partial(parts[i].sketch.copy(), Tally()))
        return found

    def _add(
        self,
        tuples: pa.RecordBatch,
        cell: Cell,
        own: Cut,
        feeds: Sequence[Feed],
        parts: Mapping[int, Partial],
    ) -> None:
        found = {i: self.part(i, cell, parts) for feed in feeds for i in feed.synopses}
        for feed in feeds:
            feed_batch(tuples, feed, {i: p.partial for i, p in found.items()})
        if own.clock in found and cell[0] not in NO_PANES:
            moments = tuples.column("skimql moment").to_numpy()
            late = 0 if own.closed is None else int((moments < own.closed).sum())
            found[own.clock].merge(
                _Part(Partial(parts[own.clock].sketch.copy(), Tally()), int(moments.max()), late)
            )

    def finished(
        self, wholes: Mapping[int, Partial], scales: Mapping[int, float]
    ) -> dict[int, Built | dict[Cell, Piece]]:
        """The synopses of a batch by number; of those that are told apart by cell."""
        found: dict[int, Any] = {i: Built(w.sketch, w.tally, scales[i]) for i, w in wholes.items()}
        found.update({i: {} for own in self.cuts for i in own.synopses})
        for (i, cell), part in self.parts.items():
            built = Built(part.partial.sketch, part.partial.tally, scales[i])
            found[i][cell] = Piece(built, part.latest, part.late)
        return found

    def _give_up(self, own: Cut) -> None:
        """Keep nothing but that there are too many panes."""
        kept = next((p for (i, _), p in self.parts.items() if i == own.clock), None)
        self.parts = {c: p for c, p in self.parts.items() if c[0] not in own.synopses}
        if kept is not None and own.clock is not None:
            self.parts[own.clock, (TOO_MANY, "")] = kept


def cell_task(
    plans: Mapping[int, SketchPlan], feeds: Iterable[Feed], cuts: tuple[Cut, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`, as `task`: sketches by number and cell, as rows of `CELL_SCHEMA`."""

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.process_time()
        wholes = {i: Partial.empty(plan) for i, plan in plans.items()}
        cells = Cells(cuts)
        sharing = together(feeds, plans)
        for batch in batches:
            for own in sharing:
                if own[0].group is None:
                    feed_together(batch, own, wholes)
                else:
                    cells(batch, own[0], wholes)
        spent = time.process_time() - started
        for i, whole in wholes.items():
            if whole.tally.tuples:
                yield _row(i, None, _Part(whole), spent)
                spent = 0.0
        for (i, cell), part in cells.parts.items():
            yield _row(i, cell, part, spent)
            spent = 0.0

    return partials


def add_up_cells(
    prepared: Prepared, cuts: tuple[Cut, ...], rows: Iterable[Mapping[str, Any]]
) -> dict[int, Built | dict[Cell, Piece]]:
    """What `cell_task` has sent, in any order: the whole sketches, and those of every cell."""
    wholes = {i: Partial.empty(plan) for i, plan in prepared.sketches.items()}
    cells = Cells(cuts)
    for row in rows:
        i = row["synopsis"]
        part = _Part(received(row, prepared.sketches[i]), row["latest"], row["late"])
        if row["pane"] is None:
            wholes[i].merge(part.partial)
        else:
            cells.part(i, (row["pane"], row["cell"]), wholes).merge(part)
    return cells.finished(wholes, prepared.scales)


def _of_one_size(feed: Feed, parts: Mapping[int, Partial]) -> tuple[Feed, ...]:
    """The feed of cells, one for the sketches of each size: these share their hashes."""
    sizes: dict[object, list[int]] = {}
    for position, i in enumerate(feed.members[0]):
        spec = parts[i].sketch.spec
        sizes.setdefault((getattr(spec, "rows", None), getattr(spec, "buckets", None)), []).append(position)
    return tuple(
        replace(
            feed,
            mask=None,
            group=None,
            members=(),
            synopses=tuple(feed.members[0][n] for n in own),
            weights=tuple(feed.weights[n] for n in own),
            slacks=tuple(feed.slacks[n] for n in own) if feed.slacks else (),
        )
        for own in sizes.values()
    )


def _row(synopsis: int, cell: Cell | None, part: _Part, spent: float) -> pa.RecordBatch:
    row = sent_row(synopsis, part.partial.tally, part.partial.sketch.state(), spent)
    pane, group = (None, None) if cell is None else cell
    for (name, kind), value in zip(_FIELDS, (pane, group, part.latest, part.late), strict=True):
        row = row.append_column(pa.field(name, kind), pa.array([value], kind))
    return row


def _panes_of(times: pa.Array, own: Cut) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The moment of every event, and its pane or what stands in the place of one."""
    windows = own.split.windows
    assert windows is not None, "told apart by time"
    there = times.is_valid().to_numpy(zero_copy_only=False)
    moments = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).fill_null(0).to_numpy()
    panes = moments // windows.pane
    behind, beyond = moments < FIRST, moments > LAST - 2 * windows.length
    if own.low is not None:
        behind |= panes < own.low
    if own.high is not None:
        beyond |= panes > own.high
    panes = np.where(beyond, BEYOND, np.where(behind, DROPPED, panes))
    return moments, np.where(there, panes, UNTIMED)


def _groups_of(columns: list[pa.Array]) -> tuple[NDArray[np.int64], list[str]]:
    """The number of every tuple's group, and the values of each group as text."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Dense again each time, so that no product of numbers leaves 64 bits.
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    rows = zip(*(_json_values(c.take(pa.array(first))) for c in columns), strict=True)
    texts = [json.dumps(row, separators=(",", ":")) for row in rows]
    # What Spark has as one group (0.0 and -0.0) is one text.
    numbers = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    return np.array([numbers[t] for t in texts], np.int64)[codes], list(numbers)


def _json_values(column: pa.Array) -> list[Any]:
    """Values that JSON has: numbers, text, NULL."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return list(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist())
    if pa.types.is_date(kind):
        return list(column.cast(pa.int32()).to_pylist())
    values = column.to_pylist()
    if pa.types.is_floating(kind):
        return [None if v is None else repr(v + 0.0) for v in values]
    if pa.types.is_decimal(kind):
        return [None if v is None else str(v) for v in values]
    if pa.types.is_binary(kind):
        return [None if v is None else v.hex() for v in values]
    return list(values)
