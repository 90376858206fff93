"""Statistics of the virtual relations of a query from Arrow tables, as a pilot of Spark's that counts everything."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...optimizer.operators import PILOT
from ...optimizer.prediction.pilot_counts import (
    PILOT_FAMILY,
    Counts,
    Pilot,
    Rates,
    VirtualRelation,
    relations_of,
)
from ...optimizer.prediction.pilot_figures import relation_statistics
from ...optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from ...parser.join_graph import Query
from ...sketches.hashing.xxhash import SPARK_SEED, xxh64_of_long
from ...sketches.samples.sampled_hash import HASH_BITS
from ..observed import observed
from .expressions import passing
from .keys import key_values
from .tables import MemoryTables

Ints = npt.NDArray[np.int64]


def gather(
    query: Query, tables: MemoryTables, *, pilot: bool = True, pilot_tuples: int | None = None
) -> tuple[RelationStatistics, ...]:
    """The statistics of a query's relations, one for each vertex of its join graph.

    Parameters
    ----------
    query : Query
        Acyclic, key types known.
    tables : MemoryTables
    pilot : bool
        Whether the tuples are looked at. Without, only their numbers are told.
    pilot_tuples : int, optional
        Tuples that either sample of a pilot aims at, as Spark's has them; by default everything is counted.
    """
    return tuple(_of(r, tables, pilot, pilot_tuples) for r in relations_of(query.graph))


def gather_relations(
    relations: Sequence[VirtualRelation],
    tables: MemoryTables,
    *,
    pilot: bool = True,
    pilot_tuples: int | None = None,
) -> dict[VirtualRelation, RelationStatistics]:
    """`gather` of single relations."""
    return {r: _of(r, tables, pilot, pilot_tuples) for r in relations}


def _of(
    relation: VirtualRelation, tables: MemoryTables, pilot: bool, pilot_tuples: int | None
) -> RelationStatistics:
    whole = tables.table(relation.table)
    scanned = float(whole.num_rows)
    if not pilot:
        return RelationStatistics(
            tuples=None if relation.filter is not None else scanned,
            attributes=(AttributeStatistics(),) * len(relation.attributes),
            scanned=scanned,
            source="row count",
            gathered_at=time.time(),
        )
    with observed(PILOT, relation.table) as seen:
        found = _looked_at(relation, tables, whole, scanned, pilot_tuples)
        seen.rows = sum(len(c.keys) for c in found.key_samples)
    return relation_statistics(found, len(relation.attributes), scanned, time.time())


def _looked_at(
    relation: VirtualRelation,
    tables: MemoryTables,
    whole: pa.Table,
    scanned: float,
    pilot_tuples: int | None,
) -> Pilot:
    rows = passing(relation.filter, whole, tables.zone)
    tuples = whole if rows is None else whole.filter(rows)
    columns = [key_values(a, tuples, tables.zone) for a in relation.attributes]
    joins = np.ones(tuples.num_rows, bool)
    for column in columns:
        joins &= column.is_valid().to_numpy(zero_copy_only=False)
    keys = [c.fill_null(0).to_numpy()[joins] for c in columns]
    if len(keys) != 1:
        keys.append(_together(keys) if keys else np.zeros(int(joins.sum()), np.int64))
    rates = Rates(1.0, 1.0) if pilot_tuples is None else Rates.for_tuples(scanned, pilot_tuples)
    return _counted(keys, rates)


def _counted(keys: Sequence[Ints], rates: Rates) -> Pilot:
    if rates.tuples == 1.0:
        counts = tuple(map(_counts, keys))
        return Pilot(rates, counts, counts)
    below = np.uint64(round(rates.keys * (1 << HASH_BITS)))
    small = (k[PILOT_FAMILY.values(k, 1, HASH_BITS)[0] < below] for k in keys)
    drawn = np.random.default_rng(0).random(len(keys[0])) < rates.tuples
    return Pilot(rates, tuple(map(_counts, small)), tuple(_counts(k[drawn]) for k in keys))


def _counts(keys: Ints) -> Counts:
    return Counts(*np.unique(keys, return_counts=True))


def _together(keys: Sequence[Ints]) -> Ints:
    """The fingerprint of several keys, as of a composite one."""
    words = np.full(len(keys[0]), SPARK_SEED, np.uint64)
    for column in keys:
        words = xxh64_of_long(np.ascontiguousarray(column), words)
    return words.view(np.int64)
