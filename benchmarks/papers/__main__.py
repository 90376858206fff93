"""`python -m benchmarks.papers [STUDY ...] --json FILE`: run studies, write records and figures."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

STUDIES = ("sharing", "allocation", "partitioning", "histograms", "skimmed", "join_distinct")
RESULTS = Path("benchmarks/results")
SHARED_NAMES = ("skimmed", "join_distinct")  # also studies of benchmarks.sketches, with figures of their own


def main() -> None:
    """Run the studies named on the command line, or all that are there."""
    present = {name: module for name in STUDIES if (module := study(name)) is not None}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    names = ", ".join(present)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"of {names}; all if none is named")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    parser.add_argument("--plots", type=Path, default=RESULTS, help="folder of the figures")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.studies if name not in present]
    if unknown:
        parser.error(f"unknown study {unknown[0]!r}; known: {names}")
    records: list[dict[str, Any]] = []
    for name in chosen.studies or present:
        start = time.perf_counter()
        found = present[name].run()
        figure = chosen.plots / (f"papers_{name}.png" if name in SHARED_NAMES else f"{name}.png")
        present[name].plot(found, figure)
        print(f"{name}: {len(found)} records in {time.perf_counter() - start:.0f} s, {figure}", flush=True)
        records += found
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


def study(name: str) -> ModuleType | None:
    """The module of a study, or None if this copy of the project has none of that name."""
    full = f"benchmarks.papers.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as missing:
        if missing.name == full:
            return None
        raise


if __name__ == "__main__":
    main()
