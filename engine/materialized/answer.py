"""A question that kept sketches answer: which of them stand for what, and what they know of each group.

Needs neither Spark nor the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ...optimizer.plan import Attribute, Plan, Weight, vertices_of
from ...parser.join_graph import Query
from ...sketches.hashing.family import Family
from ...sketches.joins.sparse import SparseFirstSketch
from ..catalog.file import StoredSketch
from ..catalog.form import Head
from ..catalog.texts import from_text
from ..results.estimator import Joined, SketchJoin
from ..synopses import Built
from .matching import INTEGERS, in_order, of_form

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
    """A kept sketch for a synopsis of a plan: which of its weights, its attributes in which order, hashed by what.

    `families` as in `matching.Candidate`.
    """

    head: Head
    weight: Weight = TUPLES
    order: tuple[int, ...] = ()
    families: tuple[Family, ...] = ()


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
        # What was taken out was added up as well; the first weight counts the tuples.
        return replace(own[at], updates=own[0].tally.mass), at

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
                replace(b, sketch=in_order(of_form(b.linear, s.rows, s.buckets, k.families), k.order))
                for b, s, k in zip(
                    built, self.plan.synopses, (k for _, k in sorted(self.materialized.items())), strict=True
                )
            ]
        return SketchJoin(self.plan, tuple(built))


def grouping_of(query: Query) -> dict[int, frozenset[str]]:
    """The expressions that each grouped vertex of a query is grouped by."""
    vertices = {g.vertex for g in query.groups}
    return {v: frozenset(g.expression for g in query.groups if g.vertex == v) for v in vertices}


def whole(
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


def same_key(mine: Attribute, theirs: Attribute) -> bool:
    """Whether equal keys of two attributes have equal bits: the same expressions, compared in the same types."""
    pairs = zip(mine.key_types, theirs.key_types, strict=False)
    one = len(mine.keys) == 1
    return mine.keys == theirs.keys and all(a == b or (one and {a, b} <= INTEGERS) for a, b in pairs)


def shown(plan: Plan, materialized: Mapping[int, Materialized], *, formed: bool = True) -> Plan:
    """The plan with the methods and sizes of the kept sketches, as EXPLAIN shows them.

    Where linear ones are `formed`, an exact map among them has the size of the plan, not its own.
    """
    names = {v: k for k, v in VALUES.items()}
    fixed = LINEAR if formed else ()
    synopses = tuple(
        replace(
            s,
            method=names.get(materialized[i].head.method, materialized[i].head.method)
            if s.attributes
            else s.method,
            rows=materialized[i].head.rows if materialized[i].head.method not in fixed else s.rows,
            buckets=materialized[i].head.buckets if materialized[i].head.method not in fixed else s.buckets,
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
