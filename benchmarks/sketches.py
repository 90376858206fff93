"""Error of every sketch against space: python -m benchmarks.sketches [STUDY ...] --json FILE.

Prints a table, writes plots (error against bytes, log-log) under benchmarks/results/ and the records to FILE.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from . import report
from .registry import STUDIES, Options, run_study
from .trials import Record

# Modules that register studies; a new method adds its own.
MODULES = ("joins", "distinct", "join_distinct", "skimmed", "key_sample", "two_level")
LEAST_SEEDS = 24


def main(arguments: list[str] | None = None) -> None:
    """Run the studies that are asked for, all by default."""
    for module in MODULES:
        import_module(f".{module}", __package__)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sketches", description=__doc__)
    parser.add_argument("study", nargs="*", help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--json", type=Path, help="file for the records")
    parser.add_argument("--seeds", type=int, default=LEAST_SEEDS)
    parser.add_argument("--quick", action="store_true", help="few cells and sizes, no plots")
    options = parser.parse_args(arguments)
    unknown = set(options.study) - set(STUDIES)
    if unknown:
        parser.error(f"unknown study {sorted(unknown)[0]!r}; known: {', '.join(STUDIES)}")
    records: list[Record] = []
    print(report.header())
    for name in options.study or STUDIES:
        found = []
        for record in run_study(name, Options(options.seeds, options.quick)):
            print(report.line_of(record), flush=True)
            found.append(record)
        if not options.quick and len({r["words"] for r in found}) > 1:
            report.plot(found, report.RESULTS / f"{name}.png")
        records += found
        if options.json:
            report.write_json(records, options.json)


if __name__ == "__main__":
    main()
