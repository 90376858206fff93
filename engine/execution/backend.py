"""What a plan needs of whatever holds the tables: the same few calls on Spark and in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from ...errors import DataError
from ...optimizer.plan import Plan
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import Estimate
from ..sources.tables import Frames, Tables
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS, first_line
from ..statistics.gather import KeptStatistics, gather
from . import build as building
from .exact_groups import exact_frame, known_of
from .grouping import Groups, listed
from .partial_aggregate import Built
from .sample_join import SampleJoin, run_sample


class GroupsOf(Protocol):
    """The groups of a query, listed; see `grouping.Groups`."""

    @property
    def counts(self) -> Mapping[int, int]:
        """How many groups each grouped vertex has."""

    @property
    def number(self) -> int:
        """How many groups the query may have at most."""

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """The groups of the query as numbers of groups of its vertices, in the order of `per_group`."""

    def values(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        """The value of each GROUP BY expression in one group of the query."""


class Backend(Protocol):
    """Where the tables are."""

    def statistics(self, query: Query, *, jobs: bool) -> tuple[RelationStatistics, ...]:
        """What is known of every vertex, without a job or after a pilot where nothing was."""

    def groups(self, query: Query, most: int) -> GroupsOf:
        """The groups of every grouped vertex; more than `most` of one raise BudgetExceeded."""

    def build(self, plan: Plan, message_bytes: int | None, groups: GroupsOf | None) -> tuple[Built, ...]:
        """Every synopsis of a plan, one scan a table; raises as `build.build`."""

    def sample(
        self, plan: Plan, most_bytes: int, expected: Mapping[int, float], groups: GroupsOf | None
    ) -> Mapping[tuple[int, ...], SampleJoin]:
        """A plan with a sample evaluated, for each group that it met; raises as `sample_join.run_sample`."""

    def exact_groups(
        self, query: Query, groups: GroupsOf, chosen: Collection[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], tuple[Estimate, ...]]:
        """The exact aggregates of some groups."""


@dataclass(frozen=True, slots=True)
class SparkBackend:
    """The tables of a session, on Spark."""

    spark: SparkSession
    tables: Frames
    known: KeptStatistics
    listener: ProgressListener | None = None

    def statistics(self, query: Query, *, jobs: bool) -> tuple[RelationStatistics, ...]:
        """See `Backend.statistics`."""
        assert isinstance(self.tables, Tables), "statistics are of registered tables"
        return gather(self.spark, self.tables, query, self.known, self.listener, pilot=jobs)

    def groups(self, query: Query, most: int) -> Groups:
        """See `Backend.groups`."""
        return listed(self.spark, self.tables, query, most, self.listener)

    def build(self, plan: Plan, message_bytes: int | None, groups: GroupsOf | None) -> tuple[Built, ...]:
        """See `Backend.build`."""
        frames = groups if isinstance(groups, Groups) else self.tables
        return building.build(self.spark, plan, frames, self.listener, message_bytes)

    def sample(
        self, plan: Plan, most_bytes: int, expected: Mapping[int, float], groups: GroupsOf | None
    ) -> Mapping[tuple[int, ...], SampleJoin]:
        """See `Backend.sample`."""
        frames = groups if isinstance(groups, Groups) else self.tables
        grouped = groups.counts if groups is not None else ()
        return run_sample(self.spark, plan, frames, self.listener, most_bytes, expected, grouped)

    def exact_groups(
        self, query: Query, groups: GroupsOf, chosen: Collection[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], tuple[Estimate, ...]]:
        """See `Backend.exact_groups`."""
        assert isinstance(groups, Groups), "groups that were listed on Spark"
        try:
            frame = exact_frame(query, groups, list(chosen))
            sent = run_job(self.spark, "exact groups", frame.collect, self.listener)
        except SPARK_FAULTS as fault:
            message = f"the exact run of {len(chosen):,} groups failed: {first_line(fault)}"
            raise DataError(message, "SKIMQL_EXACT_FAILED", query.sql) from fault
        rows = {tuple(int(row[f"g{n}"]) for n in range(len(groups.parts))): row.asDict() for row in sent}
        return {numbers: known_of(query, rows.get(numbers)) for numbers in chosen}
