"""Comparisons in the type that Spark casts both sides to."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...parser.types import common_type
from .casts import cast
from .values import Value, is_decimal, is_fraction, not_known, repeated


def compare(sign: str, left: Value, right: Value, zone: str = "UTC") -> Value:
    """A comparison in the type that Spark casts both sides to; NaN equals itself and is above every number.

    Raises
    ------
    UnsupportedQuery
        If Spark does not compare the two, or in a type that is not known here.
    """
    kind = common_type(left.kind, right.kind, ansi=True).type
    if kind is None:
        raise not_known(f"{left.kind} {sign} {right.kind}")
    if kind == "void":
        return repeated("boolean", None, len(left))
    a, b = cast(left, kind, zone).data, cast(right, kind, zone).data
    if kind == "boolean":
        a, b = a.cast(pa.int8()), b.cast(pa.int8())
    if is_decimal(kind):
        a, b = (
            a.cast(pa.decimal256(a.type.precision, a.type.scale)),
            b.cast(pa.decimal256(b.type.precision, b.type.scale)),
        )
    if is_fraction(kind):
        return Value("boolean", _compare_fractions(sign, a, b))
    return Value("boolean", _COMPARE[sign](a, b))


_COMPARE = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compare_fractions(sign: str, a: pa.Array, b: pa.Array) -> pa.Array:
    match sign:
        case "=":
            return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))
        case "<":
            return pc.or_(pc.less(a, b), pc.and_(pc.invert(pc.is_nan(a)), pc.is_nan(b)))
        case ">":
            return _compare_fractions("<", b, a)
        case "<>":
            return pc.invert(_compare_fractions("=", a, b))
        case "<=":
            return pc.invert(_compare_fractions("<", b, a))
    return pc.invert(_compare_fractions("<", a, b))
