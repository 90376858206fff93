"""A SELECT and a schema to a `Query`: every mistake in the user's SQL surfaces here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from ..errors import UnsupportedQuery
from .aggregates import count_rows
from .expressions import Aggregated
from .graph import build_graph, vertices_of
from .items import Results
from .join_graph import Feature, Item, JoinGraph, Query, Schema
from .outer import refuse_outer_joins
from .predicates import read_conditions
from .relations import FromReader
from .scope import EXACT, Scope
from .select import parse_select
from .sets import read_set_expression, set_operation_of
from .statement import ApproximateSelect, EstimateRows, too_deep


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
        With ``cross product`` a disconnected graph is let through.
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
        query = _resolve(statement, schema, ansi, known, strict)
    except RecursionError as error:
        raise too_deep(statement.sql) from error
    if strict:
        query.refuse_beyond(known)
    return query


def _resolve(
    statement: ApproximateSelect, schema: Schema, ansi: bool, known: Collection[str], strict: bool
) -> Query:
    source = parse_select(statement.select_sql, statement.sql)
    outside = Scope(source, statement.sql, schema)
    select = source.tree
    if not isinstance(select, exp.Select):
        what = "a set operation" if isinstance(select, exp.SetOperation) else "this statement"
        raise outside.fault(f"{what} cannot be estimated", "SKIMQL_UNSUPPORTED_STATEMENT", select, EXACT)
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
    return _either_way(schema, lambda join: _join_query(query, select, join, outside, ansi, known, strict))


def _either_way(schema: Schema, read: Callable[[FromReader], Query]) -> Query:
    """Read with views flattened, else as a whole.

    What cannot be split over a view's tables may be one expression of the view. If neither way works, the error
    is that of the first.
    """
    join = FromReader(schema)
    try:
        return read(join)
    except UnsupportedQuery:
        if not join.views_read:
            raise
        with suppress(UnsupportedQuery):
            return read(FromReader(schema, whole_views=True))
        raise


def _join_query(
    query: Query,
    select: exp.Select,
    join: FromReader,
    outside: Scope,
    ansi: bool,
    known: Collection[str],
    strict: bool,
) -> Query:
    scope = join.read(select, outside)
    refuse_outer_joins(join, scope)
    conditions = read_conditions(join)
    cyclic = not strict or query.accuracy.behavior == "do_nothing"
    disconnected = not strict or "cross product" in known
    built = build_graph(join, conditions, scope, ansi, cyclic=cyclic, disconnected=disconnected)
    results = Results(select, scope, join)
    results.read()
    return replace(
        query,
        aggregates=tuple(results.values.aggregates),
        graph=built.graph,
        warnings=built.warnings,
        items=tuple(results.values.items),
        groups=tuple(results.values.groups),
        having=results.having,
        order=tuple(results.order),
        limit=results.limit,
        offset=results.offset,
        empty=conditions.empty,
        features=(*built.features, *results.values.features),
    )


def _set_query(query: Query, select: exp.Select, subquery: exp.Subquery, outside: Scope) -> Query:
    join = FromReader(outside.schema)
    sets, aggregate = read_set_expression(select, subquery, join, outside)
    conditions = read_conditions(join)
    return replace(
        query,
        aggregates=(aggregate,),
        graph=JoinGraph(vertices_of(join, conditions), ()),
        items=(Item(aggregate.name, Aggregated(0), aggregate.span, "bigint"),),
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
    try:
        return _either_way(schema, lambda join: _row_query(statement, join, ansi))
    except RecursionError as error:
        raise too_deep(statement.sql) from error


def _row_query(statement: EstimateRows, join: FromReader, ansi: bool) -> Query:
    select = statement.select
    source = parse_select(select.select_sql, statement.sql)
    outside = Scope(source, statement.sql, join.schema)
    join.select_outputs(source.tree, outside, " in ESTIMATE ROWS")
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
        (Item("rows", Aggregated(0), span, "bigint"),),
        empty=conditions.empty,
        features=built.features,
    )
