"""Of a view whose sketches were planned with others': which it reads and how, as the catalog keeps it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ...optimizer.domain_partition import DomainPartition
from ...optimizer.plan import Plan, PlannedAggregate, PlannedEdge, PlannedTerm, Scan, Synopsis
from ...optimizer.workload.planned_use import check_plan
from ...parser.join_graph import Query
from ..catalog import checks
from ..catalog.file import canonical
from ..materialized.declared import terms_from, terms_json
from .state import check_cells
from .state_file import synopsis_from, synopsis_json


def own_plan(plan: Plan) -> Plan:
    """A plan with those of its synopses alone that its terms read."""
    used = sorted({i for t in plan.terms for i in t.synopses})
    number = {old: new for new, old in enumerate(used)}

    def renumbered(of: tuple[PlannedTerm, ...]) -> tuple[PlannedTerm, ...]:
        return tuple(PlannedTerm(t.coefficient, tuple(number[i] for i in t.synopses)) for t in of)

    synopses = tuple(plan.synopses[i] for i in used)
    parted = {a.class_name for s in synopses if s.cell for a in s.attributes}
    tables = dict.fromkeys(s.table for s in synopses)
    return replace(
        plan,
        synopses=synopses,
        scans=tuple(Scan(t, tuple(i for i, s in enumerate(synopses) if s.table == t)) for t in tables),
        aggregates=tuple(
            replace(a, total=renumbered(a.total), presence=renumbered(a.presence)) for a in plan.aggregates
        ),
        partitions=tuple(p for p in plan.partitions if p[0] in parted),
    )


def sized_as(plan: Plan, known: Collection[Synopsis]) -> Plan:
    """A plan with the sizes of sketches that are there already, as many as can be joined with each other.

    The sketches of a join have one number of buckets: the one that most of them are found in. What is not found has the
    rows that the plan has.
    """

    def bare(synopsis: Synopsis) -> Synopsis:
        return replace(synopsis, rows=1, buckets=2)

    found: dict[int, dict[Synopsis, Synopsis]] = {}
    for s in known:
        if s.attributes:
            found.setdefault(s.buckets, {}).setdefault(bare(s), s)
    wanted = [bare(s) for s in plan.synopses if s.attributes]
    hits = Counter({buckets: sum(w in own for w in wanted) for buckets, own in found.items()})
    best, count = max(hits.items(), key=lambda hit: (hit[1], hit[0]), default=(0, 0))
    if not count:
        return plan
    own = found[best]
    synopses = tuple(own.get(bare(s), replace(s, buckets=best)) if s.attributes else s for s in plan.synopses)
    return replace(plan, synopses=synopses)


def plan_text(plan: Plan) -> str:
    """An own plan as text."""
    return canonical(
        {
            "synopses": [synopsis_json(s) for s in plan.synopses],
            "edges": [[e.left, e.right, e.left_position, e.right_position, e.class_name] for e in plan.edges],
            "aggregates": [
                [a.function, a.name, terms_json(a.total), terms_json(a.presence)] for a in plan.aggregates
            ],
            **({"partitions": [_domain_json(p) for p in plan.partitions]} if plan.partitions else {}),
        }
    ).decode()


def plan_from(text: str, query: Query, seed: int) -> Plan:
    """The plan of a query that `plan_text` wrote; ValueError or KeyError where it is none of this query."""
    data = checks.mapping(checks.parse_json(text.encode()), "a plan")
    synopses = tuple(synopsis_from(s) for s in checks.items(data["synopses"], "synopses"))
    tables = dict.fromkeys(s.table for s in synopses)
    plan = Plan(
        query,
        seed,
        synopses,
        tuple(Scan(t, tuple(i for i, s in enumerate(synopses) if s.table == t)) for t in tables),
        tuple(PlannedEdge(*checks.row(e, 5, "an edge")) for e in checks.items(data["edges"], "edges")),
        tuple(
            PlannedAggregate(function, name, terms_from(total), terms_from(presence))
            for function, name, total, presence in (
                checks.row(a, 4, "an aggregate") for a in checks.items(data["aggregates"], "aggregates")
            )
        ),
        tuple(range(len(query.graph.vertices))),
        partitions=tuple(map(_domain, checks.items(data.get("partitions", []), "partitions", 1 << 10))),
    )
    check_plan(plan, query)
    check_cells(synopses, plan.partitions)
    return plan


def _domain_json(partition: tuple[str, DomainPartition]) -> list[Any]:
    name, domain = partition
    return [name, list(domain.lows), list(domain.labels)]


def _domain(data: Any) -> tuple[str, DomainPartition]:
    name, lows, labels = checks.row(data, 3, "a partition")
    starts = [
        checks.integer(n, -checks.INT64, checks.INT64 - 1, "a key") for n in checks.items(lows, "ranges")
    ]
    parts = [checks.integer(n, 0, 1 << 16, "a part") for n in checks.row(labels, len(starts), "ranges")]
    if sorted(set(starts)) != starts or sorted(set(parts)) != list(range(max(parts, default=-1) + 1)):
        raise ValueError("the ranges of a partition are not in order, or a part has none")
    if len(set(parts)) < 2:
        raise ValueError("a partition has two parts at least")
    return checks.text(name, "class"), DomainPartition(tuple(starts), tuple(parts))
