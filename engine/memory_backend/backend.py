"""Everything that touches data, on Arrow tables: what an executor asks of a backend."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...optimizer.candidates.value_draws import Summed
from ...optimizer.operators import EXACT_GROUPS
from ...optimizer.plan import Plan
from ...optimizer.prediction.pilot_counts import VirtualRelation
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import Estimate
from ..catalog.form import Groups as CatalogGroups
from ..catalog.form import Head
from ..execution.groups import Groups
from ..execution.known_groups import known_of
from ..execution.message_limit import DEFAULT_LIMIT_BYTES
from ..execution.sample_join import SampleJoin
from ..observed import observed
from ..synopses import Built
from .apart import built_on
from .build import build
from .exact import ExactGroup, exact_groups
from .groups import MemoryGroups, listed
from .samples import run_sample
from .statistics import gather, gather_relations
from .summed import summed_values
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
        return build(plan, self.tables, message_bytes, groups if isinstance(groups, MemoryGroups) else None)

    def sample(
        self,
        plan: Plan,
        most_bytes: int,
        expected: Mapping[int, float] | None = None,
        groups: Groups | None = None,
    ) -> Mapping[tuple[int, ...], SampleJoin]:
        """A plan with a sample, evaluated; see `samples.run_sample`. `expected` saves nothing here."""
        tables = groups.tables if isinstance(groups, MemoryGroups) else self.tables
        return run_sample(plan, tables, most_bytes, () if groups is None else groups.counts)

    def apart(
        self, head: Head, dense: npt.NDArray[np.int64] | None, most_groups: int, sql: str
    ) -> tuple[CatalogGroups | None, tuple[Built, ...]]:
        """The synopses of a head over its table; see `apart.built_on`."""
        return built_on(self.tables, sql, head, most_groups, dense)

    def statistics(self, query: Query, *, jobs: bool = True) -> tuple[RelationStatistics, ...]:
        """What is known of each vertex; see `statistics.gather`."""
        return gather(query, self.tables, pilot=jobs, pilot_tuples=self.pilot_tuples)

    def summed(self, query: Query) -> tuple[Summed, ...]:
        """What a query sums, with the values of some tuples of every part of its tables."""
        return summed_values(query, self.tables)

    def relations(
        self, relations: Sequence[VirtualRelation], *, jobs: bool = True
    ) -> Mapping[VirtualRelation, RelationStatistics]:
        """`statistics` of single relations."""
        return gather_relations(relations, self.tables, pilot=jobs, pilot_tuples=self.pilot_tuples)

    def groups(self, query: Query, most: int) -> MemoryGroups:
        """The groups of every grouped vertex; see `groups.listed`."""
        return listed(query, self.tables, most)

    def exact(self, query: Query) -> tuple[ExactGroup, ...]:
        """The exact aggregates of every group; see `exact.exact_groups`."""
        return exact_groups(query, self.tables)

    def exact_groups(
        self, query: Query, groups: Groups, chosen: Collection[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], tuple[Estimate, ...]]:
        """The exact aggregates of some groups."""
        with observed(EXACT_GROUPS) as seen:
            found = {repr(g.values): g.aggregates for g in self.exact(query)}
            seen.rows, seen.half_width = len(found), 0.0
        return {n: found.get(repr(groups.values(n))) or known_of(query, None) for n in chosen}
