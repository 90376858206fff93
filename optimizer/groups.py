"""The plans of a grouped query: a grouped vertex has a synopsis for every group of its tuples, all else is shared.

Every group's plan reads from the same synopses, built in the same scans with the same xi families, so that the groups
of a query differ in nothing but the sketches of the grouped vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ..parser.join_graph import Query
from .distinct_count import DistinctCount, Part, parts_of, with_parts
from .plan import Plan, PlannedTerm, Scan, Synopsis

# Groups that the tables of a query are taken to have before they are looked at.
ASSUMED_GROUPS = 10


def grouped_vertices(query: Query) -> tuple[int, ...]:
    """The vertices whose tuples are grouped, ascending."""
    return tuple(sorted({g.vertex for g in query.groups}))


def per_group(plan: Plan, groups: Mapping[int, int]) -> tuple[Plan, ...]:
    """One plan for each combination of groups, over common synopses.

    Parameters
    ----------
    plan : Plan
        Of the query without its groups told apart; the grouped vertices are not folded.
    groups : mapping of int to int
        How many groups each grouped vertex of the query has, at least one; combinations come in C order over its items.
    """
    at = {plan.vertices.index(vertex): vertex for vertex in groups}
    terms = plan.terms
    counts = [p for a in plan.aggregates if a.distinct is not None for p in parts_of(a.distinct)]
    # A self-join may read one synopsis at a grouped vertex and, ungrouped or grouped otherwise, at another.
    read = dict.fromkeys(
        [(at.get(v), i) for t in terms for v, i in enumerate(t.synopses)]
        + [(p.vertex if p.vertex in groups else None, p.synopsis) for p in counts]
    )
    synopses: list[Synopsis] = []
    numbers: dict[tuple[int | None, int, int], int] = {}
    for vertex, i in read:
        for number in range(groups[vertex]) if vertex is not None else (-1,):
            numbers[vertex, i, number] = len(synopses)
            own = plan.synopses[i]
            synopses.append(own if vertex is None else replace(own, group=(vertex, number)))
    scans = tuple(
        Scan(scan.table, tuple(i for i, s in enumerate(synopses) if s.table == scan.table))
        for scan in plan.scans
    )
    whole = tuple(synopses)

    def of_group(of: Sequence[PlannedTerm], own: Mapping[int, int]) -> tuple[PlannedTerm, ...]:
        return tuple(
            replace(
                term,
                synopses=tuple(
                    numbers[at.get(v), i, own.get(at.get(v, -1), -1)] for v, i in enumerate(term.synopses)
                ),
            )
            for term in of
        )

    def counted(count: DistinctCount | None, own: Mapping[int, int]) -> DistinctCount | None:
        def moved(part: Part) -> Part:
            vertex = part.vertex if part.vertex in groups else None
            return Part(part.vertex, numbers[vertex, part.synopsis, own.get(part.vertex, -1)])

        return None if count is None else with_parts(count, moved)

    return tuple(
        replace(
            plan,
            synopses=whole,
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
        for own in _combinations(groups)
    )


def _combinations(groups: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """The numbers of one group of each vertex, for every combination."""
    for chosen in product(*(range(n) for n in groups.values())):
        yield dict(zip(groups, chosen, strict=True))
