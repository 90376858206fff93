"""What a batch does to synopses that are told apart by panes and groups: clocks move, panes come and go for good.

Which events are left out, and which groups have synopses of their own, follows from the state before the batch and
from its events alone: a batch that is delivered again gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import StreamError
from ...optimizer.plan import Plan, Scan, Synopsis
from ..catalog.streams import StoredStream
from ..synopses import Built
from .cells import BEYOND, DROPPED, NO_PANES, OTHER, TOO_MANY, UNTIMED, WHOLE, Cell, Cut, Piece, Split
from .state import BAD_ROW, Clock, Parts, StreamState, added, bad_rows, events
from .windows import MOST_PANES, Windows

# A synopsis, and how it is told apart.
Need = tuple[Synopsis, Split]
_READ = f"`{BAD_ROW}` IS NULL"


def moments(stream: StoredStream, windows: Windows) -> Need:
    """What counts the events of every pane: it moves the clock, and knows which panes there are."""
    whole = events(stream.name)
    return replace(whole, filter=None if bad_rows(stream) is None else _READ), Split(windows)


def panes_of(state: StreamState, stream: str, windows: Windows) -> set[int]:
    """The panes of a stream that have events."""
    whole = events(stream)
    found: set[int] = set()
    for (synopsis, split), parts in state.parts.items():
        own = replace(synopsis, table=whole.table, filter=None) == whole
        if split == Split(windows) and own and synopsis.filter in (None, _READ):
            found.update(pane for pane, _ in parts.cells)
    return found


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The plan of a batch, with its synopses that are told apart.

    Attributes
    ----------
    plan : Plan
        Theirs come last, each with the number of its cut in place of a group.
    needs : tuple of Need
        Those, in the order of the plan.
    cuts : tuple of Cut
    """

    plan: Plan
    needs: tuple[Need, ...] = ()
    cuts: tuple[Cut, ...] = ()


def split_plan(plan: Plan, stream: StoredStream, needs: Iterable[Need], state: StreamState) -> SplitPlan:
    """The plan of a batch with what is told apart, by what the state before says."""
    wanted = dict.fromkeys(n for n in needs if n[1] != WHOLE)
    wanted.update(dict.fromkeys(moments(stream, s.windows) for _, s in list(wanted) if s.windows is not None))
    splits = tuple(dict.fromkeys(s for _, s in wanted))
    ordered = tuple(sorted(wanted, key=lambda need: splits.index(need[1])))
    first = len(plan.synopses)
    cuts = []
    for split in splits:
        own = {first + n: need for n, need in enumerate(ordered) if need[1] == split}
        cut = Cut(split, synopses=frozenset(own), rooms=_rooms(own, state, plan.seed))
        if split.windows is not None:
            before = state.clocks.get(split.windows, Clock()).latest
            windows, clock = split.windows, moments(stream, split.windows)
            cut = replace(
                cut,
                low=windows.lowest(before),
                high=windows.highest(before),
                closed=windows.closed(before),
                clock=next((i for i, need in own.items() if need == clock), None),
            )
        cuts.append(cut)
    marked = tuple(replace(s, group=(splits.index(split), 0)) for s, split in ordered)
    synopses = (*plan.synopses, *marked)
    scan = Scan(stream.name, tuple(range(len(synopses))))
    return SplitPlan(replace(plan, synopses=synopses, scans=(scan,)), ordered, tuple(cuts))


def _rooms(
    own: Mapping[int, Need], state: StreamState, seed: int
) -> dict[tuple[int, int], tuple[frozenset[str], int]]:
    found: dict[tuple[int, int], tuple[frozenset[str], int]] = {}
    for i, need in own.items():
        parts = state.cells(need, seed)
        groups: dict[int, set[str]] = {}
        for pane, group in () if parts is None or not need[1].groups else parts.cells:
            groups.setdefault(pane, set()).add(group)
        for pane, known in groups.items():
            room = 0 if OTHER in known else max(need[1].most - len(known), 0)
            found[i, pane] = frozenset(known - {OTHER}), room
    return found


def with_cells(
    before: StreamState,
    after: StreamState,
    stream: StoredStream,
    batch: int,
    pieces: Mapping[Need, Mapping[Cell, Piece]],
    least: Mapping[Windows, int | None],
) -> StreamState:
    """The state after a batch with its cells.

    Parameters
    ----------
    before, after : StreamState
        `after` has what is not told apart.
    stream : StoredStream
    batch : int
    pieces : mapping of Need to mapping of Cell to Piece
        Of all that is needed now; what is not among them is forgotten.
    least : mapping of Windows to int
        The first pane that is kept; None for all.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_PANES`` if there are more panes than there may be; as `StreamState.after`.
    """
    clocks: dict[Windows, Clock] = {}
    kept: dict[Windows, frozenset[int]] = {}
    for windows in dict.fromkeys(s.windows for _, s in pieces if s.windows is not None):
        own = {pane: piece for (pane, _), piece in pieces[moments(stream, windows)].items()}
        clocks[windows], kept[windows] = _advanced(before.clocks.get(windows, Clock()), windows, own)
        if TOO_MANY in own:
            raise _too_many(stream, f"batch {batch} alone has more")
    parts = {}
    for need, cells in pieces.items():
        own_windows = need[1].windows
        old = before.cells(need, after.seed)
        first = None if own_windows is None else least[own_windows]
        there = {} if old is None else {c: b for c, b in old.cells.items() if first is None or c[0] >= first}
        new = {c: p for c, p in cells.items() if own_windows is None or c[0] in kept[own_windows]}
        parts[need] = Parts(_added(there, new, need[1].most, batch), batch if old is None else old.since)
        if (
            own_windows is not None
            and need == moments(stream, own_windows)
            and len(parts[need].cells) > MOST_PANES
        ):
            raise _too_many(
                stream,
                "windows are open that long, or another stream of a view, whose watermark is behind, has to catch up",
            )
    return replace(after, parts=parts, clocks=clocks)


def _advanced(clock: Clock, windows: Windows, pieces: Mapping[int, Piece]) -> tuple[Clock, frozenset[int]]:
    """The clock after a batch, and the panes of its events that are counted."""

    def tuples(panes: Iterable[int]) -> int:
        return sum(pieces[p].built.tally.tuples for p in panes if p in pieces)

    inside = sorted(p for p in pieces if p not in NO_PANES)
    beyond = [BEYOND]
    if clock.latest is None and inside:
        usual = _usual(inside, windows.ahead // windows.pane, {p: tuples([p]) for p in inside})
        beyond += [p for p in inside if p > usual]
        inside = [p for p in inside if p <= usual]
    newest = [piece.latest for p in inside if (piece := pieces[p]).latest is not None]
    known = [] if clock.latest is None else [clock.latest]
    moved = Clock(
        max([*newest, *known], default=None),
        clock.latest,
        clock.late + sum(pieces[p].late for p in inside),
        clock.dropped + tuples([DROPPED]),
        clock.ahead + tuples(beyond),
        clock.untimed + tuples([UNTIMED]),
    )
    return moved, frozenset(inside)


def _usual(panes: Sequence[int], gap: int, tuples: Mapping[int, int]) -> int:
    """The last pane of those that most events of a first batch are in; what is behind a longer gap is another run."""
    runs: list[list[int]] = [[panes[0]]]
    for pane in panes[1:]:
        if pane - runs[-1][-1] > gap:
            runs.append([])
        runs[-1].append(pane)
    return max(runs, key=lambda run: sum(tuples[p] for p in run))[-1]


def _added(old: Mapping[Cell, Built], new: Mapping[Cell, Piece], most: int, batch: int) -> dict[Cell, Built]:
    """Cells with those of a batch; groups beyond what a pane has room for are one."""
    found = dict(old)
    own: dict[int, set[str]] = {}
    for pane in {p for p, _ in new} if most else ():
        known = {g for p, g in old if p == pane}
        unknown = sorted({g for p, g in new if p == pane and g != OTHER} - known)
        own[pane] = known | set(unknown[: 0 if OTHER in known else max(most - len(known), 0)])
    for (pane, group), piece in sorted(new.items()):
        cell = (pane, group if not most or group in own[pane] else OTHER)
        found[cell] = added(found[cell], piece.built, batch) if cell in found else piece.built
    return found


def _too_many(stream: StoredStream, what: str) -> StreamError:
    return StreamError(
        f"stream {stream.name} has more than {MOST_PANES:,} panes at once: {what}",
        "SKIMQL_STREAM_PANES",
        hint=f"RESUME when it has; CREATE OR REPLACE STREAM {stream.name} ... OPTIONS (maxFilesPerTrigger = 1);"
        " a longer slide",
    )
