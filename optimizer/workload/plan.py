"""Many queries at once: share, allocate, partition, allocate again; what CREATE SKETCHES builds.

Each stage leaves its figures, so that EXPLAIN can say what the workload would be without it.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, EDBT 2004 (sharing, allocation) and SIGMOD 2002,
   Section 4 (partitioning).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ...parser.join_graph import Query
from ...sketches.samples.two_level_plan import MEDIAN_LOSS
from ..prediction.histograms import Histogram, JoinStatistics, query_weight
from .allocate import Demand, allocate, allocate_rows
from .coalesce import coalesce
from .partition_shared import SharedPartition, partition_shared
from .share import Attribute, Metric, SharedGraph, VirtualRelation, unshared_graph

# A join column: the virtual relation without weights, and the column's key expressions and types.
Column = tuple[VirtualRelation, Attribute]
Statistics = Mapping[Column, Histogram]


@dataclass(frozen=True, slots=True)
class Figures:
    """A workload at one stage: sketches, xi classes, and what the errors are predicted to be.

    `relative_errors` are standard errors of the median of the rows relative to the result, one for each estimated
    term in the order of the graph's queries; None where nothing is known of the query's data.
    """

    vertices: int
    cells: int
    classes: int
    words: int
    relative_errors: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one decision changed; `before` is the workload without it."""

    name: str
    before: Figures
    after: Figures


@dataclass(frozen=True, slots=True)
class VertexPlan:
    """The sketches of one vertex: rows for each cell, in C order over the parts of its attributes.

    `classes` are the xi classes of its attributes, with the numbers of `SharedGraph.edge_classes`.
    """

    classes: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """What to build for a workload. All sketches have `buckets` buckets; a query reads common rows.

    `graph.queries` labels the estimated terms (query, term); `vertices` are parallel to `graph.vertices`.
    """

    graph: SharedGraph
    buckets: int
    vertices: tuple[VertexPlan, ...]
    partition: SharedPartition
    stages: tuple[Stage, ...]

    @property
    def words(self) -> int:
        """8-byte counters of all sketches."""
        return self.buckets * sum(sum(vertex.rows) for vertex in self.vertices)


def plan_workload(
    queries: Sequence[Query],
    words: int,
    metric: Metric = "average",
    statistics: Statistics | None = None,
    most_parts: int = 1,
    unknown: Collection[int] = (),
    more_error: float = 0.0,
) -> WorkloadPlan:
    """Plan the sketches of standing queries.

    Parameters
    ----------
    queries : sequence of Query
        Each with at least one join.
    words : int
        8-byte counters for all sketches together.
    metric : {"average", "maximum"}
        What to minimise over the estimated terms.
    statistics : mapping of (VirtualRelation, Attribute) to Histogram, optional
        Histograms of join columns; the relation is taken without its weight, the attribute as replica 0.
        Queries with a column that is missing get the median weight of the others, or 1, and their classes
        are not partitioned.
    most_parts : int
        Greatest number of domain parts in one query (PARTITION INTO); 1 for none.
    unknown : collection of int
        Queries that are taken as those with a column that is missing.
    more_error : float
        By how much the squared error may be larger for the sake of fewer rows, as each costs time for every tuple.

    Raises
    ------
    ValueError
        If a query joins nothing, or the space is too small; the message says how much would do.

    Notes
    -----
    The order is that of [1]: sharing first, with the weights known; then space; then partitions at these
    sizes; then space again, as partitioned queries need less.
    """
    known = dict(statistics or {})
    apart = unshared_graph(queries)
    left_out = {
        n for n, label in enumerate(apart.queries) if isinstance(label, tuple) and label[0] in unknown
    }
    joins = [None if n in left_out else row for n, row in enumerate(_joins_of(apart, known))]
    weights = _weights(joins)
    shared = coalesce(apart, weights, metric, one_sketch_per_self_join=True)
    lone, together = Demand.of(apart, weights), Demand.of(shared, weights)
    even = _even(shared, words)
    sized = allocate(together, words, metric).words
    copies = [min(sized[v] for v in used) for used in together.queries]
    partition = partition_shared(shared, joins, most_parts, metric, copies)
    gains = partition.predicted_gains
    final = Demand.of(shared, [w / gain**2 for w, gain in zip(weights, gains, strict=True)])
    classes = shared.attribute_classes()
    cells = [partition.cell_shares(row) for row in classes]
    rows = allocate_rows(final, words, metric, cells, more_error=more_error)
    whole = tuple(1.0 for _ in gains)
    # What would be built without a stage, in whole rows as well.
    unshared = _figures(apart, _row_words(lone, words, metric, more_error), joins, weights, whole)
    plain = _figures(shared, even, joins, weights, whole)
    allocated = _figures(shared, _row_words(together, words, metric, more_error), joins, weights, whole)
    parted = _figures(shared, rows.words, joins, weights, gains, sum(map(len, rows.rows)))
    stages = (
        Stage("share", unshared, allocated),
        Stage("allocate", plain, allocated),
        Stage("partition", allocated, parted),
    )
    vertices = tuple(VertexPlan(own, count) for own, count in zip(classes, rows.rows, strict=True))
    return WorkloadPlan(shared, rows.buckets, vertices, partition, stages)


def _joins_of(graph: SharedGraph, known: Statistics) -> list[list[JoinStatistics] | None]:
    """The statistics of every query's joins, or None where one is missing."""
    found: list[list[JoinStatistics] | None] = [[] for _ in graph.queries]
    for edge in graph.edges:
        sides = []
        for vertex, attribute in edge.ends():
            relation = graph.vertices[vertex].relation
            bare = VirtualRelation(relation.table, relation.filter)
            sides.append(known.get((bare, Attribute(attribute.keys, attribute.types))))
        row, (left, right) = found[edge.query], sides
        if row is None or left is None or right is None:
            found[edge.query] = None
        else:
            row.append(JoinStatistics(edge.left, edge.right, left, right))
    return found


def _weights(joins: Sequence[list[JoinStatistics] | None]) -> list[float]:
    own = [None if row is None else query_weight(row) for row in joins]
    usual = float(np.median([weight for weight in own if weight is not None] or [1.0]))
    return [usual if weight is None else weight for weight in own]


def _row_words(demand: Demand, words: int, metric: Metric, more_error: float) -> tuple[int, ...]:
    """Words of every vertex in whole rows; any number of words where the space is too small for those."""
    try:
        return allocate_rows(demand, words, metric, more_error=more_error).words
    except ValueError:
        return allocate(demand, words, metric).words


def _even(graph: SharedGraph, words: int) -> tuple[int, ...]:
    return (words // len(graph.vertices),) * len(graph.vertices)


def _figures(
    graph: SharedGraph,
    sizes: Sequence[int],
    joins: Sequence[list[JoinStatistics] | None],
    weights: Sequence[float],
    gains: Sequence[float],
    cells: int | None = None,
) -> Figures:
    errors = tuple(
        None if row is None else sqrt(MEDIAN_LOSS * weight / 8 / min(sizes[v] for v in used)) / gain
        for row, weight, used, gain in zip(joins, weights, graph.vertices_of(), gains, strict=True)
    )
    count = len(graph.vertices)
    return Figures(count, cells or count, len(set(graph.edge_classes())), sum(sizes), errors)
