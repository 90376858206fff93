"""Hash sketches that count, made by Spark's ``count_min_sketch``: one aggregate for each, no grouping, one row out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...sketches.hashing.spark_families import CountMin
from ...sketches.joins.count_min import parameters, read
from ...sketches.joins.sparse import SparseFirstSketch
from .jvm_measures import Measure, Pass, hash_word, joining, tally_of


def count_min_frame(columns: DataFrame, measures: Sequence[Measure]) -> DataFrame:
    """One row: for measure n a column ``{n}sketch`` (BINARY), and ``{n}tuples`` (BIGINT) where weights are 0 or 1."""
    words, aggregates = [], []
    for number, measure in enumerate(measures):
        family = measure.spec.families[0]
        assert isinstance(family, CountMin), "chosen by the plan"
        # NULL is not counted. Computed below the aggregate, which would interpret it: a third of the whole cost.
        word = F.when(_joining(measure, measure.counted), hash_word([family.seed], measure.keys))
        words.append(word.alias(f"{number}word"))
        eps, confidence = parameters(measure.spec.rows, measure.spec.buckets)
        sketch = F.count_min_sketch(
            F.col(f"{number}word"), F.lit(eps), F.lit(confidence), F.lit(family.multiplier_seed)
        )
        aggregates.append(sketch.alias(f"{number}sketch"))
        if measure.presence:
            within = _joining(measure, None if measure.mask is None else F.col(measure.mask))
            words.append(within.alias(f"{number}within"))
            aggregates.append(F.count_if(f"{number}within").alias(f"{number}tuples"))
    return columns.select(*words).agg(*aggregates)


def count_min_passes(row: dict[str, Any], measures: Sequence[Measure]) -> dict[int, Pass]:
    """What the row of `count_min_frame` says of each synopsis; ValueError if this Spark's sketches are others."""
    passes = {}
    for number, measure in enumerate(measures):
        table = read(row[f"{number}sketch"], measure.spec)
        sketch = SparseFirstSketch.from_state(
            measure.spec, table.sketch(measure.spec).state(), measure.sketch.empty().limit_bytes
        )
        tally = tally_of(row.get(f"{number}tuples", table.tuples), float(table.tuples), 0)
        passes[measure.synopsis] = Pass(sketch, tally, table.distinct)
    return passes


def _joining(measure: Measure, condition: Column | None) -> Column:
    joined = joining(measure.keys)
    return joined if condition is None else joined & condition
