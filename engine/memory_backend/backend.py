"""Everything that touches data, on Arrow tables: what an executor asks of a backend."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ...optimizer.plan import Plan
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import Estimate
from ..execution.known_groups import known_of
from ..execution.message_limit import DEFAULT_LIMIT_BYTES
from ..execution.partial_aggregate import group_column
from ..execution.sample_join import SampleJoin
from ..synopses import Built
from .build import build
from .exact import ExactGroup, exact_groups
from .groups import Groups, listed
from .samples import run_sample
from .statistics import gather
from .tables import MemoryTables


@dataclass(frozen=True)
class MemoryBackend:
    """Plans on Arrow tables.

    Attributes
    ----------
    tables : MemoryTables
    pilot_tuples : int or None
        Tuples that a pilot's samples aim at; None counts everything.
    """

    tables: MemoryTables
    pilot_tuples: int | None = None

    def build(
        self, plan: Plan, message_bytes: int | None = DEFAULT_LIMIT_BYTES, groups: Groups | None = None
    ) -> tuple[Built, ...]:
        """Every sketch of a plan; see `build.build`."""
        return build(plan, self.tables, message_bytes, groups)

    def sample(
        self,
        plan: Plan,
        most_bytes: int,
        expected: Mapping[int, float] | None = None,
        groups: Groups | None = None,
    ) -> Mapping[tuple[int, ...], SampleJoin]:
        """A plan with a sample, evaluated for each group that it met; `expected` saves nothing here."""
        if groups is None:
            return run_sample(plan, self.tables, most_bytes)
        return run_sample(plan, groups.tables, most_bytes, groups.counts)

    def statistics(self, query: Query, *, jobs: bool = True) -> tuple[RelationStatistics, ...]:
        """What is known of each vertex; see `statistics.gather`."""
        return gather(query, self.tables, pilot=jobs, pilot_tuples=self.pilot_tuples)

    def groups(self, query: Query, most: int) -> Groups:
        """The groups of every grouped vertex of a query; see `groups.listed`."""
        return listed(query, self.tables, most)

    def exact_groups(
        self, query: Query, groups: Groups, chosen: Collection[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], tuple[Estimate, ...]]:
        """The exact aggregates of some groups, by the numbers of each."""
        numbers = [
            replace(query.groups[p.places[0]], expression=f"`{group_column(p.vertex)}`") for p in groups.parts
        ]
        found = exact_groups(replace(query, groups=tuple(numbers)), groups.tables)
        known = {group.values: group.aggregates for group in found}
        return {n: known.get(n) or known_of(query, None) for n in chosen}

    def exact(self, query: Query) -> tuple[ExactGroup, ...]:
        """The exact aggregates of every group that joins anything; see `exact.exact_groups`."""
        return exact_groups(query, self.tables)
