"""What kept sketches of every kind answer by themselves: a query and heads in, one `Joined` for each group out.

Needs neither Spark nor the tables. A planner takes what is found here as candidates without a scan; `half_width` says
what their answer is worth, from the answer itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ...errors import IncompatibleSketches, UnsupportedQuery
from ...optimizer.choose import choose
from ...optimizer.distinct_count import JoinedPairs, KeySets, PairsByKey, parts_of
from ...optimizer.fold import class_attribute
from ...optimizer.messages import JoinClass, JoinTree, tree_of
from ...optimizer.plan import Attribute, Plan, Synopsis, Weight, vertices_of
from ...parser.join_graph import Query
from ...sketches.hashing.family import Family
from ...sketches.joins.sparse import SparseFirstSketch
from ..catalog.file import StoredSketch
from ..catalog.form import Head
from ..catalog.texts import from_text
from ..results.estimator import Joined, SketchJoin
from ..sources.environment import Circumstances
from ..synopses import Built
from .matching import INTEGERS, Asked, has_groups, in_order, is_of, of_size, reuse, weights_at

Load = Callable[[str], StoredSketch]
GroupKey = tuple[Any, ...]

# Kinds that are joined with one another, and by which rules.
LINEAR = ("hash", "convolution", "total")
SAMPLES = ("key_sample", "two_level")
SAMPLED_TABLES = ("sample_sketch", *SAMPLES)
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
    grouped : mapping of int to Head
        The sketch of each grouped vertex, which has a synopsis for each of its groups.
    """

    query: Query
    method: str
    plan: Plan
    materialized: Mapping[int, Materialized]
    grouped: Mapping[int, Head] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[Head, ...]:
        """The sketches that are read, each once."""
        return tuple({k.head.name: k.head for k in self.materialized.values()}.values())

    @property
    def nbytes(self) -> int:
        """In-memory bytes of the sketches."""
        return sum(h.nbytes for h in self.heads)

    def groups(self) -> dict[tuple[int, ...], GroupKey]:
        """The values of each group that the sketches have, by the numbers of the groups of the grouped vertices.

        One group without values where nothing is grouped.
        """
        known = {v: h.groups for v, h in self.grouped.items() if h.groups is not None}
        order = sorted(known)
        found = {}
        for numbers in product(*(range(len(known[v].values)) for v in order)):
            values = []
            for group in self.query.groups:
                own = known[group.vertex]
                at, place = numbers[order.index(group.vertex)], own.expressions.index(group.expression)
                zone = self.grouped[group.vertex].time_zone
                values.append(from_text(own.values[at][place], own.types[place], zone))
            found[numbers] = tuple(values)
        return found

    @property
    def number_of_groups(self) -> int:
        """How many groups `groups` has."""
        return math.prod(len(h.groups.values) for h in self.grouped.values() if h.groups is not None)

    def joined(self, load: Load) -> dict[GroupKey, Joined]:
        """What answers each group, by its values; raises as `load`."""
        stored = {h.name: load(h.name) for h in self.heads}
        order, vertices = sorted(self.grouped), vertices_of(self.plan)
        found = {}
        for numbers, group in self.groups().items():
            at = dict(zip(order, numbers, strict=True))
            parts = {}
            for i, k in self.materialized.items():
                number = next((at[v] for v in vertices[i] if v in at), 0)
                parts[i] = self._part(k, stored[k.head.name], number)
            found[group] = self._joined(parts)
        return found

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
        own = stored.groups[number]
        at = stored.head.weights.index(materialized.weight)
        return own[at], at

    def _joined(self, parts: Mapping[int, tuple[Built, int]]) -> Joined:
        if self.method in SAMPLED_TABLES:
            from ..results.materialized_samples import MaterializedSampleJoin, SampledWeight

            columns = {
                i: SampledWeight(
                    b.sketch, "count" if at == 0 else f"weight {at}", b.scale, b.tally.negative > 0
                )
                for i, (b, at) in parts.items()
            }
            if self.method != "sample_sketch":
                return MaterializedSampleJoin(columns)
            from ..results.materialized_sample_sketch import MaterializedSampleSketchJoin

            orders = {i: k.order for i, k in self.materialized.items()}
            return MaterializedSampleSketchJoin(columns, self.plan.edges, orders)
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
        Every `key_types` known.
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
        tables = _of_sampled_tables(query, usable)
        if asked.method == "sample_sketch":
            return tables
        found = [_of_samples(query, usable, kind) for kind in SAMPLES]
        found += [_of_sketches(query, usable, asked, now, kinds) for kinds in (("agms",), ("skimmed",))]
        answers = [f for f in found if f is not None] + tables
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


def grouping_of(query: Query) -> dict[int, frozenset[str]]:
    """The expressions that each grouped vertex of a query is grouped by."""
    vertices = {g.vertex for g in query.groups}
    return {v: frozenset(g.expression for g in query.groups if g.vertex == v) for v in vertices}


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
        key, weights = class_attribute(graph, tree.classes[0], v), weights_at(query, v)
        choices.append(
            [
                h
                for h in own
                if weights <= set(h.weights)
                and is_of(h, vertex, v, grouping)
                and _same_key(h.attributes[0], key)
            ]
        )
    for first in choices[0]:
        taken = [
            next((h for h in own_choices if h.families == first.families), None) for own_choices in choices
        ]
        if all(h is not None for h in taken):
            return _of_heads(query, kind, [Materialized(h) for h in taken if h is not None])
    return None


def _of_heads(query: Query, method: str, taken: Sequence[Materialized]) -> MaterializedAnswer | None:
    """An answer from a sketch of each vertex, if no two vertices with one synopsis have others."""
    first = taken[0].head
    plan = choose(replace(query, method=None), first.seed, 1, first.buckets)
    materialized: dict[int, Materialized] = {}
    for aggregate in plan.aggregates:
        for term, (v, own) in product((*aggregate.total, *aggregate.presence), enumerate(taken)):
            number = term.synopses[v]
            wanted = replace(own, weight=plan.synopses[number].weight)
            if materialized.setdefault(number, wanted) != wanted:
                return None
    return _whole(query, method, _shown(plan, materialized), materialized)


def _of_sampled_tables(query: Query, heads: Sequence[Head]) -> list[MaterializedAnswer]:
    """By a sample of one class in its tables, and hash sketches of the tables beyond: for each class one at most.

    A table that leads on to other classes is sampled with the keys of all of them. Sketches that lose something have
    hash families of their own, each another one.
    """
    graph, tree = query.graph, tree_of(query.graph)
    own = sorted(heads, key=lambda h: h.updated, reverse=True)
    if not graph.edges or not any(h.method == "sample_sketch" for h in own):
        return []
    grouping = grouping_of(query)
    choices: list[list[Materialized]] = []
    for v in range(len(graph.vertices)):
        weights = weights_at(query, v)
        fits = [h for h in own if h.method in ("hash", *SAMPLED_TABLES)]
        fits = [h for h in fits if weights <= set(h.weights) and is_of(h, graph.vertices[v], v, grouping)]
        orders = ((h, _keys_of(h, query, tree, v)) for h in fits)
        choices.append([Materialized(h, order=order) for h, order in orders if order is not None])
    found = []
    for joined in tree.classes:
        for first in choices[joined.vertices[0]] + choices[joined.vertices[-1]]:
            family = first.head.families[sampled_attribute(first.head)]
            taken = _sampled_beside(query, choices, joined, family)
            if taken is not None and any(k.head.method == "sample_sketch" for k in taken):
                answer = _of_heads(query, "sample_sketch", taken)
                if answer is not None:
                    found.append(answer)
                    break
    return found


def _sampled_beside(
    query: Query,
    choices: Sequence[Sequence[Materialized]],
    joined: JoinClass,
    family: Family,
) -> list[Materialized] | None:
    """A sketch for each vertex: samples by one hash family in the tables of a class where they are, hash sketches else."""
    taken: list[Materialized] = []
    used: set[Family] = set()
    for v, own in enumerate(choices):
        edges = query.graph.edges_at(v)
        found = None
        for kept in own:
            head, at = kept.head, sampled_attribute(kept.head)
            by_class = [
                i == at for e, i in zip(edges, kept.order, strict=True) if e in joined.edges
            ]
            if head.method == "hash":
                fits = head.exact or head.families[0] not in used
            else:
                fits = v in joined.vertices and all(by_class) and head.families[at] == family
            if fits and (found is None or (found.head.method == "hash" and head.method != "hash")):
                found = kept
        if found is None:
            return None
        if found.head.method == "hash" and not found.head.exact:
            used.add(found.head.families[0])
        taken.append(found)
    return taken


def sampled_attribute(head: Head) -> int:
    """Which attribute of a sampled table decides by its hash."""
    return dict(head.parameters).get("sampled", 0)


def _keys_of(head: Head, query: Query, tree: JoinTree, vertex: int) -> tuple[int, ...] | None:
    """The attribute of a sketch for each edge of a vertex; None where it lacks one, or has one too many."""
    order = []
    for edge in query.graph.edges_at(vertex):
        joined = next(c for c in tree.classes if edge in c.edges)
        key = class_attribute(query.graph, joined, vertex)
        found = [i for i, a in enumerate(head.attributes) if _same_key(a, key)]
        if not found:
            return None
        order.append(found[0])
    # A tuple without a key is left out, which a question that does not ask for the key would have.
    return tuple(order) if len({*order}) == len(head.attributes) else None


def _of_values(query: Query, heads: Sequence[Head]) -> MaterializedAnswer | None:
    """Distinct values by level sketches and pair samples: of one table, sets, keys of a join, both sides of one."""
    if any(a.function != "count_distinct" for a in query.aggregates):
        return None
    try:
        plan = choose(replace(query, method=None), 1, 11, 4096)
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
    for taken in _few(product(*choices)):
        if all(_fits_together(a.distinct, taken) for a in plan.aggregates if a.distinct is not None):
            own = dict(enumerate(Materialized(h) for h in taken))
            return _whole(query, "distinct", _shown(plan, own), own)
    return None


def _has_values(
    head: Head, synopsis: Synopsis, vertex: int, grouping: Mapping[int, frozenset[str]]
) -> bool:
    return (
        head.method == VALUES.get(synopsis.method)
        and head.table.lower() == synopsis.table.lower()
        and head.filter == synopsis.filter
        and has_groups(head, vertex, grouping)
        and len(head.attributes) == len(synopsis.attributes)
        and all(_same_key(a, b) for a, b in zip(head.attributes, synopsis.attributes, strict=True))
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
    """An answer, if no synopsis stands for a grouped table and another one at once."""
    vertices, grouping = vertices_of(plan), grouping_of(query)
    grouped: dict[int, Head] = {}
    for number, kept in materialized.items():
        own = vertices[number] & set(grouping)
        if len(own) > 1 or (own and vertices[number] - own):
            return None
        for vertex in own:
            first = grouped.setdefault(vertex, kept.head)
            if _groups_of(first) != _groups_of(kept.head):
                return None
    if set(grouped) != set(grouping):
        return None
    return MaterializedAnswer(query, method, plan, materialized, grouped)


def _groups_of(head: Head) -> tuple[Any, ...]:
    """The groups of a sketch in the order in which it has them."""
    groups = head.groups
    return () if groups is None else (groups.expressions, groups.types, groups.values)


def _same_key(mine: Attribute, theirs: Attribute) -> bool:
    pairs = zip(mine.key_types, theirs.key_types, strict=False)
    one = len(mine.keys) == 1
    return mine.keys == theirs.keys and all(a == b or (one and {a, b} <= INTEGERS) for a, b in pairs)


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
