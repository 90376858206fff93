"""Streams on several keys at equal bytes: ``python -m benchmarks.stream_chains [--seeds 20] [--json FILE]``.

A chain of three streams, ``a.k = b.k AND b.v = c.k``, flat and Zipf keys, some of what was inserted is deleted again,
on the memory backend beside numpy: how far a COUNT is off (root mean square), how many 95 % intervals miss and how wide
these are, by convolution sketches (``USING hash``), by sample x sketch, and by what the view takes of itself, planned
from the first batch.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.memory_backend.batches import MemoryBuilder
from skimql.engine.streams.by_pilot import is_open, maps_of, settings_by_least_error
from skimql.engine.streams.state import times_of
from skimql.engine.streams.store import continuous
from skimql.engine.streams.views import planned, residual_of
from skimql.optimizer.plan import Plan, Scan

from .stream_trials import Events, drawn, running, summed_up
from .trials import zipf

NAMES = ("a", "b", "c")
SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.k SIZE {} KB"
METHODS = {"convolution": " USING hash", "sample_sketch": " USING sample_sketch", "default": ""}
LAWS, SIZES, DELETED = (0.0, 0.5, 1.0, 1.5), (24, 96), (0.0, 0.5)
DOMAIN, BATCHES, ROWS = 2_000, 5, 4_000
VALUES = 1 << 20


def trial(z: float, deleted: float, size: int, seed: int) -> dict[str, tuple[float, bool, float, str]]:
    """By method: relative error, whether the interval misses, its relative half-width, the method that answered."""
    random = np.random.default_rng([seed, round(10 * z), round(100 * deleted)])
    law = zipf(DOMAIN, z, 1 << 40, 0).astype(np.float64)
    ends = np.cumsum(law / law.sum())
    events = {n: drawn(random, z, DOMAIN, 0, deleted, BATCHES, ROWS, VALUES) for n in NAMES}
    # The second key is a function of the value, so that a deletion has that of its insertion.
    second = np.searchsorted(ends, events["b"].v / VALUES).clip(0, DOMAIN - 1)
    events["b"] = replace(events["b"], v=second.astype(np.int64))
    of_a, of_c = (np.bincount(events[n].k, events[n].sign, DOMAIN) for n in "ac")
    truth = float(np.sum(events["b"].sign * of_a[events["b"].k] * of_c[events["b"].v]))
    views = {name: (SELECT.format(size) + using, {}) for name, using in METHODS.items()}
    found = {}
    for name, view in views.items():
        with running({name: view}, seed + 1, NAMES) as run:
            if name != "convolution":
                plan_from(run.catalog, name, {n: e.take(e.batch == 0) for n, e in events.items()})
            for batch in range(BATCHES):
                run.feed(events, batch)
            cell: Any = run.asked(name)[0]["n"]
            missed = not cell.low <= truth <= cell.high
            width = (cell.high - cell.low) / 2 / truth
            found[name] = (cell.value / truth - 1.0, missed, width, run.method(name))
    return found


def plan_from(catalog: Catalog, name: str, first: dict[str, Events]) -> None:
    """Plan a view from first events, as a session does from the files that are there."""
    found = continuous(catalog)
    shown = planned(found.views[name], found.streams)
    residual = residual_of(shown.query, shown.view.folds)
    assert is_open(shown, residual), "of several keys"
    plan, built = maps_of(shown, residual), {}
    for stream, own in first.items():
        synopses = tuple(s for s in plan.synopses if s.table == stream)
        part = Plan(plan.query, plan.seed, synopses, (Scan(stream, tuple(range(len(synopses)))),), (), (), ())
        table: pa.Table = own.table()
        made, _ = MemoryBuilder(stream).build(table, part, times_of(found.streams[stream], synopses))
        built.update(zip(synopses, made, strict=True))
    settings = settings_by_least_error(shown, residual, plan, built)
    view = replace(shown.view, settings={**shown.view.settings, **settings})
    catalog.change_streams(lambda now, _: replace(now, views={**now.views, name: view}))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records = []
    for z in LAWS:
        for deleted in DELETED:
            for size in SIZES:
                looks = [trial(z, deleted, size, seed) for seed in range(options.seeds)]
                for name in METHODS:
                    errors, missed, widths, methods = zip(*(one[name] for one in looks), strict=True)
                    record = {
                        "z": z,
                        "deleted": deleted,
                        "kb": size,
                        "method": name,
                        "half_width": round(float(np.median(widths)), 4),
                        **summed_up(errors, missed, methods),
                    }
                    records.append(record)
                    print(record, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
