"""Plans at the size that a session's settings ask for."""

from __future__ import annotations

from ..optimizer.choose import choose, choose_within
from ..optimizer.groups import choose_groups, choose_groups_within
from ..optimizer.plan import Plan
from ..parser.join_graph import Query
from ..sketches.interval import rows_for
from .settings import Settings


def chosen(query: Query, settings: Settings) -> Plan:
    """The plan of a query, its groups not told apart; raises BudgetExceeded where the asked size is too small."""
    rows = settings.rows or rows_for(settings.confidence)
    if settings.size_bytes is not None:
        return choose_within(query, settings.seed, rows, settings.size_bytes, settings.sparse)
    return choose(query, settings.seed, rows, settings.buckets, settings.sparse)


def chosen_groups(query: Query, groups: int, settings: Settings) -> tuple[Plan, ...]:
    """A plan for each of `groups` groups over common synopses; raises BudgetExceeded as `chosen`."""
    rows, vertex = settings.rows or rows_for(settings.confidence), query.groups[0].vertex
    if settings.size_bytes is not None:
        size = settings.size_bytes
        return choose_groups_within(query, vertex, groups, settings.seed, rows, size, settings.sparse)
    return choose_groups(query, vertex, groups, settings.seed, rows, settings.buckets, settings.sparse)
