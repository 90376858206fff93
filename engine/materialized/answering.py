"""What kept sketches of every kind answer by themselves: a query and heads in, one `Joined` for each group out.

Needs neither Spark nor the tables. A planner takes what is found here as candidates without a scan; `half_width` says
what their answer is worth, from the answer itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...errors import IncompatibleSketches, UnsupportedQuery
from ...optimizer.choose import choose
from ...optimizer.distinct_count import JoinedPairs, KeySets, PairsByKey, parts_of
from ...optimizer.messages import tree_of
from ...optimizer.plan import Plan, Synopsis, Weight
from ...parser.join_graph import Query
from ...sketches.joins.sparse import SparseFirstSketch
from ..catalog.file import StoredSketch
from ..catalog.form import Head
from ..catalog.texts import from_text
from ..results.estimator import Joined, SketchJoin
from ..sources.environment import Circumstances
from ..synopses import Built
from .matching import INTEGERS, Asked, has_groups, in_order, of_size, reuse, weights_at

Load = Callable[[str], StoredSketch]
GroupKey = tuple[Any, ...]

# Kinds that are joined with one another, and by which rules.
LINEAR = ("hash", "convolution", "total")
SAMPLES = ("key_sample", "two_level")
VALUES = {"level": "distinct", "pairs": "join_distinct"}


TUPLES = Weight()


@dataclass(frozen=True, slots=True)
class Materialized:
    """A kept sketch for a synopsis of a plan: which of its weights, and its attributes in which order."""

    head: Head
    weight: Weight = TUPLES
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MaterializedAnswer:
    """A query that kept sketches answer by themselves.

    Attributes
    ----------
    query : Query
    method : str
        Of the sketches; hash and convolution sketches are "hash" where every table has one join key.
    plan : Plan
        How the aggregates are read from the synopses.
    kept : mapping of int to Kept
        The sketch of each synopsis of the plan, by its number.
    grouped : Head or None
        The sketch that has a synopsis for each group of the query.
    """

    query: Query
    method: str
    plan: Plan
    materialized: Mapping[int, Materialized]
    grouped: Head | None = None

    @property
    def heads(self) -> tuple[Head, ...]:
        """The sketches that are read, each once."""
        return tuple({k.head.name: k.head for k in self.materialized.values()}.values())

    @property
    def nbytes(self) -> int:
        """In-memory bytes of the sketches."""
        return sum(h.nbytes for h in self.heads)

    def groups(self) -> tuple[GroupKey, ...]:
        """The values of each group that the sketches have; one group without values where nothing is grouped."""
        if self.grouped is None or self.grouped.groups is None:
            return ((),)
        zone, known = self.grouped.time_zone, self.grouped.groups
        places = [known.expressions.index(g.expression) for g in self.query.groups]
        return tuple(tuple(from_text(row[p], known.types[p], zone) for p in places) for row in known.values)

    def joined(self, load: Load) -> dict[GroupKey, Joined]:
        """What answers each group, by its values; raises as `load`."""
        stored = {h.name: load(h.name) for h in self.heads}
        return {
            group: self._joined(
                {i: self._part(k, stored[k.head.name], number) for i, k in self.materialized.items()}
            )
            for number, group in enumerate(self.groups())
        }

    def half_width(self, joined: Mapping[GroupKey, Joined], confidence: float) -> float:
        """The largest half-width of an interval relative to its value, over all groups and aggregates."""
        widest = 0.0
        for one in joined.values():
            for aggregate in self.plan.aggregates:
                if aggregate.distinct is not None:
                    found = one.distinct(aggregate.distinct, confidence)
                elif aggregate.function == "avg":
                    found = one.ratio(aggregate.total, aggregate.presence, confidence)
                else:
                    found = one.total(aggregate.total, confidence)
                if not found.exact:
                    width = max(found.high - found.value, found.value - found.low)
                    relative = width / abs(found.value) if found.value else math.inf
                    widest = max(widest, relative if not math.isnan(relative) else math.inf)
        return widest

    def _part(self, materialized: Materialized, stored: StoredSketch, number: int) -> tuple[Built, int]:
        """The synopsis of a group, and the number of its weight there."""
        own = stored.groups[number if materialized.head.groups is not None else 0]
        at = stored.head.weights.index(materialized.weight)
        # What was taken out was added up as well; the first weight counts the tuples.
        return replace(own[at], updates=own[0].tally.mass), at

    def _joined(self, parts: Mapping[int, tuple[Built, int]]) -> Joined:
        if self.method in SAMPLES:
            from ..results.materialized_samples import MaterializedSampleJoin, SampledWeight

            columns = {
                i: SampledWeight(
                    b.sketch, "count" if at == 0 else f"weight {at}", b.scale, b.tally.negative > 0
                )
                for i, (b, at) in parts.items()
            }
            return MaterializedSampleJoin(columns)
        built = [parts[i][0] for i in range(len(self.plan.synopses))]
        if self.method == "skimmed":
            return _skimmed(self.plan, built)
        if self.method in LINEAR:
            built = [
                replace(b, sketch=in_order(of_size(b.linear, s.rows, s.buckets), self.materialized[i].order))
                for i, (b, s) in enumerate(zip(built, self.plan.synopses, strict=True))
            ]
        return SketchJoin(self.plan, tuple(built))


def materialized_answers(
    query: Query, heads: Sequence[Head], asked: Asked, now: Circumstances, files: Mapping[str, str]
) -> list[MaterializedAnswer]:
    """Every way in which kept sketches alone answer a query, those of one kind together.

    Parameters
    ----------
    query : Query
        Every `key_types` known; GROUP BY of one table at most.
    heads : sequence of Head
        Of tables that are as the query means them.
    asked : Asked
        What the statement fixes: sketches of another method, seed or size are not taken.
    now : Circumstances
    files : mapping of str to str
        Where each sketch lies, by its name, for messages.

    Raises
    ------
    IncompatibleSketches
        If no kind answers, and hash sketches would but for their seeds, families or sizes.
    """
    usable = [h for h in heads if now.fit(h) and not h.cell and asked.allows(h)]
    if query.counts_distinct:
        found = [_of_values(query, usable)]
    else:
        found = [_of_samples(query, usable, kind) for kind in SAMPLES]
        found += [_of_sketches(query, usable, asked, now, kinds) for kinds in (("agms",), ("skimmed",))]
        answers = [f for f in found if f is not None]
        try:
            linear = _of_sketches(query, usable, asked, now, LINEAR, files)
        except IncompatibleSketches:
            if not answers:
                raise
            linear = None
        return [*([] if linear is None else [linear]), *answers]
    return [f for f in found if f is not None]


def best(
    answers: Sequence[MaterializedAnswer], load: Load, confidence: float
) -> tuple[MaterializedAnswer, dict[GroupKey, Joined]] | None:
    """The answer of least half-width, with what gives it; the first of equals. None of none."""
    found = [(answer, answer.joined(load)) for answer in answers]
    if len(found) < 2:
        return found[0] if found else None
    return min(found, key=lambda pair: pair[0].half_width(pair[1], confidence))


def grouping_of(query: Query) -> tuple[int, frozenset[str]] | None:
    """The vertex that a query groups by with its expressions; None without GROUP BY."""
    if not query.groups:
        return None
    return query.groups[0].vertex, frozenset(g.expression for g in query.groups)


def _of_sketches(
    query: Query,
    heads: Sequence[Head],
    asked: Asked,
    now: Circumstances,
    kinds: tuple[str, ...],
    files: Mapping[str, str] | None = None,
) -> MaterializedAnswer | None:
    """By sketches that are multiplied: all vertices by those of the same kind, seed and size."""
    own = [h for h in heads if h.method in kinds]
    if not own:
        return None
    named = files if files is not None else {h.name: h.name for h in own}
    try:
        found = reuse(query, own, asked, now, named, grouping_of(query))
    except IncompatibleSketches:
        if files is None:
            return None
        raise
    if found is None or found.missing:
        return None
    if kinds == ("skimmed",) and len(query.graph.vertices) != 2:
        return None
    materialized = {i: Materialized(c.head, w, c.order) for i, (c, w) in found.materialized.items()}
    method = "agms" if kinds == ("agms",) else "skimmed" if kinds == ("skimmed",) else "hash"
    plan = _shown(found.plan, materialized)
    return _whole(query, method, plan, materialized)


def _of_samples(query: Query, heads: Sequence[Head], kind: str) -> MaterializedAnswer | None:
    """By samples of one class: every vertex has one of the class's key, by the same hash function."""
    graph, tree = query.graph, tree_of(query.graph)
    own = sorted((h for h in heads if h.method == kind), key=lambda h: h.updated, reverse=True)
    if len(tree.classes) != 1 or not own or not graph.edges:
        return None
    grouping = grouping_of(query)
    choices = []
    for v, vertex in enumerate(graph.vertices):
        edge = graph.edges[graph.edges_at(v)[0]]
        weights = weights_at(query, v)
        choices.append(
            [
                h
                for h in own
                if h.table.lower() == vertex.table.lower()
                and h.filter == vertex.filter
                and weights <= set(h.weights)
                and has_groups(h, v, grouping)
                and h.attributes[0].keys == edge.keys_of(v)
                and _same_types(h.attributes[0].key_types, edge.key_types)
            ]
        )
    for first in choices[0]:
        taken = [
            next((h for h in own_choices if h.families == first.families), None) for own_choices in choices
        ]
        if all(h is not None for h in taken):
            plan = choose(replace(query, method=None), first.seed, 1, first.buckets)
            materialized: dict[int, Materialized] = {}
            for aggregate in plan.aggregates:
                for term, (v, head) in product((*aggregate.total, *aggregate.presence), enumerate(taken)):
                    assert head is not None, "all are there"
                    number = term.synopses[v]
                    if number in materialized and materialized[number].head is not head:
                        return None
                    materialized[number] = Materialized(head, plan.synopses[number].weight)
            return _whole(query, kind, _shown(plan, materialized), materialized)
    return None


def _of_values(query: Query, heads: Sequence[Head]) -> MaterializedAnswer | None:
    """Distinct values by level sketches and pair samples: of one table, sets, keys of a join, both sides of one."""
    if query.groups and len({g.vertex for g in query.groups}) > 1:
        return None
    if any(a.function != "count_distinct" for a in query.aggregates):
        return None
    try:
        plan = choose(replace(query, method=None), 1, 11, 4096)
    except UnsupportedQuery:
        return None
    grouping = grouping_of(query)
    vertices: dict[int, set[int]] = {}
    for aggregate in plan.aggregates:
        if aggregate.distinct is not None:
            for part in parts_of(aggregate.distinct):
                vertices.setdefault(part.synopsis, set()).add(part.vertex)
    numbers = sorted(vertices)
    if numbers != list(range(len(plan.synopses))) or any(s.messages for s in plan.synopses):
        return None
    grouped = None if grouping is None else grouping[0]
    choices = []
    for number in numbers:
        (vertex, *others) = sorted(vertices[number])
        if others and grouped in vertices[number]:
            return None
        same = grouping if vertex == grouped else None
        choices.append([h for h in heads if _has_values(h, plan.synopses[number], vertex, same)])
    for taken in _few(product(*choices)):
        if all(_fits_together(a.distinct, taken) for a in plan.aggregates if a.distinct is not None):
            own = dict(enumerate(Materialized(h) for h in taken))
            return _whole(query, "distinct", _shown(plan, own), own)
    return None


def _has_values(
    head: Head, synopsis: Synopsis, vertex: int, grouping: tuple[int, frozenset[str]] | None
) -> bool:
    return (
        head.method == VALUES.get(synopsis.method)
        and head.table.lower() == synopsis.table.lower()
        and head.filter == synopsis.filter
        and has_groups(head, vertex, grouping)
        and len(head.attributes) == len(synopsis.attributes)
        and all(
            a.keys == b.keys and _same_types(a.key_types, b.key_types)
            for a, b in zip(head.attributes, synopsis.attributes, strict=True)
        )
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


def _whole(
    query: Query, method: str, plan: Plan, materialized: Mapping[int, Materialized]
) -> MaterializedAnswer | None:
    """An answer, if no synopsis stands for the grouped table and another one at once."""
    grouped = [k.head for k in materialized.values() if k.head.groups is not None]
    if not query.groups:
        return MaterializedAnswer(query, method, plan, materialized)
    vertex = query.groups[0].vertex
    for aggregate in plan.aggregates:
        for term in (*aggregate.total, *aggregate.presence):
            others = {s for v, s in enumerate(term.synopses) if v != vertex}
            if any(materialized[s].head.groups is not None for s in others):
                return None
    return MaterializedAnswer(query, method, plan, materialized, grouped[0]) if grouped else None


def _same_types(mine: Sequence[str], theirs: Sequence[str | None]) -> bool:
    return len(mine) == len(theirs) and all(
        a == b or (len(mine) == 1 and {a, b} <= INTEGERS) for a, b in zip(mine, theirs, strict=True)
    )


def _shown(plan: Plan, materialized: Mapping[int, Materialized]) -> Plan:
    """The plan with the methods and sizes of the kept sketches, as EXPLAIN shows them."""
    names = {v: k for k, v in VALUES.items()}
    synopses = tuple(
        replace(
            s,
            method=names.get(materialized[i].head.method, materialized[i].head.method)
            if s.attributes
            else s.method,
            rows=materialized[i].head.rows if materialized[i].head.method not in LINEAR else s.rows,
            buckets=materialized[i].head.buckets if materialized[i].head.method not in LINEAR else s.buckets,
            sparse=materialized[i].head.limit_bytes > 0,
        )
        for i, s in enumerate(plan.synopses)
    )
    return replace(plan, synopses=synopses)


def _skimmed(plan: Plan, built: Sequence[Built]) -> Joined:
    """Hash sketches whose own hierarchies name their dense keys."""
    import numpy as np

    from ..results.skimmed import SkimmedJoin

    found, leaves = [np.empty(0, np.int64)], []
    seen: dict[int, SparseFirstSketch[Any]] = {}
    for one in built:
        sketch: Any = one.sketch
        if id(sketch) not in seen:
            found.append(sketch.skim().keys[0])
            state = {"counters": sketch.leaf.counters}
            seen[id(sketch)] = SparseFirstSketch.from_state(sketch.spec.leaf, state, 0)
        leaves.append(replace(one, sketch=seen[id(sketch)]))
    return SkimmedJoin(plan, tuple(leaves), np.unique(np.concatenate(found)))


def _few(combinations: Iterator[tuple[Head, ...]], most: int = 10_000) -> Iterator[tuple[Head, ...]]:
    for _, taken in zip(range(most), combinations, strict=False):
        yield taken
