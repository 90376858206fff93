"""Plans at the size that a session's settings ask for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import BudgetExceeded
from ...optimizer.choose import choose, plan_within
from ...optimizer.distinct import buckets_for
from ...optimizer.groups import per_group
from ...optimizer.plan import Plan, most_bytes
from ...optimizer.route import TABULATION, routed
from ...parser.join_graph import Query
from ...sketches.intervals.interval import rows_for
from ..results.selection import confidence_of_chosen
from ..settings import Settings

if TYPE_CHECKING:
    from ..sources.tables import Tables

LARGE_BYTES = 64 << 20  # of files, from which the all-JVM route pays

# A level sketch of this size takes 25 MB, its relative standard error is 0.27 %.
MOST_FOR_ERROR = 1 << 17

AGMS_BUCKETS = 128


def chosen(
    query: Query,
    settings: Settings,
    too_large: Collection[int] = (),
    groups: Mapping[int, int] | None = None,
    planned: int | None = None,
) -> Plan:
    """The plan of a query at the session's size, its groups not told apart.

    Parameters
    ----------
    query : Query
    settings : Settings
    too_large : collection of int
        Vertices whose exact messages are; see `choose`.
    groups : mapping of int to int, optional
        How many groups each grouped vertex has: an asked size is for the sketches of all of them together.
    planned : int, optional
        The buckets that the planner has chosen, if it has.

    Raises
    ------
    BudgetExceeded
        Where the asked size is too small, or the plan may take more than `max_bytes`.
    UnsupportedQuery
        Where the asked route cannot be gone.
    """
    number = math.prod((groups or {}).values())
    rows = settings.rows or rows_for(confidence_of_chosen(query, settings.confidence, number))
    template: Plan | None = None

    def sized(buckets: int) -> Plan:
        nonlocal template
        template = choose(query, settings.seed, rows, buckets, settings.sparse, too_large=too_large)
        return per_group(template, groups)[0] if groups else template

    if settings.size_bytes is not None:
        whole = plan_within(sized, rows, settings.size_bytes, query.sql)
    else:
        whole = sized(planned or buckets_of(query, settings))
    within(whole, settings)
    # Each group has sketches of its own, which is known to the plan of all of them only.
    routed(whole, _route(settings))
    assert template is not None, "it was chosen"
    return replace(template, family=TABULATION) if groups else routed(template, _route(settings))


def with_route(query: Query, settings: Settings, tables: Tables) -> Settings:
    """The settings with the route "auto" settled by the size of the tables: small ones go over Arrow.

    A second pass for exact maps of few keys, and code compiled for every seed, cost more there than Python workers do:
    counts on the demo tables 2.3 CPU s against 1.3, warm.
    """
    if settings.route != "auto" or any(_is_large(v.table, tables) for v in query.graph.vertices):
        return settings
    return replace(settings, route="arrow")


def _is_large(table: str, tables: Tables) -> bool:
    """Whether a table's files are many bytes, or elsewhere; a DataFrame's size is not known."""
    from ..sources.files import files_of

    size = files_of(tables, table, tables.frame(table), count=False).bytes
    return size is not None and size >= LARGE_BYTES


def within(plan: Plan, settings: Settings) -> Plan:
    """The plan, if what it may keep fits in `max_bytes`: on the driver, and in every task of a scan."""
    needed = sum(most_bytes(s) for s in plan.synopses)
    if needed > settings.max_bytes:
        raise BudgetExceeded(
            f"the synopses of this query may take {needed / (1 << 20):,.0f} MB, more than skimql.max_bytes = "
            f"{settings.max_bytes / (1 << 20):,.0f} MB",
            "SKIMQL_MAX_BYTES",
            plan.query.sql,
            hint="fewer buckets or groups, SIZE, or a larger skimql.max_bytes",
        )
    return plan


def buckets_of(query: Query, settings: Settings) -> int:
    """The buckets of a query's sketches: more than the session's where distinct values need them for an asked error."""
    if query.method == "agms" and not settings.by_hand:
        # Every tuple moves every counter of an AGMS sketch.
        return AGMS_BUCKETS
    if settings.error is None or not query.counts_distinct:
        return settings.buckets
    return max(settings.buckets, min(buckets_for(settings.error, settings.confidence), MOST_FOR_ERROR))


def _route(settings: Settings) -> str:
    """The asked route. Sketches that are kept are to be joined with those of other statements: of one family."""
    return "arrow" if settings.cache and settings.route == "auto" else settings.route
