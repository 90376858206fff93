"""Views of two skewed streams against numpy: ``python -m benchmarks.stream_accuracy --json FILE``.

Paired seeds on the memory backend: two streams of Zipf keys, the second shifted, with deletions, in batches; the view
as it is by default, and ``USING hash``, in equal bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skimql.engine.catalog.streams import Continuous, StoredStream
from skimql.engine.memory_backend.build import build_from
from skimql.engine.memory_backend.relations import Relations
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings
from skimql.engine.streams.planned import PlannedView
from skimql.engine.streams.state import StreamState, batch_plan, times_of
from skimql.engine.streams.view_answer import answer
from skimql.engine.streams.views import define
from skimql.sketches.intervals.interval import Estimate

from .trials import zipf

AT = "2026-01-01T00:00:00Z"
DOMAIN, DELETED = 1 << 18, 0.2
SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
METHODS = {"default": "", "hash": " USING hash"}


def stream(name: str) -> StoredStream:
    """A stream of keys and signs."""
    schema = MemoryTables({name: pa.table({"k": pa.array([], pa.int64()), "sign": pa.array([], pa.int64())})})
    columns = schema[name].columns
    return StoredStream(
        name, name * 32, columns, "parquet", "", {}, "`sign`", "WEIGHT sign", True, "UTC", (), AT
    )


def events(
    random: np.random.Generator, z: float, shift: int, tuples: int, batches: int
) -> Iterator[pa.Table]:
    """Insertions of Zipf keys, and the deletions of some of them, in batches."""
    frequencies = zipf(DOMAIN, z, tuples, shift)
    keys = random.permutation(np.repeat(np.arange(DOMAIN), frequencies))
    gone = keys[random.random(len(keys)) < DELETED]
    both = np.concatenate([keys, gone])
    signs = np.concatenate([np.ones(len(keys), np.int64), -np.ones(len(gone), np.int64)])
    order = random.permutation(len(both))
    for part in np.array_split(order, batches):
        yield pa.table({"k": both[part], "sign": signs[part]})


def planned(text: str, streams: dict[str, StoredStream], seed: int) -> PlannedView:
    """A view as CREATE CONTINUOUS VIEW plans it."""
    tables = MemoryTables(
        {n: pa.table({"k": pa.array([], pa.int64()), "sign": pa.array([], pa.int64())}) for n in streams}
    )
    ours = replace(Settings(), seed=seed)
    return define("q", text, MemoryTables({}), Continuous(streams), ours, tables.typed, {}, text)


def fed(view: PlannedView, own: StoredStream, batches: Sequence[pa.Table]) -> StreamState:
    """The state of a stream after its batches."""
    state = StreamState(own.id, view.view.seed)
    plan = batch_plan(view.query, view.view.seed, own, view.asked_of(own.name))
    for number, batch in enumerate(batches):
        built = build_from(plan, Relations(plan, MemoryTables({own.name: batch})), {own.name: times_of(own)})
        state = state.after(number, "", dict(zip(plan.synopses, built, strict=True)), {}, AT)
    return state


def trial(z: float, shift: int, tuples: int, size: int, seed: int) -> tuple[dict[str, Estimate], float]:
    """The estimates of a seed by each method, and the truth."""
    random = np.random.default_rng(seed)
    streams = {n: stream(n) for n in ("a", "b")}
    batches = {n: list(events(random, z, s, tuples, 4)) for n, s in (("a", 0), ("b", shift))}
    net = [_net(batches[n]) for n in ("a", "b")]
    found = {}
    for method, words in METHODS.items():
        view = planned(f"{SELECT}{words} SIZE {size} B", streams, seed)
        states = {n: fed(view, streams[n], batches[n]) for n in streams}
        assert sum(s.nbytes for s in states.values()) <= size + 100, "the bytes that were asked"
        (cell,) = answer(view, states).rows[0]
        found[method] = cell
    return found, float(net[0] @ net[1])


def _net(batches: Sequence[pa.Table]) -> npt.NDArray[np.float64]:
    whole = pa.concat_tables(batches)
    return np.bincount(whole["k"].to_numpy(), whole["sign"].to_numpy(), DOMAIN)


def records(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """A record for each data set and method."""
    for z, shift in ((1.0, options.shift), (0.5, options.shift), (1.5, options.shift)):
        errors: dict[str, list[float]] = {m: [] for m in METHODS}
        halves: dict[str, list[float]] = {m: [] for m in METHODS}
        misses = dict.fromkeys(METHODS, 0)
        for seed in range(options.seeds):
            found, truth = trial(z, shift, options.tuples, 2 * options.bytes, seed)
            for method, e in found.items():
                errors[method].append(abs(e.value - truth) / truth)
                halves[method].append((e.high - e.low) / 2 / truth)
                misses[method] += not e.low <= truth <= e.high
        of_hash = float(np.mean(errors["hash"]))
        for method in METHODS:
            yield {
                "study": "two streams",
                "method": method,
                "z": z,
                "shift": shift,
                "bytes_each": options.bytes,
                "deletes": DELETED,
                "seeds": options.seeds,
                "mean_relative_error": round(float(np.mean(errors[method])), 4),
                "of_hash": round(float(np.mean(errors[method])) / of_hash, 3) if of_hash else None,
                "median_half_width": round(float(np.median(halves[method])), 4),
                "misses": misses[method],
            }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--tuples", type=int, default=400_000)
    parser.add_argument("--bytes", type=int, default=32 << 10)
    parser.add_argument("--shift", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for one in records(options):
        found.append(one)
        print(one, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
