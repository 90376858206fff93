"""USING a method: which aggregates it can serve."""

from __future__ import annotations

from ..errors import UnsupportedQuery
from ..parser.join_graph import Aggregate, Query

COUNTING = ("distinct", "join_distinct")


def check_method(query: Query) -> None:
    """Refuse a method that cannot serve every aggregate of the query.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_UNKNOWN_METHOD``, at the aggregate.
    """
    for aggregate in query.aggregates if query.method is not None else ():
        counts = aggregate.function == "count_distinct"
        if counts and query.method not in COUNTING:
            raise method_fault(query, aggregate, "it does not tell distinct values apart", "distinct")
        if not counts and query.method in COUNTING:
            raise method_fault(query, aggregate, "it counts distinct values only", "another method")


def method_fault(query: Query, aggregate: Aggregate, why: str, other: str) -> UnsupportedQuery:
    """The refusal of the method that a query asks for."""
    message = f"{query.method} does not estimate {aggregate.name}: {why}"
    span = (aggregate.span.start, aggregate.span.end)
    hint = f"USING {other}, or no USING"
    return UnsupportedQuery(message, "SKIMQL_UNKNOWN_METHOD", query.sql, span, hint)
