"""What a catalog has of streams and views, as rows: answers of views, SHOW STREAMS, DESCRIBE STREAM, SHOW QUERIES.

Needs no Spark: any process on the catalog can ask.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ...errors import CorruptSketch
from ...sketches.intervals.interval import Estimate
from ..catalog.catalog import Catalog
from ..catalog.secrets import redacted
from ..catalog.streams import StoredStream, StoredView
from ..results.answer import Answer, half_width
from .cells import WHOLE
from .panes import Need
from .place import is_running
from .planned import PlannedView
from .state import Clock, StreamState, bad_rows, events
from .store import Loaded, continuous, load
from .views import answer, planned, readers

STREAMS = (
    *("stream", "format", "source", "signs", "state", "batch"),
    *("events", "deletions", "bad", "bytes", "updated"),
)
QUERIES = (
    *("query", "streams", "state", "events", "deletions", "bad", "late", "dropped"),
    *("batch", "bytes", "updated"),
)
_READS = 5
EXTENDED = (*QUERIES, "value", "half_width", "fault", "select")


def select(catalog: Catalog, view: StoredView, *, bounds: bool = True) -> Answer:
    """What a view has now, after a whole batch of each of its streams."""
    shown, loaded = _loaded(catalog, view)
    lost = [
        f"the newest state of {name} is damaged, this is the one before it: {one.lost}"
        for name, one in loaded.items()
        if one.lost
    ]
    given = answer(shown, {n: one.state for n, one in loaded.items()}, bounds)
    return replace(given, notes=(*given.notes, *lost))


def show_streams(catalog: Catalog, *names: str) -> Answer:
    """Streams as rows; without names all of them."""
    found = continuous(catalog).streams
    chosen = [found[n.lower()] for n in names] or [s for _, s in sorted(found.items())]
    return Answer(STREAMS, tuple(_stream_row(catalog, s) for s in chosen), exact=True)


def describe_stream(catalog: Catalog, stream: StoredStream) -> Answer:
    """All that is known of a stream, one property a row."""
    told: list[tuple[str, Any]] = [
        *zip(STREAMS, _stream_row(catalog, stream), strict=True),
        ("columns", ", ".join(f"{c.name} {c.type}" for c in stream.columns)),
        ("options", ", ".join(f"{n} = {v}" for n, v in sorted(stream.options.items()))),
        ("dedup", f"({', '.join(stream.dedup)}) WITHIN '{stream.within}'" if stream.dedup else ""),
        ("views", ", ".join(v.name for v in continuous(catalog).readers(stream.name))),
        ("ansi", str(stream.ansi).lower()),
        ("time_zone", stream.time_zone),
        ("created", stream.created),
        ("fault", stream.fault),
    ]
    told += _sketches(catalog, stream)
    rows = tuple((name, "" if value is None else str(value)) for name, value in told)
    return Answer(("property", "value"), rows, exact=True)


def _sketches(catalog: Catalog, stream: StoredStream) -> list[tuple[str, str]]:
    """Every sketch that views need of a stream, and which views have it in common."""
    users: dict[Need, list[str]] = {}
    for view in readers(continuous(catalog), stream.name):
        for need in view.needs_of(stream.name):
            users.setdefault(need, []).append(view.view.name)
    state = load(catalog, stream, 0).state
    found = []
    for number, ((synopsis, split), names) in enumerate(users.items(), 1):
        keys = ", ".join(k for a in synopsis.attributes for k in a.keys)
        parts = [f"{synopsis.method} by {keys}" if keys else "total"]
        if synopsis.weight.expression is not None:
            what = "COUNT" if synopsis.weight.presence else "SUM"
            parts.append(f"of {what}({synopsis.weight.expression})")
        parts += [f"WHERE {synopsis.filter}"] if synopsis.filter is not None else []
        parts += [f"joined with {m.table}" for m in synopsis.messages]
        if split.windows is not None:
            parts.append(f"for every {split.windows.pane / 1_000_000:g} s of {split.windows.time}")
        parts += [f"for every {', '.join(split.groups)}"] if split.groups else []
        summary, cells = state.summaries.get(synopsis), state.parts.get((synopsis, split))
        if cells is not None:
            parts.append(f"({len(cells.cells):,} of them, {cells.nbytes:,} bytes)")
        elif summary is not None and split == WHOLE:
            form = "exact" if getattr(summary.built.sketch, "exact", None) is not None else "counters"
            parts.append(f"({form}, {summary.built.sketch.nbytes:,} bytes)")
        found.append((f"sketch {number}", f"{' '.join(parts)}: {', '.join(names)}"))
    return found


def show_queries(catalog: Catalog, *views: StoredView, extended: bool = False) -> Answer:
    """Views as rows; without any all of them."""
    chosen = views or tuple(v for _, v in sorted(continuous(catalog).views.items()))
    if extended:
        rows = tuple((*_query_row(catalog, v), *_extended(catalog, v)) for v in chosen)
        return Answer(EXTENDED, rows, exact=True)
    return Answer(QUERIES, tuple(_query_row(catalog, v) for v in chosen), exact=True)


def _loaded(catalog: Catalog, view: StoredView) -> tuple[PlannedView, dict[str, Loaded]]:
    """A view with the states of its streams; read again where batches have replaced them meanwhile."""
    for left in reversed(range(_READS)):
        found = continuous(catalog)
        try:
            loaded = {s.lower(): load(catalog, found.streams[s.lower()], view.seed) for s in view.streams}
        except CorruptSketch:
            if not left or continuous(catalog) is found:
                raise
            continue
        if not any(one.lost for one in loaded.values()) or continuous(catalog) is found:
            break
    return planned(view, found.streams), loaded


def _query_row(catalog: Catalog, view: StoredView) -> tuple[Any, ...]:
    found = continuous(catalog)
    shown, loaded = _loaded(catalog, view)
    figures = [_figures(found.streams[n], one.state) for n, one in loaded.items()]
    states = {_running_state(catalog, found.streams[n]) for n in loaded}
    state = next(s for s in ("failed", "stopped", "running") if s in states)
    own = [
        one.state.summaries[s].built.sketch.nbytes
        for n, one in loaded.items()
        for s in shown.synopses_of(n)
        if s in one.state.summaries
    ]
    own += [
        one.state.parts[need].nbytes
        for n, one in loaded.items()
        for need in shown.needs_of(n)
        if need in one.state.parts
    ]
    clocks = [loaded[n].state.clocks.get(w, Clock()) for n, w in shown.windows.items()]
    return (
        view.name,
        ", ".join(view.streams),
        "paused" if view.paused and state == "stopped" else state,
        *(sum(f[n] for f in figures) for n in range(3)),
        sum(c.late for c in clocks),
        sum(c.dropped for c in clocks),
        ", ".join("none" if one.state.batch is None else str(one.state.batch) for one in loaded.values()),
        sum(own),
        max(one.state.updated for one in loaded.values()),
    )


def _extended(catalog: Catalog, view: StoredView) -> tuple[Any, ...]:
    given = select(catalog, view)
    # The last row: of windows the newest.
    cell = next((c for c in given.rows[-1] if isinstance(c, Estimate)), None) if given.rows else None
    streams = continuous(catalog).streams
    faults = "; ".join(f for f in (streams[s.lower()].fault for s in view.streams) if f)
    if not isinstance(cell, Estimate):
        return None, None, faults, view.select
    # NULL, and an interval without ends, have no number.
    numbers = (float(cell.value), half_width(cell))
    return *(n if math.isfinite(n) else None for n in numbers), faults, view.select


def _stream_row(catalog: Catalog, stream: StoredStream) -> tuple[Any, ...]:
    state = load(catalog, stream, 0).state
    counted, deleted, bad = _figures(stream, state)
    return (
        stream.name,
        stream.format,
        redacted(stream.source),
        stream.signs,
        _running_state(catalog, stream),
        state.batch,
        counted,
        deleted,
        bad,
        state.nbytes,
        state.updated,
    )


def _figures(stream: StoredStream, state: StreamState) -> tuple[int, int, int]:
    """Events, deletions among them, and rows that could not be read."""
    tally, unread = state.tally(events(stream.name)), bad_rows(stream)
    bad = 0 if unread is None else state.tally(unread).tuples
    return tally.tuples - bad, tally.negative, bad


def _running_state(catalog: Catalog, stream: StoredStream) -> str:
    if is_running(catalog, stream):
        return "running"
    return "failed" if stream.fault else "stopped"
