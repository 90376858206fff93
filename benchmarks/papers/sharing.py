"""Errors of whole workloads with and without shared sketches, against space.

EDBT 2004, Figures 5 to 8 (workloads 1 and 2, average and maximum error), here on all three workloads: no
prior information (all weights 1), squared relative errors, budgets of 2K to 20K words. Domains have 128
values in place of 1024, which gives errors of the size the papers print: on 1024 values, regions of their
volume hardly meet in four joins, and the one query over five relations drowns all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.tpch import generate, workload_graph
from skimql.optimizer.workload.coalesce import coalesce
from skimql.optimizer.workload.share import Metric

from .measure import Configuration, Measured, measure

BUDGETS = tuple(range(2000, 20001, 2000))
DOMAIN = 128
METRICS: tuple[Metric, ...] = ("average", "maximum")


def run(
    repetitions: int = 100,
    workloads: Sequence[int] = (1, 2, 3),
    budgets: Sequence[int] = BUDGETS,
    data_seed: int = 1,
    sketch_seed: int = 1000,
) -> list[dict[str, Any]]:
    """One record for every workload, metric and budget.

    `bias` is the greatest |mean - truth| of a query in standard errors, over all copies of the shared
    sketches. Both configurations use the same xi functions on the same edges: their ratio is that of the
    space, not of luck.
    """
    data = generate(data_seed, DOMAIN)
    records = []
    for workload in workloads:
        graph = workload_graph(workload)
        for metric in METRICS:
            shared = coalesce(graph, metric=metric)
            whole = Configuration.of(shared, budgets, metric)
            apart = Configuration.of(graph, budgets, metric, labels=whole.labels)
            without, within = measure([apart, whole], data, repetitions, sketch_seed)
            records += [
                {
                    "study": "sharing",
                    "workload": workload,
                    "words": words,
                    "metric": metric,
                    "vertices_unshared": len(graph.vertices),
                    "vertices_shared": len(shared.vertices),
                    "error_unshared": _error(without, metric, words),
                    "error_shared": _error(within, metric, words),
                    "bias": float(np.abs(within.bias_in_standard_errors()).max()),
                    "repetitions": within.errors[words].trials,
                }
                for words in whole.budgets
            ]
    return records


def _error(measured: Measured, metric: Metric, words: int) -> float:
    return measured.average_error(words) if metric == "average" else measured.maximum_error(words)


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel for each workload and metric, error against words."""
    from .plotting import grid

    workloads = sorted({r["workload"] for r in records})
    with grid(path, len(METRICS), len(workloads)) as axes:
        for row, metric in enumerate(METRICS):
            for column, workload in enumerate(workloads):
                ax = axes[row][column]
                chosen = [r for r in records if r["workload"] == workload and r["metric"] == metric]
                words = [r["words"] / 1000 for r in chosen]
                ax.plot(words, [r["error_unshared"] for r in chosen], "s--", label="no sketch sharing")
                ax.plot(words, [r["error_shared"] for r in chosen], "o-", label="sketch sharing")
                ax.set(
                    title=f"Workload {workload}, {metric} error",
                    xlabel="space (1000 words)",
                    ylabel="squared relative error",
                    yscale="log",
                )
                ax.legend()
