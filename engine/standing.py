"""Standing queries of a session: `CREATE SKETCHES … FOR QUERIES (…)`, built in one pass per table.

The sketches are kept for the session; a query that asks what one of the workload asks is answered from them without
a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import BudgetExceeded, ParseError, UnsupportedQuery
from ..optimizer.describe_workload import describe_workload
from ..optimizer.messages import tree_of
from ..optimizer.plan import Plan
from ..optimizer.relation import RelationStatistics
from ..optimizer.share import Attribute, Metric, VirtualRelation
from ..optimizer.standing import StandingQueries, plan_standing
from ..optimizer.statistics import Histogram
from ..optimizer.workload import Column, Statistics
from ..parser.join_graph import Query
from ..parser.statement import ApproximateSelect, PassThrough, parse_statement
from ..parser.syntax import CreateSketches, Part
from .maintain import Built


@dataclass(frozen=True, slots=True)
class Workload:
    """A built workload: its plans, the sketches that all of them read, and the statistics that it was planned on."""

    name: str
    standing: StandingQueries
    built: tuple[Built, ...]
    statistics: tuple[RelationStatistics, ...] = ()

    def described(self, now: float) -> str:
        """The stages of the plan, before and after, as text; `now` in seconds since the epoch."""
        return describe_workload(self.name, self.standing, self.statistics, now)

    def reads(self, table: str) -> bool:
        """Whether it was built from the table of that name."""
        return any(scan.table.lower() == table.lower() for scan in self.standing.plans[0].scans)

    def plan_for(self, query: Query) -> Plan | None:
        """The plan of a query of the workload that asks the same, with this query's own names; or None."""
        for plan in self.standing.plans:
            if _question(plan.query) == _question(query):
                return replace(plan, query=query)
        return None


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
    statement: CreateSketches, queries: Sequence[Query], seed: int, sparse: bool, statistics: Statistics
) -> StandingQueries:
    """Share, size and partition the sketches of the statement's queries.

    Raises
    ------
    BudgetExceeded
        If the space is too small; the message says how much would do.
    """
    metric: Metric = "maximum" if statement.objective == "max" else "average"
    try:
        return plan_standing(
            statement.name.text,
            queries,
            seed,
            statement.size_bytes,
            metric,
            sparse,
            statistics,
            max(statement.partitions, 1),
        )
    except ValueError as fault:
        raise BudgetExceeded(str(fault), sql=statement.sql, hint="a larger SIZE") from fault


def _select(statement: CreateSketches, part: Part) -> ApproximateSelect:
    # Blanks in front keep the offsets of the query those of the whole statement.
    text = " " * part.span.start + statement.sql[part.span.start : part.span.end]
    parsed = parse_statement(text)
    match parsed:
        case ApproximateSelect():
            return replace(parsed, sql=statement.sql)
        case PassThrough() if part.text.split(None, 1)[0].upper() in ("SELECT", "WITH"):
            return ApproximateSelect(statement.sql, text)
    raise ParseError(
        "a standing query is a SELECT",
        sql=statement.sql,
        span=(part.span.start, part.span.end),
        hint="SELECT COUNT(*) FROM a JOIN b ON a.k = b.k",
    )


def _question(query: Query) -> object:
    """What a query asks, without its names and places."""
    graph = query.graph
    return (
        tuple((v.table.lower(), v.filter) for v in graph.vertices),
        tuple((e.left, e.right, e.left_keys, e.right_keys, e.key_types) for e in graph.edges),
        tuple((a.function, a.total, a.presence) for a in query.aggregates),
        tuple(i.expression for i in query.items),
    )
