"""A SELECT and a schema to a `Query`: every mistake in the user's SQL surfaces here."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SkimqlError, UnsupportedQuery
from .aggregates import read_aggregates
from .classes import JoinClass, JoinTree, Key, join_classes, join_tree
from .fragment import Fragment
from .join_graph import Edge, JoinGraph, Query, Schema, Span, Vertex
from .outer import refuse_outer_joins
from .predicates import Conditions, read_conditions
from .relations import Join
from .scope import EXACT, Scope
from .select import parse_select
from .statement import ApproximateSelect
from .types import common_type


def resolve(statement: ApproximateSelect, schema: Schema, *, ansi: bool = True) -> Query:
    """Resolve the names of a SELECT and build its join graph.

    Parameters
    ----------
    statement : ApproximateSelect
        From `parse_statement`.
    schema : mapping of str to TableSchema
        Registered tables; looked up ignoring case.
    ansi : bool
        ``spark.sql.ansi.enabled`` of the session: it decides the type in which keys are compared.

    Raises
    ------
    ParseError
        If sqlglot cannot read the SELECT.
    UnknownName
        For a table or column that is not there, or one that several tables have.
    UnsupportedQuery
        For a query that cannot be estimated; the message says why and what to do.

    Notes
    -----
    Time O(v^2 * c) for v tables and c join classes, besides the parsing.
    """
    source = parse_select(statement.select_sql, statement.sql)
    outside = Scope(source, statement.sql, schema)
    if not isinstance(source.tree, exp.Select):
        what = "a set operation" if isinstance(source.tree, exp.SetOperation) else "this statement"
        raise outside.fault(f"{what} cannot be estimated", "SKIMQL_UNSUPPORTED_STATEMENT", source.tree, EXACT)
    join = Join(schema)
    scope = join.read(source.tree, outside)
    refuse_outer_joins(join, scope)
    _refuse_result_clauses(source.tree, scope)
    conditions = read_conditions(join)
    graph, warnings = build_graph(join, conditions, scope, ansi)
    return Query(
        statement.sql,
        statement.select_sql,
        read_aggregates(source.tree, scope),
        graph,
        statement.accuracy,
        statement.method,
        statement.options,
        statement.seed,
        warnings,
    )


def _refuse_result_clauses(select: exp.Select, scope: Scope) -> None:
    for key, name in (("group", "GROUP BY"), ("having", "HAVING"), ("order", "ORDER BY"), ("limit", "LIMIT")):
        node = select.args.get(key)
        if node is not None:
            raise scope.fault(f"{name} cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", node, EXACT)


def build_graph(
    join: Join, conditions: Conditions, scope: Scope, ansi: bool
) -> tuple[JoinGraph, tuple[str, ...]]:
    """The join tree of the conditions, and warnings about comparisons that lose information."""
    inside = [e for e in conditions.equalities if e.left.vertex == e.right.vertex]
    between = [e for e in conditions.equalities if e.left.vertex != e.right.vertex]
    for equality in inside:
        _equal_within(conditions, equality.left, equality.right)
    classes = join_classes(between)
    for joined in classes:
        for first, second in joined.repeated():
            _equal_within(conditions, first, second)
    tree = join_tree(len(join.occurrences), classes)
    _refuse_cross_product(tree, join, scope)
    if not tree.acyclic:
        raise _cyclic(classes, scope)
    names: set[str] = set()
    edges = []
    warnings: dict[str, None] = {}
    for left, right, shared in tree.edges:
        keys = [(classes[c].key_at(left), classes[c].key_at(right)) for c in shared]
        types = [
            _compared(a, b, classes[c], scope, ansi, warnings) for c, (a, b) in zip(shared, keys, strict=True)
        ]
        span = _span_of([classes[c] for c in shared], left, right)
        name = _class_name([a for a, _ in keys], names)
        edges.append(
            Edge(
                left,
                right,
                tuple(a.expression.sql for a, _ in keys),
                tuple(b.expression.sql for _, b in keys),
                tuple(types),
                name,
                span,
                shared,
            )
        )
    vertices = tuple(
        Vertex(o.table.name, o.alias, conditions.filter_of(i), o.span) for i, o in enumerate(join.occurrences)
    )
    return JoinGraph(vertices, tuple(edges)), tuple(warnings)


def _equal_within(conditions: Conditions, first: Key, second: Key) -> None:
    """Two keys of one vertex in one class: its tuples must have them equal."""
    text = f"{first.expression.wrapped().sql} = {second.expression.wrapped().sql}"
    pieces: tuple[str, ...] = (text,)
    conditions.add_filter(first.vertex, Fragment(pieces), movable=False)


def _refuse_cross_product(tree: JoinTree, join: Join, scope: Scope) -> None:
    if len(tree.components) < 2:
        return
    one, other = (min(c) for c in tree.components[:2])
    first, second = join.occurrences[one], join.occurrences[other]
    raise scope.fault(
        f"there is no join condition between {first.alias} and {second.alias}",
        "SKIMQL_CROSS_PRODUCT",
        second.span,
        f"ON {first.alias}.k = {second.alias}.k, or {EXACT}",
    )


def _cyclic(classes: list[JoinClass], scope: Scope) -> SkimqlError:
    """The query's last equality closes the cycle, or one before it."""
    last = max((e for c in classes for e in c.equalities), key=lambda e: e.span.start)
    return scope.fault(
        "the join conditions form a cycle over different keys; its estimate would have no bound",
        "SKIMQL_CYCLIC_JOIN",
        last.span,
        f"{EXACT}, or leave one of the conditions out",
        UnsupportedQuery,
    )


def _compared(
    left: Key, right: Key, joined: JoinClass, scope: Scope, ansi: bool, warnings: dict[str, None]
) -> str | None:
    """The type in which Spark compares two keys; None where one is an expression."""
    if left.type is None or right.type is None:
        return None
    compared = common_type(left.type, right.type, ansi)
    if compared.type is None:
        span = _span_of([joined], left.vertex, right.vertex)
        raise scope.fault(f"these keys cannot be joined: {compared.reason}", "SKIMQL_KEY_TYPES", span, EXACT)
    if compared.warning:
        warnings[compared.warning] = None
    return compared.type


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
