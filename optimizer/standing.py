"""From a workload's shared graph to plans: one set of synopses, and for each query how it reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parser.join_graph import Query, Term
from .plan import Attribute, Plan, PlannedAggregate, PlannedEdge, PlannedTerm, Scan, Synopsis, Weight
from .share import Metric, SketchEdge, SketchVertex, estimated_terms
from .workload import WorkloadPlan, plan_workload


@dataclass(frozen=True, slots=True)
class StandingQueries:
    """What `CREATE SKETCHES` builds: the shared plan, and one `Plan` per query over common synopses."""

    workload: WorkloadPlan
    plans: tuple[Plan, ...]


def plan_standing(
    name: str, queries: Sequence[Query], seed: int, size_bytes: int, metric: Metric, sparse: bool = True
) -> StandingQueries:
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

    Raises
    ------
    ValueError
        If a query joins nothing or the space is too small; the message says how much would do.
    """
    workload = plan_workload(queries, size_bytes // 8, metric)
    weights = _weights(queries)
    synopses = tuple(
        _synopsis(name, vertex, weights[vertex.relation.weight], own.classes, own.rows[0], workload, sparse)
        for vertex, own in zip(workload.graph.vertices, workload.vertices, strict=True)
    )
    tables = dict.fromkeys(s.table for s in synopses)
    scans = tuple(
        Scan(table, tuple(i for i, s in enumerate(synopses) if s.table == table)) for table in tables
    )
    plans = tuple(
        _plan(name, number, query, seed, synopses, scans, workload) for number, query in enumerate(queries)
    )
    return StandingQueries(workload, plans)


def _weights(queries: Sequence[Query]) -> dict[tuple[str, ...], Weight]:
    """The weight behind each weight text of a virtual relation."""
    found: dict[tuple[str, ...], Weight] = {(): Weight()}
    for query in queries:
        for factor in (f for term in estimated_terms(query) for f in term.factors):
            text = f"{factor.expression} IS NOT NULL" if factor.presence else factor.expression
            found[(text,)] = Weight(factor.expression, factor.presence)
    return found


def _synopsis(
    name: str,
    vertex: SketchVertex,
    weight: Weight,
    classes: tuple[int, ...],
    rows: int,
    workload: WorkloadPlan,
    sparse: bool,
) -> Synopsis:
    attributes = tuple(
        Attribute(a.keys, tuple(t or "" for t in a.types), f"{name}.{number}")
        for a, number in zip(vertex.attributes, classes, strict=True)
    )
    method = "hash" if len(attributes) == 1 else "convolution"
    relation = vertex.relation
    return Synopsis(
        relation.table, relation.filter, attributes, weight, method, rows, workload.buckets, sparse
    )


def _plan(
    name: str,
    number: int,
    query: Query,
    seed: int,
    synopses: tuple[Synopsis, ...],
    scans: tuple[Scan, ...],
    workload: WorkloadPlan,
) -> Plan:
    terms = estimated_terms(query)
    edges_of = {term: _edges_of(workload, (number, k)) for k, term in enumerate(terms)}
    vertex_of = {term: _vertices_of(query, edges) for term, edges in edges_of.items()}
    first = terms[0]
    graph = workload.graph
    edges = tuple(
        PlannedEdge(
            edge.left,
            edge.right,
            graph.vertices[shared.left].attributes.index(shared.left_attribute),
            graph.vertices[shared.right].attributes.index(shared.right_attribute),
            edge.class_name,
        )
        for edge, shared in zip(query.graph.edges, edges_of[first], strict=True)
    )

    def planned(term: Term) -> PlannedTerm:
        bare = Term(tuple(sorted(term.factors, key=lambda f: f.vertex)))
        return PlannedTerm(term.coefficient, vertex_of[bare])

    aggregates = tuple(
        PlannedAggregate(a.function, a.name, tuple(map(planned, a.total)), tuple(map(planned, a.presence)))
        for a in query.aggregates
    )
    return Plan(query, seed, synopses, scans, edges, aggregates, tuple(range(len(query.graph.vertices))))


def _edges_of(workload: WorkloadPlan, label: tuple[int, int]) -> list[SketchEdge]:
    """The shared edges of one term, in the order of the query's own edges."""
    graph = workload.graph
    return [e for e in graph.edges if graph.queries[e.query] == label]


def _vertices_of(query: Query, edges: Sequence[SketchEdge]) -> tuple[int, ...]:
    """The shared vertex that stands for each vertex of the query."""
    found: dict[int, int] = {}
    for own, shared in zip(query.graph.edges, edges, strict=True):
        found[own.left], found[own.right] = shared.left, shared.right
    return tuple(found[v] for v in range(len(query.graph.vertices)))
