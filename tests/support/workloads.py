"""Multi-query join graphs for tests: the golden ones, random ones, and slow ways to judge them."""

from __future__ import annotations

from itertools import combinations

from support.golden import golden

from skimql.optimizer.workload.share import (
    Attribute,
    GraphBuilder,
    SharedGraph,
    SketchEdge,
    SketchVertex,
    VirtualRelation,
)
from skimql.parser.join_graph import Aggregate, Edge, Factor, JoinGraph, Query, Span, Term, Vertex

HERE = Span(0, 1)

# The nine equi-joins among six TPC-H relations.
TPCH_JOINS = (
    ("part", "partkey", "partsupp", "partkey"),
    ("partsupp", "suppkey", "supplier", "suppkey"),
    ("supplier", "nationkey", "customer", "nationkey"),
    ("customer", "custkey", "orders", "custkey"),
    ("orders", "orderkey", "lineitem", "orderkey"),
    ("lineitem", "suppkey", "partsupp", "suppkey"),
    ("lineitem", "partkey", "partsupp", "partkey"),
    ("lineitem", "suppkey", "supplier", "suppkey"),
    ("lineitem", "partkey", "part", "partkey"),
)


def from_golden(graph):
    """The `SharedGraph` of a golden graph: vertices have "rel", "attrs", edges "v", "w", "av", "aw", "q"."""
    queries = list(dict.fromkeys(edge["q"] for edge in graph["edges"]))
    vertices = tuple(
        SketchVertex(VirtualRelation(v["rel"]), tuple(Attribute((a,)) for a in sorted(v["attrs"])))
        for v in graph["vertices"]
    )
    edges = tuple(
        SketchEdge(queries.index(e["q"]), e["v"], e["w"], Attribute((e["av"],)), Attribute((e["aw"],)))
        for e in graph["edges"]
    )
    return SharedGraph(tuple(queries), vertices, edges)


def tpch_workload(numbers):
    """The unshared graph of the golden TPC-H queries with these numbers, built from their edge lists."""
    workload = golden("tpch_workload")
    builder = GraphBuilder()
    for number in numbers:
        builder.add(number, *tpch_query(workload["queries"][str(number)]))
    return builder.build()


def tpch_query(joins):
    """Relations and joins of the query made of these numbers of `TPCH_JOINS` (from 1); 10 is a self-join."""
    if joins == [10]:
        lineitem, key = VirtualRelation("lineitem"), Attribute(("orderkey",))
        return [lineitem, lineitem], [(0, key, 1, key)]
    chosen = [TPCH_JOINS[number - 1] for number in joins]
    names = list(dict.fromkeys(name for join in chosen for name in (join[0], join[2])))
    edges = [
        (names.index(left), Attribute((one,)), names.index(right), Attribute((other,)))
        for left, one, right, other in chosen
    ]
    return [VirtualRelation(name) for name in names], edges


def random_workload(rng, queries, joins=TPCH_JOINS, most=4):
    """Random connected acyclic queries over a schema of equi-joins; `rng` is a numpy Generator."""
    builder = GraphBuilder()
    for number in range(queries):
        size = int(rng.integers(1, most + 1))
        chosen = [joins[rng.integers(len(joins))]]
        names = {chosen[0][0], chosen[0][2]}
        while len(chosen) < size:
            growing = [join for join in joins if (join[0] in names) != (join[2] in names)]
            if not growing:
                break
            chosen.append(growing[rng.integers(len(growing))])
            names.update((chosen[-1][0], chosen[-1][2]))
        order = sorted(names)
        edges = [
            (order.index(left), Attribute((one,)), order.index(right), Attribute((other,)))
            for left, one, right, other in chosen
        ]
        builder.add(number, [VirtualRelation(name) for name in order], edges)
    return builder.build()


def conflicts_by_closure(graph):
    """Whether some query has two xi-equivalent edges, by the transitive closure of Definition 1."""
    related = [
        {j for j, other in enumerate(graph.edges) if set(edge.ends()) & set(other.ends())}
        for edge in graph.edges
    ]
    grown = True
    while grown:
        grown = False
        for row in related:
            wider = set().union(row, *(related[j] for j in row))
            grown |= wider != row
            row |= wider
    return any(
        j in related[i] and graph.edges[i].query == graph.edges[j].query
        for i, j in combinations(range(len(related)), 2)
    )


def merge_of(graph, *groups):
    """The graph after merging every group of vertices into one."""
    into = list(range(len(graph.vertices)))
    for group in groups:
        roots = set()
        for vertex in group:
            while into[vertex] != vertex:
                vertex = into[vertex]
            roots.add(vertex)
        for root in roots:
            into[root] = min(roots)
    return graph.merged(into)


def candidate_pairs(graph):
    """Pairs of vertices that are the same sketch and used by different queries."""
    users = graph.queries_of()
    return [
        (i, j)
        for i, j in combinations(range(len(graph.vertices)), 2)
        if graph.vertices[i] == graph.vertices[j] and not set(users[i]) & set(users[j])
    ]


def star_query(function="avg", date="`day` > 5"):
    """AVG(sales.price) over sales, items and shops, with a filter on items."""
    vertices = tuple(
        Vertex(name, name, date if name == "items" else None, HERE) for name in ("sales", "items", "shops")
    )
    edges = tuple(
        Edge(0, end, (f"`{key}`",), (f"`{key}`",), ("bigint",), key, HERE)
        for end, key in ((1, "item"), (2, "shop"))
    )
    price = (Term((Factor(0, "`price`"),)),)
    counted = (Term((Factor(0, "`price`", presence=True),)),)
    aggregate = Aggregate(function, "a", price, counted, HERE)
    return Query("", "", (aggregate,), JoinGraph(vertices, edges))
