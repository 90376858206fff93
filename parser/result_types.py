"""The Spark type of a result column, without asking Spark.

The rules are those of Spark 4's analyser; the tests hold them against analysed queries. None stands for what only Spark
knows: functions, text in arithmetic, intervals. Types are ``simpleString`` forms.
"""

from __future__ import annotations

from sqlglot import exp

from .expressions import BOUNDS
from .scope import Scope
from .types import FRACTIONAL, INTEGRAL_DIGITS, MAX_PRECISION

# What a DECIMAL keeps behind the point where both sides of it do not fit.
LEAST_SCALE = 6
LARGEST_INT, LARGEST_BIGINT = (1 << 31) - 1, (1 << 63) - 1

_CONDITIONS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def type_of(node: exp.Expr, scope: Scope) -> str | None:
    """The type of an expression of the SELECT list, aggregates in it or not; None where only Spark knows it."""
    match node:
        case exp.Paren() | exp.Alias() | exp.Filter() | exp.Neg() | exp.Abs():
            return type_of(node.this, scope)
        case exp.Column():
            return _column(node, scope)
        case exp.Literal():
            return "string" if node.is_string else _literal(node.name)
        case exp.Null():
            return "void"
        case exp.Count():
            return "bigint"
        case exp.Sum() | exp.Avg():
            return summed(type_of(node.this, scope), average=isinstance(node, exp.Avg))
        case exp.Cast() | exp.TryCast():
            return _named(node.to)
        case exp.Case() | exp.If():
            return _widest([type_of(value, scope) for value in _values(node)])
        case exp.Coalesce():
            return _widest([type_of(value, scope) for value in (node.this, *node.expressions)])
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic(node, scope)
        case exp.Anonymous() if node.name.lower() in BOUNDS:
            return "double"
    return "boolean" if isinstance(node, _CONDITIONS) else None


def summed(kind: str | None, *, average: bool = False) -> str | None:
    """The type of SUM, or AVG, of values of a type."""
    if kind is not None and kind.startswith("decimal"):
        precision, scale = digits(kind)
        more = 4 if average else 10
        return _bounded(precision + more, scale + 4 if average else scale)
    if kind in INTEGRAL_DIGITS:
        return "double" if average else "bigint"
    return "double" if kind in (*FRACTIONAL, "string", "void") else None


def digits(name: str) -> tuple[int, int]:
    """Precision and scale of ``decimal(p,s)``."""
    if "(" not in name:
        return 10, 0
    precision, scale = name[name.index("(") + 1 : -1].split(",")
    return int(precision), int(scale)


def _column(node: exp.Column, scope: Scope) -> str | None:
    output, used = scope.resolve(node)
    if used < len(node.parts):
        return None
    if output.type is not None:
        return "string" if output.type.startswith(("char(", "varchar(")) else output.type
    return None if not isinstance(output.bound, tuple) else type_of(*output.bound)


def _literal(text: str) -> str:
    if "e" in text.lower():
        return "double"
    whole, point, fraction = text.partition(".")
    if not point:
        number = int(whole)
        if number <= LARGEST_BIGINT:
            return "int" if number <= LARGEST_INT else "bigint"
        return f"decimal({len(str(number))},0)"
    scale = len(fraction)
    return f"decimal({max(len((whole + fraction).lstrip('0')), scale, 1)},{scale})"


def _named(kind: exp.DataType) -> str | None:
    name = kind.sql("spark").lower().replace(" ", "")
    return "decimal(10,0)" if name == "decimal" else name if "<" not in name else None


def _values(node: exp.Expr) -> list[exp.Expr]:
    """What a CASE or IF may give."""
    if isinstance(node, exp.If):
        return [node.args["true"], node.args.get("false") or exp.Null()]
    return [*(i.args["true"] for i in node.args["ifs"]), node.args.get("default") or exp.Null()]


def _widest(kinds: list[str | None]) -> str | None:
    """The common type of values; None for what only Spark widens."""
    known = {k for k in kinds if k != "void"}
    if not known:
        return "void"
    if len(known) == 1:
        return known.pop()
    if None in known or not all(_is_number(k) for k in known if k is not None):
        return None
    if any(k in FRACTIONAL for k in known):
        return "double"
    if all(k in INTEGRAL_DIGITS for k in known):
        return max((k for k in known if k is not None), key=INTEGRAL_DIGITS.__getitem__)
    sides = [digits(_as_decimal(k)) for k in known if k is not None]
    scale = max(s for _, s in sides)
    precision = max(p - s for p, s in sides) + scale
    excess = max(0, precision - MAX_PRECISION)
    return f"decimal({precision - excess},{max(0, scale - excess)})"


def _arithmetic(node: exp.Expr, scope: Scope) -> str | None:
    left, right = type_of(node.left, scope), type_of(node.right, scope)
    if left is None or right is None or not (_is_number(left) and _is_number(right)):
        return None
    if left in FRACTIONAL or right in FRACTIONAL:
        return "double"
    if left in INTEGRAL_DIGITS and right in INTEGRAL_DIGITS:
        return "double" if isinstance(node, exp.Div) else max(left, right, key=INTEGRAL_DIGITS.__getitem__)
    (p1, s1), (p2, s2) = digits(_operand(node.left, left)), digits(_operand(node.right, right))
    if isinstance(node, exp.Mul):
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if isinstance(node, exp.Div):
        scale = max(LEAST_SCALE, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    if isinstance(node, exp.Mod):
        return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _operand(node: exp.Expr, kind: str) -> str:
    """The DECIMAL that an operand beside a DECIMAL is: a whole number that is written has only its own digits."""
    written = node.unnest()
    if isinstance(written, exp.Literal) and kind in INTEGRAL_DIGITS:
        return f"decimal({len(str(int(written.name)))},0)"
    return _as_decimal(kind)


def _as_decimal(kind: str) -> str:
    return f"decimal({INTEGRAL_DIGITS[kind]},0)" if kind in INTEGRAL_DIGITS else kind


def _adjusted(precision: int, scale: int) -> str:
    """A DECIMAL of at most 38 digits, those before the point first, but for the least scale."""
    if precision <= MAX_PRECISION:
        return f"decimal({precision},{scale})"
    least = min(scale, LEAST_SCALE)
    return f"decimal({MAX_PRECISION},{max(MAX_PRECISION - (precision - scale), least)})"


def _bounded(precision: int, scale: int) -> str:
    return f"decimal({min(precision, MAX_PRECISION)},{min(scale, MAX_PRECISION)})"


def _is_number(kind: str) -> bool:
    return kind in INTEGRAL_DIGITS or kind in FRACTIONAL or kind.startswith("decimal")
