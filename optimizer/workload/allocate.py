"""How much space every sketch gets, for the least average or the least maximum error of a workload.

A query Q whose sketches have m_v words has the squared error W_Q / M_Q with M_Q = min m_v over its vertices
(EDBT 2004, Section 3.2). `compute_space` and `maximum_error_space` give the best real-valued sizes;
`allocate` rounds them to what sketches can use.

References
----------
.. [1] A. Dobra, J. Gehrke, R. Rastogi, M. Garofalakis, US 2006/0161566, Tables 1 to 4 (ComputeSpace,
   SelectEdges, Forward-Mark, Backward-Mark) and [0082]-[0083] (maximum error).
.. [2] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, EDBT 2004, Sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heapreplace
from math import floor, log2, sqrt

import networkx as nx

from .share import Metric, SharedGraph
from .weights import integer_weights

LEAST_BUCKETS = 2  # a row of one bucket is a sum
MOST_ROWS = 220  # of `allocate_rows`: twenty times the rows of an interval

Node = tuple[str, int]  # ("v", vertex) or ("q", query)


@dataclass(frozen=True, slots=True)
class Demand:
    """Who needs which sketches: V(Q) and W_Q for every query, over vertices 0 .. `vertices` - 1."""

    vertices: int
    queries: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.queries):
            raise ValueError(f"{len(self.weights)} weights for {len(self.queries)} queries")
        if not all(self.queries):
            raise ValueError("every query needs at least one vertex")
        if not all(0 <= v < self.vertices for used in self.queries for v in used):
            raise ValueError(f"vertices run from 0 to {self.vertices - 1}")

    @classmethod
    def of(cls, graph: SharedGraph, weights: Sequence[float] | None = None) -> Demand:
        """The demand of a shared graph; every weight is 1 if none are given."""
        ones = (1.0,) * len(graph.queries)
        return cls(len(graph.vertices), graph.vertices_of(), ones if weights is None else tuple(weights))

    def errors(self, words: Sequence[float]) -> tuple[float, ...]:
        """W_Q / M_Q of every query at these sizes; infinite where a sketch has no space."""
        smallest = (min(words[v] for v in used) for used in self.queries)
        return tuple(w / m if m else float("inf") for w, m in zip(self.weights, smallest, strict=True))


@dataclass(frozen=True, slots=True)
class SketchShape:
    """What sizes a sketch can have: a whole number of units of `unit` words, at least `least` of them.

    For sketches of so many rows, the unit is one bucket in every row: `unit` = rows. All sketches of a query
    must then have one size, which holds within a component but not across. For sketches of so many buckets,
    the unit is a row: `unit` = buckets. A query reads the rows that all its sketches have, as it reads the
    common copies of AGMS sketches (`unit` = 1).
    """

    unit: int = 1
    least: int = 1

    def __post_init__(self) -> None:
        if self.unit < 1 or self.least < 1:
            raise ValueError(f"a sketch has at least one unit of one word, not {self.least} of {self.unit}")


@dataclass(frozen=True, slots=True)
class Allocation:
    """Words for every vertex, and what the queries' squared errors W_Q / M_Q come to."""

    words: tuple[int, ...]
    average_error: float
    maximum_error: float


@dataclass(frozen=True, slots=True)
class RowAllocation:
    """A common number of buckets, and the rows of every vertex, one number for each of its sketches."""

    buckets: int
    rows: tuple[tuple[int, ...], ...]

    @property
    def words(self) -> tuple[int, ...]:
        """Words of every vertex."""
        return tuple(self.buckets * sum(row) for row in self.rows)


@dataclass(frozen=True, slots=True)
class SpaceComponent:
    """Vertices and queries of one size; `share` is the part of the space each vertex gets."""

    vertices: tuple[int, ...]
    queries: tuple[int, ...]
    share: float


def allocate(
    demand: Demand, words: int, metric: Metric = "average", shape: SketchShape | None = None
) -> Allocation:
    """Divide `words` among the sketches of a workload.

    Parameters
    ----------
    demand : Demand
        Which query needs which vertices, and the weights.
    words : int
        8-byte counters to give out; the result never exceeds them.
    metric : {"average", "maximum"}
        Minimise the mean, or the greatest, of W_Q / M_Q.
    shape : SketchShape, optional
        Sizes a sketch can have; any number of words if not given.

    Returns
    -------
    Allocation
        `average_error` is the mean over queries, `maximum_error` the greatest.

    Raises
    ------
    ValueError
        If the space does not suffice for every sketch's least size; the message says how much would.

    Notes
    -----
    Average: the continuous optimum rounded down is within 1 + 2|J|/M of the integer optimum ([2], Theorem
    3); the rest is given out afterwards, to whole components, where it lowers the error most per word.
    Maximum: exactly optimal. Departs from [1] [0083], which rounds the proportional solution down (a vertex
    may be left with nothing) and tops up: here everything starts at its least size, and units go one by one
    to the smallest m_v / w_v.
    """
    shape = shape or SketchShape()
    units = words // shape.unit
    if units < shape.least * demand.vertices:
        needed = shape.least * demand.vertices * shape.unit
        raise ValueError(f"{words} words are too few for {demand.vertices} sketches; {needed} would do")
    if metric == "average":
        counts = _rounded(demand, units, shape.least)
    else:
        counts = _unit_by_unit(_needs(demand), units, shape.least)
    sizes = tuple(shape.unit * count for count in counts)
    errors = demand.errors(sizes)
    return Allocation(sizes, sum(errors) / len(errors), max(errors))


def allocate_rows(
    demand: Demand,
    words: int,
    metric: Metric = "average",
    cells: Sequence[Sequence[float]] | None = None,
    least_rows: int = 11,
    more_error: float = 0.0,
) -> RowAllocation:
    """Divide `words` among sketches of a common number of buckets and as many rows as each deserves.

    For sketches that can be multiplied only at one number of buckets, shared by queries of other needs: a
    query reads the rows that all its sketches have.

    Parameters
    ----------
    demand, words, metric
        As for `allocate`.
    cells : sequence of sequences of float, optional
        For every vertex the parts of its space that its sketches get (domain partitions); one sketch each if
        not given.
    least_rows : int
        Rows that every sketch has at least, for the interval.
    more_error : float
        By how much the squared error may be above the least for fewer rows.

    Raises
    ------
    ValueError
        If there is no space for `least_rows` rows of `LEAST_BUCKETS` buckets in every sketch.

    Notes
    -----
    Few buckets follow the ideal sizes more closely, but updates cost time for each row. So numbers of buckets
    are tried from that of equal sizes down to where the largest sketch has `MOST_ROWS` rows, and the one with
    the least error is taken, or the greatest whose error is not above that by more than is allowed.
    """
    shares = _continuous(demand, metric)
    parts = cells or [(1.0,)] * demand.vertices
    ideal = [[words * share * part for part in row] for share, row in zip(shares, parts, strict=True)]
    count = sum(map(len, ideal))
    equal = words // (least_rows * count)
    if equal < LEAST_BUCKETS:
        needed = least_rows * LEAST_BUCKETS * count
        raise ValueError(f"{words} words are too few for {count} sketches; {needed} would do")
    lowest = max(max(max(row) for row in ideal) / MOST_ROWS, LEAST_BUCKETS)
    steps = max(floor(8 * log2(equal / lowest)), 0) if equal > lowest else 0
    tried: list[tuple[float, RowAllocation]] = []
    for buckets in sorted({int(equal / 2 ** (step / 8)) for step in range(steps + 1)}, reverse=True):
        rows = _fitting(ideal, buckets, words, least_rows)
        sizes = [
            share * words * min(buckets * r / space for r, space in zip(own, row, strict=True))
            for share, own, row in zip(shares, rows, ideal, strict=True)
        ]
        errors = demand.errors(sizes)
        error = sum(errors) if metric == "average" else max(errors)
        tried.append((error, RowAllocation(buckets, tuple(tuple(own) for own in rows))))
    enough = min(error for error, _ in tried) * (1 + max(more_error, 1e-12))
    return next(allocation for error, allocation in tried if error <= enough)


def _continuous(demand: Demand, metric: Metric) -> tuple[float, ...]:
    """The best real-valued parts of the space; vertices that nobody needs get next to nothing."""
    if metric == "maximum":
        return maximum_error_space(demand)
    shares = [0.0] * demand.vertices
    for component in compute_space(demand):
        for v in component.vertices:
            shares[v] = max(component.share, 1e-12)
    return tuple(shares)


def _fitting(ideal: list[list[float]], buckets: int, words: int, least_rows: int) -> list[list[int]]:
    """Rows in proportion to the ideal, at least `least_rows`, as many as the words allow."""

    def rows(scale: float) -> list[list[int]]:
        return [[max(least_rows, floor(scale * space / buckets)) for space in row] for row in ideal]

    low, high = 0.0, 1.0 + len(ideal) * buckets
    for _ in range(60):
        middle = (low + high) / 2
        if buckets * sum(map(sum, rows(middle))) <= words:
            low = middle
        else:
            high = middle
    return rows(low)


def compute_space(demand: Demand) -> tuple[SpaceComponent, ...]:
    """ComputeSpace: the real-valued sizes that minimise the sum of W_Q / M_Q.

    Parameters
    ----------
    demand : Demand
        Weights are taken as exact rationals.

    Returns
    -------
    tuple of SpaceComponent
        Ordered by their first vertex. A vertex on component C gets the part
        sqrt(W(C) / |V(C)|) / sum over D of sqrt(W(D) |V(D)|) of the space.

    Notes
    -----
    As [1], Tables 1 to 4, with the corrections E = E - E', and Forward- and Backward-Mark as the text
    defines them: max-flow s -> v (capacity 1) -> Q (infinite) -> t (W_Q |V(C)| / W(C)) on every connected
    component, edges between the two marked sides deleted, until nothing is left to delete. Capacities are
    scaled to integers, so saturation is exact. O(min(|Q|, |J|) (|Q| + |J|)^3) ([2], Theorem 3).
    """
    weights = integer_weights(demand.weights, len(demand.queries))
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_nodes_from(("v", v) for v in range(demand.vertices))
    graph.add_edges_from((("v", v), ("q", q)) for q, used in enumerate(demand.queries) for v in used)
    final: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    pending = [set(part) for part in nx.connected_components(graph)]
    while pending:
        part = pending.pop()
        cut = _select_edges(graph.subgraph(part), weights)
        if cut:
            graph.remove_edges_from(cut)
            pending += [set(piece) for piece in nx.connected_components(graph.subgraph(part))]
        else:
            final.append((_numbers(part, "v"), _numbers(part, "q")))
    totals = [sum(weights[q] for q in queries) for _, queries in final]
    whole = sum(sqrt(total * len(vertices)) for total, (vertices, _) in zip(totals, final, strict=True))
    return tuple(
        SpaceComponent(vertices, queries, sqrt(total / len(vertices)) / whole if whole else 0.0)
        for total, (vertices, queries) in sorted(zip(totals, final, strict=True), key=lambda pair: pair[1])
    )


def maximum_error_space(demand: Demand) -> tuple[float, ...]:
    """The parts of the space that minimise the greatest W_Q / M_Q: as w_v, the greatest W_Q over Q(v)."""
    needs = _needs(demand)
    return tuple(need / sum(needs) for need in needs)


def _numbers(part: set[Node], kind: str) -> tuple[int, ...]:
    return tuple(sorted(number for name, number in part if name == kind))


def _select_edges(part: nx.Graph[Node], weights: Sequence[int]) -> list[tuple[Node, Node]]:
    """SelectEdges ([1], Table 2): the (v, Q) edges that lie between components of different level."""
    vertices = [node for node in part if node[0] == "v"]
    queries = [node for node in part if node[0] == "q"]
    if not queries:
        return []
    total = sum(weights[number] for _, number in queries)
    network: nx.DiGraph[object] = nx.DiGraph()
    network.add_edges_from((("s", v) for v in vertices), capacity=total)
    network.add_edges_from((v, q) for v in vertices for q in part[v])
    for q in queries:
        network.add_edge(q, "t", capacity=weights[q[1]] * len(vertices))
    value, flow = nx.maximum_flow(network, "s", "t")
    if value == total * len(vertices):
        return []
    carries = {(v, q) for v in vertices for q in part[v] if flow[v][q]}
    forward = _mark(
        {v for v in vertices if flow["s"][v] < total}, part, lambda a, b: a[0] == "v" or (b, a) in carries
    )
    short = {q for q in queries if flow[q]["t"] < weights[q[1]] * len(vertices)}
    backward = _mark(short, part, lambda a, b: a[0] == "q" or (a, b) in carries)
    return [
        (v, q)
        for v in vertices
        for q in part[v]
        if (q in forward and v not in forward) or (v in backward and q not in backward)
    ]


def _mark(start: set[Node], part: nx.Graph[Node], passable: Callable[[Node, Node], bool]) -> set[Node]:
    reached, pending = set(start), list(start)
    while pending:
        node = pending.pop()
        fresh = {other for other in part[node] if other not in reached and passable(node, other)}
        reached |= fresh
        pending += fresh
    return reached


def _rounded(demand: Demand, units: int, least: int) -> tuple[int, ...]:
    """Round the continuous optimum down, then give the rest to components, the best return per unit first."""
    components = compute_space(demand)
    counts = [0] * demand.vertices
    sizes = [max(least, floor(component.share * units * (1 + 1e-12))) for component in components]
    spent = sum(size * len(component.vertices) for size, component in zip(sizes, components, strict=True))
    while spent > units:  # raising some to the least size took from the others
        richest = max(range(len(sizes)), key=lambda c: (sizes[c], -c))
        sizes[richest] -= 1
        spent -= len(components[richest].vertices)
    weights = [sum(demand.weights[q] for q in component.queries) for component in components]
    while True:
        affordable = [c for c, part in enumerate(components) if len(part.vertices) <= units - spent]
        if not affordable:
            break
        best = max(
            affordable,
            key=lambda c: (weights[c] / (sizes[c] * (sizes[c] + 1) * len(components[c].vertices)), -c),
        )
        sizes[best] += 1
        spent += len(components[best].vertices)
    for size, component in zip(sizes, components, strict=True):
        for v in component.vertices:
            counts[v] = size
    return tuple(counts)


def _needs(demand: Demand) -> tuple[int, ...]:
    """w_v = max W_Q over Q(v), as integers in exact proportion; 1 where no query uses the vertex."""
    weights = integer_weights(demand.weights, len(demand.queries))
    needs = [1] * demand.vertices
    for weight, used in zip(weights, demand.queries, strict=True):
        for v in used:
            needs[v] = max(needs[v], weight)
    return tuple(needs)


def _unit_by_unit(needs: Sequence[int], units: int, least: int) -> tuple[int, ...]:
    """From `least` up, one unit at a time to the smallest m_v / w_v; the state near the end is jumped to."""
    # The sizes when the smallest ratio first exceeds t; they fit, being at most w t + least.
    ratio = Fraction(units - least * len(needs), sum(needs))
    counts = [max(least, floor(need * ratio) + 1) for need in needs]
    heap = [(Fraction(count, need), v) for v, (count, need) in enumerate(zip(counts, needs, strict=True))]
    heapify(heap)
    for _ in range(units - sum(counts)):
        v = heap[0][1]
        counts[v] += 1
        heapreplace(heap, (Fraction(counts[v], needs[v]), v))
    return tuple(counts)
