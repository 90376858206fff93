"""What is built of each table by itself, in the form in which the catalog keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...optimizer.choose import choose
from ...optimizer.physical import ApartJoin, Predicted, SketchJoin
from ...optimizer.plan import vertices_of
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ..materialized.answer import LINEAR, grouping_of
from ..materialized.lookup import without_count
from ..settings import Settings
from .settings_of import places_of

if TYPE_CHECKING:
    from ...optimizer.apart import TableSynopsis
    from ...optimizer.candidates.candidate import Candidate


def refuse_sizes(query: Query, select: ApproximateSelect) -> None:
    """Refuse rows and buckets in a statement that asks for a method which has none.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_CLAUSE``.
    """
    if {"rows", "buckets"} & set(select.options):
        raise UnsupportedQuery(
            f"{select.method} keeps keys, and has no rows and buckets",
            "SKIMQL_CLAUSE",
            query.sql,
            places_of(select).get("options"),
            "SIZE ... in the place of OPTIONS (...)",
        )


def as_materialized(
    query: Query,
    select: ApproximateSelect,
    settings: Settings,
    attempt: SketchJoin,
    groups: Mapping[int, int],
) -> SketchJoin | ApartJoin:
    """An attempt in the form in which `cache` keeps what it builds.

    Linear sketches without groups are built together, and kept as they are.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_CLAUSE`` if what is built is of this query alone.
    """
    plan = attempt.plan
    linear = all(s.method in LINEAR for s in plan.synopses) and not attempt.skim
    if not settings.cache or (linear and not query.groups):
        return attempt
    from ...optimizer.apart import of_plan

    why = ""
    if plan.messages:
        why = f"distinct values behind an exact message of {plan.messages[0].table} are of this query alone"
    elif attempt.skim and len(query.graph.vertices) > 2:
        why = "skimmed sketches that are kept join two tables on one key"
    elif query.counts_distinct and any(
        a.function != "count_distinct" for a in without_count(query).aggregates
    ):
        why = "distinct values beside other aggregates, or in groups of a join, are counted for it alone"
    if why:
        raise UnsupportedQuery(
            f"skimql.cache = true keeps what a query builds, and {why}",
            "SKIMQL_CLAUSE",
            query.sql,
            places_of(select).get("options"),
            "OPTIONS (cache = false), or SET skimql.cache = false",
        )
    return _apart(query, settings, attempt, of_plan(plan, "skimmed" if attempt.skim else None), groups)


def of_tables(
    query: Query, settings: Settings, taken: Candidate, predicted: Predicted, groups: Mapping[int, int]
) -> ApartJoin:
    """The attempt of a candidate with samples of each table by itself; raises as `fitted`."""
    from ...optimizer.apart import of_choice

    made = of_choice(query, taken, settings.seed, settings.sparse)
    plan = choose(query, settings.seed, taken.rows or 1, max(taken.buckets, 2), settings.sparse)
    return _apart(query, settings, SketchJoin(taken.method, plan, predicted), made, groups)


def _apart(
    query: Query,
    settings: Settings,
    attempt: SketchJoin,
    synopses: Sequence[TableSynopsis],
    groups: Mapping[int, int],
) -> ApartJoin:
    from ...optimizer.apart import as_planned, groups_at
    from ..materialized.apart import bytes_of, fitted

    def number(synopsis: TableSynopsis) -> int:
        of = (synopsis.table, synopsis.filter, synopsis.groups)
        vertices = enumerate(query.graph.vertices)
        same = (v for v, r in vertices if (r.table, r.filter, groups_at(query, v)) == of)
        return groups.get(next(same), 1) if synopsis.groups else 1

    grouped = set(grouping_of(query))
    for own in vertices_of(attempt.plan).values():
        if own & grouped and (own - grouped or len(own & grouped) > 1):
            names = " and ".join(query.graph.vertices[v].alias for v in sorted(own))
            raise UnsupportedQuery(
                f"{names} are one table, and groups of it are told apart in one of them alone: no sketch of that"
                " table by itself stands for both",
                "SKIMQL_CLAUSE",
                query.sql,
                hint="OPTIONS (cache = false)" if settings.cache else "another method, or no USING",
            )
    made = fitted(synopses, settings, number, query.sql)
    plan = as_planned(attempt.plan, made)
    nbytes = tuple(bytes_of([s], number) for s in made)
    return ApartJoin(attempt.method, plan, made, attempt.predicted, settings.cache, nbytes)
