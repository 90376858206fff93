"""From a workload's shared graph to plans: one set of synopses, and for each query how it reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ...parser.join_graph import Query, Term
from ..plan import Attribute, Plan, PlannedAggregate, PlannedEdge, PlannedTerm, Scan, Synopsis, Weight
from .plan import Statistics, VertexPlan, WorkloadPlan, plan_workload
from .share import Metric, SketchEdge, SketchVertex, estimated_terms


@dataclass(frozen=True, slots=True)
class DeclaredQueries:
    """What `CREATE SKETCHES` builds: the shared plan, and one `Plan` per query over common synopses."""

    workload: WorkloadPlan
    plans: tuple[Plan, ...]


def plan_declared(
    name: str,
    queries: Sequence[Query],
    seed: int,
    size_bytes: int,
    metric: Metric,
    sparse: bool = True,
    statistics: Statistics | None = None,
    most_parts: int = 1,
    unknown: Collection[int] = (),
    more_error: float = 0.0,
) -> DeclaredQueries:
    """Share and size the sketches of standing queries.

    Parameters
    ----------
    name : str
        Of the workload; its xi classes are named after it.
    queries : sequence of Query
        Each joins something; key types known.
    seed : int
    size_bytes : int
        For all sketches together.
    metric : {"average", "maximum"}
        Which squared error over the queries is minimised.
    sparse : bool
        Whether sketches start as exact maps.
    statistics : mapping of (VirtualRelation, Attribute) to Histogram, optional
    most_parts : int
        Greatest number of domain parts in one query.
    unknown : collection of int
        Queries of which nothing is known.
    more_error : float
        See `plan_workload` for all four.

    Raises
    ------
    ValueError
        If a query joins nothing or the space is too small; the message says how much would do.
    """
    workload = plan_workload(queries, size_bytes // 8, metric, statistics, most_parts, unknown, more_error)
    weights = _weights(queries)
    synopses: list[Synopsis] = []
    # The first synopsis of each vertex; those of its cells follow in C order.
    first: list[int] = []
    for vertex, own in zip(workload.graph.vertices, workload.vertices, strict=True):
        first.append(len(synopses))
        weight = weights[vertex.relation.weight]
        synopses += _synopses(name, vertex, weight, own, workload, sparse)
    tables = dict.fromkeys(s.table for s in synopses)
    scans = tuple(
        Scan(table, tuple(i for i, s in enumerate(synopses) if s.table == table)) for table in tables
    )
    partitions = tuple((_class_name(name, n), part.domain) for n, part in workload.partition.classes)
    shell = Plan(queries[0], seed, tuple(synopses), scans, (), (), (), partitions=partitions)
    plans = tuple(_plan(shell, number, query, first, workload) for number, query in enumerate(queries))
    return DeclaredQueries(workload, plans)


def _weights(queries: Sequence[Query]) -> dict[tuple[str, ...], Weight]:
    """The weight behind each weight text of a virtual relation."""
    found: dict[tuple[str, ...], Weight] = {(): Weight()}
    for query in queries:
        for factor in (f for term in estimated_terms(query) for f in term.factors):
            text = f"{factor.expression} IS NOT NULL" if factor.presence else factor.expression
            found[(text,)] = Weight(factor.expression, factor.presence)
    return found


def _class_name(name: str, number: int) -> str:
    return f"{name}.{number}"


def _synopses(
    name: str, vertex: SketchVertex, weight: Weight, own: VertexPlan, workload: WorkloadPlan, sparse: bool
) -> Iterator[Synopsis]:
    """The sketches of a vertex: one for each of its cells."""
    attributes = tuple(
        Attribute(a.keys, tuple(t or "" for t in a.types), _class_name(name, number))
        for a, number in zip(vertex.attributes, own.classes, strict=True)
    )
    method = "hash" if len(attributes) == 1 else "convolution"
    relation, whole = vertex.relation, len(own.rows) == 1
    cells = product(*(range(_parts(workload, number)) for number in own.classes))
    for cell, rows in zip(cells, own.rows, strict=True):
        yield Synopsis(
            relation.table,
            relation.filter,
            attributes,
            weight,
            method,
            rows,
            workload.buckets,
            sparse,
            cell=() if whole else cell,
        )


def _parts(workload: WorkloadPlan, number: int) -> int:
    found = dict(workload.partition.classes)
    return found[number].domain.count if number in found else 1


def _plan(shell: Plan, number: int, query: Query, first: Sequence[int], workload: WorkloadPlan) -> Plan:
    """How one query reads the synopses; `first` is the first of each shared vertex."""
    terms = estimated_terms(query)
    edges_of = {term: _edges_of(workload, (number, k)) for k, term in enumerate(terms)}
    cells_of = {term: _cells(query, edges, first, workload) for term, edges in edges_of.items()}
    graph = workload.graph
    edges = tuple(
        PlannedEdge(
            edge.left,
            edge.right,
            graph.vertices[shared.left].attributes.index(shared.left_attribute),
            graph.vertices[shared.right].attributes.index(shared.right_attribute),
            edge.class_name,
        )
        for edge, shared in zip(query.graph.edges, edges_of[terms[0]], strict=True)
    )

    def planned(of: Sequence[Term]) -> tuple[PlannedTerm, ...]:
        bare = [(t.coefficient, Term(tuple(sorted(t.factors, key=lambda f: f.vertex)))) for t in of]
        return tuple(PlannedTerm(c, synopses) for c, term in bare for synopses in cells_of[term])

    aggregates = tuple(
        PlannedAggregate(a.function, a.name, planned(a.total), planned(a.presence)) for a in query.aggregates
    )
    vertices = tuple(range(len(query.graph.vertices)))
    return replace(shell, query=query, edges=edges, aggregates=aggregates, vertices=vertices)


def _edges_of(workload: WorkloadPlan, label: tuple[int, int]) -> list[SketchEdge]:
    """The shared edges of one term, in the order of the query's own edges."""
    graph = workload.graph
    return [e for e in graph.edges if graph.queries[e.query] == label]


def _cells(
    query: Query, edges: Sequence[SketchEdge], first: Sequence[int], workload: WorkloadPlan
) -> list[tuple[int, ...]]:
    """For every combination of parts of a term's classes, the synopsis that stands for each vertex of the query."""
    shared: dict[int, int] = {}
    for own, edge in zip(query.graph.edges, edges, strict=True):
        shared[own.left], shared[own.right] = edge.left, edge.right
    classes_of = {v: workload.vertices[vertex].classes for v, vertex in shared.items()}
    classes = sorted({number for row in classes_of.values() for number in row})
    found = []
    for parts in product(*(range(_parts(workload, number)) for number in classes)):
        part_of = dict(zip(classes, parts, strict=True))
        row = []
        for v in range(len(query.graph.vertices)):
            cell = 0
            for number in classes_of[v]:
                cell = cell * _parts(workload, number) + part_of[number]
            row.append(first[shared[v]] + cell)
        found.append(tuple(row))
    return found
