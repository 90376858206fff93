"""Statistics of the virtual relations of queries, gathered by the cheapest source that has them.

In order: Spark's own column statistics; else a pilot, one job a table for all attributes of all relations at
once (`pilot`), for whose rates the number of tuples comes from Parquet footers or a count; else nothing, and the
planner assumes. What was found is kept, and found again where table, filter and keys are the same, until the
table is registered anew or its files change.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from ...optimizer.operators import COUNT
from ...optimizer.prediction.pilot_counts import PILOT_TUPLES, Rates, VirtualRelation, relations_of
from ...optimizer.prediction.pilot_figures import ENOUGH_TUPLES, most_tuples, relation_statistics
from ...optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from ...parser.join_graph import Query
from ..observed import observed
from ..sources.files import Files, files_of
from ..sources.tables import Tables
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS
from .columns import column_statistics
from .pilot import run_pilot


@dataclass(slots=True)
class KnownStatistics:
    """The statistics of a session: by relation, with the state of the files that they were gathered from."""

    _found: dict[VirtualRelation, tuple[object, RelationStatistics]] = field(default_factory=dict)

    def get(self, relation: VirtualRelation, state: object) -> RelationStatistics | None:
        """What is known of a relation, unless its files are not as they were."""
        known = self._found.get(relation)
        return known[1] if known is not None and known[0] == state else None

    def put(self, relation: VirtualRelation, state: object, statistics: RelationStatistics) -> None:
        """Keep what was found."""
        self._found[relation] = state, statistics

    def of(self, table: str) -> list[tuple[VirtualRelation, RelationStatistics]]:
        """What is known of the relations of a table; its files may have changed since."""
        return [(r, found[1]) for r, found in list(self._found.items()) if r.table.lower() == table.lower()]

    def drop(self, table: str) -> None:
        """Forget the relations of a table, which is another one now."""
        self._found = {r: found for r, found in self._found.items() if r.table != table.lower()}


def gather(
    spark: SparkSession,
    tables: Tables,
    query: Query,
    remembered: KnownStatistics | None = None,
    listener: ProgressListener | None = None,
    *,
    pilot: bool = True,
    pilot_tuples: int = PILOT_TUPLES,
) -> tuple[RelationStatistics, ...]:
    """The statistics of a query's relations, one for each vertex of its join graph.

    Parameters
    ----------
    spark : SparkSession
    tables : Tables
    query : Query
        Acyclic, key types known.
    kept : KeptStatistics, optional
        What is known already; what is found is added.
    pilot : bool
        Whether a Spark job may look at the tables. Without, only what Spark and the footers know is told.
    pilot_tuples : int
        Tuples that either sample of the pilot aims at; a smaller table is counted whole.

    Returns
    -------
    tuple of RelationStatistics
        Attributes in the order of `JoinTree.classes_of`. Tuples count 1 each, whatever an aggregate sums.
    """
    (found,) = gather_all(
        spark, tables, [query], remembered, listener, pilot=pilot, pilot_tuples=pilot_tuples
    )
    return found


def gather_all(
    spark: SparkSession,
    tables: Tables,
    queries: Sequence[Query],
    remembered: KnownStatistics | None = None,
    listener: ProgressListener | None = None,
    *,
    pilot: bool = True,
    pilot_tuples: int = PILOT_TUPLES,
) -> list[tuple[RelationStatistics, ...]]:
    """`gather` for many queries, still with one pilot a table."""
    relations = [relations_of(query.graph) for query in queries]
    wanted = [r for row in relations for r in row]
    found = gather_relations(
        spark, tables, wanted, remembered, listener, pilot=pilot, pilot_tuples=pilot_tuples
    )
    return [tuple(found[r] for r in row) for row in relations]


def gather_relations(
    spark: SparkSession,
    tables: Tables,
    relations: Iterable[VirtualRelation],
    remembered: KnownStatistics | None = None,
    listener: ProgressListener | None = None,
    *,
    pilot: bool = True,
    pilot_tuples: int = PILOT_TUPLES,
) -> dict[VirtualRelation, RelationStatistics]:
    """`gather` for virtual relations of any attributes, join keys or not; one pilot a table."""
    run = _Gathering(spark, tables, remembered or KnownStatistics(), listener, pilot, pilot_tuples)
    by_table: dict[str, list[VirtualRelation]] = {}
    for relation in dict.fromkeys(relations):
        by_table.setdefault(relation.table, []).append(relation)
    found: dict[VirtualRelation, RelationStatistics] = {}
    for table, own in by_table.items():
        found |= run.table(table, own)
    return found


def heaviest_keys(statistics: Sequence[RelationStatistics]) -> npt.NDArray[np.int64]:
    """The heaviest keys that are known of any attribute of any relation: int64 (n,), ascending."""
    heavy = [a.heavy.keys for s in statistics for a in s.attributes if a.heavy is not None]
    return np.unique(np.concatenate([np.empty(0, np.int64), *heavy]))


@dataclass(frozen=True)
class _Gathering:
    spark: SparkSession
    tables: Tables
    remembered: KnownStatistics
    listener: ProgressListener | None
    pilot: bool
    pilot_tuples: int

    def table(
        self, table: str, relations: Sequence[VirtualRelation]
    ) -> dict[VirtualRelation, RelationStatistics]:
        """The statistics of relations of one table."""
        frame = self.tables.frame(table)
        files = files_of(self.tables, table, frame, count=False)
        found: dict[VirtualRelation, RelationStatistics] = {}
        for relation in relations:
            known = self.remembered.get(relation, files.state)
            if known is None:
                known = column_statistics(self.spark, self.tables, relation)
            if known is not None:
                found[relation] = known
        missing = [r for r in relations if r not in found]
        if missing:
            files = files_of(self.tables, table, frame, count=True)
            found |= self._looked_at(missing, files)
        for relation, statistics in found.items():
            if statistics.source not in ("assumed", "row count"):
                self.remembered.put(relation, files.state, statistics)
        return found

    def _looked_at(
        self, relations: Sequence[VirtualRelation], files: Files
    ) -> dict[VirtualRelation, RelationStatistics]:
        """What a pilot tells, or what is known without."""
        if self.pilot:
            try:
                return self._pilots(relations, files)
            except SPARK_FAULTS:
                # A value that a cast refuses, say: the scan that follows meets it too, and says where.
                pass
        return _assumed(relations, files)

    def _pilots(
        self, relations: Sequence[VirtualRelation], files: Files
    ) -> dict[VirtualRelation, RelationStatistics]:
        table = relations[0].table
        frame = self.tables.frame(table)
        tuples = files.tuples
        if tuples is None:
            with observed(COUNT, table) as seen:
                tuples = float(run_job(self.spark, f"count of {table}", frame.count, self.listener))
                seen.rows = 1
        rates = Rates.for_tuples(tuples, self.pilot_tuples)
        found: dict[VirtualRelation, RelationStatistics] = {}
        pending: dict[Rates, list[VirtualRelation]] = {rates: list(relations)}
        while pending:
            rates, chosen = pending.popitem()
            for relation, pilot in zip(
                chosen, run_pilot(self.spark, frame, chosen, rates, self.listener), strict=True
            ):
                # A filter that keeps few tuples leaves too few in a sample of all: look at more of them.
                if rates.tuples < 1.0 and pilot.row_samples[-1].tuples < ENOUGH_TUPLES:
                    higher = Rates.for_tuples(most_tuples(pilot), self.pilot_tuples)
                    if higher.tuples > 4.0 * rates.tuples:
                        pending.setdefault(higher, []).append(relation)
                        continue
                found[relation] = relation_statistics(pilot, len(relation.attributes), tuples, time.time())
        return found


def _assumed(relations: Sequence[VirtualRelation], files: Files) -> dict[VirtualRelation, RelationStatistics]:
    """What footers alone tell: the tuples of the table, which are those of a relation without a filter."""
    if files.tuples is None:
        return dict.fromkeys(relations, RelationStatistics())
    counted = RelationStatistics(scanned=files.tuples, source="row count", gathered_at=time.time())
    return {
        r: replace(
            counted,
            tuples=files.tuples if r.filter is None else None,
            attributes=(AttributeStatistics(),) * len(r.attributes),
        )
        for r in relations
    }
