"""Sparse first without Python: the exact map of keys of tables that turned out to have few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...errors import DataError
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.exact_map import ExactMap
from ...sketches.joins.sparse import SparseFirstSketch
from .jvm_measures import Measure, Pass, only_joining

SLACK = 1.05  # an estimate of the number of keys is good to a few per cent


def few_keys(measure: Measure, found: Pass) -> bool:
    """Whether the keys of a synopsis probably fit into a map no larger than its counters."""
    if not measure.keys or not measure.sketch.sparse:
        return False
    return found.distinct <= SLACK * most_keys(measure)


def most_keys(measure: Measure) -> int:
    """Keys whose map takes as many bytes as the counters."""
    return measure.sketch.empty().limit_bytes // (8 * (len(measure.keys) + 1))


def keys_frame(columns: DataFrame, measures: Sequence[Measure]) -> DataFrame:
    """The weight of every key, ``{n}weight`` and ``{n}tuples`` for measure n, all by the same keys."""
    keys = measures[0].keys
    sums: list[Column] = []
    for number, measure in enumerate(measures):
        add = F.sum if measure.spec.dtype == "float64" else F.try_sum
        within = F.lit(1) if measure.mask is None else F.when(F.col(measure.mask), 1).otherwise(0)
        sums += [add(measure.value).alias(f"{number}weight"), F.sum(within).alias(f"{number}tuples")]
    most = max(map(most_keys, measures))
    frame = only_joining(columns, keys)
    masks = [F.col(m.mask) for m in measures if m.mask is not None]
    if len(masks) == len(measures):
        # Keys of other tuples would only take up the room of those that count.
        kept = masks[0]
        for mask in masks[1:]:
            kept = kept | mask
        frame = frame.where(kept)
    return frame.groupBy(*keys).agg(*sums).limit(most + 1)


def exact_sketch(
    table: pa.Table, number: int, measure: Measure, found: Pass
) -> SparseFirstSketch[ConvolutionSpec]:
    """The exact map of a synopsis from `keys_frame`, or its counters where there are too many keys.

    Raises
    ------
    OverflowError
        If the weight of a key leaves 64 bits.
    DataError
        If the table is not the one that the first pass has read.
    """
    most = most_keys(measure)
    if table.num_rows > most:
        return found.sketch
    if table[f"{number}weight"].null_count:
        raise OverflowError("the weight of a key")
    tuples = int(np.sum(table[f"{number}tuples"].to_numpy(), dtype=np.int64)) if table.num_rows else 0
    if tuples != found.tally.tuples:
        raise DataError(
            f"the table changes while it is read: {found.tally.tuples:,} tuples, then {tuples:,}",
            "SKIMQL_UNSTABLE_TABLE",
            hint="SET skimql.route = arrow, which reads once; or write the table to a file first",
        )
    keys = np.stack([table[name].to_numpy().astype(np.int64) for name in measure.keys], axis=1)
    weights = table[f"{number}weight"].to_numpy().astype(measure.spec.dtype)
    kept = weights != 0
    keys, weights = keys[kept], weights[kept]
    order = np.lexsort(tuple(reversed(keys.T)))
    exact = ExactMap(keys[order], weights[order])
    state = {"keys": exact.keys, "weights": exact.weights}
    return SparseFirstSketch.from_state(measure.spec, state, measure.sketch.empty().limit_bytes)
