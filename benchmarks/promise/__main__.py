"""Classes of hostile and of ordinary data, by the product's own plans, and how often the answers keep their promise.

``python -m benchmarks.promise --json FILE [--classes a,b] [--kinds ...] [--seeds N] [--from N] [--routes ...]``.
One record a cell (class, aggregate, asked error, route): ``state``, ``covered``, ``wrong_and_met`` and the like, and
what the answers cost. Cells that FILE has are not run again: it is written after each cell, and a run that was
stopped goes on where it was. At the end: cells that break the promise, and the pooled rates of the ordinary classes.
Exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from . import hostile_keys, hostile_mixed, hostile_other, hostile_values, ordinary  # noqa: F401 - they register their classes
from .cells import pooled
from .data import CLASSES, DataClass
from .memory_run import DRAWS, LOOKS, cells, wanted
from .routes import ERRORS, ROUTES
from .summary import summary

TUPLES = 50_000


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument(
        "--also", type=Path, nargs="*", default=[], help="files of other runs, which are read and not written"
    )
    parser.add_argument("--classes", default="", help="names, separated by commas; default: all")
    parser.add_argument("--kinds", default="", help="of classes")
    parser.add_argument("--routes", default=",".join(ROUTES), help=f"of {', '.join(ROUTES)}")
    parser.add_argument("--errors", default=",".join(map(str, ERRORS)))
    parser.add_argument(
        "--aggregates", default="", help="with Spark: statements with one of these; default: all"
    )
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument(
        "--from", type=int, default=0, dest="first", help="the first seed: more of the same cells"
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of the data, which the seeds share")
    parser.add_argument(
        "--together", action="store_true", help="COUNT, SUM and AVG in one statement: a third of the time"
    )
    parser.add_argument("--rows", type=int, default=TUPLES)
    parser.add_argument("--backend", choices=("memory", "spark"), default="memory")
    parser.add_argument("--summary", action="store_true", help="of what FILE has; nothing is run")
    parser.add_argument("--cells", action="store_true", help="a line for each cell in the summary")
    options = parser.parse_args()
    found: list[dict[str, Any]] = json.loads(options.json.read_text()) if options.json.exists() else []
    others = [record for path in options.also for record in json.loads(path.read_text())]
    if not options.summary:
        run(options, found, others)
    return summary([*others, *found], cells=options.cells)


def run(
    options: argparse.Namespace, found: list[dict[str, Any]], others: Sequence[dict[str, Any]] = ()
) -> None:
    """Run the cells that are asked for and neither found before nor by others."""
    names = [n for n in options.classes.split(",") if n] or list(CLASSES)
    kinds = [k for k in options.kinds.split(",") if k]
    errors = [float(e) for e in options.errors.split(",")]
    known = {
        (r["class"], r["aggregate"], r["error_asked"], r["route"])
        for r in (*others, *found)
        if r.get("from", 0) == options.first
    } | settled([*others, *found])
    began, answers = time.perf_counter(), 0
    for name in names:
        chosen = CLASSES[name]
        if kinds and chosen.kind not in kinds:
            continue
        started = time.perf_counter()
        made: Iterable[dict[str, Any]] = ()
        asked = [w for w in wanted(chosen, options.routes.split(","), errors) if (name, *w) not in known]
        if options.backend == "spark":
            made = _on_spark(chosen, errors, options, {(a, e, r) for n, a, e, r in known if n == name})
        elif asked:
            seeds = range(options.first, options.first + options.seeds)
            made = cells(chosen, asked, seeds, options.rows, options.draws, together=options.together)
        own = 0
        for record in made:
            found.append({**_plain(record), "rows": options.rows})
            own += record["seeds"]
            _write(options.json, found)
        if not own:
            continue
        answers += own
        took = time.perf_counter() - started
        print(f"{name}: {took:.0f} s, {own / took:.0f} answers/s", file=sys.stderr)
    took = time.perf_counter() - began
    if answers:
        print(f"{answers:,} answers in {took:,.0f} s, {answers / took:.0f} a second")


def settled(found: list[dict[str, Any]]) -> set[tuple[str, str, float, str]]:
    """The cells of which no further seed is asked: so many have been exact."""
    return {
        (r["class"], r["aggregate"], r["error_asked"], r["route"])
        for r in pooled(found)
        if r["backend"] == "memory" and r["states"]["exact"] == r["seeds"] >= LOOKS[0]
    }


def _on_spark(
    chosen: DataClass,
    errors: Sequence[float],
    options: argparse.Namespace,
    known: Set[tuple[str, float, str]],
) -> Iterable[dict[str, Any]]:
    """The cells of a class end to end, by statements of which one cell is not known."""
    from .spark_run import STATEMENTS, route_of, spark_cells, spark_session

    wished = [a for a in options.aggregates.split(",") if a]
    asked = [
        (s, e)
        for s in STATEMENTS
        if not wished or set(wished) & set(s)
        for e in errors
        if (s[0], e, route_of(s)) not in known
    ]
    if not asked:
        return ()
    return spark_cells(spark_session(), chosen, asked, options.seeds, options.rows)


def _write(path: Path, found: Sequence[Mapping[str, Any]]) -> None:
    """Write a file as a whole or not at all."""
    whole = path.with_name(f"{path.name}.new")
    whole.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
    whole.replace(path)


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}


if __name__ == "__main__":
    sys.exit(main())
