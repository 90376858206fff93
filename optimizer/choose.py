"""Choose the synopsis of every vertex of a query's join tree.

A vertex with one join attribute gets a hash sketch (Fast-AGMS), one with several a convolution count sketch,
one with none an exact total. Vertices that are the same virtual relation with the same attributes and weight
share one synopsis.
"""

from __future__ import annotations

from ..errors import BudgetExceeded
from ..parser.join_graph import Edge, JoinGraph, Query, Term
from .plan import (
    BYTES_PER_COUNTER,
    Attribute,
    Plan,
    PlannedAggregate,
    PlannedEdge,
    PlannedTerm,
    Scan,
    Synopsis,
    Weight,
)


def choose(query: Query, seed: int, rows: int, buckets: int, sparse: bool = True) -> Plan:
    """The plan of one query at a given size.

    Parameters
    ----------
    query : Query
        With every `key_types` of its edges known.
    seed : int
        Sketch seed; the family of a join class follows from it and the class name.
    rows, buckets : int
        Size of every sketch: `rows` independent rows, the median of which is the estimate, of `buckets` counters.
    sparse : bool
        Whether sketches start as exact maps.
    """
    graph = query.graph
    attributes = [tuple(_attribute(graph.edges[e], v) for e in graph.edges_at(v)) for v in _vertices(graph)]
    numbers: dict[Synopsis, int] = {}

    def plan_term(term: Term) -> PlannedTerm:
        chosen = []
        for v in _vertices(graph):
            factor = term.factor_of(v)
            weight = Weight(factor.expression, factor.presence) if factor else Weight()
            synopsis = Synopsis(
                graph.vertices[v].table,
                graph.vertices[v].filter,
                attributes[v],
                weight,
                "total" if not attributes[v] else "hash" if len(attributes[v]) == 1 else "convolution",
                rows,
                buckets,
                sparse,
            )
            chosen.append(numbers.setdefault(synopsis, len(numbers)))
        return PlannedTerm(term.coefficient, tuple(chosen))

    aggregates = tuple(
        PlannedAggregate(
            a.function, a.name, tuple(map(plan_term, a.total)), tuple(map(plan_term, a.presence))
        )
        for a in query.aggregates
    )
    synopses = tuple(numbers)
    tables = dict.fromkeys(s.table for s in synopses)
    scans = tuple(
        Scan(table, tuple(i for i, s in enumerate(synopses) if s.table == table)) for table in tables
    )
    edges = tuple(
        PlannedEdge(
            edge.left,
            edge.right,
            graph.edges_at(edge.left).index(i),
            graph.edges_at(edge.right).index(i),
            edge.class_name,
        )
        for i, edge in enumerate(graph.edges)
    )
    return Plan(query, seed, synopses, scans, edges, aggregates)


def choose_within(query: Query, seed: int, rows: int, size_bytes: int, sparse: bool = True) -> Plan:
    """The plan of one query in `size_bytes` for all its sketches together, every sketch of the same size.

    Raises
    ------
    BudgetExceeded
        If that leaves a row less than two buckets; the message says how many bytes would do.
    """
    draft = choose(query, seed, rows, 2, sparse)
    sketches = sum(1 for s in draft.synopses if s.attributes)
    if not sketches:
        return draft
    return choose(query, seed, rows, buckets_within(sketches, rows, size_bytes, query.sql), sparse)


def buckets_within(sketches: int, rows: int, size_bytes: int, sql: str) -> int:
    """The buckets that `sketches` equal sketches of `rows` rows have in `size_bytes` together.

    Raises
    ------
    BudgetExceeded
        If it is less than two; the message says how many bytes would do.
    """
    buckets = size_bytes // (BYTES_PER_COUNTER * rows * sketches)
    if buckets < 2:
        least = 2 * BYTES_PER_COUNTER * rows * sketches
        raise BudgetExceeded(
            f"{size_bytes:,} bytes are too few for {sketches} sketches of {rows} rows",
            sql=sql,
            hint=f"SIZE {least} or more; kilobytes before the interval says much",
        )
    return buckets


def _vertices(graph: JoinGraph) -> range:
    return range(len(graph.vertices))


def _attribute(edge: Edge, vertex: int) -> Attribute:
    types = tuple(t for t in edge.key_types if t is not None)
    assert len(types) == len(edge.key_types), f"edge {edge.class_name} has keys of unknown type"
    return Attribute(edge.keys_of(vertex), types, edge.class_name)
