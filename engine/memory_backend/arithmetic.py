"""Arithmetic as Spark's in ANSI mode: result types by rule, overflow and division by zero are faults."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...parser.result_types import LARGEST_BIGINT, LEAST_SCALE, digits
from ...parser.types import INTEGRAL_DIGITS, MAX_PRECISION
from .casts import cast, to_precision
from .values import (
    MAX_DIGITS,
    Value,
    ValueFault,
    any_true,
    arrow_type,
    is_decimal,
    is_fraction,
    is_integer,
    is_number,
    not_known,
)


def arithmetic(sign: str, left: Value, right: Value) -> Value:
    """``left sign right`` for one of ``+ - * / % div``.

    Raises
    ------
    ValueFault
        If a result does not fit its type, or a divisor is 0.
    UnsupportedQuery
        For operands that are not known.
    """
    left, right = _numbers(left, right, sign)
    if sign == "div":
        return _whole_quotient(left, right)
    if is_fraction(left.kind) or is_fraction(right.kind):
        kind = "float" if left.kind == right.kind == "float" and sign != "/" else "double"
        return _fractions(sign, cast(left, kind), cast(right, kind), kind)
    if is_integer(left.kind) and is_integer(right.kind):
        if sign == "/":
            return _fractions(sign, cast(left, "double"), cast(right, "double"), "double")
        return _integers(sign, left, right)
    return _decimals(sign, _decimal_operand(left), _decimal_operand(right))


def negative(value: Value) -> Value:
    """``- value``."""
    if value.kind == "string":
        value = cast(value, "double")
    if not is_number(value.kind) and value.kind != "void":
        raise not_known(f"the negative of {value.kind}")
    return Value(
        value.kind, _checked(lambda: _narrow(pc.negate_checked(value.data), value.kind)), value.written
    )


def absolute(value: Value) -> Value:
    """``abs(value)``."""
    if not is_number(value.kind):
        raise not_known(f"abs of {value.kind}")
    return Value(value.kind, _checked(lambda: _narrow(pc.abs_checked(value.data), value.kind)))


def widest(kinds: list[str]) -> str:
    """The type that values have in common in CASE and COALESCE; UnsupportedQuery if none is known."""
    known = list(dict.fromkeys(k for k in kinds if k != "void"))
    if len(known) < 2:
        return known[0] if known else "void"
    if not all(map(is_number, known)):
        raise not_known(f"a common type of {' and '.join(known)}")
    if any(map(is_fraction, known)):
        return "double"
    if all(map(is_integer, known)):
        return max(known, key=INTEGRAL_DIGITS.__getitem__)
    sides = [digits(f"decimal({INTEGRAL_DIGITS[k]},0)" if is_integer(k) else k) for k in known]
    scale = max(s for _, s in sides)
    precision = max(p - s for p, s in sides) + scale
    if precision > MAX_PRECISION:
        raise not_known(f"a common type of {' and '.join(known)}")
    return f"decimal({precision},{scale})"


def rounded(value: Value, places: int, mode: str) -> Value:
    """A DECIMAL to so many digits behind the point, in the type that ROUND, FLOOR and CEIL give it."""
    precision, scale = digits(value.kind)
    if mode == "half_towards_infinity":
        passing = min(scale, places)
        kind = f"decimal({min(max(precision - scale + 1, 1) + passing, MAX_PRECISION)},{passing})"
        return Value(kind, to_precision(value.data.cast(pa.decimal256(precision, scale)), kind))
    # FLOOR and CEIL may carry over.
    kind = f"decimal({min(precision - scale + 1, MAX_PRECISION)},0)" if scale else value.kind
    wide = pc.round(value.data.cast(pa.decimal256(precision + 1, scale)), 0, mode)
    return Value(kind, to_precision(wide, kind))


def _numbers(left: Value, right: Value, sign: str) -> tuple[Value, Value]:
    """The operands as numbers: text beside a whole number is one too, beside others a DOUBLE."""
    kinds = {left.kind, right.kind}
    if kinds == {"void"}:
        raise not_known("arithmetic on nothing but NULL")
    for kind in kinds:
        if not is_number(kind) and kind not in ("string", "void"):
            raise not_known(f"arithmetic on {kind}")
    if "string" in kinds:
        (other,) = kinds - {"string"} or {"string"}
        kind = "bigint" if is_integer(other) and sign != "/" else "double"
        left, right = (cast(v, kind) if v.kind == "string" else v for v in (left, right))
    if left.kind == "void":
        left = cast(left, right.kind)
    if right.kind == "void":
        right = cast(right, left.kind)
    return left, right


def _integers(sign: str, left: Value, right: Value) -> Value:
    kind = max(left.kind, right.kind, key=INTEGRAL_DIGITS.__getitem__)
    a, b = cast(left, kind).data, cast(right, kind).data
    if sign == "%":
        return Value(kind, _remainder(a, b))
    function = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[sign]
    return Value(kind, _checked(lambda: function(a, b)))


def _fractions(sign: str, left: Value, right: Value, kind: str) -> Value:
    a, b = left.data, right.data
    if sign in ("/", "%"):
        _refuse_zero(a, b)
    if sign == "%":
        x, y, nulls = _simple(a, b)
        with np.errstate(all="ignore"):
            return Value(kind, pa.array(np.fmod(x, y), arrow_type(kind), mask=nulls))
    function = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}[sign]
    return Value(kind, function(a, b))


def _decimals(sign: str, left: Value, right: Value) -> Value:
    (p1, s1), (p2, s2) = digits(left.kind), digits(right.kind)
    a, b = left.data.cast(pa.decimal256(p1, s1)), right.data.cast(pa.decimal256(p2, s2))
    scale = max(s1, s2)
    if sign in ("+", "-"):
        kind = _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        found = (pc.add if sign == "+" else pc.subtract)(a, b)
    elif sign == "*":
        kind = _adjusted(p1 + p2 + 1, s1 + s2)
        if p1 + p2 + 1 > MAX_DIGITS:
            raise not_known(f"{left.kind} * {right.kind}")
        found = pc.multiply(a, b)
    elif sign == "%":
        _refuse_zero(a, b)
        kind = _adjusted(min(p1 - s1, p2 - s2) + scale, scale)
        quotient = pc.trunc(_quotient(a, b, 0))
        whole = quotient.cast(pa.decimal256(min(p1 - s1 + s2 + 1, MAX_DIGITS), 0))
        if whole.type.precision + p2 + 2 > MAX_DIGITS:
            raise not_known(f"{left.kind} % {right.kind}")
        found = pc.subtract(a, pc.multiply(whole, b))
    else:
        _refuse_zero(a, b)
        kind = _adjusted(p1 - s1 + s2 + max(LEAST_SCALE, s1 + p2 + 1), max(LEAST_SCALE, s1 + p2 + 1))
        # One digit more, cut off: what it says is all that rounding half up asks.
        found = _quotient(a, b, digits(kind)[1] + 1)
    return Value(kind, to_precision(found, kind))


def _quotient(a: pa.Array, b: pa.Array, scale: int) -> pa.Array:
    """a / b with at least `scale` digits behind the point, those beyond cut off; NULL where b is 0."""
    zero = pc.equal(b, pa.scalar(Decimal(0), b.type))
    b = pc.if_else(zero, pa.scalar(None, b.type), b)
    p1, s1, p2, s2 = a.type.precision, a.type.scale, b.type.precision, b.type.scale
    # Arrow's quotient has max(4, s1 + p2 - s2 + 1) digits behind the point.
    more = max(0, scale - (s1 + p2 - s2 + 1))
    if p1 - s1 + s2 + max(4, s1 + more + p2 - s2 + 1) > MAX_DIGITS or p1 + more > MAX_DIGITS:
        raise not_known(f"a quotient of decimals of {p1} and {p2} digits")
    return pc.divide(a.cast(pa.decimal256(p1 + more, s1 + more)), b)


def _whole_quotient(left: Value, right: Value) -> Value:
    """``left DIV right``: BIGINT, cut off."""
    if is_integer(left.kind) and is_integer(right.kind):
        a, b = cast(left, "bigint").data, cast(right, "bigint").data
        _refuse_zero(a, b)
        divisor = pc.if_else(pc.equal(b, 0), pa.scalar(None, pa.int64()), b)
        return Value("bigint", _checked(lambda: pc.divide_checked(a, divisor)))
    if is_fraction(left.kind) or is_fraction(right.kind):
        raise not_known("DIV of doubles")
    operands = [_decimal_operand(v) for v in (left, right)]
    a, b = (v.data.cast(pa.decimal256(*digits(v.kind))) for v in operands)
    _refuse_zero(a, b)
    whole = pc.cast(pc.trunc(_quotient(a, b, 0)), pa.decimal256(MAX_DIGITS, 0), safe=False)
    if any_true(pc.greater(pc.abs(whole), pa.scalar(Decimal(LARGEST_BIGINT), whole.type))):
        raise not_known("DIV beyond 64 bits")  # Spark cuts off the highest bits
    return cast(Value("decimal(38,0)", to_precision(whole, "decimal(38,0)")), "bigint")


def _remainder(a: pa.Array, b: pa.Array) -> pa.Array:
    """With the sign of the dividend."""
    _refuse_zero(a, b)
    x, y, nulls = _simple(a, b)
    y = np.where(y == 0, 1, y)
    # The smallest integer by -1 leaves 64 bits.
    return pa.array(
        np.where(y == -1, 0, np.fmod(x, np.where(y == -1, 1, y))).astype(x.dtype), a.type, mask=nulls
    )


def _simple(a: pa.Array, b: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nulls = pc.or_(a.is_null(), b.is_null()).to_numpy(zero_copy_only=False)
    zero = pa.scalar(0, a.type)
    return (
        a.fill_null(zero).to_numpy(zero_copy_only=False),
        b.fill_null(zero).to_numpy(zero_copy_only=False),
        nulls,
    )


def _refuse_zero(a: pa.Array, b: pa.Array) -> None:
    zero = pa.scalar(Decimal(0) if pa.types.is_decimal(b.type) else 0, b.type)
    if any_true(pc.and_(a.is_valid(), pc.equal(b, zero))):
        raise ValueFault("division by zero")


def _decimal_operand(value: Value) -> Value:
    """A whole number beside a DECIMAL is one; a written one has only its own digits."""
    if not is_integer(value.kind):
        return value
    return cast(value, f"decimal({value.written or INTEGRAL_DIGITS[value.kind]},0)")


def _adjusted(precision: int, scale: int) -> str:
    """A DECIMAL of at most 38 digits, those before the point first, but for the least scale."""
    if precision <= MAX_PRECISION:
        return f"decimal({precision},{scale})"
    least = min(scale, LEAST_SCALE)
    return f"decimal({MAX_PRECISION},{max(MAX_PRECISION - (precision - scale), least)})"


def _narrow(data: pa.Array, kind: str) -> pa.Array:
    return data if is_decimal(kind) or data.type == arrow_type(kind) else data.cast(arrow_type(kind))


def _checked(made: Callable[[], pa.Array]) -> pa.Array:
    try:
        return made()
    except pa.ArrowInvalid as fault:
        raise ValueFault(f"arithmetic overflow: {fault}") from fault
