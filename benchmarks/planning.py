"""CPU seconds of planning: ``python -m benchmarks.planning --json FILE``.

Every query of a file (STATS-CEB, as for `benchmarks.accuracy`) is planned for an interval of 5 %, on what a pilot
tells: *free*, and *sampled*, where neither messages nor an exact run are allowed, so that every method has to be sized.

Records: ``{query, tables, asked, cpu_s, candidates, taken}``. Prints p50, p95 and the largest.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skimql.optimizer.candidates.enumerate import NoMethod, Objective, choose_method

from .accuracy import load
from .join_queries import JoinQuery
from .query_statistics import pilot_statistics

CARRIED_OUT = ("exact", "hash", "convolution", "key_sample", "two_level", "sampled_messages", "exact_run")
ASKED = {
    "free": Objective(relative_error=0.05, methods=CARRIED_OUT),
    "sampled": Objective(relative_error=0.05, methods=CARRIED_OUT[1:-1], fold_bytes=0),
}
Record = dict[str, Any]


def measure(queries: Sequence[JoinQuery]) -> Iterator[Record]:
    """One record for each query and objective."""
    for query in queries:
        statistics = pilot_statistics(query)
        for asked, objective in ASKED.items():
            started = time.process_time()
            try:
                choice = choose_method(query.tree, statistics, objective)
                candidates, taken = choice.candidates, choice.taken.name
            except NoMethod as fault:
                candidates, taken = fault.candidates, "none"
            yield {
                "query": query.id,
                "tables": query.tree.vertices,
                "asked": asked,
                "cpu_s": time.process_time() - started,
                "candidates": len(candidates),
                "taken": taken,
            }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th query only, for a quick look")
    chosen = parser.parse_args()
    records = list(measure(load(chosen.queries, chosen.data)[:: chosen.every]))
    for asked in ASKED:
        seconds = [r["cpu_s"] for r in records if r["asked"] == asked]
        p50, p95, most = np.percentile(seconds, (50, 95, 100))
        print(f"{asked:8} {len(seconds)} queries, CPU s: p50 {p50:.4f}  p95 {p95:.4f}  most {most:.4f}")
    if chosen.json:
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
