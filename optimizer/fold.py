"""Exact messages: vertices of the join tree folded, one after the other, into their neighbours.

A COUNT or SUM over an acyclic join is message passing over the join tree: a leaf sends the total weight of each of its
keys to its only neighbour, which multiplies it into its own tuples and then stands for both. What no message has
replaced is the residual tree.

References
----------
.. [1] M. Yannakakis, "Algorithms for acyclic database schemes", VLDB 1981.
.. [2] W. P. Yan, P.-A. Larson, "Eager aggregation and lazy aggregation", VLDB 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parser.join_graph import Edge, JoinGraph, Term
from .plan import Attribute, Message, Weight


@dataclass(frozen=True, slots=True)
class Residual:
    """What remains of a join graph.

    Attributes
    ----------
    vertices : tuple of int
        Vertices that no message has replaced, ascending; at least one.
    folded : tuple of (int, int)
        Vertices that a message has replaced, in order, each with the edge over which it went.
    """

    vertices: tuple[int, ...]
    folded: tuple[tuple[int, int], ...]

    def edges_at(self, graph: JoinGraph, vertex: int) -> tuple[int, ...]:
        """The edges of a remaining vertex to other remaining ones."""
        gone = {edge for _, edge in self.folded}
        return tuple(e for e in graph.edges_at(vertex) if e not in gone)

    def messages_into(self, graph: JoinGraph, vertex: int, term: Term) -> tuple[Message, ...]:
        """The exact messages that a vertex, folded or not, receives for one term of an aggregate."""
        own = next((n for n, (v, _) in enumerate(self.folded) if v == vertex), len(self.folded))
        found = []
        for sender, number in self.folded[:own]:
            edge = graph.edges[number]
            if vertex not in (edge.left, edge.right):
                continue
            found.append(
                Message(
                    graph.vertices[sender].table,
                    graph.vertices[sender].filter,
                    attribute_of(edge, vertex),
                    attribute_of(edge, sender),
                    weight_at(term, sender),
                    self.messages_into(graph, sender, term),
                )
            )
        return tuple(found)


def fold(graph: JoinGraph, vertices: Sequence[int]) -> Residual:
    """Fold vertices in the given order.

    Raises
    ------
    ValueError
        If one of them is no leaf of what then remains, or the last vertex.
    """
    folded: list[tuple[int, int]] = []
    gone: set[int] = set()
    for vertex in vertices:
        left = [e for e in graph.edges_at(vertex) if e not in {edge for _, edge in folded}]
        if vertex in gone or len(left) != 1:
            raise ValueError(f"vertex {vertex} of {vertices} is no leaf: {len(left)} edges remain")
        folded.append((vertex, left[0]))
        gone.add(vertex)
    return Residual(tuple(v for v in range(len(graph.vertices)) if v not in gone), tuple(folded))


def attribute_of(edge: Edge, vertex: int) -> Attribute:
    """The join attribute that an edge has in one of its vertices."""
    types = tuple(t for t in edge.key_types if t is not None)
    assert len(types) == len(edge.key_types), f"edge {edge.class_name} has keys of unknown type"
    return Attribute(edge.keys_of(vertex), types, edge.class_name)


def weight_at(term: Term, vertex: int) -> Weight:
    """What the tuples of a vertex add to a term."""
    factor = term.factor_of(vertex)
    return Weight(factor.expression, factor.presence) if factor else Weight()
