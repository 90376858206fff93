"""The join tree as message passing: classes as whole sets of vertices, leaves folded, residual trees.

A COUNT or SUM over an acyclic join sends, from every leaf, a map (key -> total weight) to its class, where one
of the other vertices multiplies it into its own weights and sends on: eager aggregation [2], after the semi-joins
of [1]. A leaf whose map is small can be *folded*: the map is sent exactly, and the leaf is gone from the tree.

Pure functions over small tuples; how large a message is, and whether it pays, is decided elsewhere.

References
----------
.. [1] M. Yannakakis, "Algorithms for acyclic database schemes", VLDB 1981.
.. [2] W. P. Yan, P.-A. Larson, "Eager aggregation and lazy aggregation", VLDB 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from ..parser.join_graph import JoinGraph


@dataclass(frozen=True, slots=True)
class JoinClass:
    """A set of vertices that share one join key, and the edges of the query that spell it."""

    name: str
    vertices: tuple[int, ...]
    edges: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.vertices)) < 2 or len(set(self.vertices)) < len(self.vertices):
            raise ValueError(f"a join class has two vertices or more, each once, not {self.vertices}")


@dataclass(frozen=True)
class JoinTree:
    """Vertices 0 .. `vertices` - 1 and the classes that join them.

    Raises
    ------
    ValueError
        Unless vertices and classes, as the nodes of one graph, make a tree.
    """

    vertices: int
    classes: tuple[JoinClass, ...]

    def __post_init__(self) -> None:
        part = list(range(self.vertices))
        for joined in self.classes:
            parts = [part[v] for v in joined.vertices]
            if len(set(parts)) < len(parts):
                raise ValueError(f"class {joined.name} closes a cycle")
            part = [parts[0] if p in parts else p for p in part]
        if len(set(part)) != 1:
            raise ValueError("a join tree is connected and has a vertex")

    def classes_of(self, vertex: int) -> tuple[int, ...]:
        """Numbers of the classes at a vertex, ascending."""
        return self._classes_of[vertex]

    @cached_property
    def _classes_of(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(i for i, c in enumerate(self.classes) if v in c.vertices) for v in range(self.vertices)
        )

    def joined_order(self) -> tuple[int, ...]:
        """The vertices in the order in which a left-deep join takes them: by number, each joined to those before it."""
        order = [0]
        while len(order) < self.vertices:
            near = {v for c in self.classes if not set(order).isdisjoint(c.vertices) for v in c.vertices}
            order.append(min(near.difference(order)))
        return tuple(order)

    def position(self, vertex: int, joined: int) -> int:
        """Which of a vertex's attributes belongs to the class."""
        return self.classes_of(vertex).index(joined)


@dataclass(frozen=True, slots=True)
class Fold:
    """An exact message: the map of `sender` over its class is multiplied into the weights of `receiver`."""

    sender: int
    receiver: int
    joined: int


@dataclass(frozen=True)
class Residual:
    """What is left of a tree after folds: its vertices, and the classes that still join two of them or more."""

    tree: JoinTree
    vertices: tuple[int, ...]
    folds: tuple[Fold, ...] = ()

    @cached_property
    def classes(self) -> tuple[int, ...]:
        """Numbers of the classes that still join something."""
        return tuple(i for i in range(len(self.tree.classes)) if len(self.members(i)) > 1)

    def members(self, joined: int) -> tuple[int, ...]:
        """The vertices of a class that are left."""
        return tuple(v for v in self.tree.classes[joined].vertices if v in self.vertices)

    def classes_of(self, vertex: int) -> tuple[int, ...]:
        """The classes that still join this vertex to others."""
        return tuple(i for i in self.tree.classes_of(vertex) if i in self.classes)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Vertices in a single class: those that can send."""
        return tuple(v for v in self.vertices if len(self.classes_of(v)) == 1)

    def without(self, leaf: int, receiver: int) -> Residual:
        """Fold a leaf into another vertex of its class."""
        (joined,) = self.classes_of(leaf)
        if receiver == leaf or receiver not in self.members(joined):
            raise ValueError(f"vertex {receiver} is not joined to the leaf {leaf}")
        left = tuple(v for v in self.vertices if v != leaf)
        return Residual(self.tree, left, (*self.folds, Fold(leaf, receiver, joined)))


def tree_of(graph: JoinGraph) -> JoinTree:
    """The join tree of a query: edges that equate the same value make one class.

    Notes
    -----
    However many tables share a key and whichever edges spell it, they are one class. A composite edge is a class
    of the combination of its keys, together with other edges on exactly that combination.
    """
    groups: dict[tuple[int, ...] | int, list[int]] = {}
    for number, edge in enumerate(graph.edges):
        groups.setdefault(tuple(sorted(edge.classes)) or -1 - number, []).append(number)
    classes = []
    for members in groups.values():
        for edges in _connected(graph, members):
            vertices = sorted({v for e in edges for v in (graph.edges[e].left, graph.edges[e].right)})
            classes.append(JoinClass(graph.edges[edges[0]].class_name, tuple(vertices), tuple(edges)))
    return JoinTree(len(graph.vertices), tuple(classes))


def _connected(graph: JoinGraph, edges: list[int]) -> list[list[int]]:
    """The edges in groups that hang together: a value carried over a composite edge joins nothing by itself."""
    groups: list[tuple[set[int], list[int]]] = []
    for number in edges:
        ends, own = {graph.edges[number].left, graph.edges[number].right}, [number]
        apart = []
        for vertices, others in groups:
            if vertices & ends:
                ends, own = ends | vertices, others + own
            else:
                apart.append((vertices, others))
        groups = [*apart, (ends, own)]
    return [sorted(own) for _, own in groups]


def whole(tree: JoinTree) -> Residual:
    """The tree with nothing folded."""
    return Residual(tree, tuple(range(tree.vertices)))


def fold_orders(
    tree: JoinTree,
    message_bytes: Callable[[Residual, int], float],
    most_bytes: float,
    allowed: Collection[int] | None = None,
    tuples: Callable[[int], float] = lambda _: 0.0,
) -> tuple[Residual, ...]:
    """The residual trees worth looking at: nothing folded, then the smallest message first, one more each.

    Parameters
    ----------
    tree : JoinTree
    message_bytes : callable
        Bytes of the message that a leaf of a residual tree would send.
    most_bytes : float
        No message above this is folded.
    allowed : collection of int, optional
        Vertices that may send; default: all.
    tuples : callable, optional
        Tuples of a vertex: of messages of one size that of the smaller table goes first.

    Notes
    -----
    The receiver is the vertex that has most classes, so that a message that thins out a large relation does so
    before that one sends on; ties go to the smaller number. At most one residual for each vertex.
    """
    residual = whole(tree)
    found = [residual]
    while len(residual.vertices) > 1:
        sizes = {v: message_bytes(residual, v) for v in residual.leaves if allowed is None or v in allowed}
        sizes = {v: size for v, size in sizes.items() if size <= most_bytes}
        if not sizes:
            break
        leaf = min(sizes, key=lambda v: (sizes[v], tuples(v), v))
        residual = residual.without(leaf, receiver_of(residual, leaf))
        found.append(residual)
    return tuple(found)


def receiver_of(residual: Residual, leaf: int) -> int:
    """The vertex that takes a leaf's message: of its class the one with most classes."""
    (joined,) = residual.classes_of(leaf)
    others = [v for v in residual.members(joined) if v != leaf]
    return max(others, key=lambda v: (len(residual.classes_of(v)), -v))
