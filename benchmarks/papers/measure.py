"""Estimating whole workloads from shared sketches, many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.regions import Relation
from benchmarks.data.tpch import LARGEST_DOMAIN, RELATIONS
from skimql.optimizer.workload.allocate import Demand, allocate
from skimql.optimizer.workload.share import Metric, SharedGraph, SketchVertex
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.agms import AgmsSketch, AgmsSpec

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A graph and, for every budget in words, the atomic sketches of every vertex.

    `labels` names the xi family of every edge; configurations that use common labels see the same random
    functions, so that their errors are compared on equal luck.
    """

    graph: SharedGraph
    budgets: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]

    @classmethod
    def of(
        cls,
        graph: SharedGraph,
        budgets: Sequence[int],
        metric: Metric,
        weights: Sequence[float] | None = None,
        labels: Sequence[int] | None = None,
    ) -> Configuration:
        """Allocate every budget; labels are the graph's own xi classes if none are given."""
        demand = Demand.of(graph, weights)
        copies = tuple(allocate(demand, words, metric).words for words in sorted(budgets))
        return cls(graph, tuple(sorted(budgets)), copies, tuple(labels or first_edges(graph)))


def first_edges(graph: SharedGraph) -> tuple[int, ...]:
    """The xi class of every edge, named by the first edge in it."""
    classes = graph.edge_classes()
    return tuple(classes.index(number) for number in classes)


@dataclass(slots=True)
class Errors:
    """Sums over trials of one configuration at one budget."""

    average: float = 0.0
    maximum: float = 0.0
    trials: int = 0


@dataclass(slots=True)
class Measured:
    """Squared relative errors per budget, and the moments of single copies over all repetitions."""

    errors: dict[int, Errors]
    total: Floats
    squares: Floats
    copies: Floats
    truth: Floats = field(default_factory=lambda: np.zeros(0))

    def average_error(self, words: int) -> float:
        """Mean over trials and queries of the squared relative error."""
        return self.errors[words].average / self.errors[words].trials

    def maximum_error(self, words: int) -> float:
        """Mean over trials of the greatest squared relative error of a query."""
        return self.errors[words].maximum / self.errors[words].trials

    def relative_variances(self) -> Floats:
        """Var / E^2 of one copy of every query's estimate."""
        mean = self.total / self.copies
        return np.asarray((self.squares / self.copies - mean**2) / self.truth**2)

    def bias_in_standard_errors(self) -> Floats:
        """(mean - truth) / standard error of every query, over all copies."""
        mean = self.total / self.copies
        spread = np.sqrt((self.squares / self.copies - mean**2) / self.copies)
        return np.asarray((mean - self.truth) / spread)


def measure(
    configurations: Sequence[Configuration], data: Mapping[str, Relation], repetitions: int, sketch_seed: int
) -> list[Measured]:
    """Build the sketches of every configuration `repetitions` times and judge all estimates.

    A repetition builds atomic sketches for the largest budget; a smaller budget is judged on as many
    disjoint runs of copies as they hold. A query's estimate is the average over its copies of the product
    over its vertices.
    """
    graph = configurations[0].graph
    truth = np.array([true_size(graph, query, data) for query in range(len(graph.queries))])
    zeros = np.zeros(len(truth))
    results = [
        Measured({words: Errors() for words in c.budgets}, zeros.copy(), zeros.copy(), zeros.copy(), truth)
        for c in configurations
    ]
    for repetition in range(repetitions):
        for configuration, result in zip(configurations, results, strict=True):
            products = query_copies(configuration, data, sketch_seed + repetition)
            for query, row in enumerate(products):
                result.total[query] += row.sum()
                result.squares[query] += row @ row
                result.copies[query] += len(row)
            _judge(configuration, products, truth, result)
    return results


def _judge(configuration: Configuration, products: list[Floats], truth: Floats, result: Measured) -> None:
    used = configuration.graph.vertices_of()
    for words, copies in zip(configuration.budgets, configuration.copies, strict=True):
        sizes = [min(copies[v] for v in vertices) for vertices in used]
        trials = min(len(row) // size for row, size in zip(products, sizes, strict=True))
        runs = [row[: trials * size].reshape(trials, size) for row, size in zip(products, sizes, strict=True)]
        runs = [row[: trials * size].reshape(trials, size) for row, size in zip(products, sizes, strict=True)]
        estimates = np.array([run.mean(axis=1) for run in runs])
        squared = ((estimates - truth[:, None]) / truth[:, None]) ** 2
        result.errors[words].average += float(squared.mean(axis=0).sum())
        result.errors[words].maximum += float(squared.max(axis=0).sum())
        result.errors[words].trials += trials


def query_copies(configuration: Configuration, data: Mapping[str, Relation], seed: int) -> list[Floats]:
    """All copies of every query's estimate at the largest budget, from freshly built sketches."""
    graph, sizes = configuration.graph, configuration.copies[-1]
    base = make_family("tabulation", seed)
    families = [base.derive(str(label)) for label in configuration.labels]
    family_at = {end: families[index] for index, edge in enumerate(graph.edges) for end in edge.ends()}
    counters = []
    for v, vertex in enumerate(graph.vertices):
        keys, counts = columns_of(vertex, data)
        sketch = AgmsSketch(AgmsSpec(tuple(family_at[v, a] for a in vertex.attributes), s1=sizes[v], s2=1))
        sketch.update(keys, counts)
        counters.append(sketch.counters[0].astype(np.float64))
    # The vertices of a query are distinct, so each contributes its sketch once.
    return [
        np.prod([counters[v][: min(sizes[u] for u in vertices)] for v in vertices], axis=0)
        for vertices in graph.vertices_of()
    ]


def columns_of(
    vertex: SketchVertex, data: Mapping[str, Relation]
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """The distinct join values of a vertex, a column for each attribute, and how often they occur."""
    names = RELATIONS[vertex.relation.table]
    columns = [names.index(attribute.keys[0]) for attribute in vertex.attributes]
    used = sorted(set(columns))
    relation = data[vertex.relation.table].projected(used)
    return [relation.cells[:, used.index(column)] for column in columns], relation.counts


def true_size(graph: SharedGraph, query: int, data: Mapping[str, Relation]) -> float:
    """The exact join size, by message passing over the query's tree; parallel edges are one composite."""
    neighbours: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for edge in graph.edges:
        if edge.query == query:
            (left, one), (right, other) = edge.ends()
            columns = _column(graph, left, one.keys[0]), _column(graph, right, other.keys[0])
            neighbours.setdefault(left, {}).setdefault(right, []).append(columns)
            neighbours.setdefault(right, {}).setdefault(left, []).append(columns[::-1])

    def weights(vertex: int, parent: int) -> Floats:
        relation = data[graph.vertices[vertex].relation.table]
        total = relation.counts.astype(np.float64)
        for child, pairs in neighbours[vertex].items():
            if child != parent:
                sent = weights(child, vertex)
                theirs = _codes(graph, child, [pair[1] for pair in pairs], data)
                size = LARGEST_DOMAIN ** len(pairs)
                message = np.bincount(theirs, weights=sent, minlength=size)
                total = total * message[_codes(graph, vertex, [pair[0] for pair in pairs], data)]
        return total

    return float(weights(next(iter(neighbours)), -1).sum())


def _column(graph: SharedGraph, vertex: int, name: str) -> int:
    return RELATIONS[graph.vertices[vertex].relation.table].index(name)


def _codes(
    graph: SharedGraph, vertex: int, columns: Sequence[int], data: Mapping[str, Relation]
) -> NDArray[np.int64]:
    codes = np.zeros(1, dtype=np.int64)
    for column in columns:
        codes = codes * LARGEST_DOMAIN + data[graph.vertices[vertex].relation.table].cells[:, column]
    return codes
