"""The one registry of methods: what each can answer, and whether a combination of clauses is honoured or refused.

Whoever needs to know which methods there are asks here: the settings, `USING`, the planner, the catalog, EXPLAIN, the
documentation. A combination that is not honoured is refused by `check`, with a code and a way out: none is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import UnsupportedQuery

if TYPE_CHECKING:
    from ..parser.join_graph import Aggregate, Query

LEVEL, PAIRS = "level", "pairs"

_SUMS = frozenset(("count", "sum", "avg"))
_COUNTING = frozenset(("count_distinct",))
_WORKERS, _JVM = frozenset(("arrow",)), frozenset(("jvm",))

# Features of a query that take sketches for every group, or decide on rows by estimates.
GROUPING = frozenset(("GROUP BY", "GROUP BY over several tables", "HAVING", "ORDER BY", "LIMIT", "OFFSET"))


@dataclass(frozen=True, slots=True)
class Method:
    """One way to answer, and what it can.

    Attributes
    ----------
    name : str
        As `USING`, EXPLAIN, `Answer.method` and the catalog spell it.
    what : str
        What it does, for people.
    aggregates : frozenset of str
        Functions of `Aggregate` that it estimates, and ``set`` for those over a set expression.
    named : bool
        Whether ``USING name`` asks for it.
    groups : bool
        Whether it answers GROUP BY, HAVING, ORDER BY and LIMIT.
    sized : bool
        Whether ``SIZE`` bounds it.
    error : str
        What ``ERROR WITHIN`` does: ``planned`` is sized for it by what is predicted, ``reported`` says whether it is
        met; empty where the answer is exact in any case, or no size is planned.
    stored : bool
        Whether CREATE SKETCH and `skimql.cache` keep its synopses: a kind of `engine/catalog/kinds/registry.py`.
    synopsis : bool
        Whether a synopsis of a plan is of this method; the others make their answer of several, or of none.
    candidate : bool
        Whether the planner weighs it for an error or a size.
    chosen : bool
        Whether the planner takes it of itself; the other candidates only by USING.
    statistics : bool
        Whether it needs statistics of the tables.
    attributes : str
        Join attributes of a table: ``none``, ``one`` or ``several``.
    routes : frozenset of str
        Where it runs: ``arrow``, in Python workers; ``jvm``, in Spark alone.
    linear : bool
        Whether it multiplies linear sketches, which have counters for every weight.
    streams : bool
        Whether its synopses are maintained under inserts and deletes, each table by itself.
    """

    name: str
    what: str
    aggregates: frozenset[str] = _SUMS
    named: bool = False
    groups: bool = False
    sized: bool = False
    error: str = ""
    stored: bool = False
    synopsis: bool = False
    candidate: bool = False
    chosen: bool = False
    statistics: bool = False
    attributes: str = "several"
    routes: frozenset[str] = _JVM
    linear: bool = False
    streams: bool = False


METHODS: Mapping[str, Method] = {
    m.name: m
    for m in (
        Method(
            "hash",
            "hash sketches (Fast-AGMS) of tables with one join attribute each",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            stored=True,
            synopsis=True,
            candidate=True,
            chosen=True,
            attributes="one",
            routes=_WORKERS | _JVM,
            linear=True,
            streams=True,
        ),
        Method(
            "convolution",
            "convolution count sketches; of a table with one join attribute it is its hash sketch",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            stored=True,
            synopsis=True,
            candidate=True,
            chosen=True,
            routes=_WORKERS | _JVM,
            linear=True,
            streams=True,
        ),
        Method(
            "agms",
            "AGMS sketches: every tuple moves every counter",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            synopsis=True,
            candidate=True,
            routes=_WORKERS,
            linear=True,
            streams=True,
            stored=True,
        ),
        Method(
            "skimmed",
            "hash sketches with the dense keys taken out before they are multiplied",
            named=True,
            sized=True,
            error="planned",
            candidate=True,
            statistics=True,
            routes=_WORKERS | _JVM,
            linear=True,
            streams=True,
            stored=True,
        ),
        Method(
            "key_sample",
            "the join exactly on a sample of the keys of one join class, by their hash",
            named=True,
            sized=True,
            error="planned",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
            stored=True,
        ),
        Method(
            "two_level",
            "heavy keys exactly, the others on a sample of them",
            named=True,
            sized=True,
            error="planned",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
            stored=True,
        ),
        Method(
            "sampled_messages",
            "a sample of the keys of one join class, with exact messages of the tables behind it",
            sized=True,
            error="planned",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
        ),
        Method(
            "exact",
            "exact messages alone: tables of few keys, joined into their neighbours",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
            sized=True,
            routes=_WORKERS | _JVM,
        ),
        Method(
            "exact_run",
            "the query as Spark runs it",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
        ),
        Method(
            "total",
            "one table without a join, read as a whole: exact",
            groups=True,
            stored=True,
            synopsis=True,
            attributes="none",
            routes=_WORKERS | _JVM,
            streams=True,
        ),
        Method(
            "distinct",
            "level sketches of the distinct values of one table, or of sets",
            _COUNTING | {"set"},
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            routes=_WORKERS,
            streams=True,
            stored=True,
        ),
        Method(
            "join_distinct",
            "samples of pairs: distinct values over a join",
            _COUNTING,
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            routes=_WORKERS,
            streams=True,
            stored=True,
        ),
        Method(
            LEVEL,
            "a level sketch, of which distinct makes its answer",
            _COUNTING,
            synopsis=True,
            routes=_WORKERS,
        ),
        Method(
            PAIRS,
            "a pair sample, of which join_distinct makes its answer",
            _COUNTING,
            synopsis=True,
            routes=_WORKERS,
        ),
        Method("sample", "what one table adds to a sample of keys", synopsis=True),
        Method(
            "sample_sketch",
            "a sample of the keys of one join class, sketches of the tables beyond it, each table by itself",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            statistics=True,
            streams=True,
            stored=True,
            routes=_WORKERS,
        ),
        Method(
            "constant",
            "no tuple can meet the conditions: an exact 0, or NULL",
            _SUMS | _COUNTING,
            groups=True,
        ),
    )
}

NAMED = tuple(m.name for m in METHODS.values() if m.named)
CANDIDATES = tuple(m.name for m in METHODS.values() if m.candidate)
CHOSEN = tuple(m.name for m in METHODS.values() if m.chosen)
STORED = tuple(m.name for m in METHODS.values() if m.stored)


def counts_distinct(name: str) -> bool:
    """Whether a method estimates distinct values, and nothing else."""
    return METHODS[name].aggregates <= _COUNTING | {"set"}


def is_linear(name: str) -> bool:
    """Whether a method multiplies linear sketches, which have counters for every weight."""
    return METHODS[name].linear


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
    if asked.route == "jvm":
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
