"""The expressions that a query sums, with a glance at their values: what draws of values are planned by."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from ...optimizer.candidates.value_draws import Summed, expressions_of
from ...parser.join_graph import Query
from ..spark.jobs import run_job
from ..spark.session import SPARK_FAULTS
from .files import column_range
from .filters import filtered
from .ranges import value_range
from .selectivity import PROBE, Probe
from .tables import Tables


def summed_values(
    spark: SparkSession,
    tables: Tables,
    query: Query,
    probe: Callable[[str], Probe] | None = None,
    *,
    jobs: bool = True,
) -> tuple[Summed, ...]:
    """What is summed, with the values of some tuples: of files in the driver, of anything else of its first ones.

    `probe` gives some tuples of a table, where these are at hand. Without `jobs` no others are looked at.
    """
    found = []
    for vertex, expression, alone in expressions_of(query):
        relation = query.graph.vertices[vertex]
        frame = tables.frame(relation.table)
        some = Probe(lambda: spark, frame) if probe is None else probe(relation.table)
        seen = some.values(relation.filter, expression)
        if not seen and jobs:
            seen = _first_values(spark, relation.table, frame, relation.filter, expression)
        known = np.array([math.nan if x is None else x for x in seen], np.float64)
        ends = value_range(expression, partial(column_range, tables, relation.table))
        found.append(Summed(vertex, expression, known[~np.isinf(known)], ends.low, ends.high, alone))
    return tuple(found)


def _first_values(
    spark: SparkSession, table: str, frame: DataFrame, condition: str | None, expression: str
) -> list[float | None]:
    """As `Probe.values`, of the first tuples: a job that ends when it has them."""
    value = f"CAST(({expression}) AS DOUBLE) AS x"
    try:
        first = filtered(frame, [condition]).selectExpr(value).limit(PROBE)
        return [row.x for row in run_job(spark, f"glance at {table}", first.collect)]
    except SPARK_FAULTS:
        return []
