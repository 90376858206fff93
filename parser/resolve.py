"""A SELECT and a schema to a `Query`: every mistake in the user's SQL surfaces here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import ParseError, SkimqlError
from .aggregates import count_rows
from .classes import Equality, JoinClass, JoinTree, Key, cyclic_pairs, join_classes, join_tree
from .expressions import Aggregated
from .facts import carried, contradiction
from .fragment import Fragment
from .items import Results
from .join_graph import Edge, Feature, Item, JoinGraph, Query, Schema, Span, Vertex
from .outer import refuse_outer_joins
from .predicates import Conditions, read_conditions
from .relations import Join, Occurrence
from .scope import EXACT, Scope
from .select import parse_select
from .sets import read_set_expression, set_operation_of
from .statement import ApproximateSelect, EstimateRows
from .types import Comparison, common_type


def resolve(
    statement: ApproximateSelect,
    schema: Schema,
    *,
    ansi: bool = True,
    known: Collection[str] = (),
    strict: bool = True,
) -> Query:
    """Resolve the names of a SELECT and build its join graph.

    Parameters
    ----------
    statement : ApproximateSelect
        From `parse_statement`.
    schema : mapping of str to TableSchema
        Registered tables; looked up ignoring case.
    ansi : bool
        ``spark.sql.ansi.enabled`` of the session: it decides the type in which keys are compared.
    known : collection of str
        The names among `FEATURES` that the caller can run; a query that uses another is refused by its name.
    strict : bool
        False to look at a query that nobody runs: every feature is let through, also a graph that is
        disconnected, or cyclic without ``BEHAVIOR 'do_nothing'``.

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
    try:
        query = _resolve(statement, schema, ansi, strict)
    except RecursionError as error:
        message = "the statement is nested too deeply"
        raise ParseError(message, "SKIMQL_TOO_DEEP", statement.sql, (0, len(statement.sql))) from error
    if strict:
        query.refuse_beyond(known)
    return query


def _resolve(statement: ApproximateSelect, schema: Schema, ansi: bool, strict: bool) -> Query:
    source = parse_select(statement.select_sql, statement.sql)
    outside = Scope(source, statement.sql, schema)
    select = source.tree
    if not isinstance(select, exp.Select):
        what = "a set operation" if isinstance(select, exp.SetOperation) else "this statement"
        hint = "SELECT APPROXIMATE COUNT(DISTINCT k) FROM (...), or " + EXACT
        raise outside.fault(f"{what} cannot be estimated", "SKIMQL_UNSUPPORTED_STATEMENT", select, hint)
    query = Query(
        statement.sql,
        statement.select_sql,
        (),
        JoinGraph((), ()),
        statement.accuracy,
        statement.method,
        statement.options,
        statement.seed,
    )
    subquery = set_operation_of(select)
    if subquery is not None:
        return _set_query(query, select, subquery, outside)
    join = Join(schema)
    scope = join.read(select, outside)
    refuse_outer_joins(join, scope)
    conditions = read_conditions(join)
    tolerant = not strict or statement.accuracy.behavior == "do_nothing"
    built = build_graph(join, conditions, scope, ansi, cyclic=tolerant, disconnected=not strict)
    results = Results(select, scope, join)
    results.read()
    return replace(
        query,
        aggregates=tuple(results.aggregates),
        graph=built.graph,
        warnings=built.warnings,
        items=tuple(results.items),
        groups=tuple(results.groups),
        having=results.having,
        order=tuple(results.order),
        limit=results.limit,
        offset=results.offset,
        empty=conditions.empty,
        features=(*built.features, *results.features),
    )


def _set_query(query: Query, select: exp.Select, subquery: exp.Subquery, outside: Scope) -> Query:
    join = Join(outside.schema)
    sets, aggregate = read_set_expression(select, subquery, join, outside)
    conditions = read_conditions(join)
    return replace(
        query,
        aggregates=(aggregate,),
        graph=JoinGraph(_vertices(join, conditions), ()),
        items=(Item(aggregate.name, Aggregated(0), aggregate.span),),
        sets=sets,
        features=(Feature("set expression", outside.span_of(subquery)),),
    )


def resolve_rows(statement: EstimateRows, schema: Schema, *, ansi: bool = True) -> Query:
    """The query that counts the rows of ``ESTIMATE ROWS FOR SELECT ...``: COUNT(*) under the name ``rows``.

    The SELECT list is read for its names only.

    Raises
    ------
    ParseError, UnknownName, UnsupportedQuery
        As `resolve`; also for a SELECT that aggregates, groups, is DISTINCT or has a LIMIT.
    """
    select = statement.select
    source = parse_select(select.select_sql, statement.sql)
    outside = Scope(source, statement.sql, schema)
    join = Join(schema)
    join.select_outputs(source.tree, outside)
    refuse_outer_joins(join, outside)
    conditions = read_conditions(join)
    built = build_graph(join, conditions, outside, ansi)
    span = outside.span_of(source.tree)
    return Query(
        statement.sql,
        select.select_sql,
        (count_rows("rows", span),),
        built.graph,
        select.accuracy,
        select.method,
        select.options,
        select.seed,
        built.warnings,
        (Item("rows", Aggregated(0), span),),
        empty=conditions.empty,
        features=built.features,
    )


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
    tree = join_tree(len(join.occurrences), classes)
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
    return Built(JoinGraph(_vertices(join, conditions), edges), tuple(warnings), tuple(features))


def _vertices(join: Join, conditions: Conditions) -> tuple[Vertex, ...]:
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
    hint = f"ON {first.alias}.k = {second.alias}.k, or {EXACT}"
    return scope.fault(message, "SKIMQL_CROSS_PRODUCT", second.span, hint)


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
    hint = f"{EXACT}, or BEHAVIOR 'do_nothing' for an estimate without one"
    return scope.fault(message, "SKIMQL_CYCLIC_JOIN", span, hint)


def _compared(left: Key, right: Key, joined: JoinClass, scope: Scope, ansi: bool) -> Comparison:
    """How Spark compares two keys; no type where one is an expression."""
    if left.type is None or right.type is None:
        return Comparison(None)
    compared = common_type(left.type, right.type, ansi)
    if compared.type is None:
        span = _span_of([joined], left.vertex, right.vertex)
        raise scope.fault(f"these keys cannot be joined: {compared.reason}", "SKIMQL_KEY_TYPES", span, EXACT)
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
