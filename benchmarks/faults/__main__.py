"""``python -m benchmarks.faults [--json FILE] [--studies kills,files,…] [--tries N] [--seed S]``.

Every study is a module of this package with a function ``run(tries, seed, folder)`` that gives a `Tally`, and a
number ``TRIES`` of tries by default. A line each goes to stdout; the exit code is 1 where any fault was found.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

STUDIES = ("kills", "files", "mutations", "numbers", "hints", "memory")


def main() -> int:
    """Run the studies that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults")
    parser.add_argument("--json", type=Path, help="file for the records")
    parser.add_argument("--studies", default=",".join(STUDIES), help="names, with commas between")
    parser.add_argument("--tries", type=int, help="tries of each study; each has its own default")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    records = []
    for name in chosen.studies.split(","):
        study = importlib.import_module(f"benchmarks.faults.{name}")
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            tally = study.run(chosen.tries or study.TRIES, chosen.seed, Path(folder))
        records.append({**asdict(tally), "faults": tally.faults, "seconds": time.perf_counter() - started})
        print(
            f"{name}: {tally.tries} tries, {tally.ours} errors of ours, {tally.faults} faults, "
            f"slowest {tally.slowest_seconds:.2f} s",
            flush=True,
        )
        if chosen.json:
            chosen.json.write_text(json.dumps(records, indent=1) + "\n")
    return int(any(r["faults"] for r in records))


if __name__ == "__main__":
    sys.exit(main())
