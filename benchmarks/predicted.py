"""Predicted against realised errors: every candidate that applies to a query, whether the planner would take it or not.

A prediction counts as right within a factor of 2 of the realised root mean square error over the seeds. Errors
below 0.1 % of the answer, predicted or realised, are taken as 0.1 %: whether a control variate leaves 0 or 0.01 % is no
choice that a plan turns on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skimql.optimizer.candidates.candidate import Choice
from skimql.optimizer.candidates.enumerate import Candidate, Objective, enumerate_candidates
from skimql.optimizer.methods import CHOSEN
from skimql.optimizer.prediction.figures import Figures
from skimql.optimizer.prediction.relation import RelationStatistics, complete

from .in_memory import run_alone, run_choice
from .join_queries import JoinQuery
from .query_statistics import exact_statistics, pilot_statistics

Record = dict[str, Any]

SIZE = 102_400
LEAST_ERROR = 1e-3
SKETCHES = ("hash", "skimmed", "convolution")


def compare(
    queries: Sequence[JoinQuery], seeds: int, methods: Sequence[str] = (), size: int = SIZE
) -> Iterable[Record]:
    """One record for each query, candidate and kind of statistics; of the given methods, or of all.

    Yields
    ------
    dict
        ``id, method, statistics (exact|pilot), bytes, predicted, realised`` (relative errors), ``ratio``.
    """
    gathered = {"exact": exact_statistics, "pilot": pilot_statistics}
    for query in queries:
        realised: dict[str, float] = {}
        for kind, statistics in gathered.items():
            for name, candidate in applicable(query, statistics(query), size):
                if methods and candidate.method not in methods:
                    continue
                # A sketch does not depend on the statistics, only its prediction does.
                joined = "" if candidate.sample is None else candidate.sample.joined
                key = name if candidate.method in SKETCHES else f"{name} {joined} {kind}"
                if key not in realised:
                    realised[key] = root_mean_square(query, candidate, seeds, size)
                yield {
                    "id": query.id,
                    "method": name,
                    "statistics": kind,
                    "bytes": size,
                    "predicted": candidate.error,
                    "realised": realised[key],
                    "ratio": max(candidate.error, LEAST_ERROR) / max(realised[key], LEAST_ERROR),
                }


def applicable(
    query: JoinQuery, statistics: Sequence[RelationStatistics], size: int
) -> list[tuple[str, Candidate]]:
    """Name and candidate of every method on the whole tree; dense keys chosen jointly and by each table alone."""
    relations = [complete(s, len(query.tree.classes_of(v))) for v, s in enumerate(statistics)]
    figures = Figures(query.tree, relations)
    found = []
    for ordered in (True, False):
        # The scans of a sample look at its keys alone; one that is made of a table by itself has its totals.
        objective = Objective(size_bytes=size, ordered=ordered, fold_bytes=0, regressed=not ordered)
        for candidate in enumerate_candidates(figures, objective):
            wanted = (
                not candidate.refused
                and not candidate.residual.folds
                and candidate.method not in ("exact", "agms")
                and (ordered or candidate.method in ("two_level", "sample_sketch"))
            )
            if wanted:
                found.append((_name(candidate, ordered), candidate))
    return found


def _name(candidate: Candidate, ordered: bool) -> str:
    if candidate.method == "two_level":
        return "two_level, joint" if ordered else "two_level, alone"
    if candidate.method == "sampled_messages":
        classes = len(candidate.residual.tree.classes)
        return "sampled_messages" if classes == 1 else "sampled_messages, several classes"
    return candidate.method


def root_mean_square(query: JoinQuery, candidate: Candidate, seeds: int, size: int) -> float:
    """Root mean square relative error of a candidate over the seeds."""
    values = np.array([_value(query, candidate, seed, size) for seed in range(seeds)], np.float64)
    return float(np.sqrt(np.mean((values / query.truth - 1.0) ** 2)))


def _value(query: JoinQuery, candidate: Candidate, seed: int, size: int) -> float:
    """By a plan for the whole query where the planner would make one of itself, else of each table by itself."""
    if candidate.method not in CHOSEN or (
        candidate.sample is not None and len(candidate.sample.capacities) > 1
    ):
        return run_alone(query, candidate, seed, size)[0].value
    choice = Choice(candidate, (candidate,), (), (), Objective(size_bytes=size, fold_bytes=0))
    return run_choice(query, choice, seed, size)[0].value


def summary_lines(records: Sequence[Record]) -> list[Record]:
    """For each method and kind of statistics: queries, share within a factor of 2, percentiles of the ratio."""
    lines = []
    for method in dict.fromkeys(r["method"].split(",")[0] for r in records):
        for name in [
            method,
            *dict.fromkeys(r["method"] for r in records if r["method"].startswith(f"{method},")),
        ]:
            for kind in ("exact", "pilot"):
                ratios = np.array(
                    [
                        r["ratio"]
                        for r in records
                        if r["statistics"] == kind
                        and (r["method"] == name or r["method"].startswith(f"{name},"))
                    ]
                )
                if ratios.size:
                    low, middle, high = np.percentile(ratios, (5, 50, 95))
                    lines.append(
                        {
                            "method": name,
                            "statistics": kind,
                            "queries": len(
                                {
                                    r["id"]
                                    for r in records
                                    if r["method"] == name or r["method"].startswith(f"{name},")
                                }
                            ),
                            "cases": int(ratios.size),
                            "within_2": float(np.mean((ratios > 0.5) & (ratios < 2.0))),
                            "ratio_p5": float(low),
                            "ratio_p50": float(middle),
                            "ratio_p95": float(high),
                        }
                    )
    return lines


def plot_predicted(records: Sequence[Record], path: Path) -> None:
    """Realised against predicted errors, a panel for each kind of statistics."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharex=True, sharey=True)
    for axis, kind in zip(axes, ("exact", "pilot"), strict=True):
        for method in dict.fromkeys(r["method"] for r in records):
            own = [r for r in records if (r["method"], r["statistics"]) == (method, kind)]
            axis.plot(
                [max(r["predicted"], 1e-4) for r in own],
                [max(r["realised"], 1e-4) for r in own],
                ".",
                ms=3,
                label=method,
            )
        ends = np.array([1e-4, 1e5])
        axis.plot(ends, ends, "k-", lw=0.6)
        axis.plot(ends, 2 * ends, "k:", lw=0.6)
        axis.plot(ends, ends / 2, "k:", lw=0.6)
        axis.set(xscale="log", yscale="log", title=f"{kind} statistics", xlabel="predicted relative error")
    axes[0].set_ylabel("realised relative error")
    axes[0].legend(fontsize=7, markerscale=3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
