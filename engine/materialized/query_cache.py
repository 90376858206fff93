"""What `cache` keeps of a query: the synopses that were built for it, under names of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...optimizer.plan import Attribute, Plan, Synopsis, Weight
from ..catalog.file import StoredSketch
from ..catalog.form import Head, Lineage
from ..synopses import Built
from .answer import LINEAR
from .definition import blank, stored, typed, unstable
from .lineage import table_lineage, table_lineages

if TYPE_CHECKING:
    from ..context import Context


@dataclass(frozen=True)
class QueryCache:
    """Keeps what the queries of a session build."""

    context: Context

    def readings(self, plan: Plan) -> dict[str, Lineage]:
        """What the synopses of a plan are about to read, by table."""
        return table_lineages(self.context.tables, (s.table for s in plan.synopses))

    def keep(self, plan: Plan, built: Mapping[int, Built], readings: Mapping[str, Lineage]) -> None:
        """Keep what was built for a query: the virtual relations whose sketches are all among `built`.

        `readings` as they were before it was built.
        """
        sketches: list[StoredSketch] = []
        for numbers in _relations(plan, self.context.environment.own_functions):
            if all(i in built for i in numbers):
                reading = readings[plan.synopses[numbers[0]].table]
                head = self._head(plan, numbers, reading, [s.head.name for s in sketches])
                if head is not None:
                    sketches.append(stored(head, [built[i] for i in numbers]))
        if sketches:
            self.put(sketches)

    def _head(
        self, plan: Plan, numbers: Sequence[int], reading: Lineage, others: Sequence[str]
    ) -> Head | None:
        synopses = [plan.synopses[i] for i in numbers]
        one = synopses[0]
        draft = blank(
            self.free_name(one.table, one.attributes, others),
            one.table,
            one.filter,
            one.attributes,
            [s.weight for s in synopses],
            method=one.method,
            seed=plan.seed,
            rows=one.rows,
            buckets=one.buckets,
            sparse=one.sparse,
            made_by="cache",
        )
        return self.of_table(draft, plan.query.sql, reading)

    def of_table(self, draft: Head, sql: str, reading: Lineage | None = None) -> Head | None:
        """The head of a sketch of what its table had at `reading`, or has now; None where it cannot be kept."""
        tables = self.context.tables
        try:
            head = typed(draft, tables, self.context.environment.circumstances(), sql, compared=True)
        except UnsupportedQuery:
            return None
        known = reading or table_lineage(tables, draft.table, tables.frame(draft.table))
        return replace(head, lineage=(known,))

    def put(self, sketches: Sequence[StoredSketch]) -> None:
        """Keep sketches of tables as they are now."""
        for sketch in sketches:
            self.context.environment.remember(sketch.head.table)
        self.context.catalog.put(*sketches)

    def free_name(self, table: str, attributes: Sequence[Attribute], others: Sequence[str]) -> str:
        """A name that no kept sketch has, nor one of `others`."""
        words = ["cached", table, *(a.class_name for a in attributes)]
        base = "_".join("".join(c if c.isalnum() else "_" for c in w) for w in words)
        taken = {n.lower() for n in others}
        name, number = base, 2
        while (
            name.lower() in taken or self.context.catalog.entry(name) or self.context.catalog.workload(name)
        ):
            name, number = f"{base}_{number}", number + 1
        return name


def keepable(plan: Plan, functions: Callable[[], Collection[str]]) -> bool:
    """Whether the catalog can keep all synopses of a plan; `functions` as `unstable` wants them."""
    return sum(map(len, _relations(plan, functions))) == len(plan.synopses)


def _relations(plan: Plan, functions: Callable[[], Collection[str]]) -> list[list[int]]:
    """The synopses that can be kept, those of one virtual relation, size and order of attributes together."""
    groups: dict[Synopsis, list[int]] = {}
    for number, synopsis in enumerate(plan.synopses):
        simple = synopsis.method in LINEAR and synopsis.group is None and not synopsis.messages
        expressions = (
            synopsis.filter,
            synopsis.weight.expression,
            *(k for a in synopsis.attributes for k in a.keys),
        )
        if simple and unstable(expressions, functions) is None:
            groups.setdefault(replace(synopsis, weight=Weight()), []).append(number)
    return list(groups.values())
