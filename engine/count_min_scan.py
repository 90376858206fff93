"""Hash sketches that count, made by Spark's ``count_min_sketch``: one aggregate for each, no grouping, one row out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..sketches.count_min import parameters, read
from ..sketches.spark_families import CountMin
from ..sketches.sparse import SparseFirstSketch
from .measures import Measure, Pass, hash_word, joining, tally_of


def count_min_frame(columns: DataFrame, measures: Sequence[Measure]) -> DataFrame:
    """One row: for measure n the columns ``{n}sketch`` (BINARY) and ``{n}tuples`` (BIGINT)."""
    parts: list[Column] = []
    for number, measure in enumerate(measures):
        family = measure.spec.families[0]
        assert isinstance(family, CountMin), "chosen by the plan"
        within = [joining(measure.keys)] + ([] if measure.mask is None else [F.col(measure.mask)])
        counted = [joining(measure.keys)] + ([] if measure.counted is None else [measure.counted])
        # NULL is not counted.
        word = F.when(reduce(lambda a, b: a & b, counted), hash_word([family.seed], measure.keys))
        eps, confidence = parameters(measure.spec.rows, measure.spec.buckets)
        sketch = F.count_min_sketch(word, F.lit(eps), F.lit(confidence), F.lit(family.multiplier_seed))
        parts.append(sketch.alias(f"{number}sketch"))
        parts.append(F.count(F.when(reduce(lambda a, b: a & b, within), 1)).alias(f"{number}tuples"))
    return columns.agg(*parts)


def count_min_passes(row: dict[str, Any], measures: Sequence[Measure]) -> dict[int, Pass]:
    """What the row of `count_min_frame` says of each synopsis; ValueError if this Spark's sketches are others."""
    passes = {}
    for number, measure in enumerate(measures):
        table = read(row[f"{number}sketch"], measure.spec)
        sketch = SparseFirstSketch.from_state(
            measure.spec, table.sketch(measure.spec).state(), measure.sketch.empty().limit_bytes
        )
        tally = tally_of(row[f"{number}tuples"], float(table.tuples), 0)
        passes[measure.synopsis] = Pass(sketch, tally, table.distinct)
    return passes
