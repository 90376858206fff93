"""The cells of an answer: aggregates, and expressions over them, from finished sketches.

Sums and ratios of aggregates are taken row by row of the sketches: the same hashes made them, so most of their
errors cancel. What is neither (a product of two aggregates, say) gets an interval by arithmetic on the intervals of
its parts, each at a confidence that leaves the whole with the asked one (Bonferroni).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from ...errors import UnsupportedQuery
from ...optimizer.plan import Plan, PlannedAggregate, PlannedTerm
from ...parser.expressions import (
    FUNCTIONS,
    Aggregated,
    Constant,
    Expression,
    Grouped,
    Operation,
    has_aggregate,
    parts_of,
    reads_a_bound,
)
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.intervals.rounding import is_rounded, rounded, shown, slack_of
from .estimator import Joined
from .functions import apply
from .scalars import scalar_value

# A value of the result: an estimate, or a plain value.
Cell = Estimate | Any

_APPLY: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions over the aggregates of one plan.

    Parameters
    ----------
    plan : Plan
    joined : Joined or None
        The synopses of the plan, finished; None where the aggregates are `known`.
    confidence : float
        Of every interval, in (0, 1).
    group : sequence
        The value of each GROUP BY expression.
    known : sequence of Estimate, optional
        The aggregates where they are known exactly; the sketches are not looked at then.
    """

    plan: Plan
    joined: Joined | None
    confidence: float
    group: Sequence[Any] = ()
    known: Sequence[Estimate] | None = None

    @property
    def sql(self) -> str:
        """The statement, for errors."""
        return self.plan.query.sql

    def cell(self, expression: Expression) -> Cell:
        """The value of an item of the SELECT list.

        Raises
        ------
        UnsupportedQuery
            If the expression is of a kind that no interval can be computed for.
        """
        if not has_aggregate(expression):
            return scalar_value(expression, self.group, self.sql)
        found = self._whole(expression)
        # What nothing but rounding moves is exact where it is shown, and has its interval in arithmetic.
        return shown(found) if isinstance(found, Estimate) else found

    def _whole(self, expression: Expression) -> Cell:
        direct = self._direct(expression)
        if direct is not None or reads_a_bound(expression):
            return direct
        parts = sum(1 for _ in self._leaves(expression))
        shared = replace(self, confidence=1 - (1 - self.confidence) / max(parts, 1))
        whole = shared._by_intervals(expression)
        if not isinstance(whole, Estimate) or whole.exact or is_rounded(whole):
            return whole
        return replace(whole, confidence=self.confidence)

    def aggregate(self, planned: PlannedAggregate) -> Estimate:
        """The estimate of one aggregate, clipped by what is known for certain."""
        if planned.distinct is not None:
            return self._joined.distinct(planned.distinct, self.confidence)
        if planned.function == "avg":
            found = self._joined.ratio(planned.total, planned.presence, self.confidence)
            return (self._sum_of_nothing(planned) or found) if math.isnan(found.value) else found
        if planned.function == "sum" and self._joined.known(planned.presence) == 0:
            # No tuple joins that has a value: SQL's sum of nothing is NULL, and this is known exactly.
            return exact(math.nan)
        total = self._joined.total(planned.total, self.confidence, bounded=True)
        if planned.function == "sum" and total.low == total.high == 0:
            return self._sum_of_nothing(planned) or total
        return total

    def _sum_of_nothing(self, planned: PlannedAggregate) -> Estimate | None:
        """NULL where, by its interval too, no tuple joins that has a value to be summed."""
        counted = self._joined.total(planned.presence, self.confidence, bounded=True)
        # What is deleted and was never inserted counts below zero: that is something.
        if counted.high != 0 or not counted.certified:
            return None
        return replace(counted, value=math.nan, low=math.nan, high=math.nan)

    @property
    def _joined(self) -> Joined:
        assert self.joined is not None, "aggregates are estimated from synopses, or known"
        return self.joined

    def _direct(self, expression: Expression) -> Cell:
        """The value by one estimator, or None if the expression is of no kind that has one."""
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Grouped):
            return self.group[expression.index]
        if isinstance(expression, Aggregated):
            if self.known is not None:
                return self.known[expression.index]
            return self.aggregate(self.plan.aggregates[expression.index])
        if reads_a_bound(expression):
            return _bound(expression.operator, self.cell(expression.operands[0]))
        # COALESCE and its like are no arithmetic: what is NULL within them need not make them NULL.
        null = None if _has_functions(expression) else self._null_within(expression)
        if null is not None:
            return null
        terms = self._linear(expression)
        if terms is not None:
            return self._joined.total(terms, self.confidence)
        if expression.operator == "/":
            divisor = expression.operands[1]
            if (
                isinstance(divisor, Operation)
                and divisor.operator == "nullif"
                and divisor.operands[1] == Constant(0)
            ):
                # NULL instead of a division by zero: an unknown value has that form already.
                expression = Operation("/", (expression.operands[0], divisor.operands[0]))
                null = self._null_within(expression) if not _has_functions(expression) else None
                if null is not None:
                    return null
            top, bottom = (self._linear(o) for o in expression.operands)
            if top is not None and bottom is not None:
                if divisor is not expression.operands[1] and self._joined.known(bottom) == 0:
                    return exact(math.nan)
                return self._joined.ratio(top, bottom, self.confidence)
        return None

    def _null_within(self, expression: Expression) -> Estimate | None:
        """The NULL of a SUM over no value that is part of the expression, which makes all arithmetic on it NULL."""
        parts = [p for p in parts_of(expression) if isinstance(p, Aggregated)] if self.known is None else []
        planned = [self.plan.aggregates[p.index] for p in parts]
        nulls = (self._sum_of_nothing(p) for p in planned if p.function == "sum")
        return next((n for n in nulls if n is not None), None)

    def _linear(self, expression: Expression) -> list[PlannedTerm] | None:
        """The expression as a sum of weighted joins, or None if it is none."""
        if isinstance(expression, Aggregated):
            if self.known is not None:
                return None
            planned = self.plan.aggregates[expression.index]
            return list(planned.total) if planned.function in ("count", "sum") else None
        if not isinstance(expression, Operation):
            return None
        if expression.operator in ("+", "-", "neg"):
            parts = [self._linear(o) for o in expression.operands]
            if any(p is None for p in parts):
                return None
            signs = (
                [-1.0] if expression.operator == "neg" else [1.0, 1.0 if expression.operator == "+" else -1.0]
            )
            return [t for sign, part in zip(signs, parts, strict=True) for t in _scaled(part or [], sign)]
        if expression.operator in ("*", "/"):
            left, right = expression.operands
            if expression.operator == "*" and isinstance(left, Constant):
                left, right = right, left
            inner, factor = self._linear(left), self._number(right)
            if inner is None or not factor:
                return None
            return _scaled(inner, factor if expression.operator == "*" else 1 / factor)
        return None

    def _leaves(self, expression: Expression) -> Iterator[Expression]:
        """The parts that an estimator of their own takes."""
        if isinstance(expression, Operation) and self._direct(expression) is None:
            for operand in expression.operands:
                yield from self._leaves(operand)
        elif has_aggregate(expression):
            yield expression

    def _by_intervals(self, expression: Expression) -> Cell:
        direct = self._direct(expression)
        if (
            isinstance(expression, (Constant, Grouped))
            and direct is not None
            and self._number(expression) is None
        ):
            raise UnsupportedQuery(
                f"{direct!r} is no number to compute with an aggregate",
                "SKIMQL_UNSUPPORTED_EXPRESSION",
                self.sql,
                hint="EXACT SELECT ...",
            )
        if direct is not None or not isinstance(expression, Operation) or reads_a_bound(expression):
            return direct
        parts = [self._by_intervals(o) for o in expression.operands]
        if expression.operator == "neg":
            return _combined("-", [exact(0), _estimate(parts[0])])
        if expression.operator in FUNCTIONS:
            return apply(expression.operator, [shown(_estimate(p)) for p in parts])
        if expression.operator not in _APPLY:
            raise UnsupportedQuery(
                f"no interval can be computed for {expression.operator!r} over aggregates",
                "SKIMQL_UNSUPPORTED_EXPRESSION",
                self.plan.query.sql,
                hint="EXACT SELECT ...",
            )
        return _combined(expression.operator, [_estimate(p) for p in parts])

    def _number(self, expression: Expression) -> float | None:
        value = self._direct(expression) if isinstance(expression, (Constant, Grouped)) else None
        if (
            not isinstance(value, (int, float, Decimal))
            or isinstance(value, bool)
            or not math.isfinite(value)
        ):
            return None
        return float(value)


def _has_functions(expression: Expression) -> bool:
    return any(isinstance(p, Operation) and p.operator in FUNCTIONS for p in parts_of(expression))


def _scaled(terms: Sequence[PlannedTerm], factor: float) -> list[PlannedTerm]:
    return [replace(t, coefficient=t.coefficient * factor) for t in terms]


def _estimate(value: Cell) -> Estimate:
    """A plain value as one that is known: whole numbers and decimals, as they are written, with all their digits."""
    if isinstance(value, Estimate):
        return value
    if value is None:
        return exact(math.nan)
    if isinstance(value, bool) or not math.isfinite(value):
        return exact(float(value))
    return exact(value if isinstance(value, int) else Fraction(str(value)))


def _combined(sign: str, parts: Sequence[Estimate]) -> Estimate:
    """Interval arithmetic: the hull of the operation over both intervals; unbounded where a divisor may be 0."""
    left, right = parts
    confidence = min(left.confidence, right.confidence)
    certified = left.certified and right.certified
    notes = tuple(dict.fromkeys((*left.notes, *right.notes)))
    basis = "exact" if left.exact and right.exact else next(p.basis for p in parts if not p.exact)
    if any(math.isnan(p.value) for p in parts):
        if any(math.isnan(p.low) for p in parts):
            return exact(math.nan)
        return Estimate(math.nan, -math.inf, math.inf, confidence, False, basis, notes)
    if sign == "/" and (right.low <= 0 <= right.high):
        note = "the divisor may be 0"
        return Estimate(math.nan, -math.inf, math.inf, confidence, False, basis, (*notes, note))
    apply = _APPLY[sign]
    value = apply(left.value, right.value)
    if basis == "exact":
        return _of_known(value, (left.value, right.value), sign, notes)
    ends = [apply(a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
    return Estimate(value, min(ends), max(ends), confidence, certified, basis, notes)


def _of_known(value: float, operands: tuple[float, float], sign: str, notes: tuple[str, ...]) -> Estimate:
    """Arithmetic on known values; the last digits of doubles are rounded, and a difference may have no others."""
    if sign in "*/" or not any(isinstance(o, float) for o in operands) or not math.isfinite(value):
        return replace(exact(value), notes=notes)
    found = rounded(value, slack_of(1, max(abs(o) for o in operands)))
    return replace(found, notes=(*notes, *found.notes))


def _bound(name: str, cell: Cell) -> float | None:
    """What `lower_bound(n)` and its like read from an interval."""
    estimate = _estimate(cell)
    if math.isnan(estimate.value):
        return None
    if name == "lower_bound":
        return estimate.low
    if name == "upper_bound":
        return estimate.high
    width = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if name == "absolute_error":
        return width
    return width / abs(estimate.value) if estimate.value else (0.0 if width == 0 else None)
