"""Between which numbers the value of an expression lies, by what its columns lie between.

Interval arithmetic over the few operators that sums are made of; anything else is between minus and plus infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from ...optimizer.plan import Weight

_INTEGER_BITS = {
    exp.DataType.Type.TINYINT: 8,
    exp.DataType.Type.SMALLINT: 16,
    exp.DataType.Type.INT: 32,
    exp.DataType.Type.BIGINT: 64,
}
_REAL = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)

# What rounding may add to a value of which no more is known, relative to it, or to one.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`; of integers with the bits they are kept in, None for any other type."""

    low: float = -math.inf
    high: float = math.inf
    bits: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


ANY = Range()


def weight_range(weight: Weight, column: Callable[[str], Range]) -> tuple[float, float]:
    """What a tuple can add to a synopsis, where `column` tells what a column of its table lies between.

    A NULL adds nothing. A column that may have a NaN has no range: what is computed of it lies anywhere.
    """
    if weight.expression is None:
        return 1.0, 1.0
    if weight.presence:
        return 0.0, 1.0
    found = value_range(weight.expression, column)
    return min(found.low, 0.0), max(found.high, 0.0)


def value_range(expression: str, column: Callable[[str], Range]) -> Range:
    """Between which the values of an expression lie that are not NULL, as `weight_range`."""
    parsed = _parsed(expression)
    return ANY if parsed is None else _range(parsed, column)


@lru_cache(maxsize=512)
def _parsed(expression: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(expression, dialect="spark")
    except (SqlglotError, RecursionError):
        return None


def _range(node: exp.Expr, column: Callable[[str], Range]) -> Range:
    match node:
        case exp.Column():
            return column(node.name) if len(node.parts) == 1 else ANY
        case exp.Literal() if not node.is_string:
            return _literal(node.name)
        case exp.Paren():
            return _range(node.this, column)
        case exp.Neg():
            inner = _range(node.this, column)
            return _fitting(Range(-inner.high, -inner.low, inner.bits))
        case exp.Abs():
            inner = _range(node.this, column)
            least = 0.0 if inner.low <= 0.0 <= inner.high else min(abs(inner.low), abs(inner.high))
            return _fitting(Range(least, max(abs(inner.low), abs(inner.high)), inner.bits))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _arithmetic(node, _range(node.this, column), _range(node.expression, column))
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return _hull([_range(n, column) for n in (node.this, *node.expressions)])
        case exp.Case():
            results = [branch.args["true"] for branch in node.args["ifs"]]
            rest = node.args.get("default")
            return _hull([_range(n, column) for n in (*results, *([rest] if rest is not None else []))])
        case exp.If():
            rest = node.args.get("false")
            return _hull(
                [_range(n, column) for n in (node.args["true"], *([rest] if rest is not None else []))]
            )
        case exp.Cast() | exp.TryCast():
            return _cast(_range(node.this, column), node.to)
        case exp.Null():
            # Of any type: it takes that of what stands beside it.
            return Range(0.0, 0.0, 8)
    return ANY


def _literal(text: str) -> Range:
    try:
        value = float(text)
    except ValueError:
        return ANY
    if text.isdigit():
        return Range(value, value, 32 if value < 2**31 else 64)
    return Range(value, value)


def _arithmetic(node: exp.Expr, left: Range, right: Range) -> Range:
    if not left.bounded or not right.bounded:
        return ANY
    bits = max(left.bits, right.bits) if left.bits is not None and right.bits is not None else None
    if isinstance(node, exp.Add):
        found = Range(left.low + right.low, left.high + right.high, bits)
    elif isinstance(node, exp.Sub):
        found = Range(left.low - right.high, left.high - right.low, bits)
    else:
        ends = (left.low, left.high), (right.low, right.high)
        if isinstance(node, exp.Div):
            if right.low <= 0.0 <= right.high:
                return ANY
            ends, bits = (ends[0], (1.0 / right.low, 1.0 / right.high)), None
        products = [a * b for a in ends[0] for b in ends[1]]
        found = Range(min(products), max(products), bits)
    return _fitting(found if bits is not None else _rounded(found))


def _cast(inner: Range, to: exp.DataType) -> Range:
    if to.this in _REAL:
        return _rounded(Range(inner.low, inner.high))
    if to.this in _INTEGER_BITS and inner.bounded:
        return _fitting(Range(math.floor(inner.low), math.ceil(inner.high), _INTEGER_BITS[to.this]))
    if to.this == exp.DataType.Type.DECIMAL and inner.bounded:
        # At most a unit of the last place, which is at most one.
        return _rounded(Range(inner.low - 1.0, inner.high + 1.0))
    return ANY


def _rounded(found: Range) -> Range:
    # Of decimals of many digits Spark keeps six behind the point at least, so that more may be added than that part.
    slack = _ROUNDING * max(abs(found.low), abs(found.high), 1.0)
    return Range(found.low - slack, found.high + slack) if math.isfinite(slack) else found


def _fitting(found: Range) -> Range:
    """The range, unless integers may leave their type and come out anywhere."""
    if found.bits is None:
        return found
    most = float(1 << (found.bits - 1))
    return found if -most <= found.low and found.high < most else ANY


def _hull(parts: Sequence[Range]) -> Range:
    bits = [p.bits for p in parts]
    kept = max(b for b in bits if b is not None) if None not in bits else None
    return Range(min(p.low for p in parts), max(p.high for p in parts), kept)
