"""What it is worth to know how hard each query is: weights from histograms against weights of 1.

EDBT 2004, Figures 9 and 10: workload 3, whose queries differ in variance; weights W_Q = 8 Var / E^2 from
one-dimensional histograms of 200 buckets and attribute independence. `weight_spread` is the measured ratio
of the largest to the smallest Var / E^2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data.regions import Relation
from benchmarks.data.tpch import RELATIONS, generate, workload_graph
from skimql.optimizer.prediction.histograms import Histogram, JoinStatistics, equi_depth, query_weight
from skimql.optimizer.workload.coalesce import coalesce
from skimql.optimizer.workload.share import SharedGraph

from .measure import Configuration, first_edges, measure
from .sharing import BUDGETS, METRICS, _error

BUCKETS = 200


def run(
    repetitions: int = 100,
    workloads: Sequence[int] = (3,),
    budgets: Sequence[int] = BUDGETS,
    data_seed: int = 1,
    sketch_seed: int = 2000,
) -> list[dict[str, Any]]:
    """One record for every workload, metric and budget; both configurations share sketches."""
    data = generate(data_seed)
    records = []
    for workload in workloads:
        graph = workload_graph(workload)
        weights = histogram_weights(graph, data)
        for metric in METRICS:
            plain, informed = coalesce(graph, metric=metric), coalesce(graph, weights, metric)
            even = Configuration.of(plain, budgets, metric)
            wise = Configuration.of(informed, budgets, metric, weights, first_edges(informed))
            without, within = measure([even, wise], data, repetitions, sketch_seed)
            variances = within.relative_variances()
            records += [
                {
                    "study": "allocation",
                    "workload": workload,
                    "words": words,
                    "metric": metric,
                    "error_uniform": _error(without, metric, words),
                    "error_weighted": _error(within, metric, words),
                    "weight_spread": float(variances.max() / variances.min()),
                    "predicted_spread": float(max(weights) / min(weights)),
                    "repetitions": within.errors[words].trials,
                }
                for words in even.budgets
            ]
    return records


def histogram_weights(
    graph: SharedGraph, data: Mapping[str, Relation], buckets: int = BUCKETS
) -> tuple[float, ...]:
    """W_Q of every query from one histogram for each attribute of each relation."""
    histograms: dict[tuple[str, str], Histogram] = {}
    for name, relation in data.items():
        for column, attribute in enumerate(RELATIONS[name]):
            values = relation.projected([column])
            histograms[name, attribute] = equi_depth(values.cells[:, 0], values.counts, buckets)

    def of(vertex: int, attribute: str) -> Histogram:
        return histograms[graph.vertices[vertex].relation.table, attribute]

    joins: list[list[JoinStatistics]] = [[] for _ in graph.queries]
    for edge in graph.edges:
        left, right = of(edge.left, edge.left_attribute.keys[0]), of(edge.right, edge.right_attribute.keys[0])
        joins[edge.query].append(JoinStatistics(edge.left, edge.right, left, right))
    return tuple(query_weight(row) for row in joins)


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel for each metric, error against words."""
    from .plotting import grid

    workloads = sorted({r["workload"] for r in records})
    with grid(path, len(workloads), len(METRICS)) as axes:
        for row, workload in enumerate(workloads):
            for ax, metric in zip(axes[row], METRICS, strict=True):
                chosen = [r for r in records if r["metric"] == metric and r["workload"] == workload]
                words = [r["words"] / 1000 for r in chosen]
                ax.plot(words, [r["error_uniform"] for r in chosen], "s--", label="weights 1")
                ax.plot(words, [r["error_weighted"] for r in chosen], "o-", label="weights from histograms")
                ax.set(
                    title=f"Workload {workload}, {metric} error",
                    xlabel="space (1000 words)",
                    ylabel="squared relative error",
                    yscale="log",
                )
                ax.legend()
