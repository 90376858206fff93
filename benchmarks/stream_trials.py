"""Views of streams on Arrow tables, fed by the product's own batches, beside numpy's exact answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.streams import StoredStream
from skimql.engine.memory_backend.batches import MemoryBuilder
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.answer import Answer
from skimql.engine.settings import Settings
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.describe import EXTENDED, show_queries
from skimql.engine.streams.store import continuous
from skimql.engine.streams.view_answer import answer
from skimql.engine.streams.views import define, planned
from skimql.engine.streams.windows import check_windows

from .trials import zipf

Ints = npt.NDArray[np.int64]
MINUTE = 60_000_000
COLUMNS = {"k": pa.int64(), "v": pa.int64(), "sign": pa.int64(), "ts": pa.timestamp("us", "UTC")}
NONE = pa.table({name: pa.array([], kind) for name, kind in COLUMNS.items()})
MADE = "2026-01-01T00:00:00Z"
NAMES = ("a", "b")
PANE = 10  # minutes that a batch takes
LENGTH = 4  # panes of a window
SLIDING = {
    "window": f"{LENGTH * PANE} minutes",
    "slide": f"{PANE} minutes",
    "time": "ts",
    "watermark": f"{PANE} minutes",
}
MOST_VALUE = 100


@dataclass(frozen=True, slots=True)
class Events:
    """Events of a stream: keys, values, how often each counts, times in microseconds, and the batch of each."""

    k: Ints
    v: Ints
    sign: Ints
    ts: Ints
    batch: Ints

    def take(self, chosen: npt.NDArray[Any]) -> Events:
        """Those events."""
        return Events(*(column[chosen] for column in (self.k, self.v, self.sign, self.ts, self.batch)))

    def table(self) -> pa.Table:
        """As a batch brings them."""
        columns = {n: pa.array(getattr(self, n), pa.int64()).cast(kind) for n, kind in COLUMNS.items()}
        return pa.table(columns)


def drawn(
    random: np.random.Generator,
    z: float,
    domain: int,
    shift: int,
    deleted: float,
    batches: int,
    rows: int,
    values: int = MOST_VALUE,
) -> Events:
    """Insertions of keys by a Zipf law, `rows` a batch; `deleted` of them are taken back up to three batches later.

    A key's values are random, below `values`; events are late by up to half of a batch. Each deletion has the time of
    its arrival, and so may be in another window than what it deletes.
    """
    law = zipf(domain, z, 1 << 40, shift).astype(np.float64)
    k = np.searchsorted(np.cumsum(law / law.sum()), random.random(batches * rows)).clip(0, domain - 1)
    v = random.integers(0, values, k.size)
    batch = np.repeat(np.arange(batches), rows)
    gone = random.random(k.size) < deleted
    later = batch[gone] + random.integers(0, 4, int(gone.sum()))
    k, v = np.concatenate([k, k[gone]]), np.concatenate([v, v[gone]])
    sign = np.where(np.arange(k.size) < batch.size, 1, -1)
    batch = np.concatenate([batch, later])
    ts = ((batch + random.uniform(-0.5, 1.0, k.size)).clip(0) * PANE * MINUTE).astype(np.int64)
    found = Events(k.astype(np.int64), v, sign, ts, batch)
    return found.take(random.permutation(np.flatnonzero(batch < batches)))


def truths(left: Events, right: Events, domain: int) -> dict[str, float]:
    """COUNT, SUM and AVG of a.v, and the keys in common, of what is there: inserted and not deleted."""

    def weights(e: Events, times: Ints) -> npt.NDArray[np.float64]:
        return np.bincount(e.k, times, domain)

    a, b = weights(left, left.sign), weights(right, right.sign)
    count, total = float(a @ b), float(weights(left, left.sign * left.v) @ b)
    return {
        "COUNT": count,
        "SUM": total,
        "AVG": total / count if count else float("nan"),
        "COUNT(DISTINCT) of the key": float(np.count_nonzero((a != 0) & (b != 0))),
        "COUNT(DISTINCT) of one stream": float(np.count_nonzero(a)),
    }


def stream(name: str) -> StoredStream:
    """A stream of keys and values with their signs and times."""
    columns = MemoryTables({name: NONE})[name].columns
    signs = ("coalesce(CAST((`sign`) AS BIGINT), 0L)", "WEIGHT sign")
    return StoredStream(name, name * 32, columns, "parquet", "", {}, *signs, True, "UTC", (), MADE)


@contextmanager
def running(
    views: Mapping[str, tuple[str, Mapping[str, str]]], seed: int, names: Sequence[str] = NAMES
) -> Iterator[Running]:
    """Streams with views, by name: SELECT and what WITH says; in a folder that goes afterwards.

    Raises
    ------
    SkimqlError
        If a view is refused.
    """
    fast = Path("/dev/shm")
    with TemporaryDirectory(dir=fast if fast.is_dir() else None) as folder:
        catalog, streams = Catalog(Path(folder) / "catalog"), {n: stream(n) for n in names}
        catalog.change_streams(lambda now, _: replace(now, streams=streams))
        typed = MemoryTables(dict.fromkeys(names, NONE)).typed
        for name, (text, options) in views.items():
            found, given = continuous(catalog), {**options, **check_windows(options, "")}
            ours = replace(Settings(), seed=seed)
            made = define(name, text, MemoryTables({}), found, ours, typed, given, text).view
            catalog.change_streams(lambda now, _, v=made: replace(now, views={**now.views, v.name: v}))
        yield Running(catalog, {n: Batches(catalog, n, MemoryBuilder(n), "memory") for n in names})


@dataclass
class Running:
    """Views that are fed, and asked as a session asks them."""

    catalog: Catalog
    handlers: dict[str, Batches[pa.Table]]

    def feed(self, events: Mapping[str, Events], number: int) -> None:
        """Both streams take their next batch."""
        for name, own in events.items():
            self.handlers[name](own.take(own.batch == number).table(), number)

    def asked(self, view: str) -> list[dict[str, Any]]:
        """The rows of a view, by column: cells as a session has them."""
        found = self._answer(view)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def method(self, view: str) -> str:
        """How the view is answered."""
        return self._answer(view).method

    def predicted(self, view: str) -> float | None:
        """The half-width that SHOW QUERIES EXTENDED expects of the first aggregate; None where it says nothing."""
        if "predicted" not in EXTENDED:
            return None
        found = show_queries(self.catalog, continuous(self.catalog).views[view], extended=True)
        value = found.rows[0][found.columns.index("predicted")]
        return None if value is None else float(value)

    def _answer(self, view: str) -> Answer:
        """From the states that the last batches left, which are those of the catalog."""
        found = continuous(self.catalog)
        return answer(
            planned(found.views[view], found.streams), {n: h.state for n, h in self.handlers.items()}
        )


def summed_up(errors: Sequence[float], missed: Sequence[bool], methods: Sequence[str]) -> dict[str, Any]:
    """What a record says of the answers of some seeds: root mean square of errors, misses, and by what they were."""
    return {
        "seeds": len(errors),
        "error": round(float(np.sqrt(np.mean(np.square(errors)))), 4),
        "missed": sum(missed),
        "answered_by": {m: methods.count(m) for m in sorted(set(methods))},
    }


def within(events: Events, last: int, start: int | None = None) -> Events:
    """What has come up to a batch, of the window that starts there (microseconds) or of all."""
    chosen = events.batch <= last
    if start is not None:
        chosen &= (events.ts >= start) & (events.ts < start + LENGTH * PANE * MINUTE)
    return events.take(chosen)


def checked(every: int, batches: int) -> Sequence[int]:
    """The batches after which views are asked."""
    return range(every - 1, batches, every)
