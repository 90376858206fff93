"""Weights of tuples as `sources.weights` has Spark compute them: int64 (DECIMAL times a power of ten) or float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import UnsupportedQuery
from ...optimizer.plan import Weight
from ...parser.result_types import digits, summed
from ...sketches.intervals.rounding import OF_A_SUMMAND
from ...sketches.joins.accumulate import check_not_wrapped, integer_sums
from .casts import cast, unscaled
from .expressions import evaluate
from .values import Value, is_decimal

# The longest DECIMAL whose unscaled value always fits a BIGINT.
LONGEST_INTEGER_DECIMAL = 18

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of tuples, None where each counts 1; `scale` is the factor that made them integers.

    `slack` is how far rounding may have moved each; None where they are as they stand in the data.
    """

    values: Numbers | None
    dtype: str = "int64"
    scale: float = 1.0
    slack: npt.NDArray[np.float64] | None = None

    def taken(self, rows: npt.NDArray[np.int64]) -> Weights:
        """Those of some tuples, 0 for the number -1."""
        if self.values is None:
            return self
        missing = rows < 0
        slack = None if self.slack is None else np.where(missing, 0.0, self.slack[rows])
        if not missing.any():
            return Weights(self.values[rows], self.dtype, self.scale, slack)
        values = np.zeros(len(rows), self.dtype)
        values[~missing] = self.values[rows[~missing]]
        return Weights(values, self.dtype, self.scale, slack)


def weights_of(weight: Weight, table: pa.Table, sql: str, zone: str = "UTC") -> Weights:
    """What each tuple of a table weighs.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_BAD_ARGUMENT`` if its values cannot be summed; as `evaluate`.
    ValueFault
        As `evaluate`.
    """
    if weight.expression is None:
        return Weights(None)
    value = evaluate(weight.expression, table, zone)
    if weight.presence:
        return Weights(value.data.is_valid().to_numpy(zero_copy_only=False).astype(np.int64))
    total = summed(value.kind)
    if total is None:
        raise UnsupportedQuery(f"values of type {value.kind} cannot be summed", "SKIMQL_BAD_ARGUMENT", sql)
    if total == "bigint":
        return Weights(_filled(cast(value, "bigint").data, 0))
    if is_decimal(value.kind):
        precision, scale = digits(value.kind)
        if precision <= LONGEST_INTEGER_DECIMAL:
            return Weights(_filled(unscaled(value.data), 0), "int64", float(10**scale))
    return Weights(_filled(cast(Value(value.kind, value.data), "double").data, 0.0), "float64")


def product(factors: Sequence[Weights]) -> Weights:
    """The product of weights; OverflowError where integers leave 64 bits."""
    present = [f.values for f in factors if f.values is not None]
    scale = math.prod(f.scale for f in factors)
    if not present:
        return Weights(None, "int64", scale)
    found = present[0]
    for other in present[1:]:
        found = _times(found, other)
    if any(f.values is not None and f.dtype == "float64" for f in factors):
        return Weights(found.astype(np.float64), "float64", scale, _slack(factors))
    return Weights(found, "int64", scale)


def _slack(factors: Sequence[Weights]) -> npt.NDArray[np.float64] | None:
    """How far the rounding of each factor may move the product."""
    moved: list[npt.NDArray[np.float64]] = []
    for factor in factors:
        if factor.slack is not None:
            others = [
                np.abs(f.values.astype(np.float64))
                for f in factors
                if f.values is not None and f is not factor
            ]
            moved.append(np.prod([factor.slack, *others], axis=0))
    return np.sum(moved, axis=0) if moved else None


def totals(weights: Weights, which: npt.NDArray[np.int64], count: int) -> Weights:
    """The weights added up by group; OverflowError where integers leave 64 bits."""
    if weights.values is None:
        return Weights(np.bincount(which, minlength=count).astype(np.int64), "int64", weights.scale)
    shadow = np.bincount(which, weights.values.astype(np.float64), count).astype(np.float64)
    if weights.dtype == "float64":
        mass = np.bincount(which, np.abs(weights.values), count)
        slack = (np.bincount(which, minlength=count) + OF_A_SUMMAND) * np.finfo(np.float64).eps * mass
        if weights.slack is not None:
            slack = slack + np.bincount(which, weights.slack, count)
        return Weights(shadow, "float64", weights.scale, slack)
    sums = integer_sums(which, weights.values.astype(np.int64), count)
    check_not_wrapped(sums, shadow, "a sum of weights")
    return Weights(sums, "int64", weights.scale)


def _times(left: Numbers, right: Numbers) -> Numbers:
    if left.dtype != np.int64 or right.dtype != np.int64:
        return left.astype(np.float64) * right.astype(np.float64)
    found = np.multiply(left, right, dtype=np.int64)
    check_not_wrapped(found, np.multiply(left, right, dtype=np.float64), "a product of weights")
    return found


def _filled(data: pa.Array, zero: float) -> Numbers:
    filled: Numbers = data.fill_null(zero).to_numpy(zero_copy_only=False)
    return filled
