"""Whether a combination of query, method, clauses and route is honoured or refused, with a code and a way out.

No clause is ever ignored: what nothing honours is refused by `check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import UnsupportedQuery

if TYPE_CHECKING:
    from ..parser.join_graph import Aggregate, Query
from .methods import GROUPING, METHODS, Method, counts_distinct


@dataclass(frozen=True, slots=True)
class Asked:
    """What a statement and its session ask, beside the query itself.

    Attributes
    ----------
    by_hand : bool
        Whether the size of sketches is set, whatever error is asked.
    cache : bool
        Whether what is built is kept.
    route : str
    clauses : mapping of str to (int, int)
        Where each clause of the statement stands, by its name.
    """

    by_hand: bool = False
    cache: bool = False
    route: str = "auto"
    clauses: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def check(query: Query, asked: Asked) -> None:
    """Refuse a combination of query, method, clauses and route that nothing honours.

    Parameters
    ----------
    query : Query
        Its `method` is that of USING.
    asked : Asked

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_UNKNOWN_METHOD`` where the method cannot answer the query, ``SKIMQL_CLAUSE`` where two things that are
        asked exclude each other, ``SKIMQL_ROUTE`` where the route cannot be gone; each with a way out.
    """
    if query.empty:
        return
    if query.method is not None:
        check_aggregates(query)
        _check_method(query, METHODS[query.method], asked)
    if asked.route == "jvm" and query.method != "sampled_query":
        _check_jvm(query, asked)


def check_aggregates(query: Query) -> None:
    """Refuse a method that cannot serve every aggregate of the query.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_UNKNOWN_METHOD``, at the aggregate.
    """
    for aggregate in query.aggregates if query.method is not None else ():
        assert query.method is not None, "asked for"
        known = METHODS[query.method].aggregates
        if aggregate.function == "count_distinct" and aggregate.function not in known:
            raise aggregate_fault(query, aggregate, "it does not tell distinct values apart", "distinct")
        if aggregate.function not in known and aggregate.asked:
            raise aggregate_fault(query, aggregate, "it counts distinct values only")
        if query.sets is not None and "set" not in known:
            raise aggregate_fault(query, aggregate, "it does not count the values of sets", "distinct")


def aggregate_fault(query: Query, aggregate: Aggregate, why: str, other: str = "") -> UnsupportedQuery:
    """The refusal of the method that a query asks for, at an aggregate that it does not estimate."""
    message = f"{query.method} does not estimate {aggregate.name}: {why}"
    span = (aggregate.span.start, aggregate.span.end)
    hint = f"USING {other}, or no USING" if other else "no USING"
    return UnsupportedQuery(message, "SKIMQL_UNKNOWN_METHOD", query.sql, span, hint)


def is_grouped(query: Query) -> bool:
    """Whether the query groups, filters, orders or cuts its result."""
    return any(f.name in GROUPING for f in query.features)


def _check_method(query: Query, method: Method, asked: Asked) -> None:
    graph, place = query.graph, asked.clauses.get("method")

    def refusal(why: str, hint: str) -> UnsupportedQuery:
        return UnsupportedQuery(why, "SKIMQL_UNKNOWN_METHOD", query.sql, place, hint)

    if not method.stored and asked.cache:
        raise UnsupportedQuery(
            f"skimql.cache = true keeps what a query builds, and nothing of {method.name} is kept",
            "SKIMQL_CLAUSE",
            query.sql,
            place,
            "OPTIONS (cache = false), or SET skimql.cache = false",
        )
    if method.name == "sampled_query":
        if graph.vertices:
            raise refusal("sampled_query runs the join, and this is estimated without running it", "no USING")
        return
    if not graph.edges and not counts_distinct(method.name):
        why = f"{method.name} estimates joins; one table is read as a whole, and its aggregates are exact"
        raise refusal(why, "no USING")
    if method.attributes == "one" and any(len(graph.edges_at(v)) > 1 for v in range(len(graph.vertices))):
        why = f"a {method.name} sketch has one join attribute; a table of this query has several"
        raise refusal(why, "USING convolution")
    if is_grouped(query) and not method.groups:
        kind = "GROUP BY" if query.groups else next(f.name for f in query.features if f.name in GROUPING)
        others = (
            "hash" if all(len(graph.edges_at(v)) == 1 for v in range(len(graph.vertices))) else "convolution"
        )
        why = f"{kind} is answered by sketches in this version, not by {method.name}"
        raise refusal(why, f"USING {others}, or EXACT SELECT ...")


def _check_jvm(query: Query, asked: Asked) -> None:
    """Refuse the route without Python workers where the asked method needs them; the planner sees to the rest."""
    reason = worker_reason(query.method, grouped=bool(query.groups)) if query.method is not None else ""
    if not reason and asked.cache:
        if query.method is not None and query.method not in ("hash", "convolution"):
            reason = f"what {query.method} builds is kept, and Python workers make it"
        elif query.groups:
            reason = "each group has sketches of its own"
        elif query.sets is not None or query.counts_distinct:
            reason = "distinct values are counted"
    if reason:
        raise route_fault(query.sql, reason, asked.clauses.get("method"))


def worker_reason(method: str, *, grouped: bool) -> str:
    """Why a method needs Python workers, whatever its plan; empty if it does not."""
    routes = METHODS[method].routes
    if "jvm" not in routes:
        return "distinct values are counted" if counts_distinct(method) else f"{method} is asked for"
    return "each group has sketches of its own" if grouped and "arrow" in routes else ""


def check_materialized(route: str, sql: str) -> None:
    """Refuse to make sketches that are kept without Python workers.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_ROUTE``.
    """
    if route == "jvm":
        fault = route_fault(sql, "sketches that are kept are made by Python workers")
        fault.hint = "SET skimql.route = auto"
        raise fault


def route_fault(sql: str, reason: str, place: tuple[int, int] | None = None) -> UnsupportedQuery:
    """The refusal of the route without Python workers."""
    return UnsupportedQuery(
        f"the JVM cannot make these sketches: {reason}",
        "SKIMQL_ROUTE",
        sql,
        place,
        "OPTIONS (route = auto), or SET skimql.route = auto",
    )
