"""Which queries can use which sketches: multi-query join graphs, xi-equivalence, well-formedness.

A *vertex* stands for one sketch: a virtual relation (table, filter, what its tuples weigh) seen through a
set of join attributes. Queries that need the same sketch may share the vertex; then every edge that enters
the vertex through one attribute must use one xi family, and by transitivity whole classes of edges do.
Sharing is right as long as no class holds two edges of one query [1]_. The search for the best sharing is
in `coalesce`.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, "Sketch-Based Multi-Query Processing over Data
   Streams", EDBT 2004, Section 3.1, Definitions 1 and 2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...parser.join_graph import Factor, JoinGraph, Query, Term

# What is minimised over a workload: the mean or the greatest squared error.
Metric = Literal["average", "maximum"]


@dataclass(frozen=True, slots=True)
class VirtualRelation:
    """What a sketch is fed with: a table, its filter, and what each tuple weighs.

    `weight` lists the canonical texts of everything a tuple's weight is multiplied with (a SUM argument, an
    exact message folded in); empty when tuples count 1. Equal values are one virtual relation.
    """

    table: str
    filter: str | None = None
    weight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """A join attribute of a relation: one key expression, or several for a composite edge.

    `types` are the types in which Spark compares the keys (encoded values depend on them). `replica` is 0
    for the first use of the attribute within a query, 1 for the second, and so on: a replica holds the same
    values under another xi family, as [1]_ asks of an attribute that a query uses twice.
    """

    keys: tuple[str, ...]
    types: tuple[str | None, ...] = ()
    replica: int = 0


@dataclass(frozen=True, slots=True)
class SketchVertex:
    """One sketch: a virtual relation and its join attributes (a set, in sorted order)."""

    relation: VirtualRelation
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class SketchEdge:
    """One equi-join of one query, between two vertices; `query` indexes `SharedGraph.queries`."""

    query: int
    left: int
    right: int
    left_attribute: Attribute
    right_attribute: Attribute

    def ends(self) -> tuple[tuple[int, Attribute], tuple[int, Attribute]]:
        """The two (vertex, attribute) pairs whose xi families must agree."""
        return (self.left, self.left_attribute), (self.right, self.right_attribute)


@dataclass(frozen=True, slots=True)
class SharedGraph:
    """The join graphs of a workload over common vertices.

    `queries` names what is estimated, one label each. `ties` are groups of edges that use one xi family
    because they are the same join in several terms of one query (the numerator and denominator of AVG are
    taken on the same hashes, so that their errors cancel).
    """

    queries: tuple[Hashable, ...]
    vertices: tuple[SketchVertex, ...]
    edges: tuple[SketchEdge, ...]
    ties: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        joined = {edge.query for edge in self.edges}
        for query, label in enumerate(self.queries):
            if query not in joined:
                raise ValueError(f"query {label!r} has no join: there is no sketch to share")
        for edge in self.edges:
            for vertex, attribute in edge.ends():
                assert attribute in self.vertices[vertex].attributes, f"{attribute} is not at vertex {vertex}"

    def vertices_of(self) -> tuple[tuple[int, ...], ...]:
        """V(Q) for every query: the vertices its edges touch, ascending."""
        touched: list[set[int]] = [set() for _ in self.queries]
        for edge in self.edges:
            touched[edge.query].update((edge.left, edge.right))
        return tuple(tuple(sorted(vertices)) for vertices in touched)

    def queries_of(self) -> tuple[tuple[int, ...], ...]:
        """Q(v) for every vertex: the queries that use it, ascending."""
        users: list[set[int]] = [set() for _ in self.vertices]
        for edge in self.edges:
            users[edge.left].add(edge.query)
            users[edge.right].add(edge.query)
        return tuple(tuple(sorted(queries)) for queries in users)

    def edge_classes(self) -> tuple[int, ...]:
        """The xi class of every edge, numbered from 0 in order of first appearance (Definition 1)."""
        classes = self._xi_classes()
        numbers: dict[Hashable, int] = {}
        return tuple(
            numbers.setdefault(classes.find((e.left, e.left_attribute)), len(numbers)) for e in self.edges
        )

    def attribute_classes(self) -> tuple[tuple[int, ...], ...]:
        """The xi class of every attribute of every vertex, with the numbers of `edge_classes`."""
        classes = self._xi_classes()
        numbers: dict[Hashable, int] = {}
        for edge in self.edges:
            numbers.setdefault(classes.find((edge.left, edge.left_attribute)), len(numbers))
        return tuple(
            tuple(numbers[classes.find((v, attribute))] for attribute in vertex.attributes)
            for v, vertex in enumerate(self.vertices)
        )

    def conflicts(self) -> tuple[tuple[int, int], ...]:
        """Pairs of edges of one query that would use one xi family; empty for a well-formed graph."""
        first: dict[tuple[int, int], int] = {}
        found = []
        for index, (edge, number) in enumerate(zip(self.edges, self.edge_classes(), strict=True)):
            earlier = first.setdefault((edge.query, number), index)
            if earlier != index:
                found.append((earlier, index))
        return tuple(found)

    def is_well_formed(self) -> bool:
        """Whether every query's edges have distinct xi families (Definition 2): estimates are unbiased."""
        return not self.conflicts()

    def merged(self, into: Sequence[int]) -> SharedGraph:
        """The graph in which vertex v has become vertex `into[v]`; unused vertices are dropped.

        Vertices may be merged only where relation and attributes are equal; `into` need not be transitive.
        """
        roots = [_follow(into, v) for v in range(len(self.vertices))]
        for v, root in enumerate(roots):
            if self.vertices[v] != self.vertices[root]:
                raise ValueError(f"vertices {v} and {root} are not the same sketch and cannot be merged")
        kept = sorted(set(roots))
        number = {root: index for index, root in enumerate(kept)}
        edges = tuple(
            SketchEdge(
                edge.query,
                number[roots[edge.left]],
                number[roots[edge.right]],
                edge.left_attribute,
                edge.right_attribute,
            )
            for edge in self.edges
        )
        return SharedGraph(self.queries, tuple(self.vertices[root] for root in kept), edges, self.ties)

    def _xi_classes(self) -> UnionFind:
        classes = UnionFind()
        for edge in self.edges:
            classes.union(*edge.ends())
        for group in self.ties:
            first = self.edges[group[0]]
            for index in group[1:]:
                edge = self.edges[index]
                classes.union((first.left, first.left_attribute), (edge.left, edge.left_attribute))
        return classes


class UnionFind:
    """Disjoint sets over hashable items, which join as they are first named."""

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}

    def find(self, item: Hashable) -> Hashable:
        """The representative of the item's set."""
        parent = self._parent
        root = parent.setdefault(item, item)
        while parent[root] != root:
            root = parent[root]
        while parent[item] != root:
            parent[item], item = root, parent[item]
        return root

    def union(self, one: Hashable, other: Hashable) -> None:
        """Join two sets."""
        self._parent[self.find(one)] = self.find(other)


def _follow(into: Sequence[int], vertex: int) -> int:
    while into[vertex] != vertex:
        vertex = into[vertex]
    return vertex


class GraphBuilder:
    """Collects queries into an unshared `SharedGraph`: every query gets vertices and families of its own."""

    def __init__(self) -> None:
        self._queries: list[Hashable] = []
        self._vertices: list[SketchVertex] = []
        self._edges: list[SketchEdge] = []

    def add(
        self,
        label: Hashable,
        relations: Sequence[VirtualRelation],
        joins: Iterable[tuple[int, Attribute, int, Attribute]],
    ) -> tuple[int, ...]:
        """Add one query and return the indices of its edges.

        Parameters
        ----------
        label : hashable
            The query's name in the plan.
        relations : sequence of VirtualRelation
            One for every occurrence of a table in the query.
        joins : iterable of (int, Attribute, int, Attribute)
            Equi-joins between occurrences. Where an occurrence uses one attribute in several joins, all but
            the first get a replica.
        """
        query, base = len(self._queries), len(self._vertices)
        uses: dict[tuple[int, Attribute], int] = defaultdict(int)
        attributes: list[set[Attribute]] = [set() for _ in relations]

        def use(occurrence: int, attribute: Attribute) -> Attribute:
            replica = uses[occurrence, attribute]
            uses[occurrence, attribute] += 1
            named = Attribute(attribute.keys, attribute.types, replica)
            attributes[occurrence].add(named)
            return named

        edges = [
            SketchEdge(query, base + left, base + right, use(left, one), use(right, other))
            for left, one, right, other in joins
        ]
        self._vertices += (
            SketchVertex(relation, tuple(sorted(used, key=_attribute_order)))
            for relation, used in zip(relations, attributes, strict=True)
        )
        first = len(self._edges)
        self._edges += edges
        self._queries.append(label)
        return tuple(range(first, len(self._edges)))

    def build(self, ties: Iterable[tuple[int, ...]] = ()) -> SharedGraph:
        """The graph of everything added."""
        return SharedGraph(tuple(self._queries), tuple(self._vertices), tuple(self._edges), tuple(ties))


def unshared_graph(queries: Sequence[Query]) -> SharedGraph:
    """The join graphs of parsed queries, one label (query, term) for every term they estimate.

    Every distinct term of a query's aggregates is estimated by a product of sketches of its own weights;
    the terms of one query are tied to the same xi families. Vertices of one query with equal weights are
    separate here as well; `coalesce` merges them first.

    Raises
    ------
    ValueError
        If a query joins nothing.
    """
    builder, ties = GraphBuilder(), []
    for index, query in enumerate(queries):
        rows = [
            builder.add((index, number), _relations(query.graph, term), _joins(query.graph))
            for number, term in enumerate(estimated_terms(query))
        ]
        if len(rows) > 1:
            ties += list(zip(*rows, strict=True))
    return builder.build(ties)


def estimated_terms(query: Query) -> tuple[Term, ...]:
    """The distinct products that a query's aggregates are made of, coefficients set aside."""
    terms = (term for aggregate in query.aggregates for term in (*aggregate.total, *aggregate.presence))
    ordered = (tuple(sorted(term.factors, key=lambda factor: factor.vertex)) for term in terms)
    return tuple(dict.fromkeys(Term(factors) for factors in ordered))


def _relations(graph: JoinGraph, term: Term) -> list[VirtualRelation]:
    return [
        VirtualRelation(vertex.table, vertex.filter, _weight(term.factor_of(index)))
        for index, vertex in enumerate(graph.vertices)
    ]


def _weight(factor: Factor | None) -> tuple[str, ...]:
    if factor is None:
        return ()
    return (f"{factor.expression} IS NOT NULL" if factor.presence else factor.expression,)


def _joins(graph: JoinGraph) -> list[tuple[int, Attribute, int, Attribute]]:
    return [
        (
            edge.left,
            Attribute(edge.left_keys, edge.key_types),
            edge.right,
            Attribute(edge.right_keys, edge.key_types),
        )
        for edge in graph.edges
    ]


def _attribute_order(attribute: Attribute) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    return attribute.keys, tuple(kind or "" for kind in attribute.types), attribute.replica
