"""The residual tree of a query as the engine sees it: edges, join attributes, and the exact messages folded away.

The classes are those of `messages`: any vertex of a class may send to, or be sketched against, any other, whichever
edges spelled the class in the query.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..parser.join_graph import Edge, JoinGraph, Term
from .messages import Fold, JoinClass, Residual, tree_of, whole
from .plan import Attribute, Message, Weight

INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))


@dataclass(frozen=True, slots=True)
class ResidualEdge:
    """An edge between two vertices that are left: its join class by number, and the attribute at either end."""

    left: int
    right: int
    joined: int
    left_attribute: Attribute
    right_attribute: Attribute

    def attribute(self, vertex: int) -> Attribute:
        """The attribute at one end."""
        return self.left_attribute if vertex == self.left else self.right_attribute


@dataclass(frozen=True, slots=True)
class ResidualTree:
    """What is left of a join graph after folds, with an edge fewer than vertices."""

    graph: JoinGraph
    residual: Residual
    edges: tuple[ResidualEdge, ...]

    @property
    def vertices(self) -> tuple[int, ...]:
        """The vertices that are left, ascending."""
        return self.residual.vertices

    def edges_at(self, vertex: int) -> tuple[int, ...]:
        """Numbers of the edges at a vertex, in order."""
        return tuple(i for i, e in enumerate(self.edges) if vertex in (e.left, e.right))

    def attributes(self, vertex: int) -> tuple[Attribute, ...]:
        """The join attributes of a vertex, in the order of its edges."""
        return tuple(self.edges[i].attribute(vertex) for i in self.edges_at(vertex))

    def messages_into(self, vertex: int, term: Term) -> tuple[Message, ...]:
        """The exact messages that a vertex, folded or not, receives for one term of an aggregate."""
        folds = self.residual.folds
        own = next((n for n, f in enumerate(folds) if f.sender == vertex), len(folds))
        return tuple(self._message(f, term) for f in folds[:own] if f.receiver == vertex)

    def _message(self, fold: Fold, term: Term) -> Message:
        joined = self.residual.tree.classes[fold.joined]
        sender = self.graph.vertices[fold.sender]
        return Message(
            sender.table,
            sender.filter,
            class_attribute(self.graph, joined, fold.receiver),
            class_attribute(self.graph, joined, fold.sender),
            weight_at(term, fold.sender),
            self.messages_into(fold.sender, term),
        )


def residual_tree(graph: JoinGraph, residual: Residual | None = None) -> ResidualTree:
    """The edges of a residual tree; without one, of the whole query.

    The query's own edges where they still connect what is left of a class, else a star: every other vertex of the
    class to its first.
    """
    residual = residual or whole(tree_of(graph))
    edges = []
    for number in residual.classes:
        joined, members = residual.tree.classes[number], residual.members(number)
        own = [graph.edges[e] for e in joined.edges]
        kept = [e for e in own if e.left in members and e.right in members]
        ends = [(e.left, e.right, e.class_name) for e in kept]
        if len(kept) < len(members) - 1:
            names = [e.class_name for e in own]
            ends = [(members[0], v, name) for v, name in zip(members[1:], names, strict=False)]
        for left, right, name in ends:
            attributes = (class_attribute(graph, joined, v, name) for v in (left, right))
            edges.append(ResidualEdge(left, right, number, *attributes))
    order = {e.class_name: n for n, e in enumerate(graph.edges)}
    return ResidualTree(
        graph, residual, tuple(sorted(edges, key=lambda e: order[e.left_attribute.class_name]))
    )


def class_attribute(graph: JoinGraph, joined: JoinClass, vertex: int, name: str | None = None) -> Attribute:
    """The join attribute that a vertex has in a class, the same 64 bits for equal keys whatever the edge.

    Parts of a composite key come in one order, and where several edges spell the class its integers have one width:
    a fingerprint knows both.
    """
    edge = next(graph.edges[e] for e in joined.edges if vertex in (graph.edges[e].left, graph.edges[e].right))
    return _attribute(edge, vertex, name or joined.name, len(joined.edges) > 1)


def _attribute(edge: Edge, vertex: int, name: str, several: bool) -> Attribute:
    types = tuple(t for t in edge.key_types if t is not None)
    assert len(types) == len(edge.key_types), f"edge {edge.class_name} has keys of unknown type"
    keys = edge.keys_of(vertex)
    if several and len(keys) > 1:
        parts = sorted(zip(edge.classes, keys, types, strict=True))
        keys = tuple(k for _, k, _ in parts)
        types = tuple("bigint" if t in INTEGERS else t for _, _, t in parts)
    return Attribute(keys, types, name)


def weight_at(term: Term, vertex: int) -> Weight:
    """What the tuples of a vertex add to a term."""
    factor = term.factor_of(vertex)
    return Weight(factor.expression, factor.presence) if factor else Weight()
