"""The columns of a COUNT(DISTINCT): on which vertices each can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parser.join_graph import Aggregate, Query
from .fold import INTEGERS
from .messages import tree_of
from .plan import Attribute


@dataclass(frozen=True, slots=True)
class Counted:
    """A counted column: its type, and by vertex what stands for it there.

    A join key is on every vertex of its class, where its type is that of the comparison and keeps its values apart;
    `joined` is then the number of the class of values, else None.
    """

    type: str
    at: dict[int, tuple[str, str]]
    joined: int | None


def counted_columns(query: Query, aggregate: Aggregate) -> list[Counted]:
    """The columns of a COUNT(DISTINCT) whose types are known."""
    keys_at = [_keys_at(query, v) for v in range(len(query.graph.vertices))]
    found = []
    for factor, kind in zip(aggregate.distinct, aggregate.types, strict=True):
        own = keys_at[factor.vertex]
        joined = next((c for c, (key, _) in own.items() if key == factor.expression), None)
        keys = {v: keys[joined] for v, keys in enumerate(keys_at) if joined is not None and joined in keys}
        if joined is not None and all(_keeps_apart(kind, compared) for _, compared in keys.values()):
            found.append(Counted(kind, keys, joined))
        else:
            found.append(Counted(kind, {factor.vertex: (factor.expression, kind)}, None))
    return found


def key_classes(query: Query, joined: int) -> set[int]:
    """The classes of values that a join class, by its number in the join tree, compares."""
    edges = tree_of(query.graph).classes[joined].edges
    return set(query.graph.edges[edges[0]].classes)


def attribute_of(columns: Sequence[Counted], vertex: int, name: str) -> Attribute:
    """Columns of one vertex as an attribute; of no columns, a constant."""
    if not columns:
        return Attribute(("0",), ("int",), name)
    keys, types = zip(*(c.at[vertex] for c in columns), strict=True)
    return Attribute(tuple(keys), tuple(types), name)


def _keys_at(query: Query, vertex: int) -> dict[int, tuple[str, str]]:
    """By number of a class of values: the key of a vertex, and the type in which it is compared."""
    edges = [query.graph.edges[e] for e in query.graph.edges_at(vertex)]
    return {
        joined: (key, str(kind))
        for edge in edges
        for joined, key, kind in zip(edge.classes, edge.keys_of(vertex), edge.key_types, strict=True)
    }


def _keeps_apart(kind: str, compared: str) -> bool:
    """Whether different values of a type are different in the type in which they are compared."""
    return kind == compared or (kind in INTEGERS and compared in INTEGERS)
