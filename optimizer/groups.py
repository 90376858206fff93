"""The plans of a grouped query: the grouped vertex has a synopsis for every group, all else is shared.

Every group's plan reads from the same synopses, built in the same scans with the same xi families, so that the groups
of a query differ in nothing but the sketch of the grouped vertex.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..parser.join_graph import Query
from .choose import choose, plan_within
from .distinct_count import DistinctCount, Part, parts_of, with_parts
from .plan import Plan, PlannedTerm, Scan, Synopsis


def choose_groups(
    query: Query,
    vertex: int,
    groups: int,
    seed: int,
    rows: int,
    buckets: int,
    sparse: bool = True,
    too_large: Collection[int] = (),
) -> tuple[Plan, ...]:
    """One plan per group, in the order of the group numbers, over common synopses.

    Parameters
    ----------
    query : Query
        With every `key_types` of its edges known.
    vertex : int
        The vertex whose tuples are grouped.
    groups : int
        How many groups there are, at least one.
    seed, rows, buckets, sparse, too_large
        As for `choose`.
    """
    plan = choose(query, seed, rows, buckets, sparse, too_large=too_large)
    return _per_group(plan, vertex, groups)


def choose_groups_within(
    query: Query,
    vertex: int,
    groups: int,
    seed: int,
    rows: int,
    size_bytes: int,
    sparse: bool = True,
    too_large: Collection[int] = (),
) -> tuple[Plan, ...]:
    """As `choose_groups`, in `size_bytes` for the sketches of all groups together, each of the same size.

    Raises
    ------
    BudgetExceeded
        If that leaves a row less than two buckets; the message says how many bytes would do.
    """
    plans: tuple[Plan, ...] = ()

    def sized(buckets: int) -> Plan:
        nonlocal plans
        plans = choose_groups(query, vertex, groups, seed, rows, buckets, sparse, too_large)
        return plans[0]

    plan_within(sized, rows, size_bytes, query.sql)
    return plans


def _per_group(plan: Plan, vertex: int, groups: int) -> tuple[Plan, ...]:
    at = plan.vertices.index(vertex)
    terms = [t for a in plan.aggregates for t in (*a.total, *a.presence)]
    counts = [p for a in plan.aggregates if a.distinct is not None for p in parts_of(a.distinct)]
    # A self-join may read one synopsis at the grouped vertex and, ungrouped, at another.
    grouped = dict.fromkeys(
        [t.synopses[at] for t in terms] + [p.synopsis for p in counts if p.vertex == vertex]
    )
    shared = dict.fromkeys(
        [i for t in terms for v, i in enumerate(t.synopses) if v != at]
        + [p.synopsis for p in counts if p.vertex != vertex]
    )
    synopses: list[Synopsis] = [plan.synopses[i] for i in shared]
    shared_at = {i: n for n, i in enumerate(shared)}
    group_at: list[dict[int, int]] = []
    for number in range(groups):
        group_at.append({i: len(synopses) + n for n, i in enumerate(grouped)})
        synopses += [replace(plan.synopses[i], group=number) for i in grouped]
    scans = tuple(
        Scan(scan.table, tuple(i for i, s in enumerate(synopses) if s.table == scan.table))
        for scan in plan.scans
    )

    def of_group(terms: Sequence[PlannedTerm], own: dict[int, int]) -> tuple[PlannedTerm, ...]:
        return tuple(
            replace(
                term,
                synopses=tuple(own[i] if v == at else shared_at[i] for v, i in enumerate(term.synopses)),
            )
            for term in terms
        )

    def counted(count: DistinctCount | None, own: dict[int, int]) -> DistinctCount | None:
        def moved(part: Part) -> Part:
            return Part(part.vertex, (own if part.vertex == vertex else shared_at)[part.synopsis])

        return None if count is None else with_parts(count, moved)

    return tuple(
        replace(
            plan,
            synopses=tuple(synopses),
            scans=scans,
            aggregates=tuple(
                replace(
                    a,
                    total=of_group(a.total, own),
                    presence=of_group(a.presence, own),
                    distinct=counted(a.distinct, own),
                )
                for a in plan.aggregates
            ),
        )
        for own in group_at
    )
