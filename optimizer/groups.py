"""The plans of a grouped query: the grouped vertex has a synopsis for every group, all else is shared.

Every group's plan reads from the same synopses, built in the same scans with the same xi families, so that the groups
of a query differ in nothing but the sketch of the grouped vertex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..parser.join_graph import Query
from .choose import buckets_within, choose
from .plan import Plan, PlannedTerm, Scan, Synopsis


def choose_groups(
    query: Query, vertex: int, groups: int, seed: int, rows: int, buckets: int, sparse: bool = True
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
    seed, rows, buckets, sparse
        As for `choose`.
    """
    return _per_group(choose(query, seed, rows, buckets, sparse), vertex, groups)


def choose_groups_within(
    query: Query, vertex: int, groups: int, seed: int, rows: int, size_bytes: int, sparse: bool = True
) -> tuple[Plan, ...]:
    """As `choose_groups`, in `size_bytes` for the sketches of all groups together, each of the same size.

    Raises
    ------
    BudgetExceeded
        If that leaves a row less than two buckets; the message says how many bytes would do.
    """
    draft = choose_groups(query, vertex, groups, seed, rows, 2, sparse)
    sketches = sum(1 for s in draft[0].synopses if s.attributes)
    if not sketches:
        return draft
    buckets = buckets_within(sketches, rows, size_bytes, query.sql)
    return choose_groups(query, vertex, groups, seed, rows, buckets, sparse)


def _per_group(plan: Plan, vertex: int, groups: int) -> tuple[Plan, ...]:
    terms = [t for a in plan.aggregates for t in (*a.total, *a.presence)]
    # A self-join may read one synopsis at the grouped vertex and, ungrouped, at another.
    grouped = dict.fromkeys(t.synopses[vertex] for t in terms)
    shared = dict.fromkeys(i for t in terms for v, i in enumerate(t.synopses) if v != vertex)
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

    def of_group(terms: Sequence[PlannedTerm], at: dict[int, int]) -> tuple[PlannedTerm, ...]:
        return tuple(
            replace(
                term,
                synopses=tuple(at[i] if v == vertex else shared_at[i] for v, i in enumerate(term.synopses)),
            )
            for term in terms
        )

    return tuple(
        replace(
            plan,
            synopses=tuple(synopses),
            scans=scans,
            aggregates=tuple(
                replace(a, total=of_group(a.total, at), presence=of_group(a.presence, at))
                for a in plan.aggregates
            ),
        )
        for at in group_at
    )
