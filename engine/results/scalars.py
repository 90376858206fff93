"""Values that no estimate is part of: what SELECT, HAVING and ORDER BY make of group columns and literals.

Spark computes the group values; here they are only compared and, where they are numbers, added and multiplied.
What Spark might compute otherwise (decimals, dates, text with numbers) is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ...errors import UnsupportedQuery
from ...parser.expressions import Constant, Expression, Grouped, Operation
from ...parser.join_graph import Group
from ...parser.types import is_padded

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
LONGEST = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scalar_value(expression: Expression, group: Sequence[Any], sql: str) -> Any:
    """The value of an expression over group columns and literals; None for NULL.

    Raises
    ------
    UnsupportedQuery
        If it is computed from anything but whole numbers and doubles, or by what Spark may refuse.
    """
    match expression:
        case Constant():
            return expression.value
        case Grouped():
            return group[expression.index]
        case Operation():
            values = [scalar_value(o, group, sql) for o in expression.operands]
            if expression.operator == "neg":
                values = [0, *values]
            apply = _ARITHMETIC.get("-" if expression.operator == "neg" else expression.operator)
            if apply is None or not all(v is None or _is_number(v) for v in values):
                raise _refused(sql)
            if None in values:
                return None
            if expression.operator == "/" and values[1] == 0:
                raise _refused(sql)
            value = apply(*values)
            if isinstance(value, int) and not -LONGEST <= value < LONGEST:
                raise _refused(sql)
            return value
    raise _refused(sql)


def compare(left: Any, right: Any, sql: str) -> int:
    """-1, 0 or 1, as Spark orders two values of one kind that are not NULL; NaN is the largest double.

    Raises
    ------
    UnsupportedQuery
        If they are of kinds that Spark would cast before it compares them, or have no order.
    """
    kinds = {_kind(left), _kind(right)}
    if len(kinds) > 1 or kinds & {dict, list}:
        raise UnsupportedQuery(
            f"{_shown(left)} and {_shown(right)} are of kinds that cannot be compared with an estimate's group",
            "SKIMQL_GROUP_COMPARISON",
            sql,
            hint="the condition in WHERE, or the CAST in GROUP BY",
        )
    left, right = (_beside(left, right), _beside(right, left))
    if isinstance(left, float) and math.isnan(left):
        return 0 if isinstance(right, float) and math.isnan(right) else 1
    if isinstance(right, float) and math.isnan(right):
        return -1
    return int(left > right) - int(left < right)


def padded(operands: Sequence[Expression], values: Sequence[Any], groups: Sequence[Group]) -> list[Any]:
    """Two values that are compared, as Spark pads them where one is of CHAR and the other of CHAR or a literal."""
    if not all(isinstance(v, str) for v in values):
        return list(values)
    chars = [isinstance(o, Grouped) and is_padded(groups[o.index].type or "") for o in operands]
    pads = any(chars) and all(c or isinstance(o, Constant) for c, o in zip(chars, operands, strict=True))
    if not pads:
        return list(values)
    length = max(map(len, values))
    return [v.ljust(length) for v in values]


def _beside(value: Any, other: Any) -> Any:
    """A value as it is compared: a double beside a decimal as the decimal that it is written as, 0.1 as DECIMAL 0.1."""
    if isinstance(value, float) and isinstance(other, (Decimal, Fraction)) and math.isfinite(value):
        return Fraction(repr(value))
    if _is_instant(value):
        # Python compares the wall clocks of two times of one zone: not their order where clocks are set back.
        return value - _EPOCH
    return Fraction(value) if isinstance(value, Decimal) and value.is_finite() else value


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _kind(value: Any) -> object:
    number = isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool)
    return Decimal if number else (datetime, UTC) if _is_instant(value) else type(value)


def _is_instant(value: Any) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _refused(sql: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        "this expression over group columns is Spark's to compute",
        "SKIMQL_GROUP_EXPRESSION",
        sql,
        hint="GROUP BY the whole expression",
    )
