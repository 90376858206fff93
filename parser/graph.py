"""Conditions to the join graph: classes, tree, edges, carried constants, and what is wrong with a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import SkimqlError
from .classes import Equality, JoinClass, JoinTree, Key, cyclic_pairs, join_classes, join_tree
from .facts import carried, contradiction, implied_equalities
from .fragment import Fragment
from .join_graph import Edge, Feature, JoinGraph, Span, Vertex
from .joined import Join, Occurrence
from .predicates import Conditions
from .scope import EXACT, Scope
from .types import Comparison, common_type


@dataclass(frozen=True, slots=True)
class Built:
    """A join graph, what Spark's own comparisons lose, and how the graph is special."""

    graph: JoinGraph
    warnings: tuple[str, ...]
    features: tuple[Feature, ...]


def build_graph(
    join: Join,
    conditions: Conditions,
    scope: Scope,
    ansi: bool,
    *,
    cyclic: bool = False,
    disconnected: bool = False,
) -> Built:
    """The join tree of the conditions; a cyclic or disconnected graph only where it is allowed.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_CROSS_PRODUCT``, ``SKIMQL_CYCLIC_JOIN`` or ``SKIMQL_KEY_TYPES``.
    """
    inside = [e for e in conditions.equalities if e.left.vertex == e.right.vertex]
    between = [e for e in conditions.equalities if e.left.vertex != e.right.vertex]
    for equality in inside:
        _equal_within(conditions, equality.left, equality.right)
    classes = join_classes(between)
    tree = join_tree(len(join.occurrences), classes)
    implied = list(implied_equalities(conditions.facts, tree.components))
    if implied:
        between += implied
        classes = join_classes(between)
        tree = join_tree(len(join.occurrences), classes)
    for joined in classes:
        for first, second in joined.repeated():
            _equal_within(conditions, first, second)
        for key, condition, fact in list(carried(conditions.facts, joined)):
            conditions.add_filter(key.vertex, condition, movable=True)
            conditions.facts.append(fact)
    excluded = contradiction(conditions.facts)
    if excluded is not None and not conditions.empty:
        column = excluded.expression.column
        assert column is not None
        alias = join.occurrences[excluded.vertex].alias
        conditions.empty = f"the conditions on {alias}.{column.column} exclude one another"
    features = []
    if len(tree.components) > 1:
        if not disconnected:
            raise _cross_product(tree, join, scope)
        features.append(Feature("cross product", _second_part(tree, join).span))
    pairs: Sequence[tuple[int, int, tuple[int, ...]]] = tree.edges
    if not tree.acyclic:
        closing = _closing_equality(join, between)
        if not cyclic:
            raise _cyclic(closing, scope)
        features.append(Feature("cyclic join", closing))
        pairs = cyclic_pairs(classes)
    warnings: dict[str, None] = {}
    edges = _edges(pairs, classes, scope, ansi, warnings)
    return Built(JoinGraph(vertices_of(join, conditions), edges), tuple(warnings), tuple(features))


def vertices_of(join: Join, conditions: Conditions) -> tuple[Vertex, ...]:
    """The virtual relations: each table with its filter."""
    return tuple(
        Vertex(o.table.name, o.alias, conditions.filter_of(i), o.span) for i, o in enumerate(join.occurrences)
    )


def _edges(
    pairs: Sequence[tuple[int, int, tuple[int, ...]]],
    classes: list[JoinClass],
    scope: Scope,
    ansi: bool,
    warnings: dict[str, None],
) -> tuple[Edge, ...]:
    names: set[str] = set()
    edges = []
    for left, right, shared in pairs:
        keys = [(classes[c].key_at(left), classes[c].key_at(right)) for c in shared]
        compared = [_compared(a, b, classes[c], scope, ansi) for c, (a, b) in zip(shared, keys, strict=True)]
        warnings.update(dict.fromkeys(c.warning for c in compared if c.warning))
        edges.append(
            Edge(
                left,
                right,
                tuple(a.expression.sql for a, _ in keys),
                tuple(b.expression.sql for _, b in keys),
                tuple(c.type for c in compared),
                _class_name([a for a, _ in keys], names),
                _span_of([classes[c] for c in shared], left, right),
                shared,
                any(c.zoned for c in compared),
            )
        )
    return tuple(edges)


def _equal_within(conditions: Conditions, first: Key, second: Key) -> None:
    """Two keys of one vertex in one class: its tuples must have them equal."""
    text = f"{first.expression.wrapped().sql} = {second.expression.wrapped().sql}"
    pieces: tuple[str, ...] = (text,)
    conditions.add_filter(first.vertex, Fragment(pieces), movable=False)


def _second_part(tree: JoinTree, join: Join) -> Occurrence:
    return join.occurrences[min(tree.components[1])]


def _cross_product(tree: JoinTree, join: Join, scope: Scope) -> SkimqlError:
    first, second = join.occurrences[min(tree.components[0])], _second_part(tree, join)
    message = f"there is no join condition between {first.alias} and {second.alias} (a cross product)"
    return scope.fault(message, "SKIMQL_CROSS_PRODUCT", second.span, EXACT)


def _closing_equality(join: Join, equalities: list[Equality]) -> Span:
    """The last equality without which the query would be acyclic and still connected; else the last one."""
    ordered = sorted(equalities, key=lambda e: e.span.start, reverse=True)
    for equality in ordered:
        others = [e for e in equalities if e is not equality]
        tree = join_tree(len(join.occurrences), join_classes(others))
        if tree.acyclic and len(tree.components) == 1:
            return equality.span
    return ordered[0].span


def _cyclic(span: Span, scope: Scope) -> SkimqlError:
    message = "the join conditions form a cycle over different keys; its estimate would have no bound"
    return scope.fault(message, "SKIMQL_CYCLIC_JOIN", span, EXACT)


def _compared(left: Key, right: Key, joined: JoinClass, scope: Scope, ansi: bool) -> Comparison:
    """How Spark compares two keys; no type where one is an expression."""
    if left.type is None or right.type is None:
        return Comparison(None)
    compared = common_type(left.type, right.type, ansi)
    if compared.type is None:
        span = _span_of([joined], left.vertex, right.vertex)
        message = f"these keys cannot be joined: {compared.reason}"
        raise scope.fault(message, "SKIMQL_KEY_TYPES", span, compared.way_out)
    return compared


def _span_of(classes: list[JoinClass], left: int, right: int) -> Span:
    """The first equality between two vertices, or the first of their classes if it is a derived one."""
    equalities = [e for c in classes for e in c.equalities]
    direct = [e for e in equalities if {e.left.vertex, e.right.vertex} == {left, right}]
    return min((e.span for e in direct or equalities), key=lambda s: s.start)


def _class_name(keys: list[Key], taken: set[str]) -> str:
    """The lower-cased names of the left keys, numbered where an earlier edge has them."""
    columns = [k.expression.column for k in keys]
    name = ",".join(
        (c.column if c is not None else k.expression.sql).lower() for c, k in zip(columns, keys, strict=True)
    )
    free, number = name, 2
    while free in taken:
        free, number = f"{name}#{number}", number + 1
    taken.add(free)
    return free
