"""Equalities to join classes, classes to a join tree.

A class is a set of (vertex, key) nodes that the query equates, found by union-find. The query is acyclic
exactly if a maximum-weight spanning tree of the graph in which two vertices weigh as much as the classes
they share has weight sum over classes of (members - 1) [1]_; then the tree's edges, each on all the classes
its ends share, say the same as all the equalities together.

References
----------
.. [1] P. Bernstein, N. Goodman, "Power of natural semijoins", SIAM Journal on Computing 10(4), 1981.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .fragment import Fragment
from .join_graph import Span
from .types import PADDED, is_padded

INTEGERS = frozenset(["tinyint", "smallint", "int", "bigint"])


@dataclass(frozen=True, slots=True)
class Key:
    """A key expression of one vertex; `type` is known for plain columns only."""

    vertex: int
    expression: Fragment
    type: str | None

    @property
    def node(self) -> tuple[int, str]:
        """What identifies it."""
        return self.vertex, self.expression.sql

    @property
    def kind(self) -> str | None:
        """Types of one kind are compared by the same equality, whatever the pair: equality is transitive."""
        if self.type is not None and is_padded(self.type):
            return PADDED
        return "integer" if self.type in INTEGERS else self.type


@dataclass(frozen=True, slots=True)
class Equality:
    """``left = right`` between two vertices, and where it stands."""

    left: Key
    right: Key
    span: Span


@dataclass(frozen=True, slots=True)
class JoinClass:
    """Keys that are all equal, with the equalities that say so."""

    keys: tuple[Key, ...]
    equalities: tuple[Equality, ...]

    @property
    def vertices(self) -> frozenset[int]:
        return frozenset(k.vertex for k in self.keys)

    def key_at(self, vertex: int) -> Key:
        """The first key of that vertex."""
        return next(k for k in self.keys if k.vertex == vertex)

    def repeated(self) -> Iterator[tuple[Key, Key]]:
        """Pairs of keys of one vertex: they must be equal within its tuples."""
        for key in self.keys:
            first = self.key_at(key.vertex)
            if first is not key:
                yield first, key


def join_classes(equalities: list[Equality]) -> list[JoinClass]:
    """Union-find over the keys; a class in order of its first equality.

    Equality is transitive only where all pairs are compared in one type: ``1 = '1'`` and ``1 = '01'`` do
    not make ``'1' = '01'``. A class of mixed or unknown kinds is therefore split into its explicit
    equalities.
    """
    classes = _united(equalities)
    result = []
    for members in classes:
        joined = _class_of(members)
        kinds = {k.kind for k in joined.keys}
        if len(joined.keys) == 2 or (len(kinds) == 1 and None not in kinds):
            result.append(joined)
        else:
            pairs = {frozenset((e.left.node, e.right.node)): e for e in reversed(members)}
            result.extend(_class_of([e]) for e in reversed(pairs.values()))
    return result


def _united(equalities: list[Equality]) -> list[list[Equality]]:
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for equality in equalities:
        parent[root(equality.right.node)] = root(equality.left.node)
    grouped: dict[tuple[int, str], list[Equality]] = {}
    for equality in equalities:
        grouped.setdefault(root(equality.left.node), []).append(equality)
    return list(grouped.values())


def _class_of(equalities: list[Equality]) -> JoinClass:
    keys = {k.node: k for e in equalities for k in (e.left, e.right)}
    return JoinClass(tuple(keys.values()), tuple(equalities))


@dataclass(frozen=True, slots=True)
class JoinTree:
    """Pairs of vertices with the classes they share, the connected parts, and whether it is a join tree."""

    edges: tuple[tuple[int, int, tuple[int, ...]], ...]
    components: tuple[frozenset[int], ...]
    acyclic: bool


def join_tree(vertex_count: int, classes: list[JoinClass]) -> JoinTree:
    """Maximum-weight spanning forest over shared classes (Kruskal; ties in order of the vertices).

    Time O(v^2 * c) for v vertices and c classes.
    """
    shared = {
        (a, b): tuple(i for i, c in enumerate(classes) if {a, b} <= c.vertices)
        for b in range(vertex_count)
        for a in range(b)
    }
    by_weight = sorted((pair for pair in shared if shared[pair]), key=lambda p: (-len(shared[p]), p[1], p[0]))
    component = list(range(vertex_count))
    edges = []
    for a, b in by_weight:
        if component[a] != component[b]:
            old, new = component[b], component[a]
            component = [new if c == old else c for c in component]
            edges.append((a, b, shared[a, b]))
    weight = sum(len(e[2]) for e in edges)
    needed = sum(len(c.vertices) - 1 for c in classes)
    groups = tuple(
        frozenset(v for v in range(vertex_count) if component[v] == c) for c in dict.fromkeys(component)
    )
    return JoinTree(tuple(sorted(edges, key=lambda e: (e[1], e[0]))), groups, weight == needed)


def cyclic_pairs(classes: list[JoinClass]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Pairs of vertices that say the same as all classes together, where no tree does.

    Each class gives a spanning tree of its vertices, along the query's own equalities; pairs of several
    classes are composite edges.
    """
    pairs: dict[tuple[int, int], list[int]] = {}
    for index, joined in enumerate(classes):
        reached: dict[int, int] = {}
        for equality in joined.equalities:
            a, b = sorted((equality.left.vertex, equality.right.vertex))
            one, other = reached.setdefault(a, a), reached.setdefault(b, b)
            if one != other:
                reached = {v: one if part == other else part for v, part in reached.items()}
                pairs.setdefault((a, b), []).append(index)
    return [(a, b, tuple(shared)) for (a, b), shared in sorted(pairs.items(), key=lambda p: p[0][::-1])]
