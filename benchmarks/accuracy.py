"""Accuracy of whole queries: the planner's choice, run in memory, at a given size.

``python -m benchmarks.accuracy --json FILE [--queries FILE] [--data FOLDER] [--seeds N]`` (and ``--classes 2 --modes
synopses --first-seed 100`` for a part of it) answers every query of a
file in the form of STATS-CEB's sub-plan queries at 16 KB, 100 KB and 1 MB and prints the q-error, beside the
published estimates in the file. ``--predicted`` compares predicted with realised errors instead
(`benchmarks.predicted`). The size bounds everything a query holds: sketches, samples and messages together.

*synopses*: each table's synopsis is built on that table by itself, and so are its sizes and dense keys: what streams
have. *free*: stored tables, read in the order that the planner wants; it knows exact statistics or (``--pilot``) what
`query_statistics.pilot_statistics` describes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skimql.optimizer.candidates.candidate import Choice
from skimql.optimizer.candidates.enumerate import Candidate, NoMethod, Objective, choose_method
from skimql.optimizer.methods import CHOSEN
from skimql.optimizer.prediction.relation import RelationStatistics
from skimql.sketches.intervals.interval import Estimate

from .in_memory import run_alone, run_choice
from .join_queries import JoinQuery, read_queries
from .lahman import lahman_queries
from .query_statistics import alone_statistics, exact_statistics, pilot_statistics
from .report import RESULTS

SIZES = (16_384, 102_400, 1 << 20)
MODES = ("synopses", "free")
PERCENTILES = (50, 90, 95, 99)
# Synopses only, queries on two key classes: bytes, percentile, the most that its q-error may be.
BARS = ((102_400, "p50", 2.0), (1 << 20, "p50", 1.12), (1 << 20, "p90", 1.7))
Record = dict[str, Any]


def q_error(estimate: float, truth: float) -> float:
    """Factor by which an estimate is off; both are taken as one tuple at least."""
    a, b = max(estimate, 1.0), max(truth, 1.0)
    return max(a / b, b / a)


def planned(query: JoinQuery, statistics: Sequence[RelationStatistics], mode: str, size: int) -> Choice:
    """What the planner chooses for a query: in mode ``free`` tables may be read one after another."""
    objective = Objective(size_bytes=size, ordered=mode == "free")
    if mode == "free":
        # The scans of a sample look at its keys alone: no totals.
        objective = replace(objective, methods=CHOSEN, regressed=False)
    return choose_method(query.tree, statistics, objective)


def measure(
    queries: Sequence[JoinQuery],
    seeds: Sequence[int],
    sizes: Sequence[int] = SIZES,
    *,
    pilot: bool = False,
    modes: Sequence[str] = MODES,
) -> Iterable[Record]:
    """One record for each query, mode and size; `pilot`: free choice knows what a cheap pilot tells.

    Yields
    ------
    dict
        ``id, tables, classes, mode, bytes, method, held`` (most bytes held), ``q_errors`` and ``covered`` (one for
        each seed), ``width`` (median half-width over the truth).
    """
    for query in queries:
        free = pilot_statistics if pilot else exact_statistics
        for mode, gathered in (("synopses", alone_statistics), ("free", free)):
            if mode not in modes or (pilot and mode == "synopses"):
                continue
            statistics = gathered(query)
            for size in sizes:
                try:
                    choice = planned(query, statistics, mode, size)
                except NoMethod as fault:
                    yield _refused(query, mode, size, str(fault))
                    continue
                taken = choice.taken
                if mode == "free":
                    runs = [run_choice(query, choice, seed, size) for seed in seeds]
                else:
                    runs = [run_alone(query, taken, seed, size) for seed in seeds]
                yield _record(query, mode, size, taken, runs)


def _record(
    query: JoinQuery, mode: str, size: int, taken: Candidate, runs: Sequence[tuple[Estimate, int]]
) -> Record:
    estimates = [estimate for estimate, _ in runs]
    return {
        "id": query.id,
        "tables": len(query.relations),
        "classes": len(query.tree.classes),
        "mode": mode,
        "bytes": size,
        "method": taken.method,
        "held": max(held for _, held in runs),
        "q_errors": [q_error(e.value, query.truth) for e in estimates],
        "covered": [bool(e.low <= query.truth <= e.high) for e in estimates],
        "width": float(np.median([e.half_width for e in estimates])) / max(query.truth, 1.0),
    }


def _refused(query: JoinQuery, mode: str, size: int, reason: str) -> Record:
    known = {"id": query.id, "tables": len(query.relations), "classes": len(query.tree.classes)}
    asked = {"mode": mode, "bytes": size, "method": "refused", "held": 0, "reason": reason}
    return known | asked | {"q_errors": [], "covered": [], "width": np.nan}


def summary(records: Sequence[Record]) -> list[Record]:
    """``mode, bytes, classes (one|two|all), p50, p90, p95, p99, coverage`` over queries and seeds.

    Queries that the planner refused for want of space have no error; they are counted as ``refused``.
    """
    lines = []
    for mode in ("synopses", "free"):
        for size in sorted({r["bytes"] for r in records}):
            for classes, number in (("one", 1), ("two", 2), ("all", None)):
                chosen = [
                    r
                    for r in records
                    if (r["mode"], r["bytes"]) == (mode, size) and number in (None, r["classes"])
                ]
                if not any(r["q_errors"] for r in chosen):
                    continue
                errors = np.concatenate([r["q_errors"] for r in chosen])
                line: Record = {"mode": mode, "bytes": size, "classes": classes}
                line |= percentiles(errors)
                line["coverage"] = float(np.mean(np.concatenate([r["covered"] for r in chosen])))
                line["median_half_width"] = float(np.nanmedian([r["width"] for r in chosen]))
                line["held"] = max(r["held"] for r in chosen)
                line["queries"] = len(chosen)
                line["refused"] = sum(r["method"] == "refused" for r in chosen)
                methods = [r["method"] for r in chosen]
                line["methods"] = {m: methods.count(m) for m in sorted(set(methods))}
                lines.append(line)
    return lines


def percentiles(errors: Any) -> Record:
    """``p50`` to ``p99`` of q-errors."""
    found = np.percentile(errors, PERCENTILES)
    return {f"p{p}": float(value) for p, value in zip(PERCENTILES, found, strict=True)}


def bar_lines(lines: Sequence[Record]) -> Iterable[str]:
    """Each bar that the lines speak of, with what was measured."""
    for size, percentile, most in BARS:
        for line in lines:
            if (line["mode"], line.get("bytes"), line["classes"]) == ("synopses", size, "two"):
                met = "ok    " if line[percentile] <= most else "MISSED"
                found = f"{percentile} {line[percentile]:.3f} (bar <= {most})"
                yield f"{met} synopses, two classes, {size:,} bytes: {found}"


def published(queries: Sequence[JoinQuery]) -> list[Record]:
    """The same percentiles of the estimates that the file brings along; their sizes are not those of this study."""
    lines = []
    for method in dict.fromkeys(name for q in queries for name in q.published):
        for classes in ("one", "all"):
            errors = [
                q_error(q.published[method], q.truth)
                for q in queries
                if method in q.published and (classes == "all" or q.one_class)
            ]
            if errors:
                line: Record = {"mode": "published", "method": method, "classes": classes}
                lines.append(line | percentiles(errors) | {"queries": len(errors)})
    return lines


def default_data() -> Path | None:
    """STATS-CEB beside the checkout, where that is laid out so; else None."""
    here = Path(__file__).resolve().parents[1]
    for root in (here.parent, here.parent.parent):
        if (root / "shared" / "data" / "stats" / "queries.json").exists():
            return root / "shared" / "data" / "stats"
    return None


def load(queries: Path | None, data: Path | None) -> list[JoinQuery]:
    """The queries to measure: of the given file and folder, STATS-CEB, or Lahman."""
    folder = data or default_data()
    if folder is None and queries is None:
        return lahman_queries()
    if folder is None:
        raise SystemExit("--queries needs --data: the folder of the Parquet tables")
    return read_queries(queries or folder / "queries.json", folder)


def text_of(line: Record) -> str:
    """A summary record as a line."""
    first = line.get("method") or f"{line['bytes']:,} bytes"
    figures = "  ".join(f"p{p} {line[f'p{p}']:10.3f}" for p in PERCENTILES)
    rest = (
        f"  covered {line['coverage']:.3f}  held {line['held']:,}  {line['methods']}"
        if "coverage" in line
        else ""
    )
    return f"{line['mode']:9} {first:18} {line['classes']:4} {figures}{rest}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    parser.add_argument("--classes", type=int, help="queries on so many key classes only")
    parser.add_argument("--every", type=int, default=1, help="take every n-th query only, for a quick look")
    parser.add_argument(
        "--pilot", action="store_true", help="free choice from a pilot's statistics, not exact ones"
    )
    parser.add_argument("--predicted", action="store_true", help="predicted against realised errors")
    parser.add_argument("--methods", nargs="*", default=[], help="of --predicted: these methods only")
    chosen = parser.parse_args()
    queries = load(chosen.queries, chosen.data)
    queries = [q for q in queries if chosen.classes in (None, len(q.tree.classes))][:: chosen.every]
    start = time.process_time()
    if chosen.predicted:
        from .predicted import compare, plot_predicted, summary_lines

        records = list(compare(queries, chosen.seeds or 20, chosen.methods))
        lines = summary_lines(records)
        for line in lines:
            print(json.dumps(line))
        if not chosen.methods:
            plot_predicted(records, RESULTS / "predicted.png")
    else:
        seeds = range(chosen.first_seed, chosen.first_seed + (chosen.seeds or 5))
        found = list(measure(queries, seeds, pilot=chosen.pilot, modes=chosen.modes))
        lines = [*summary(found), *published(queries)]
        for line in lines:
            print(text_of(line))
        print(*bar_lines(lines), sep="\n")
        if chosen.classes is None and not chosen.pilot and set(chosen.modes) == set(MODES):
            plot(lines, RESULTS / "accuracy.png")
    print(f"{len(queries)} queries, {time.process_time() - start:.0f} CPU s")
    if chosen.json:
        chosen.json.write_text(json.dumps(lines, indent=1) + "\n")


def plot(lines: Sequence[Record], path: Path) -> None:
    """Percentiles of the q-error against bytes, a panel for each mode."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
    for axis, (mode, classes) in zip(axes, (("synopses", "one"), ("free", "all")), strict=True):
        chosen = [x for x in lines if x["mode"] == mode and x["classes"] == classes]
        for p in PERCENTILES:
            axis.plot(
                [x["bytes"] for x in chosen],
                [x[f"p{p}"] - 1 for x in chosen],
                "o-",
                ms=3,
                lw=1,
                label=f"p{p}",
            )
        kind = "one key class" if classes == "one" else "all queries"
        axis.set(xscale="log", title=f"{mode}, {kind}", xlabel="bytes for the query")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("q-error - 1")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
