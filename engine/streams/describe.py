"""What a catalog has of streams and views, as rows: answers of views, SHOW STREAMS, DESCRIBE STREAM, SHOW QUERIES.

Needs no Spark: any process on the catalog can ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import CorruptSketch, printable
from ...sketches.intervals.interval import Estimate
from ..catalog.catalog import Catalog
from ..catalog.secrets import redacted
from ..catalog.streams import StoredStream, StoredView
from ..results.answer import Answer, half_width
from ..results.columns import told_types
from .as_of import as_of_columns, lag, rate
from .cells import WHOLE
from .panes import Need
from .place import is_running
from .planned import EXPECTED, WHY, PlannedView
from .predicted import predicted_half_width
from .state import Clock, StreamState, bad_rows, events
from .store import Loaded, continuous, load, load_before
from .view_answer import answer, joined_of
from .views import planned, readers

STREAMS = (
    *("stream", "format", "source", "signs", "state", "batch"),
    *("events", "deletions", "bad", "bytes", "updated"),
)
QUERIES = (
    *("query", "streams", "state", "events", "deletions", "bad", "late", "dropped"),
    *("batch", "bytes", "updated"),
)
NUMBERS = ("events", "deletions", "bad", "late", "dropped", "bytes")
_READS = 5
EXTENDED = (
    *QUERIES,
    *("lag", "events_per_second", "value", "half_width", "predicted", "method", "fault", "select"),
)


def select(catalog: Catalog, view: StoredView, *, bounds: bool = True) -> Answer:
    """What a view has now, after a whole batch of each of its streams."""
    shown, loaded = _loaded(catalog, view)
    lost = [
        f"the newest state of {name} is damaged, this is the one before it: {one.lost}"
        for name, one in loaded.items()
        if one.lost
    ]
    states = {n: one.state for n, one in loaded.items()}
    given = answer(shown, states, bounds)
    zone = continuous(catalog).streams[view.streams[0].lower()].time_zone
    return replace(given, notes=(*given.notes, *lost), beside=as_of_columns(shown, states, zone))


def show_streams(catalog: Catalog, *names: str) -> Answer:
    """Streams as rows; without names all of them."""
    found = continuous(catalog).streams
    chosen = [found[n.lower()] for n in names] or [s for _, s in sorted(found.items())]
    rows = tuple(_stream_row(catalog, s) for s in chosen)
    return Answer(STREAMS, rows, exact=True, types=told_types(STREAMS, ("batch", *NUMBERS), rows))


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
    told += [(f"sketch {n}", text) for n, (text, _) in enumerate(_sketches(catalog, stream), 1)]
    rows = tuple((name, "" if value is None else str(value)) for name, value in told)
    return Answer(("property", "value"), rows, exact=True)


def explain(catalog: Catalog, name: str) -> Answer:
    """How the views of a set were planned together, and the sketches that they, or one view, read now."""
    found = continuous(catalog)
    planned_together = found.sets.get(name.lower())
    views = found.members(name) if planned_together is not None else (found.views[name.lower()],)
    lines = [] if planned_together is None else [planned_together.stages]
    own = {v.name for v in views}
    read = 0
    for stream in dict.fromkeys(s.lower() for v in views for s in v.streams):
        shown = [t for t, users in _sketches(catalog, found.streams[stream]) if own & set(users)]
        read += len(shown)
        lines += [f"kept of stream {found.streams[stream].name}, every event read once:"]
        lines += [f"  {text}" for text in shown]
    for view in views:
        lines += [f"{view.name}: {view.settings[WHY]}"] if WHY in view.settings else []
        value, width, predicted, method, *_ = _accuracy(catalog, view)
        if value is not None and width is not None:
            told = "" if predicted is None else f", +-{predicted:,.6g} predicted"
            lines.append(f"{view.name}: {value:,.6g} +-{width:,.6g} now{told}, by {method}")
    alone = sum(len(planned(v, found.streams).needs_of(s)) for v in views for s in v.streams)
    lines.append(f"{len(views):,} views read {read:,} sketches and totals; apart they would keep {alone:,}")
    return Answer(("plan",), ((printable("\n".join(lines)),),), exact=True, is_text=True)


def _sketches(catalog: Catalog, stream: StoredStream) -> list[tuple[str, list[str]]]:
    """Every sketch that views need of a stream, and the names of the views that have it in common."""
    users: dict[Need, list[str]] = {}
    for view in readers(continuous(catalog), stream.name):
        for need in view.needs_of(stream.name):
            users.setdefault(need, []).append(view.view.name)
    state = load(catalog, stream, 0).state
    found = []
    for (synopsis, split), names in users.items():
        keys = ", ".join(k for a in synopsis.attributes for k in a.keys)
        parts = [f"{synopsis.method} by {keys}" if keys else "total"]
        if synopsis.weight.expression is not None:
            what = "COUNT" if synopsis.weight.presence else "SUM"
            parts.append(f"of {what}({synopsis.weight.expression})")
        parts += [f"part {', '.join(map(str, synopsis.cell))}"] if synopsis.cell else []
        parts += [f"WHERE {synopsis.filter}"] if synopsis.filter is not None else []
        parts += [f"joined with {m.table}" for m in synopsis.messages]
        if split.windows is not None:
            parts.append(f"for every {split.windows.pane / 1_000_000:g} s of {split.windows.time}")
        parts += [f"for every {', '.join(split.groups)}"] if split.groups else []
        summary, cells = state.summaries.get(synopsis), state.parts.get((synopsis, split))
        if cells is not None:
            parts.append(f"({len(cells.cells):,} of them, {cells.nbytes:,} bytes)")
        elif summary is not None and split == WHOLE:
            form = _form(summary.built.sketch)
            told = f", {len(summary.dense):,} keys that may be dense" if len(summary.dense) else ""
            parts.append(f"({form}, {summary.nbytes:,} bytes{told})")
            parts += [f"from batch {summary.since}"] if summary.since else []
        found.append((f"{' '.join(parts)}: {', '.join(names)}", names))
    return found


def _form(sketch: Any) -> str:
    """What a sketch is by now: all keys, counters, or a share of the keys."""
    share = getattr(sketch, "probability", None)
    if share is None:
        return "exact" if getattr(sketch, "exact", None) is not None else "counters"
    return "exact" if share == 1.0 else f"{share:.3g} of the keys"


def show_queries(catalog: Catalog, *views: StoredView, extended: bool = False) -> Answer:
    """Views as rows; without any all of them."""
    chosen = views or tuple(v for _, v in sorted(continuous(catalog).views.items()))
    if extended:
        rows = tuple((*_query_row(catalog, v), *_extended(catalog, v)) for v in chosen)
        return Answer(EXTENDED, rows, exact=True)
    told = tuple(_query_row(catalog, v) for v in chosen)
    return Answer(QUERIES, told, exact=True, types=told_types(QUERIES, NUMBERS, told))


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
        one.state.summaries[s].nbytes
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
    shown, loaded = _loaded(catalog, view)
    pace = lag(shown, {n: one.state for n, one in loaded.items()}), _events_per_second(catalog, loaded)
    return (*pace, *_accuracy(catalog, view))


def _events_per_second(catalog: Catalog, loaded: Mapping[str, Loaded]) -> float | None:
    """Of all streams of a view together, between the last two batches of each."""
    rates = []
    for name, one in loaded.items():
        stream = continuous(catalog).streams[name]
        before = load_before(catalog, stream)
        if before is not None:
            more = _figures(stream, one.state)[0] - _figures(stream, before)[0]
            rates.append(rate(more, before, one.state))
    known = [r for r in rates if r is not None]
    return sum(known) if known else None


def _accuracy(catalog: Catalog, view: StoredView) -> tuple[Any, ...]:
    given = select(catalog, view)
    # The last row: of windows the newest.
    cell = next((c for c in given.rows[-1] if isinstance(c, Estimate)), None) if given.rows else None
    streams = continuous(catalog).streams
    faults = "; ".join(f for f in (streams[s.lower()].fault for s in view.streams) if f)
    if not isinstance(cell, Estimate):
        return None, None, None, given.method, faults, view.select
    # NULL, and an interval without ends, have no number.
    numbers = [n if math.isfinite(n) else None for n in (float(cell.value), half_width(cell))]
    shown, loaded = _loaded(catalog, view)
    if shown.told_apart or shown.query.counts_distinct:
        return *numbers, None, given.method, faults, view.select
    joined = joined_of(shown, {n: one.state for n, one in loaded.items()})
    predicted = predicted_half_width(shown.plan, joined, view.confidence)
    if predicted is None and EXPECTED in view.settings:
        predicted = float(view.settings[EXPECTED]) * abs(float(cell.value))
    return (
        *numbers,
        predicted,
        given.method,
        faults,
        view.select,
    )


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
