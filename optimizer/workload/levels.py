"""How much of the space each vertex deserves: the exact levels behind ComputeSpace.

Minimising the sum of W_Q / M_Q with M_Q the least m_v of the query's vertices splits vertices and queries
into *components*: within one, all vertices get the same space, proportional to the root of its *level*
W(C) / |V(C)|, and the least error is (sum over components of sqrt(W(C) |V(C)|))^2 / M [1]_.

Seen from the dual, every query hands out its weight to its vertices, and the levels are the fairest
possible loads. That view gives an exact algorithm (a component is found by asking whether its loads can be
made equal, and cut in two where they cannot), and makes the effect of merging two vertices a local
question: loads of other vertices can only rise, so all components above the new levels stay as they are.
`allocate` finds the same components by [1]_'s max-flow on the whole graph; `coalesce` uses this module,
because it asks thousands of times.

References
----------
.. [1] A. Dobra, J. Gehrke, R. Rastogi, M. Garofalakis, US 2006/0161566, [0055]-[0080] (ComputeSpace,
   SelectEdges), with the corrections named in `allocate`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

# Of every query: its weight, an integer, and the vertices among which it can hand it out.
Demands = Mapping[int, tuple[int, tuple[int, ...]]]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Vertices and queries that share one level; `weight` is the sum of the queries' weights."""

    vertices: frozenset[int]
    queries: frozenset[int]
    weight: int

    @property
    def root(self) -> float:
        """The component's part of the root of the least error, sqrt(weight * vertices)."""
        return sqrt(self.weight * len(self.vertices))

    def is_below(self, other: Component) -> bool:
        """Whether the level is strictly lower than the other's, compared exactly."""
        return self.weight * len(other.vertices) < other.weight * len(self.vertices)


def components_of(vertices: Iterable[int], demands: Demands) -> list[Component]:
    """Split vertices and queries into components of equal level, exactly.

    Parameters
    ----------
    vertices : iterable of int
        Everything that needs space.
    demands : mapping of query to (weight, vertices)
        Weights are positive integers; the vertices of a query are a non-empty subset of `vertices`.

    Returns
    -------
    list of Component
        Disjoint, complete, and connected (several may have one level); a vertex that no query uses has
        level 0.

    Notes
    -----
    Each step routes flow in one bipartite graph, O(queries * entries) in the worst case; at most as many
    steps as components.
    """
    found: list[Component] = []
    pending: list[tuple[frozenset[int], Demands]] = [(frozenset(vertices), demands)]
    while pending:
        inside, wanted = pending.pop()
        if not inside:
            continue
        heavy_vertices, heavy_queries = _overloaded(inside, wanted)
        if not heavy_queries:
            found += _connected(inside, wanted)
            continue
        rest = inside - heavy_vertices
        pending.append((heavy_vertices, {q: wanted[q] for q in heavy_queries}))
        pending.append(
            (
                rest,
                {
                    q: (weight, tuple(v for v in usable if v in rest))
                    for q, (weight, usable) in wanted.items()
                    if q not in heavy_queries
                },
            )
        )
    return found


def _connected(vertices: frozenset[int], demands: Demands) -> list[Component]:
    """The connected pieces of one level; smaller pieces keep later changes local."""
    users: dict[int, list[int]] = {v: [] for v in vertices}
    for query, (_, usable) in demands.items():
        for vertex in usable:
            users[vertex].append(query)
    pieces, left = [], set(vertices)
    while left:
        pending = [left.pop()]
        reached, queries = set(pending), set[int]()
        while pending:
            for query in users[pending.pop()]:
                if query not in queries:
                    queries.add(query)
                    fresh = left.intersection(demands[query][1])
                    left -= fresh
                    reached |= fresh
                    pending += fresh
        total = sum(demands[query][0] for query in queries)
        pieces.append(Component(frozenset(reached), frozenset(queries), total))
    return pieces


def _overloaded(vertices: frozenset[int], demands: Demands) -> tuple[frozenset[int], frozenset[int]]:
    """The least set of vertices and queries whose level exceeds the average; empty if all can be equal.

    Every query supplies weight * |vertices| units and every vertex takes up to the total weight, so that a
    full flow means equal loads; what cannot be routed marks the source side of a minimum cut.
    """
    size = len(vertices)
    capacity = sum(weight for weight, _ in demands.values())
    room = dict.fromkeys(vertices, capacity)
    sent: dict[int, dict[int, int]] = {}  # query -> vertex -> units
    received: dict[int, dict[int, int]] = {v: {} for v in vertices}  # vertex -> query -> units
    short: dict[int, int] = {}
    for query in sorted(demands, key=lambda q: len(demands[q][1])):
        weight, usable = demands[query]
        left = weight * size
        row = sent[query] = {}
        for vertex in sorted(usable, key=lambda v: -room[v]):
            units = min(left, room[vertex])
            if units:
                row[vertex] = received[vertex][query] = units
                room[vertex] -= units
                left -= units
            if not left:
                break
        if left:
            short[query] = left
    stuck = []
    for query, left in short.items():
        if _route(query, left, demands, room, sent, received):
            stuck.append(query)
    return _reached(stuck, demands, received)


def _route(
    start: int,
    left: int,
    demands: Demands,
    room: dict[int, int],
    sent: dict[int, dict[int, int]],
    received: dict[int, dict[int, int]],
) -> int:
    """Send what `start` still has along shortest augmenting paths; return what does not fit."""
    while left:
        giver: dict[int, int] = {}  # vertex -> query that leads to it
        source: dict[int, int] = {start: -1}  # query -> vertex that leads to it
        queue = deque([start])
        target = -1
        while queue and target < 0:
            query = queue.popleft()
            for vertex in demands[query][1]:
                if vertex in giver:
                    continue
                giver[vertex] = query
                if room[vertex]:
                    target = vertex
                    break
                for other in received[vertex]:
                    if other not in source:
                        source[other] = vertex
                        queue.append(other)
        if target < 0:
            return left
        units, vertex = min(left, room[target]), target
        while giver[vertex] != start:
            previous = source[giver[vertex]]
            units = min(units, sent[giver[vertex]][previous])
            vertex = previous
        room[target] -= units
        vertex = target
        while True:
            query = giver[vertex]
            sent[query][vertex] = sent[query].get(vertex, 0) + units
            received[vertex][query] = sent[query][vertex]
            if query == start:
                break
            vertex = source[query]
            sent[query][vertex] -= units
            received[vertex][query] -= units
            if not sent[query][vertex]:
                del sent[query][vertex], received[vertex][query]
        left -= units
    return 0


def _reached(
    stuck: list[int], demands: Demands, received: dict[int, dict[int, int]]
) -> tuple[frozenset[int], frozenset[int]]:
    queries, vertices, pending = set(stuck), set[int](), list(stuck)
    while pending:
        for vertex in demands[pending.pop()][1]:
            if vertex not in vertices:
                vertices.add(vertex)
                fresh = received[vertex].keys() - queries
                queries |= fresh
                pending += fresh
    return frozenset(vertices), frozenset(queries)
