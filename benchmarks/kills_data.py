"""What `benchmarks.kills` feeds its streams, and what numpy makes of it without Spark."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.engine.streams.place import stream_folder
from skimql.engine.streams.state import Clock, StreamState
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.windows import Windows
from skimql.engine.synopses import Built
from skimql.optimizer.plan import Synopsis

NAMES, KEYS, DELETED = ("a", "b"), 20_000, 0.3
MINUTE, FIRST = 60_000_000, 29_000_000  # of the first file, in minutes since 1970
_WINDOWS = "window = '2 minutes', slide = '1 minute', time = ts, watermark = '1 minute'"
_JOINED = "FROM a JOIN b ON a.k = b.k"
# Each with what it says in WITH; those whose sinks are looked at have one.
VIEWS = {
    "pairs": ("", f"SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s {_JOINED}"),
    "some": ("", f"SELECT APPROXIMATE COUNT(*) AS n {_JOINED} WHERE a.v < 50"),
    "counted": ("", "SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM a"),
    "recent": (_WINDOWS, f"SELECT APPROXIMATE COUNT(*) AS n {_JOINED}"),
}
SINKS = ("pairs", "counted", "recent")

Columns = dict[str, NDArray[Any]]


def write_data(folder: Path, files: int, rows: int, seed: int) -> None:
    """The files of both streams, a minute of events in each with some that are late."""
    numbers = np.random.default_rng(seed)
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / f"{name} to come").mkdir()
        for file in range(files):
            late = np.where(numbers.random(rows) < 0.2, numbers.exponential(4 * MINUTE, rows), 0)
            at = (FIRST + file) * MINUTE + numbers.integers(0, MINUTE, rows) - late.astype(np.int64)
            columns = {
                "k": np.minimum(numbers.zipf(1.3, rows), KEYS).astype(np.int64),
                "v": numbers.integers(0, 100, rows),
                "op": np.where(numbers.random(rows) < DELETED, "d", "i"),
                "ts": pa.array(at).cast(pa.timestamp("us", "UTC")),
            }
            path = folder / f"{name} to come" / f"{file:03}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (1e9 + file, 1e9 + file))  # in this order Spark reads them, a batch each


@dataclass(frozen=True)
class Events:
    """All events of a stream: what they say, how often they count, and the batch of each."""

    k: NDArray[np.int64]
    v: NDArray[np.int64]
    sign: NDArray[np.int64]
    at: NDArray[np.int64]
    batch: NDArray[np.int64]

    @classmethod
    def of(cls, folder: Path, batches: Sequence[int]) -> Events:
        """Those of the files of a folder, which came in these batches."""
        tables = [pq.read_table(f) for f in sorted(folder.iterdir())]
        rows = pa.concat_tables(tables)
        sign = np.where(np.asarray(rows["op"].to_pylist()) == "d", -1, 1).astype(np.int64)
        batch = np.repeat(batches, [len(t) for t in tables])
        at = rows["ts"].cast(pa.int64()).to_numpy()
        return cls(rows["k"].to_numpy(), rows["v"].to_numpy(), sign, at, batch)


def planned(checkpoint: Path) -> dict[int, int]:
    """The last file of every batch that Spark has planned, by number."""
    found = {}
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found[int(file.name)] = int(json.loads(file.read_text().splitlines()[-1])["logOffset"])
    return found


def batches_of_files(catalog: Catalog, name: str, files: int) -> list[int]:
    """The batch that each file came in: its own, but of one that was planned anew, in which there may be one more."""
    checkpoint = stream_folder(catalog, continuous(catalog).streams[name]) / "checkpoint"
    last = planned(checkpoint) or {n: n for n in range(files)}
    return [min(batch for batch, end in last.items() if end >= file) for file in range(files)]


def truth_differs(folder: Path, files: int) -> list[str]:
    """What of the final states and sinks is not what numpy makes of the files; nothing where all is."""
    catalog = Catalog(folder / "catalog")
    found: list[str] = []
    every = {name: Events.of(folder / name, batches_of_files(catalog, name, files)) for name in NAMES}
    for name, events in every.items():
        loaded = load(catalog, continuous(catalog).streams[name], 1)
        if loaded.lost:
            found.append(f"{name}: {loaded.lost}")
        found.extend(f"{name}: {what}" for what in _state_differs(loaded.state, events))
    return [*found, *_sinks_differ(folder, every)]


def _state_differs(state: StreamState, events: Events) -> Iterator[str]:
    every = np.ones(len(events.k), bool)
    for synopsis, summary in state.summaries.items():
        if summary.since != 0:
            yield f"{synopsis} begins with batch {summary.since}"
        yield from _sketch_differs(synopsis, summary.built, state.seed, events, every)
    for (synopsis, split), parts in state.parts.items():
        windows = split.windows
        assert windows is not None, "the views have no groups"
        kept, clock = _by_clock(windows, events)
        if state.clocks[windows] != clock:
            yield f"the clock is {state.clocks[windows]}, not {clock}"
        pane = events.at // windows.pane
        there = {p for p, _ in parts.cells}
        lowest = windows.lowest(clock.before)
        wanted = {int(p) for p in np.unique(pane[kept]) if lowest is None or p >= lowest}
        if not wanted <= there or parts.since != 0:
            yield f"{synopsis} has the panes {sorted(there)} and not {sorted(wanted - there)}"
        for (number, _), built in parts.cells.items():
            inside = kept & (pane == number)
            yield from _sketch_differs(synopsis, built, state.seed, events, inside)


def _by_clock(windows: Windows, events: Events) -> tuple[NDArray[np.bool_], Clock]:
    """Which events are in a window, and the clock after all batches."""
    kept = np.ones(len(events.at), bool)
    clock = Clock()
    for batch in range(int(events.batch.max()) + 1):
        own = events.batch == batch
        lowest, closed = windows.lowest(clock.latest), windows.closed(clock.latest)
        gone = own & (events.at // windows.pane < (lowest if lowest is not None else np.iinfo(np.int64).min))
        kept[gone] = False
        late = 0 if closed is None else int((own & kept & (events.at < closed)).sum())
        newest = max([int(events.at[own & kept].max()), *([] if clock.latest is None else [clock.latest])])
        clock = Clock(newest, clock.latest, clock.late + late, clock.dropped + int(gone.sum()))
    return kept, clock


def _sketch_differs(
    synopsis: Synopsis,
    built: Built,
    seed: int,
    events: Events,
    inside: NDArray[np.bool_],
) -> Iterator[str]:
    ones = np.ones(len(events.v), np.int64)
    by_text: Mapping[str | None, NDArray[np.int64]] = {None: ones, "`v`": events.v}
    weight = events.sign * (ones if synopsis.weight.presence else by_text[synopsis.weight.expression])
    if synopsis.filter is not None:
        inside = inside & (events.v < 50)
    sketch: Any = sketch_plan(synopsis, seed, "int64").empty()
    sketch.update([events.k[inside]] if synopsis.attributes else [], weight[inside])
    theirs: Any = built.sketch
    if not np.array_equal(sketch.dense().counters, theirs.dense().counters):
        yield f"the counters of {synopsis}"
    if built.tally.tuples != int(inside.sum()):
        yield f"{built.tally.tuples} events for {int(inside.sum())} in {synopsis}"


def _sinks_differ(folder: Path, every: Mapping[str, Events]) -> Iterator[str]:
    """What of the sinks is not every batch of each stream once, with what is exact as it is after that batch."""
    for view in SINKS:
        names = ("a",) if view == "counted" else NAMES
        rows = pa.concat_tables(pq.read_table(f) for f in sorted((folder / "sinks" / view).glob("*.parquet")))
        keys = [
            rows[n].to_pylist() for n in ("stream", "batch", *(["window_start"] if view == "recent" else []))
        ]
        told = list(zip(*keys, strict=True))
        if len(set(told)) != len(told):
            yield f"the sink of {view} has rows twice"
        if {t[:2] for t in told} != {(n, int(b)) for n in names for b in np.unique(every[n].batch)}:
            yield f"the sink of {view} has the batches {sorted({t[:2] for t in told})}"
        if view == "counted":
            events = every["a"]
            for n, s, batch in zip(*(rows[c].to_pylist() for c in ("n", "s", "batch")), strict=True):
                own = events.batch <= batch
                if (n, s) != (events.sign[own].sum(), (events.sign * events.v)[own].sum()):
                    yield f"the sink of {view} has {n}, {s} after batch {batch}"
