"""The answer of a view whose events are told apart: a row for every window, every group, or every group in a window.

A window is the sum of its panes. A group is shown by itself where all of its events are: in every pane it has a
synopsis of its own, or nothing there was added to those that have none. The rest of a window is one row of NULL groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...optimizer.groups import grouped_vertices, per_group
from ...optimizer.plan import Plan, Synopsis
from ...parser.expressions import Grouped, is_estimate
from ...parser.join_graph import Group, Item
from ..results.answer import Answer
from ..results.columns import arrow_type, unique
from ..results.estimator import SketchJoin
from ..results.expressions import Evaluator
from ..results.rows import Estimated, GroupNumbers
from ..sources.python_values import python_values, zoned
from ..synopses import Built
from .cells import OTHER, WHOLE
from .panes import Need, panes_of
from .planned import MOST_GROUPS, PlannedView, nothing, read_by
from .state import Clock, StreamState, total

# Windows that one answer has at most.
MOST_WINDOWS = 1000
_START, _END, _OTHER = "window_start", "window_end", "other"


def answer_by_cell(planned: PlannedView, states: Mapping[str, StreamState], *, deletions: bool) -> Answer:
    """The rows of a view with windows or groups, from the states of its streams by lower-cased name."""
    query = planned.query
    starts, notes = _windows(planned, states)
    evaluators: dict[GroupNumbers, Evaluator] = {}
    index = _Index(planned, states)
    for number, start in enumerate(starts):
        edges = () if start is None else _edges(planned, start)
        for group, (plan, built, values) in enumerate(_groups(index, start)):
            joined = SketchJoin(plan, built, deletions=deletions)
            evaluators[number, group] = Evaluator(plan, joined, planned.view.confidence, (*values, *edges))
    before, behind = _own_items(planned)
    if any(e.group[len(query.groups)] for e in evaluators.values() if query.groups):
        most = int(planned.view.settings[MOST_GROUPS])
        notes = (
            *notes,
            f"{most:,} groups have sketches of their own, all others are one row (skimql.max_groups)",
        )
    names, _ = unique([i.name for i in (*query.items, *before, *behind)])
    free = dict(zip((*before, *behind), names[len(query.items) :], strict=True))
    items = (
        *(replace(i, name=free[i]) for i in before),
        *query.items,
        *(replace(i, name=free[i]) for i in behind),
    )
    found = Estimated(replace(query, items=items), evaluators).answer()
    kinds = {_START: _time_type(planned), _END: _time_type(planned), _OTHER: pa.bool_()}
    own = [kinds[i.name] for i in before], [kinds[i.name] for i in behind]
    types = (*own[0], *(arrow_type(i.type) for i in query.items), *own[1])
    # Rows say which columns hold estimates; where there are none the SELECT does.
    aggregated = () if found.rows else tuple(is_estimate(i.expression) for i in items)
    columns = tuple(i.name for i in items)
    return replace(found, columns=columns, types=types, notes=(*notes, *found.notes), aggregated=aggregated)


def _own_items(planned: PlannedView) -> tuple[list[Item], list[Item]]:
    """The columns that the SELECT does not have, before its own and behind them."""
    query, span = planned.query, planned.query.items[0].span
    groups = len(query.groups)
    other = [Item(_OTHER, Grouped(groups), span)] if groups else []
    at = groups + len(other)
    edges = [Item(_START, Grouped(at), span), Item(_END, Grouped(at + 1), span)] if planned.windows else []
    return edges, other


def _windows(
    planned: PlannedView, states: Mapping[str, StreamState]
) -> tuple[list[int | None], tuple[str, ...]]:
    """The starts of the windows that are shown: open, or closed a short time ago; [None] of a view without any."""
    if not planned.windows:
        return [None], ()
    starts: set[int] = set()
    lows: list[int | None] = []
    for name, windows in planned.windows.items():
        state = states[name]
        starts.update(s for pane in panes_of(state, name, windows) for s in windows.starts(pane))
        lows.append(windows.lowest(state.clocks.get(windows, Clock()).before))
    one = next(iter(planned.windows.values()))
    if None not in lows:
        least = min(n for n in lows if n is not None) * one.pane
        starts = {s for s in starts if s >= least}
    newest: list[int | None] = [*sorted(starts)[-MOST_WINDOWS:]]
    left = len(starts) - len(newest)
    cut = (f"the {len(newest):,} newest windows of {len(starts):,}",) if left else ()
    return newest, (*cut, *_told(planned, states))


def _told(planned: PlannedView, states: Mapping[str, StreamState]) -> Iterator[str]:
    """What an answer says of time: how far it is, and which events are in no window."""
    clocks = [(n, w, states[n].clocks.get(w, Clock())) for n, w in planned.windows.items()]
    closed = [w.closed(c.latest) for _, w, c in clocks]
    if None in closed:
        yield "no window is closed yet"
    else:
        yield f"windows that end by {_moments([min(c for c in closed if c is not None)], planned)[0]} are closed"
    for name, windows, clock in clocks:
        far = f"{windows.ahead // 1_000_000:,} s"
        for number, one, more in (
            (
                clock.late,
                "came behind the watermark and is counted",
                "came behind the watermark and are counted",
            ),
            (
                clock.dropped,
                "came too late for any window that was there, and is in none",
                "came too late for any window that was there, and are in none",
            ),
            (
                clock.ahead,
                f"was more than {far} ahead of all others, and is in no window",
                f"were more than {far} ahead of all others, and are in no window",
            ),
            (
                clock.untimed,
                f"has no {windows.time}, and is in no window",
                f"have no {windows.time}, and are in no window",
            ),
        ):
            if number:
                yield f"1 event of {name} {one}" if number == 1 else f"{number:,} events of {name} {more}"


def _groups(index: _Index, start: int | None) -> Iterator[tuple[Plan, tuple[Built, ...], tuple[Any, ...]]]:
    """The groups of a window: the plan of each, its synopses, its values and whether it is the rest."""
    plan, query = index.planned.plan, index.planned.query
    cells = _Cells(index, start)
    if not query.groups:
        stands = {i: v for v, i in read_by(plan)}
        yield plan, tuple(cells.whole(stands[i], i) for i in range(len(plan.synopses))), ()
        return
    (vertex,) = grouped_vertices(query)
    groups = cells.groups(vertex)
    if not groups:
        return
    plans = per_group(plan, {vertex: len(groups)})
    built = cells.of(plans[0].synopses, vertex, groups)
    values = [_values(query.groups, g) for g in groups]
    for i in sorted(range(len(groups)), key=lambda i: _order(values[i])):
        yield plans[i], built, (*values[i], groups[i] == OTHER)


@dataclass
class _Index:
    """The synopses of a view by their panes and groups, for all of its windows."""

    planned: PlannedView
    states: Mapping[str, StreamState]
    _panes: dict[Need, dict[int, list[tuple[str, Built]]]] = field(default_factory=dict)

    def panes(self, need: Need) -> Mapping[int, Sequence[tuple[str, Built]]]:
        """The groups of every pane of a synopsis."""
        if need not in self._panes:
            parts = self.states[need[0].table.lower()].cells(need, self.planned.plan.seed)
            found = self._panes[need] = {}
            for (pane, group), built in () if parts is None else parts.cells.items():
                found.setdefault(pane, []).append((group, built))
        return self._panes[need]


@dataclass
class _Cells:
    """The synopses of one window of a view."""

    index: _Index
    start: int | None
    _found: dict[Need, dict[str, list[Built]]] = field(default_factory=dict)

    @property
    def planned(self) -> PlannedView:
        """The view."""
        return self.index.planned

    def _panes(self, need: Need) -> list[Sequence[tuple[str, Built]]]:
        """What a synopsis has in each pane of the window."""
        there, windows = self.index.panes(need), need[1].windows
        if windows is None or self.start is None:
            return list(there.values())
        return [there[pane] for pane in windows.panes(self.start) if pane in there]

    def _groups(self, need: Need) -> dict[str, list[Built]]:
        """What a synopsis has of each group in the window."""
        if need not in self._found:
            found = self._found[need] = {}
            for pane in self._panes(need):
                for group, built in pane:
                    found.setdefault(group, []).append(built)
        return self._found[need]

    def whole(self, vertex: int, synopsis: int) -> Built:
        """A synopsis of all its events in the window."""
        need = self.planned.need(vertex, synopsis)
        if need[1] == WHOLE:
            summary = self.index.states[need[0].table.lower()].summary(need[0], self.planned.plan.seed)
            return nothing(need[0], self.planned.plan.seed) if summary is None else summary.built
        return self._sum(need, [b for own in self._groups(need).values() for b in own])

    def _sum(self, need: Need, built: Sequence[Built]) -> Built:
        return total(built) if built else nothing(need[0], self.planned.plan.seed)

    def groups(self, vertex: int) -> list[str]:
        """The groups of the window that are known by themselves, and the rest if there is any."""
        needs = [self.planned.need(v, i) for v, i in read_by(self.planned.plan) if v == vertex]
        panes = [{group for group, _ in pane} for need in needs for pane in self._panes(need)]
        found = set().union(*panes) - {OTHER}
        mixed = {group for there in panes if OTHER in there for group in found - there}
        rest = [OTHER] if mixed or any(OTHER in there for there in panes) else []
        return [*sorted(found - mixed), *rest]

    def of(self, synopses: Sequence[Synopsis], vertex: int, groups: Sequence[str]) -> tuple[Built, ...]:
        """The synopses of the plan of all groups."""
        numbers = {s: i for i, s in enumerate(self.planned.plan.synopses)}
        needs = {i: self.planned.need(vertex, i) for i in numbers.values()}
        ungrouped = {i: v for v, i in read_by(self.planned.plan) if v != vertex}
        alone, found = set(groups) - {OTHER}, []
        for synopsis in synopses:
            number = numbers[replace(synopsis, group=None)]
            if synopsis.group is None:
                found.append(self.whole(ungrouped[number], number))
                continue
            there, wanted = self._groups(needs[number]), groups[synopsis.group[1]]
            names = [wanted] if wanted != OTHER else [g for g in there if g not in alone]
            found.append(self._sum(needs[number], [b for name in names for b in there.get(name, ())]))
        return tuple(found)


def _values(groups: Sequence[Group], text: str) -> tuple[Any, ...]:
    """The values of a group, as they are in results; NULLs for the rest."""
    if text == OTHER:
        return (None,) * len(groups)
    return tuple(_value(v, g.type or "") for v, g in zip(json.loads(text), groups, strict=True))


def _value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "binary":
        return bytes.fromhex(value)
    if kind == "date":
        return python_values(pa.chunked_array([pa.array([value], pa.int32()).cast(pa.date32())]))[0]
    if kind.startswith("timestamp"):
        zone = "UTC" if kind == "timestamp" else None
        moments = pa.array([value], pa.int64()).cast(pa.timestamp("us", zone))
        return python_values(pa.chunked_array([moments]))[0]
    return value


def _order(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (v is not None, not isinstance(v, (int, float, Decimal)), v if v is not None else 0) for v in values
    )


def _edges(planned: PlannedView, start: int) -> tuple[Any, ...]:
    length = next(iter(planned.windows.values())).length
    return tuple(_moments([start, start + length], planned))


def _moments(values: Sequence[int], planned: PlannedView) -> list[Any]:
    kind = _time_type(planned)
    return python_values(pa.chunked_array([pa.array(values, pa.int64()).cast(kind)]))


def _time_type(planned: PlannedView) -> pa.DataType:
    """The Arrow type of the times of a view."""
    if planned.zone is None:
        return pa.timestamp("us")
    return zoned(pa.timestamp("us", "UTC"), planned.zone)
