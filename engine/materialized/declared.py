"""Standing queries: `CREATE SKETCHES … FOR QUERIES (…)`, built in one pass per table.

The sketches are kept in the catalog with the plans that say which of them answers which query; a query that asks what
one of the workload asks is answered from them without a scan.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import BudgetExceeded, ParseError, UnsupportedQuery
from ...optimizer.plan import Plan, PlannedAggregate, PlannedEdge, PlannedTerm, Scan, Synopsis
from ...optimizer.workload.planned_use import check_plan
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect, EstimateRows, PassThrough, parse_statement
from ...parser.syntax import CreateContinuousViews, CreateSketches, Part
from ..catalog.form import Head

if TYPE_CHECKING:
    from ...optimizer.prediction.relation import RelationStatistics
    from ...optimizer.workload.declared import DeclaredQueries
    from ...optimizer.workload.plan import Column, Statistics
    from ...optimizer.workload.share import Metric


def workload_json(
    declared: DeclaredQueries, stages: str, statistics: Sequence[RelationStatistics]
) -> dict[str, Any]:
    """What the catalog keeps of a workload's plans: the stages as text, and for each query how it is answered."""
    times = [s.gathered_at for s in statistics if s.gathered_at is not None]
    return {
        "stages": stages,
        "gathered_at": min(times, default=None),
        "queries": [
            {
                "question": _question(plan.query),
                "edges": [
                    [e.left, e.right, e.left_position, e.right_position, e.class_name] for e in plan.edges
                ],
                "aggregates": [
                    [a.function, a.name, terms_json(a.total), terms_json(a.presence)] for a in plan.aggregates
                ],
            }
            for plan in declared.plans
        ],
    }


def asked_in(workload: Any, query: Query) -> bool:
    """Whether a query, with every `key_types` known, asks what one of a workload asks."""
    question = _question(query)
    return any(q["question"] == question for q in workload["queries"])


def plan_from(workload: Any, query: Query, heads: Sequence[Head]) -> Plan | None:
    """The plan of a query that asks what one of the workload asks, over its kept sketches; or None.

    Parameters
    ----------
    workload : JSON
        From `workload_json`.
    query : Query
        With every `key_types` known.
    heads : sequence of Head
        The sketches of the workload, in the order in which its plans number them.

    Raises
    ------
    ValueError
        If they are not those that the plan was made for.
    """
    question = _question(query)
    found = next((q for q in workload["queries"] if q["question"] == question), None)
    if found is None:
        return None
    synopses = tuple(
        Synopsis(
            h.table,
            h.filter,
            h.attributes,
            h.weights[0],
            h.method,
            h.rows,
            h.buckets,
            h.limit_bytes > 0,
            cell=h.cell,
        )
        for h in heads
    )
    edges = tuple(PlannedEdge(*edge) for edge in found["edges"])
    aggregates = tuple(
        PlannedAggregate(function, name, terms_from(total), terms_from(presence))
        for function, name, total, presence in found["aggregates"]
    )
    tables = dict.fromkeys(s.table for s in synopses)
    scans = tuple(Scan(t, tuple(i for i, s in enumerate(synopses) if s.table == t)) for t in tables)
    everyone = tuple(range(len(query.graph.vertices)))
    plan = Plan(query, heads[0].seed, synopses, scans, edges, aggregates, everyone)
    check_plan(plan, query)
    return plan


def selects_of(statement: CreateSketches) -> list[ApproximateSelect]:
    """The queries of the statement, each with carets that point into the whole statement.

    Raises
    ------
    ParseError, UnsupportedQuery
        If one is no SELECT to be estimated.
    """
    return [_select(statement, part) for part in statement.queries]


def check_joins(statement: CreateSketches, queries: Sequence[Query]) -> None:
    """Raise UnsupportedQuery for a query without a join."""
    for query, part in zip(queries, statement.queries, strict=True):
        if not query.graph.edges:
            raise UnsupportedQuery(
                "a query without a join needs no sketches",
                "SKIMQL_NOTHING_TO_SKETCH",
                statement.sql,
                (part.span.start, part.span.end),
                "leave it out",
            )


def histograms_of(queries: Sequence[Query], statistics: Sequence[Sequence[RelationStatistics]]) -> Statistics:
    """The histograms of all join columns, as `plan_workload` reads them; columns without one are left out."""
    from ...optimizer.messages import tree_of
    from ...optimizer.prediction.histograms import Histogram
    from ...optimizer.workload.share import Attribute, VirtualRelation

    found: dict[Column, Histogram] = {}
    for query, relations in zip(queries, statistics, strict=True):
        tree = tree_of(query.graph)
        for number, joined in enumerate(tree.classes):
            for edge in (query.graph.edges[e] for e in joined.edges):
                for v in (edge.left, edge.right):
                    vertex, known = query.graph.vertices[v], relations[v].attributes
                    histogram = known[tree.position(v, number)].histogram if known else None
                    if histogram is not None:
                        column = Attribute(edge.keys_of(v), edge.key_types)
                        found[VirtualRelation(vertex.table, vertex.filter), column] = histogram
    return found


def plan_workload_of(
    statement: CreateSketches | CreateContinuousViews,
    queries: Sequence[Query],
    seed: int,
    sparse: bool,
    statistics: Statistics,
    unknown: Collection[int] = (),
    more_error: float = 0.0,
) -> DeclaredQueries:
    """Share, size and partition the sketches of the statement's queries; what is optional as in `plan_declared`.

    Raises
    ------
    BudgetExceeded
        If the space is too small; the message says how much would do.
    """
    from ...optimizer.workload.declared import plan_declared

    metric: Metric = "maximum" if statement.objective == "max" else "average"
    try:
        return plan_declared(
            statement.name.text,
            queries,
            seed,
            statement.size_bytes,
            metric,
            sparse,
            statistics,
            max(statement.partitions, 1),
            unknown,
            more_error,
        )
    except ValueError as fault:
        raise BudgetExceeded(str(fault), sql=statement.sql, hint="a larger SIZE") from fault


def _select(statement: CreateSketches, part: Part) -> ApproximateSelect:
    # Blanks in front keep the offsets of the query those of the whole statement.
    text = " " * part.span.start + statement.sql[part.span.start : part.span.end]
    parsed = parse_statement(text)
    match parsed:
        case ApproximateSelect():
            _refuse_clauses(statement, parsed)
            return replace(parsed, sql=statement.sql)
        case PassThrough() if part.text.split(None, 1)[0].upper() in ("SELECT", "WITH"):
            # Our clauses are read as such behind our words only; these take the place of blanks.
            rows = parse_statement(_ROWS + text[len(_ROWS) :])
            assert isinstance(rows, EstimateRows), "a SELECT behind our words"
            _refuse_clauses(statement, rows.select)
            return ApproximateSelect(statement.sql, text)
    raise ParseError(
        "a standing query is a SELECT",
        sql=statement.sql,
        span=(part.span.start, part.span.end),
        hint="SELECT COUNT(*) FROM a JOIN b ON a.k = b.k",
    )


def _refuse_clauses(statement: CreateSketches, select: ApproximateSelect) -> None:
    """Refuse what a query of the workload asks for itself: the sketches are planned for all together."""
    if select.clause_spans:
        name, span = min(select.clause_spans.items(), key=lambda c: c[1].start)
        raise UnsupportedQuery(
            f"the queries of {statement.name.text} have no {_WORDS.get(name, name.upper())} of their own",
            "SKIMQL_CLAUSE",
            statement.sql,
            (span.start, span.end),
            "SIZE and MINIMIZE behind the queries, for all of them; leave it out here",
        )


_ROWS = "ESTIMATE ROWS FOR "
_WORDS = {"error_within": "ERROR WITHIN", "method": "USING"}


def _question(query: Query) -> str:
    """What a query asks, without its names and places, as one text."""
    graph = query.graph
    asked: tuple[object, ...] = (
        tuple((v.table.lower(), v.filter) for v in graph.vertices),
        tuple((e.left, e.right, e.left_keys, e.right_keys, e.key_types) for e in graph.edges),
        tuple((a.function, a.total, a.presence) for a in query.aggregates),
        tuple(i.expression for i in query.items),
    )
    # No workload has any of these: the texts that catalogs have are without them.
    groups = tuple((g.vertex, g.expression) for g in query.groups)
    distinct = tuple((a.distinct, a.types) for a in query.aggregates if a.distinct)
    if groups or distinct:
        asked = (*asked, groups, distinct)
    return repr(asked)


def terms_json(terms: Sequence[PlannedTerm]) -> list[Any]:
    """Terms as JSON values."""
    return [[t.coefficient, list(t.synopses)] for t in terms]


def terms_from(terms: Sequence[Any]) -> tuple[PlannedTerm, ...]:
    """What `terms_json` gave."""
    return tuple(PlannedTerm(float(c), tuple(synopses)) for c, synopses in terms)
