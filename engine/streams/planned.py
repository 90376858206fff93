"""A continuous view with its plan, and how the synopses of the plan are told apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...optimizer.distinct_count import parts_of
from ...optimizer.plan import Plan, Synopsis
from ...parser.expressions import Grouped
from ...parser.join_graph import Item, Query, SetLeaf, SetOperation
from ..catalog.streams import StoredView
from ..execution.partial_aggregate import sketch_plan
from ..synopses import Built, Tally
from .beside import sketch_beside
from .cells import WHOLE, Split
from .dense_keys import candidates, is_skimmed, may_be_skimmed
from .panes import Need
from .state import Domains
from .windows import Windows

# In the settings of a stored view: how many groups of a pane have synopses of their own.
MOST_GROUPS = "max_groups"
# There too, as JSON: the Spark types of the groups; tables, expressions and types of values that are counted.
GROUP_TYPES, COUNTED_TYPES = "group_types", "counted_types"
# And what ERROR WITHIN asked for, the method that was chosen for it, and why.
ERROR, CHOSEN, WHY = "error", "method", "why"
# How the bytes of a view by sample x sketch are divided, where they were planned.
SPLIT = "split"
# The half-width, relative to the value, that first events let expect of sketches which predict none themselves.
EXPECTED = "expected"

_COLUMN = re.compile(r"`(?:[^`]|``)+`")


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view with its plan; the synopses of the plan are all of streams.

    `windows` are those of every stream, by lower-cased name; none of a view without windows. `zone` is the time zone in
    which they are shown; None for times without one.
    """

    view: StoredView
    plan: Plan
    windows: Mapping[str, Windows] = field(default_factory=dict)
    zone: str | None = None

    @property
    def query(self) -> Query:
        """The resolved SELECT, types known."""
        return self.plan.query

    @property
    def error(self) -> float | None:
        """The relative error that is asked for."""
        asked = self.view.settings.get(ERROR)
        return None if asked is None else float(asked)

    @property
    def told_apart(self) -> bool:
        """Whether it has windows or groups, and so a row for each."""
        return bool(self.windows or self.query.groups)

    @property
    def skimmed(self) -> bool:
        """Whether dense keys are taken out of its sketches."""
        return not self.told_apart and is_skimmed(self.plan)

    def synopses_of(self, stream: str) -> tuple[Synopsis, ...]:
        """What it needs of a stream that is not told apart."""
        return tuple(s for s, split in self.needs_of(stream) if split == WHOLE)

    def asked_of(self, stream: str) -> tuple[Synopsis, ...]:
        """What every batch of a stream is to tell of all its events: what is needed, and the keys that may be dense."""
        own = self.synopses_of(stream)
        beside = {sketch_beside(s) for s in own}
        dense = (s for s in own if s in beside or (self.skimmed and may_be_skimmed(s)))
        return (*own, *map(candidates, dense))

    def needs_of(self, stream: str) -> tuple[Need, ...]:
        """What it needs of a stream."""
        found = [self.need(v, i) for v, i in read_by(self.plan)]
        beside = ((sketch_beside(s), split) for s, split in found)
        every = (*found, *((s, split) for s, split in beside if s is not None))
        return tuple(dict.fromkeys(n for n in every if n[0].table.lower() == stream.lower()))

    def need(self, vertex: int, synopsis: int) -> Need:
        """How a synopsis of the plan is told apart where it stands for a vertex of the query."""
        own = self.plan.synopses[synopsis]
        groups = tuple(_guarded(g.expression, own.filter) for g in self.query.groups if g.vertex == vertex)
        most = int(self.view.settings[MOST_GROUPS]) if groups else 0
        return own, Split(self.windows.get(own.table.lower()), groups, most)


def domains_of(views: Iterable[PlannedView]) -> Domains:
    """The parts of all join classes that views have in parts; a name stands for the same parts in all of them."""
    return tuple(dict.fromkeys(p for v in views for p in v.plan.partitions))


def _guarded(expression: str, condition: str | None) -> str:
    """An expression that is computed only where a condition holds, as it may fail elsewhere."""
    if condition is None or _COLUMN.fullmatch(expression):
        return expression
    return f"CASE WHEN {condition} THEN {expression} END"


def with_group_types(query: Query, types: Sequence[str | None]) -> Query:
    """The query with the types of its groups, where the parser does not know them, and of columns that are these."""
    groups = tuple(replace(g, type=g.type or t) for g, t in zip(query.groups, types, strict=True))

    def of(item: Item) -> Item:
        grouped = item.expression if item.type is None else None
        return replace(item, type=groups[grouped.index].type) if isinstance(grouped, Grouped) else item

    return replace(query, groups=groups, items=tuple(map(of, query.items)))


def counted_types(query: Query) -> list[tuple[str, str, str]]:
    """The table, expression and Spark type of every value that a COUNT(DISTINCT) counts."""

    def leaves(sets: SetLeaf | SetOperation) -> Iterator[SetLeaf]:
        if isinstance(sets, SetLeaf):
            yield sets
        else:
            yield from leaves(sets.left)
            yield from leaves(sets.right)

    found = [
        (f.vertex, f.expression, t)
        for a in query.aggregates
        for f, t in zip(a.distinct, a.types, strict=True)
    ]
    for leaf in () if query.sets is None else leaves(query.sets):
        found += [(leaf.vertex, c, t) for c, t in zip(leaf.columns, leaf.types, strict=True)]
    return [(query.graph.vertices[v].table.lower(), e, t) for v, e, t in found]


def read_by(plan: Plan) -> dict[tuple[int, int], None]:
    """The vertices of the query and the synopses of the plan that stand for them."""
    counted = [p for a in plan.aggregates if a.distinct is not None for p in parts_of(a.distinct)]
    found = [(v, i) for t in plan.terms for v, i in zip(plan.vertices, t.synopses, strict=True)]
    return dict.fromkeys([*found, *((p.vertex, p.synopsis) for p in counted)])


def nothing(synopsis: Synopsis, seed: int) -> Built:
    """The synopsis of no events."""
    return Built(sketch_plan(synopsis, seed, "int64").empty(), Tally(), 1.0)
