"""What kept sketches of every kind answer by themselves: a query and heads in, one `Joined` for each group out.

Needs neither Spark nor the tables. A planner takes what is found here as candidates without a scan; `half_width` says
what their answer is worth, from the answer itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

from ...errors import UnsupportedQuery
from ...optimizer.choose import choose
from ...optimizer.distinct_count import JoinedPairs, KeySets, PairsByKey, parts_of
from ...optimizer.plan import Synopsis, vertices_of
from ...parser.join_graph import Query
from ..catalog.form import Head
from ..results.estimator import Joined
from ..sources.environment import Circumstances
from .answer import (
    LINEAR,
    SAMPLES,
    VALUES,
    GroupKey,
    Load,
    Materialized,
    MaterializedAnswer,
    grouping_of,
    same_key,
    shown,
    whole,
)
from .matching import Asked, has_groups, reuse
from .sampled_answers import of_sampled_tables, of_samples

# Of kept sketches that may stand together for a count of distinct values.
MOST_COMBINATIONS = 10_000


def materialized_answers(
    query: Query, heads: Sequence[Head], asked: Asked, now: Circumstances
) -> list[MaterializedAnswer]:
    """Every way in which kept sketches alone answer a query, those of one kind together.

    Parameters
    ----------
    query : Query
        Every `key_types` known.
    heads : sequence of Head
        Of tables that are as the query means them.
    asked : Asked
        What the statement fixes: sketches of another method, seed or size are not taken.
    now : Circumstances
    """
    usable = [h for h in heads if now.fit(h) and not h.cell and asked.allows(h)]
    if query.counts_distinct:
        found = [_of_values(query, usable)]
    else:
        tables = of_sampled_tables(query, usable)
        if asked.method == "sample_sketch":
            return tables
        linear, agms, skimmed = (
            _of_sketches(query, usable, asked, now, kinds) for kinds in (LINEAR, ("agms",), ("skimmed",))
        )
        found = [linear, *(of_samples(query, usable, kind) for kind in SAMPLES), agms, skimmed, *tables]
    return [f for f in found if f is not None]


def best(
    answers: Sequence[MaterializedAnswer], load: Load, confidence: float
) -> tuple[MaterializedAnswer, dict[GroupKey, Joined]] | None:
    """The answer of least half-width, with what gives it; the first of equals. None of none."""
    found = [(answer, answer.joined(load)) for answer in answers]
    if len(found) < 2:
        return found[0] if found else None
    return min(found, key=lambda pair: pair[0].half_width(pair[1], confidence))


def _of_sketches(
    query: Query,
    heads: Sequence[Head],
    asked: Asked,
    now: Circumstances,
    kinds: tuple[str, ...],
) -> MaterializedAnswer | None:
    """By sketches that are multiplied: all vertices by those of the same kind, seed and size."""
    own = [h for h in heads if h.method in kinds]
    if not own:
        return None
    found = reuse(query, own, asked, now, grouping_of(query))
    if found is None or found.missing:
        return None
    if kinds == ("skimmed",) and len(query.graph.vertices) != 2:
        return None
    materialized = {
        i: Materialized(c.head, w, c.order, c.families) for i, (c, w) in found.materialized.items()
    }
    method = "agms" if kinds == ("agms",) else "skimmed" if kinds == ("skimmed",) else "hash"
    plan = shown(found.plan, materialized)
    return whole(query, method, plan, materialized)


def _of_values(query: Query, heads: Sequence[Head]) -> MaterializedAnswer | None:
    """Distinct values by level sketches and pair samples: of one table, sets, keys of a join, both sides of one.

    The values of one table are those of level sketches, or of pair samples where these were asked for.
    """
    if any(a.function != "count_distinct" for a in query.aggregates):
        return None
    found = (_of_counts(query, heads, method) for method in (None, "join_distinct"))
    return next((f for f in found if f is not None), None)


def _of_counts(query: Query, heads: Sequence[Head], method: str | None) -> MaterializedAnswer | None:
    """Distinct values as they are counted by a method, or by what the planner takes of itself."""
    try:
        plan = choose(replace(query, method=method), 1, 11, 4096)
    except UnsupportedQuery:
        return None
    grouping = grouping_of(query)
    vertices = vertices_of(plan)
    numbers = sorted(vertices)
    if numbers != list(range(len(plan.synopses))) or any(s.messages for s in plan.synopses):
        return None
    choices = []
    for number in numbers:
        (vertex, *others) = sorted(vertices[number])
        if others and vertices[number] & set(grouping):
            return None
        choices.append([h for h in heads if _has_values(h, plan.synopses[number], vertex, grouping)])
    for taken in islice(product(*choices), MOST_COMBINATIONS):
        if all(_fits_together(a.distinct, taken) for a in plan.aggregates if a.distinct is not None):
            own = dict(enumerate(Materialized(h) for h in taken))
            return whole(query, "distinct", shown(plan, own), own)
    return None


def _has_values(head: Head, synopsis: Synopsis, vertex: int, grouping: Mapping[int, frozenset[str]]) -> bool:
    return (
        head.method == VALUES.get(synopsis.method)
        and head.table.lower() == synopsis.table.lower()
        and head.filter == synopsis.filter
        and has_groups(head, vertex, grouping)
        and len(head.attributes) == len(synopsis.attributes)
        and all(same_key(a, b) for a, b in zip(head.attributes, synopsis.attributes, strict=True))
    )


def _fits_together(count: Any, taken: Sequence[Head]) -> bool:
    """Whether the synopses of a count are coordinated as its estimator needs them."""

    def families(*parts: Any) -> list[Any]:
        return [
            (taken[p.synopsis].families[0], taken[p.synopsis].rows, taken[p.synopsis].buckets) for p in parts
        ]

    match count:
        case KeySets():
            return len(set(families(*parts_of(count)))) == 1
        case PairsByKey():
            return len(set(families(count.left, count.right))) == 1
        case JoinedPairs():
            left, right = families(count.left, count.right)
            return bool(left[0] != right[0])
    return True
