"""Plans at the size that a session's settings ask for."""

from __future__ import annotations

from ..optimizer.choose import choose, choose_within
from ..optimizer.groups import choose_groups, choose_groups_within
from ..optimizer.plan import Plan
from ..optimizer.route import routed
from ..parser.join_graph import Query
from ..sketches.interval import rows_for
from .settings import Settings


def chosen(query: Query, settings: Settings) -> Plan:
    """The plan of a query, its groups not told apart.

    Raises
    ------
    BudgetExceeded
        Where the asked size is too small.
    UnsupportedQuery
        Where the asked route cannot be gone.
    """
    rows = settings.rows or rows_for(settings.confidence)
    if settings.size_bytes is not None:
        plan = choose_within(query, settings.seed, rows, settings.size_bytes, settings.sparse)
    else:
        plan = choose(query, settings.seed, rows, settings.buckets, settings.sparse)
    return routed(plan, _route(settings))


def chosen_groups(query: Query, groups: int, settings: Settings) -> tuple[Plan, ...]:
    """A plan for each of `groups` groups over common synopses; raises as `chosen`."""
    rows, vertex = settings.rows or rows_for(settings.confidence), query.groups[0].vertex
    if settings.size_bytes is not None:
        size = settings.size_bytes
        plans = choose_groups_within(query, vertex, groups, settings.seed, rows, size, settings.sparse)
    else:
        plans = choose_groups(query, vertex, groups, settings.seed, rows, settings.buckets, settings.sparse)
    return tuple(routed(plan, _route(settings)) for plan in plans)


def _route(settings: Settings) -> str:
    """The asked route. Sketches that are kept are to be joined with those of other statements: of one family."""
    return "arrow" if settings.cache and settings.route == "auto" else settings.route
