"""Weights as Spark computes them: BIGINT (integers; DECIMAL times a power of ten) or DOUBLE, a NULL as 0."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...errors import UnsupportedQuery
from ...optimizer.plan import Weight
from ...sketches.intervals.rounding import OF_A_SUMMAND
from ..spark.session import SPARK_FAULTS, first_line

# The longest DECIMAL whose unscaled value always fits a BIGINT.
LONGEST_INTEGER_DECIMAL = 18

EPSILON = sys.float_info.epsilon

# In Spark's message where a product or sum of ours does not fit; ANSI mode or not, nothing wraps.
LEAVES_64_BITS = "skimql: leaves 64 bits"


@dataclass(frozen=True, slots=True)
class WeightColumn:
    """A weight as SQL, None where every tuple counts 1; `scale` is the factor that made it an integer.

    `slack`, as SQL, is how far rounding may have moved it; None where it is as it stands in the data.
    """

    text: str | None
    dtype: str
    scale: float = 1.0
    slack: str | None = None

    @property
    def column(self) -> Column | None:
        """The weight as a Spark column."""
        return None if self.text is None else F.expr(self.text)


def weight_column(frame: DataFrame, weight: Weight, sql: str) -> WeightColumn:
    """The weight of a tuple of `frame`; raises UnsupportedQuery if Spark cannot sum it."""
    if weight.expression is None:
        return WeightColumn(None, "int64")
    value = f"({weight.expression})"
    if weight.presence:
        return WeightColumn(f"CASE WHEN {value} IS NOT NULL THEN 1L ELSE 0L END", "int64")
    try:
        # Spark's own SUM decides what can be summed, and as what.
        summed = frame.selectExpr(f"sum({value}) AS total", f"any_value({value}) AS own").schema
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses to sum {weight.expression}: {first_line(fault)}", "SKIMQL_BAD_ARGUMENT", sql
        ) from fault
    total_type, own_type = (field.dataType.simpleString() for field in summed.fields)
    if total_type == "bigint":
        return WeightColumn(f"coalesce(CAST({value} AS BIGINT), 0L)", "int64")
    if own_type.startswith("decimal("):
        precision, scale = (int(n) for n in own_type[8:-1].split(","))
        if precision <= LONGEST_INTEGER_DECIMAL:
            unscaled = f"coalesce(CAST({value} * {10**scale}BD AS BIGINT), 0L)"
            return WeightColumn(unscaled, "int64", float(10**scale))
    elif total_type != "double":
        raise UnsupportedQuery(
            f"the sum of {weight.expression} is of type {total_type}, which is no number",
            "SKIMQL_BAD_ARGUMENT",
            sql,
        )
    return WeightColumn(f"coalesce(CAST({value} AS DOUBLE), 0D)", "float64")


def product(factors: Sequence[WeightColumn]) -> WeightColumn:
    """The product of weights; integers that leave 64 bits fail the job with `LEAVES_64_BITS`."""
    present = [f.text for f in factors if f.text is not None]
    scale = math.prod(f.scale for f in factors)
    if not present:
        return WeightColumn(None, "int64", scale)
    if any(f.text is not None and f.dtype == "float64" for f in factors):
        text = f"CAST({' * '.join(present)} AS DOUBLE)"
        return WeightColumn(text, "float64", scale, _slack(factors))
    return WeightColumn(reduce(lambda a, b: _checked(f"try_multiply({a}, {b})"), present), "int64", scale)


def total(weight: WeightColumn) -> str:
    """The aggregate, as SQL, that sums a weight over a group; integers that leave 64 bits fail the job."""
    if weight.text is None:
        return "count(1)"
    return f"sum({weight.text})" if weight.dtype == "float64" else _checked(f"try_sum({weight.text})")


def slack_total(weight: WeightColumn) -> str | None:
    """The aggregate, as SQL, of how far rounding may move `total`; None where that is exact."""
    if weight.dtype != "float64":
        return None
    own = f"(count(1) + {OF_A_SUMMAND}) * {EPSILON!r}D * sum(abs({weight.text}))"
    return own if weight.slack is None else f"{own} + sum({weight.slack})"


def _slack(factors: Sequence[WeightColumn]) -> str | None:
    """How far the rounding of each factor may move the product."""
    moved = []
    for factor in factors:
        if factor.slack is not None:
            others = [f"abs({f.text})" for f in factors if f.text is not None and f is not factor]
            moved.append(" * ".join([factor.slack, *others]))
    return f"CAST({' + '.join(moved)} AS DOUBLE)" if moved else None


def _checked(value: str) -> str:
    return f"coalesce({value}, raise_error('{LEAVES_64_BITS}'))"
