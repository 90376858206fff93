"""Everything that touches data, on Arrow tables: what an executor asks of a backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...optimizer.plan import Plan
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ..execution.message_size import DEFAULT_LIMIT_BYTES
from ..execution.sample_join import SampleJoin
from ..synopses import Built
from .build import build
from .exact import ExactGroup, exact_groups
from .groups import Grouped, listed
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
        self, plan: Plan, message_bytes: int | None = DEFAULT_LIMIT_BYTES, groups: Grouped | None = None
    ) -> tuple[Built, ...]:
        """Every sketch of a plan; see `build.build`."""
        return build(plan, self.tables, message_bytes, groups)

    def sample(self, plan: Plan, limit_bytes: int, expected: Mapping[int, float] | None = None) -> SampleJoin:
        """A plan with a sample, evaluated; see `samples.run_sample`. `expected` saves nothing here."""
        return run_sample(plan, self.tables, limit_bytes)

    def statistics(self, query: Query, *, pilot: bool = True) -> tuple[RelationStatistics, ...]:
        """What is known of each vertex; see `statistics.gather`."""
        return gather(query, self.tables, pilot=pilot, pilot_tuples=self.pilot_tuples)

    def group_values(self, query: Query, most: int) -> Grouped:
        """The groups of a query that groups by one table; see `groups.listed`."""
        return listed(query, self.tables, most)

    def exact(self, query: Query) -> tuple[ExactGroup, ...]:
        """The exact aggregates of every group; see `exact.exact_groups`."""
        return exact_groups(query, self.tables)
