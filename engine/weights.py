"""Weights as Spark computes them: BIGINT (integers; DECIMAL times a power of ten) or DOUBLE, a NULL as 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..errors import UnsupportedQuery
from ..optimizer.plan import Weight
from .spark import SPARK_FAULTS, first_line

# The longest DECIMAL whose unscaled value always fits a BIGINT.
LONGEST_INTEGER_DECIMAL = 18

# In Spark's message where a product or sum of ours does not fit; ANSI mode or not, nothing wraps.
LEAVES_64_BITS = "skimql: leaves 64 bits"


@dataclass(frozen=True, slots=True)
class WeightColumn:
    """A weight: no column where every tuple counts 1. `scale` is the factor that made it an integer."""

    column: Column | None
    dtype: str
    scale: float = 1.0


def weight_column(frame: DataFrame, weight: Weight, sql: str) -> WeightColumn:
    """The weight of a tuple of `frame`; raises UnsupportedQuery if Spark cannot sum it."""
    if weight.expression is None:
        return WeightColumn(None, "int64")
    value = F.expr(weight.expression)
    if weight.presence:
        return WeightColumn(F.when(value.isNotNull(), 1).otherwise(0).cast("bigint"), "int64")
    try:
        # Spark's own SUM decides what can be summed, and as what.
        total_type = frame.select(F.sum(value)).schema.fields[0].dataType.simpleString()
        own_type = frame.select(value).schema.fields[0].dataType.simpleString()
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses to sum {weight.expression}: {first_line(fault)}", "SKIMQL_BAD_ARGUMENT", sql
        ) from fault
    if total_type == "bigint":
        return WeightColumn(F.coalesce(value.cast("bigint"), F.lit(0)), "int64")
    if own_type.startswith("decimal("):
        precision, scale = (int(n) for n in own_type[8:-1].split(","))
        if precision <= LONGEST_INTEGER_DECIMAL:
            unscaled = (value * F.lit(Decimal(10**scale))).cast("bigint")
            return WeightColumn(F.coalesce(unscaled, F.lit(0)), "int64", float(10**scale))
    elif total_type != "double":
        raise UnsupportedQuery(
            f"the sum of {weight.expression} is of type {total_type}, which is no number",
            "SKIMQL_BAD_ARGUMENT",
            sql,
        )
    return WeightColumn(F.coalesce(value.cast("double"), F.lit(0.0)), "float64")


def product(factors: Sequence[WeightColumn]) -> WeightColumn:
    """The product of weights; integers that leave 64 bits fail the job with `LEAVES_64_BITS`."""
    present = [f for f in factors if f.column is not None]
    scale = math.prod(f.scale for f in factors)
    if not present:
        return WeightColumn(None, "int64", scale)
    dtype = "float64" if any(f.dtype == "float64" for f in present) else "int64"
    column = present[0].column
    assert column is not None
    for factor in present[1:]:
        assert factor.column is not None
        column = (
            column * factor.column if dtype == "float64" else _checked(F.try_multiply(column, factor.column))
        )
    return WeightColumn(column.cast("double") if dtype == "float64" else column, dtype, scale)


def total(weight: WeightColumn) -> Column:
    """The aggregate that sums a weight over a group; integers that leave 64 bits fail the job."""
    if weight.column is None:
        return F.count(F.lit(1))
    return F.sum(weight.column) if weight.dtype == "float64" else _checked(F.try_sum(weight.column))


def _checked(value: Column) -> Column:
    return F.coalesce(value, F.raise_error(F.lit(LEAVES_64_BITS)))
