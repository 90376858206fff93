"""Key samples of streams beside their sketches: ``python -m benchmarks.stream_samples [--using key_sample]``.

Two and three streams on one key, flat and Zipf keys, 20 % of what was inserted is deleted again, on the memory backend
beside numpy: how far a COUNT, a SUM and an AVG are off (root mean square), how many 95 % intervals miss, and how wide
these are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .stream_trials import Events, Ints, drawn, running

# Streams, exponent, how far each is shifted, keys.
CELLS = (
    (2, 0.0, 0, 2_000),
    (2, 0.5, 50, 20_000),
    (2, 1.0, 0, 20_000),
    (2, 1.0, 100, 20_000),
    (2, 1.5, 10, 20_000),
)
CELLS += (
    (3, 0.0, 0, 2_000),
    (3, 0.5, 20, 20_000),
    (3, 1.0, 0, 20_000),
    (3, 1.0, 20, 20_000),
    (3, 1.5, 0, 20_000),
)
BYTES = 16  # of each stream's sketch, in KB
BATCHES, ROWS, DELETED = 4, 15_000, 0.2
TERMS = ("COUNT(*)", "SUM(a.v)", "AVG(a.v)")


def cell(streams: int, z: float, shift: int, domain: int, seeds: int, using: str) -> Iterator[dict[str, Any]]:
    """A record for each aggregate."""
    names = "abc"[:streams]
    joins = " ".join(f"JOIN {n} ON a.k = {n}.k" for n in names[1:])
    method = f" USING {using}" if using else ""
    select = f"SELECT APPROXIMATE {{}} AS x FROM a {joins} SIZE {BYTES * streams} KB{method}"
    views = {f"v{i}": (select.format(term), {}) for i, term in enumerate(TERMS)}
    looks: dict[str, list[tuple[float, bool, float]]] = {term: [] for term in TERMS}
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        events = {n: drawn(random, z, domain, shift * i, DELETED, BATCHES, ROWS) for i, n in enumerate(names)}
        truths = true_answers(events, domain)
        with running(views, seed + 1, names) as run:
            for batch in range(BATCHES):
                run.feed(events, batch)
            for i, term in enumerate(TERMS):
                found, truth = run.asked(f"v{i}")[0]["x"], truths[term]
                inside = found.low <= truth <= found.high
                width = (found.high - found.low) / 2 / abs(truth)
                looks[term].append((found.value / truth - 1.0, not inside, width))
    for term, own in looks.items():
        errors, missed, widths = (np.array(column) for column in zip(*own, strict=True))
        yield {
            "streams": streams,
            "z": z,
            "shift": shift,
            "using": using,
            "term": term,
            "seeds": seeds,
            "error": round(float(np.sqrt(np.mean(errors**2))), 4),
            "missed": int(missed.sum()),
            "half_width": round(float(np.median(widths)), 4),
        }


def true_answers(events: dict[str, Events], domain: int) -> dict[str, float]:
    """COUNT, SUM and AVG of what is there."""

    def weights(own: Events, times: Ints) -> Any:
        return np.bincount(own.k, times, domain)

    first, *others = events.values()
    joined = np.prod([weights(e, e.sign) for e in others], axis=0)
    count = float(weights(first, first.sign) @ joined)
    total = float(weights(first, first.sign * first.v) @ joined)
    return dict(zip(TERMS, (count, total, total / count), strict=True))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--using", default="key_sample", help="'' for the default")
    parser.add_argument("--cells", type=int, nargs="+", default=range(len(CELLS)))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for number in options.cells:
        for record in cell(*CELLS[number], options.seeds, options.using):
            found.append(record)
            print(record, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
