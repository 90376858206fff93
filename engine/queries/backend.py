"""What a plan needs of whatever holds the tables: the same few calls on Spark and in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from ...errors import DataError
from ...optimizer.candidates.value_draws import Summed
from ...optimizer.operators import EXACT_GROUPS
from ...optimizer.plan import Plan
from ...optimizer.prediction.pilot_counts import VirtualRelation
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import Estimate
from ..catalog.form import Groups as CatalogGroups
from ..catalog.form import Head
from ..execution import build as building
from ..execution.exact_groups import exact_frame
from ..execution.grouping import SparkGroups, listed
from ..execution.groups import Groups
from ..execution.known_groups import known_of
from ..execution.sample_join import SampleJoin, run_sample
from ..materialized.building import Source, built_on
from ..observed import observed
from ..sources.summed import summed_values
from ..sources.tables import Frames, Tables
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from ..statistics.gather import KnownStatistics, gather, gather_relations
from ..synopses import Built

Ints = npt.NDArray[np.int64]


class Backend(Protocol):
    """Where the tables are."""

    def statistics(self, query: Query, *, jobs: bool) -> tuple[RelationStatistics, ...]:
        """What is known of every vertex, without a job or after a pilot where nothing was."""

    def relations(
        self, relations: Sequence[VirtualRelation], *, jobs: bool
    ) -> Mapping[VirtualRelation, RelationStatistics]:
        """`statistics` of single relations."""

    def groups(self, query: Query, most: int) -> Groups:
        """The groups of every grouped vertex; more than `most` of one raise BudgetExceeded."""

    def build(self, plan: Plan, message_bytes: int | None, groups: Groups | None) -> tuple[Built, ...]:
        """Every synopsis of a plan, one scan a table; raises as `build.build`."""

    def apart(
        self, head: Head, dense: Ints | None, most_groups: int, sql: str
    ) -> tuple[CatalogGroups | None, tuple[Built, ...]]:
        """The synopses of a head over its table; raises as `building.built_on`."""

    def sample(
        self, plan: Plan, most_bytes: int, expected: Mapping[int, float], groups: Groups | None
    ) -> Mapping[tuple[int, ...], SampleJoin]:
        """A plan with a sample evaluated, for each group that it met; raises as `sample_join.run_sample`."""

    def summed(self, query: Query) -> tuple[Summed, ...]:
        """What a query sums, with a glance at the values."""

    def exact_groups(
        self, query: Query, groups: Groups, chosen: Collection[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], tuple[Estimate, ...]]:
        """The exact aggregates of some groups."""


@dataclass(frozen=True, slots=True)
class SparkBackend:
    """The tables of a session, on Spark."""

    spark: SparkSession
    tables: Frames
    known: KnownStatistics
    listener: ProgressListener | None = None

    def statistics(self, query: Query, *, jobs: bool) -> tuple[RelationStatistics, ...]:
        """See `Backend.statistics`."""
        assert isinstance(self.tables, Tables), "statistics are of registered tables"
        return gather(self.spark, self.tables, query, self.known, self.listener, pilot=jobs)

    def relations(
        self, relations: Sequence[VirtualRelation], *, jobs: bool
    ) -> Mapping[VirtualRelation, RelationStatistics]:
        """See `Backend.relations`."""
        assert isinstance(self.tables, Tables), "statistics are of registered tables"
        return gather_relations(self.spark, self.tables, relations, self.known, self.listener, pilot=jobs)

    def groups(self, query: Query, most: int) -> SparkGroups:
        """See `Backend.groups`."""
        return listed(self.spark, self.tables, query, most, self.listener)

    def build(self, plan: Plan, message_bytes: int | None, groups: Groups | None) -> tuple[Built, ...]:
        """See `Backend.build`."""
        frames = groups if isinstance(groups, SparkGroups) else self.tables
        return building.build(self.spark, plan, frames, self.listener, message_bytes)

    def apart(
        self, head: Head, dense: Ints | None, most_groups: int, sql: str
    ) -> tuple[CatalogGroups | None, tuple[Built, ...]]:
        """See `Backend.apart`."""
        source = Source(head.table, self.tables.frame(head.table), head.filter)
        return built_on(self.spark, sql, head, source, most_groups, self.listener, dense)

    def sample(
        self, plan: Plan, most_bytes: int, expected: Mapping[int, float], groups: Groups | None
    ) -> Mapping[tuple[int, ...], SampleJoin]:
        """See `Backend.sample`."""
        frames = groups if isinstance(groups, SparkGroups) else self.tables
        grouped = groups.counts if groups is not None else ()
        return run_sample(self.spark, plan, frames, self.listener, most_bytes, expected, grouped)

    def summed(self, query: Query) -> tuple[Summed, ...]:
        """See `Backend.summed`."""
        assert isinstance(self.tables, Tables), "values are of registered tables"
        return summed_values(self.spark, self.tables, query)

    def exact_groups(
        self, query: Query, groups: Groups, chosen: Collection[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], tuple[Estimate, ...]]:
        """See `Backend.exact_groups`."""
        assert isinstance(groups, SparkGroups), "groups that were listed on Spark"
        try:
            frame = exact_frame(query, groups, list(chosen))
            with observed(EXACT_GROUPS) as seen:
                sent = run_job(self.spark, "exact groups", frame.collect, self.listener)
                seen.rows, seen.half_width = len(sent), 0.0
        except SPARK_FAULTS as fault:
            message = f"the exact run of {len(chosen):,} groups failed: {first_line(fault)}"
            raise DataError(message, "SKIMQL_EXACT_FAILED", query.sql) from fault
        rows = {tuple(int(row[f"g{n}"]) for n in range(len(groups.parts))): row.asDict() for row in sent}
        return {numbers: known_of(query, rows.get(numbers)) for numbers in chosen}
