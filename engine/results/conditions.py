"""Conditions on estimates: what they are decided to be, what else the intervals leave possible, and as a value.

A condition is decided on the estimates themselves; it is certain where every value of their intervals decides it the
same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...errors import UnsupportedQuery
from ...parser.expressions import COMPARISONS, LOGIC, Expression, Operation, has_aggregate
from ...sketches.intervals.interval import Estimate, exact
from .expressions import Cell, Evaluator
from .scalars import compare, padded

OPEN = "a condition is open, and shown as NULL: its interval holds values that make it true and others that do not"
SIGNS = frozenset((-1, 0, 1))
# Which signs of left - right make a comparison true.
_HOLDS = {
    "=": frozenset((0,)),
    "<>": frozenset((-1, 1)),
    "<": frozenset((-1,)),
    "<=": frozenset((-1, 0)),
    ">": frozenset((1,)),
    ">=": frozenset((0, 1)),
}


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition: `value` as decided on the estimates, and every value that their intervals leave possible."""

    value: bool | None
    possible: frozenset[bool | None]

    @property
    def may_hold(self) -> bool:
        """Whether it is true for some of the values in the intervals."""
        return True in self.possible

    @property
    def must_hold(self) -> bool:
        """Whether it is true for all of them."""
        return self.possible == {True}


def condition(evaluator: Evaluator, expression: Expression) -> Truth:
    """Decide a HAVING condition for one group.

    Raises
    ------
    UnsupportedQuery
        If it is no condition, or compares what only Spark can compare.
    """
    if isinstance(expression, Operation):
        if expression.operator in ("and", "or", "not"):
            parts = [condition(evaluator, o) for o in expression.operands]
            apply = _LOGIC[expression.operator]
            return Truth(
                apply(*(p.value for p in parts)),
                frozenset(apply(*values) for values in product(*(p.possible for p in parts))),
            )
        if expression.operator == "is_null":
            return _is_null(evaluator.cell(expression.operands[0]))
        if expression.operator in COMPARISONS:
            return _comparison(evaluator, expression)
    value = evaluator.cell(expression)
    if value is None or isinstance(value, bool):
        return _certain(value)
    raise UnsupportedQuery("HAVING takes a condition", "SKIMQL_HAVING", evaluator.sql)


def is_condition(expression: Expression) -> bool:
    """Whether its value is true or false."""
    return isinstance(expression, Operation) and expression.operator in (*COMPARISONS, *LOGIC)


def item_cell(evaluator: Evaluator, expression: Expression) -> Cell:
    """The value of an item of the SELECT list or of ORDER BY: as `Evaluator.cell`, and of conditions too."""
    if is_condition(expression) and has_aggregate(expression):
        return _indicator(evaluator, expression)
    return evaluator.cell(expression)


def _indicator(evaluator: Evaluator, expression: Expression) -> Estimate:
    """A condition as a number: 1 for true, 0 for false, NaN in [0, 1] where its interval has both.

    All that is compared lies in its interval at once with the evaluator's confidence (Bonferroni).
    """
    operands = list(dict.fromkeys(_compared(expression)))
    confidence = 1 - (1 - evaluator.confidence) / max(len(operands), 1)
    each = replace(evaluator, confidence=confidence)
    truth = condition(each, expression)
    cells = [each.cell(o) for o in operands]
    estimates = [c for c in cells if isinstance(c, Estimate) and not c.exact]
    if not estimates or truth.possible == {None}:
        return exact(math.nan if truth.value is None else float(truth.value))
    found = Estimate(
        math.nan,
        0.0,
        1.0,
        evaluator.confidence,
        all(e.certified for e in estimates),
        estimates[0].basis,
        tuple(dict.fromkeys(n for e in estimates for n in e.notes)),
    )
    if len(truth.possible) > 1:
        return replace(found, notes=(*found.notes, OPEN))
    value = float(bool(truth.value))
    return replace(found, value=value, low=value, high=value)


def _compared(expression: Expression) -> Iterator[Expression]:
    """The estimates that a condition compares."""
    if isinstance(expression, Operation) and is_condition(expression):
        for operand in expression.operands:
            yield from _compared(operand)
    elif has_aggregate(expression):
        yield expression


def point_of(cell: Cell) -> Any:
    """The number, or the plain value; None for NULL."""
    if isinstance(cell, Estimate):
        return None if math.isnan(cell.value) else cell.value
    return cell


def ends_of(cell: Cell) -> tuple[float, float]:
    """The least and the largest number that it may be."""
    if isinstance(cell, Estimate):
        return cell.low, cell.high
    number = cell if isinstance(cell, int) else float(cell)
    return number, number


def _comparison(evaluator: Evaluator, expression: Operation) -> Truth:
    cells = [evaluator.cell(o) for o in expression.operands]
    left, right = padded(expression.operands, cells, evaluator.plan.query.groups)
    for cell in (left, right):
        if point_of(cell) is None:
            unknown = isinstance(cell, Estimate) and not cell.exact
            return Truth(None, frozenset((True, False, None)) if unknown else frozenset((None,)))
    holds = _HOLDS[expression.operator]
    if not isinstance(left, Estimate) and not isinstance(right, Estimate):
        return _certain(compare(left, right, evaluator.sql) in holds)
    # Raises where a number would be compared with what is none.
    sign = compare(point_of(left), point_of(right), evaluator.sql)
    if isinstance(left, Estimate) and isinstance(right, Estimate) and not (left.exact and right.exact):
        # The same hashes made both, so that their difference is known better than either.
        difference = evaluator.cell(Operation("-", expression.operands))
        signs = signs_of(*ends_of(difference)) | {sign}
    else:
        (low, high), (other_low, other_high) = ends_of(left), ends_of(right)
        signs = signs_of(low - other_high, high - other_low) | {sign}
    return Truth(sign in holds, frozenset(s in holds for s in signs))


def signs_of(low: float, high: float) -> frozenset[int]:
    """The signs of the numbers in [low, high]."""
    return frozenset(s for s, there in ((-1, low < 0), (0, low <= 0 <= high), (1, high > 0)) if there)


def _is_null(cell: Cell) -> Truth:
    if not isinstance(cell, Estimate):
        return _certain(cell is None)
    null = math.isnan(cell.value)
    if cell.exact:
        return _certain(null)
    # Where 0 is possible, perhaps nothing joins that has a value.
    if null or cell.low <= 0 <= cell.high:
        return Truth(null, frozenset((True, False)))
    return _certain(False)


def _certain(value: bool | None) -> Truth:
    return Truth(value, frozenset((value,)))


def _and(left: bool | None, right: bool | None) -> bool | None:
    return False if left is False or right is False else None if left is None or right is None else True


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


_LOGIC: dict[str, Any] = {"and": _and, "or": _or, "not": _not}
