"""What parts of domains gain at equal bytes: ``python -m benchmarks.stream_parts [--seeds 12] [--json FILE]``.

Two streams on one key, and three on two, as a set of one view on the memory backend beside numpy: whole hash sketches,
the view as it is by default, and ``PARTITION INTO 4`` planned from the first events. Frequent keys are the same in all
streams (alike) or drawn for each by itself (apart). Records: {streams, z, keys, asked, seeds, error, missed,
answered_by}; `error` is the root mean square of relative errors.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.streams import Continuous
from skimql.engine.memory_backend.batches import MemoryBuilder
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings
from skimql.engine.streams.state import times_of
from skimql.engine.streams.store import continuous
from skimql.engine.streams.view_sets import define_set
from skimql.engine.synopses import Built
from skimql.optimizer.plan import Plan, Scan, Synopsis
from skimql.parser.statement import parse_statement

from .stream_trials import NONE, Events, Ints, running, summed_up
from .trials import zipf

JOINS = {
    2: ("a JOIN b ON a.k = b.k", "256 KB", 20_000, 100_000, 20_000),
    3: ("a JOIN b ON a.k = b.k JOIN c ON b.v = c.k", "400 KB", 300, 5_000, 1_500),
}
LAWS = {2: (0.0, 0.5, 1.0, 1.5), 3: (0.0, 1.0)}
ASKED = {"hash": (" USING hash", ""), "default": ("", ""), "parts": ("", " PARTITION INTO 4")}


def keys(random: np.random.Generator, z: float, domain: int, events: int, names: Ints) -> Ints:
    """Keys by a Zipf law, the n-th most frequent one being ``names[n]``."""
    law = zipf(domain, z, 1 << 40, 0).astype(np.float64)
    return np.asarray(names[random.choice(domain, events, p=law / law.sum())], np.int64)


def drawn(
    random: np.random.Generator, streams: int, z: float, apart: bool
) -> tuple[dict[str, Events], float]:
    """Events of every stream, and the exact count of the join."""
    _, _, domain, events, _ = JOINS[streams]

    def names() -> Ints:
        return random.permutation(domain).astype(np.int64)

    first, second = names(), names()

    def column(shared: Ints) -> Ints:
        return keys(random, z, domain, events, names() if apart else shared)

    ones, zeros = np.ones(events, np.int64), np.zeros(events, np.int64)
    found = {"a": column(first), "b": column(first)}
    far = column(second) if streams == 3 else zeros
    if streams == 3:
        found["c"] = column(second)
    counts = {n: np.bincount(k, minlength=domain).astype(np.float64) for n, k in found.items()}
    others = counts["c"][far] if streams == 3 else ones
    truth = float(counts["a"][found["b"]] @ others)
    values = {"a": zeros, "b": far, "c": zeros}
    return {n: Events(k, values[n], ones, zeros, zeros) for n, k in found.items()}, truth


def declare(catalog: Catalog, statement: str, seed: int, first: Mapping[str, Events]) -> None:
    """A set of views, planned from first events as a session does from the files that are there."""
    found, parsed = continuous(catalog), parse_statement(statement)

    def pilot(maps: Plan) -> dict[Synopsis, Built]:
        built: dict[Synopsis, Built] = {}
        for scan in maps.scans:
            own = tuple(maps.synopses[i] for i in scan.synopses)
            part = replace(maps, synopses=own, scans=(Scan(scan.table, tuple(range(len(own)))),))
            times = times_of(found.streams[scan.table.lower()], own)
            made, _ = MemoryBuilder(scan.table).build(first[scan.table].table(), part, times)
            built.update(zip(own, made, strict=True))
        return built

    typed = MemoryTables(dict.fromkeys(found.streams, NONE)).typed
    made = define_set(parsed, MemoryTables({}), found, Settings(seed=seed, sparse=False), typed, {}, pilot)
    views = {v.view.name.lower(): v.view for v in made.views}
    catalog.change_streams(lambda now, _: Continuous(now.streams, views, {"w": made.stored}))


def trial(streams: int, z: float, apart: bool, seed: int) -> dict[str, tuple[float, bool, str]]:
    """By what is asked: relative error, whether the interval misses, the method that answered."""
    join, size, _, _, pilot = JOINS[streams]
    random = np.random.default_rng([seed, streams, round(10 * z), apart])
    events, truth = drawn(random, streams, z, apart)
    first = {n: e.take(np.arange(pilot)) for n, e in events.items()}
    found = {}
    for asked, (using, parts) in ASKED.items():
        text = (
            f"CREATE CONTINUOUS VIEWS w (q AS (SELECT COUNT(*) AS n FROM {join}{using}))"
            f" SIZE {size} MINIMIZE AVERAGE ERROR{parts}"
        )
        with running({}, seed + 1, tuple(events)) as run:
            declare(run.catalog, text, seed + 1, first)
            run.feed(events, 0)
            cell: Any = run.asked("q")[0]["n"]
            found[asked] = (cell.value / truth - 1.0, not cell.low <= truth <= cell.high, run.method("q"))
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records = []
    for streams, laws in LAWS.items():
        for z in laws:
            for apart in (False, True) if z else (False,):
                looks = [trial(streams, z, apart, seed) for seed in range(options.seeds)]
                for asked in ASKED:
                    errors, missed, methods = zip(*(one[asked] for one in looks), strict=True)
                    record = {
                        "streams": streams,
                        "z": z,
                        "keys": "apart" if apart else "alike",
                        "asked": asked,
                        **summed_up(errors, missed, methods),
                    }
                    records.append(record)
                    print(record, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
