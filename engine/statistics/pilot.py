"""The pilot: one cheap Spark job over a table that says what its virtual relations look like.

Two samples are taken in the same pass, for every join attribute of every relation of the table at once: all
tuples of the keys whose hash is small (a coordinated *key sample*: exact weights, equal keys in all tables), and
tuples drawn one by one (a *row sample*, which sees the heavy keys that a key sample misses). Only what is kept is
grouped, in the JVM; a few thousand rows come back.

The pass reads all tuples of the table, and only the columns of keys and filters. Reading some of the files or row
groups instead is cheaper but biased without limit where the table is ordered by a key, as most are: see
docs/statistics.md for both measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...optimizer.operators import PILOT
from ...optimizer.prediction.pilot_counts import (
    KEY_SAMPLE,
    PILOT_FAMILY,
    ROW_SAMPLE,
    Counts,
    Pilot,
    Rates,
    VirtualRelation,
)
from ...sketches.samples.sampled_hash import HASH_BITS
from ..observed import observed
from ..sources.filters import filtered
from ..sources.keys import key_column
from ..spark.jobs import ProgressListener, run_job


def run_pilot(
    spark: SparkSession,
    frame: DataFrame,
    relations: Sequence[VirtualRelation],
    rates: Rates,
    listener: ProgressListener | None = None,
) -> tuple[Pilot, ...]:
    """Look at virtual relations of one table in a single job.

    Parameters
    ----------
    spark : SparkSession
    frame : DataFrame
        The table.
    relations : sequence of VirtualRelation
        All of that table.
    rates : Rates
        With 1 for both everything is counted.

    Notes
    -----
    Tuples with a NULL in any join attribute of a relation are not among its tuples: they never join.
    """
    slots = _slots(relations)
    with observed(PILOT, relations[0].table) as seen:
        rows = run_job(
            spark, f"pilot of {relations[0].table}", _grouped(frame, relations, rates).toArrow, listener
        )
        seen.rows, seen.bytes_held = rows.num_rows, rows.nbytes
    slot, kind, keys, counts = (np.asarray(rows[name], np.int64) for name in ("slot", "kind", "key", "n"))
    order = np.lexsort((keys, kind, slot))
    slot, kind, keys, counts = slot[order], kind[order], keys[order], counts[order]

    def found(number: int, sample: int) -> Counts:
        chosen = (slot == number) & (kind == sample)
        return Counts(keys[chosen], counts[chosen])

    whole = rates.tuples == 1.0
    pilots = []
    for own in slots:
        sampled = tuple(found(s, KEY_SAMPLE) for s in own)
        pilots.append(Pilot(rates, sampled, sampled if whole else tuple(found(s, ROW_SAMPLE) for s in own)))
    return tuple(pilots)


def _slots(relations: Sequence[VirtualRelation]) -> list[range]:
    """Numbers of what is counted for each relation: its attributes, then their combination."""
    out, start = [], 0
    for relation in relations:
        count = len(relation.attributes)
        size = count + 1 if count != 1 else 1
        out.append(range(start, start + size))
        start += size
    return out


def _grouped(frame: DataFrame, relations: Sequence[VirtualRelation], rates: Rates) -> DataFrame:
    """(slot, kind, key, n): how many tuples of a relation have the key, in either sample."""
    filters = list(dict.fromkeys(r.filter for r in relations))
    frame = filtered(frame, filters)
    attributes = list(dict.fromkeys(a for r in relations for a in r.attributes))
    columns = [key_column(a).alias(f"k{n}") for n, a in enumerate(attributes)]
    # With one filter for all it has been applied.
    masks = {f: f"f{n}" for n, f in enumerate(filters) if f is not None and len(filters) > 1}
    columns += [F.coalesce(F.expr(f), F.lit(False)).alias(name) for f, name in masks.items()]
    drawn = rates.tuples < 1.0
    if drawn:
        columns.append(F.rand(0).alias("drawn"))
    frame = frame.select(*columns or [F.lit(0).alias("nothing")])
    below = round(rates.keys * (1 << HASH_BITS))

    def small(key: Column) -> Column:
        if not drawn:
            return F.lit(True)
        word = F.xxhash64(F.lit(PILOT_FAMILY.word_seeds(1)[0]).cast("bigint"), key)
        return word.bitwiseAND(F.lit((1 << HASH_BITS) - 1)) < F.lit(below)

    counted = []  # slot, mask, key
    for own, relation in zip(_slots(relations), relations, strict=True):
        keys = [F.col(f"k{attributes.index(a)}") for a in relation.attributes]
        known = [k.isNotNull() for k in keys]
        if relation.filter in masks:
            known.append(F.col(masks[relation.filter]))
        joins = reduce(lambda a, b: a & b, known, F.lit(True))
        if len(keys) != 1:
            keys.append(F.xxhash64(*keys) if keys else F.lit(0).cast("bigint"))
        counted += [(slot, joins, key) for slot, key in zip(own, keys, strict=True)]
    kept = [(slot, KEY_SAMPLE, mask & small(key), key) for slot, mask, key in counted]
    if drawn:
        in_rows = F.col("drawn") < F.lit(rates.tuples)
        frame = frame.where(reduce(lambda a, b: a | b, [in_rows, *(wanted for _, _, wanted, _ in kept)]))
        kept += [(slot, ROW_SAMPLE, mask & in_rows, key) for slot, mask, key in counted]
    cells = [
        F.struct(
            F.when(wanted, F.lit(slot)).alias("slot"),
            F.lit(kind).alias("kind"),
            key.cast("bigint").alias("key"),
        )
        for slot, kind, wanted, key in kept
    ]
    exploded = frame.select(F.inline(F.array(*cells))).where("slot IS NOT NULL")
    return exploded.groupBy("slot", "kind", "key").agg(F.count(F.lit(1)).alias("n"))
