"""Standing queries of a session: `CREATE SKETCHES … FOR QUERIES (…)`, built in one pass per table.

The sketches are kept for the session; a query that asks what one of the workload asks is answered from them without
a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import BudgetExceeded, ParseError, UnsupportedQuery
from ..optimizer.plan import Plan
from ..optimizer.share import Metric
from ..optimizer.standing import StandingQueries, plan_standing
from ..optimizer.workload import Figures
from ..parser.join_graph import Query
from ..parser.statement import ApproximateSelect, PassThrough, parse_statement
from ..parser.syntax import CreateSketches, Part
from .maintain import Built


@dataclass(frozen=True, slots=True)
class Workload:
    """A built workload: its plans and the sketches that all of them read."""

    name: str
    standing: StandingQueries
    built: tuple[Built, ...]

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


def plan_workload_of(
    statement: CreateSketches, queries: Sequence[Query], seed: int, sparse: bool
) -> StandingQueries:
    """Share and size the sketches of the statement's queries.

    Raises
    ------
    UnsupportedQuery
        For PARTITION INTO, which needs statistics that this version does not gather, and a query without a join.
    BudgetExceeded
        If the space is too small; the message says how much would do.
    """
    if statement.partitions > 1:
        raise UnsupportedQuery(
            "PARTITION INTO is not supported in this version",
            "SKIMQL_UNSUPPORTED_CLAUSE",
            statement.sql,
            hint="leave it out",
        )
    for query, part in zip(queries, statement.queries, strict=True):
        if not query.graph.edges:
            raise UnsupportedQuery(
                "a query without a join needs no sketches",
                "SKIMQL_NOTHING_TO_SKETCH",
                statement.sql,
                (part.span.start, part.span.end),
                "leave it out",
            )
    metric: Metric = "maximum" if statement.objective == "max" else "average"
    try:
        return plan_standing(statement.name.text, queries, seed, statement.size_bytes, metric, sparse)
    except ValueError as fault:
        raise BudgetExceeded(str(fault), sql=statement.sql, hint="a larger SIZE") from fault


def stages_text(standing: StandingQueries) -> str:
    """What each stage of the plan changed, before and after."""
    stages = standing.workload.stages
    lines = [
        f"{s.name}: {_figures(s.before)} -> {_figures(s.after)}" for s in stages if s.name != "partition"
    ]
    for i, synopsis in enumerate(standing.plans[0].synopses):
        users = sum(
            any(i in t.synopses for a in plan.aggregates for t in (*a.total, *a.presence))
            for plan in standing.plans
        )
        classes = ", ".join(a.class_name for a in synopsis.attributes)
        size = f"{synopsis.rows} x {synopsis.buckets:,}"
        where = f" where {synopsis.filter}" if synopsis.filter else ""
        lines.append(f"  {i}: {synopsis.table}{where} by {classes}, {size}, read by {users} queries")
    return "\n".join(lines)


def _figures(figures: Figures) -> str:
    return f"{figures.vertices} sketches, {figures.classes} xi classes, {8 * figures.words / 1024:,.0f} KB"


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
