"""What literals say about columns: constants carried along equalities, and filters that exclude one another.

Only plain columns compared with literals of their own kind are read, numbers with numbers and
binary-collated text with text, so that what is concluded here is what Spark would find. Of CHAR only equalities
are: blanks at the end do not count in them. Anything else is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from .bound import fragment_of
from .classes import INTEGERS, Equality, JoinClass, Key
from .fragment import Fragment
from .join_graph import Span
from .joined import Join
from .scope import Scope
from .types import INTEGRAL_DIGITS, MAX_PRECISION, is_padded

Value = Decimal | float | str

_OPERATORS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Fact:
    """``column operator literal`` in the filter of a vertex; IN has several values."""

    key: Key
    operator: str
    values: tuple[Value, ...]
    text: str
    span: Span


def facts_of(node: exp.Expr, scope: Scope, join: Join) -> Iterator[Fact]:
    """The facts in a one-table condition; none for a condition of another form."""
    if isinstance(node, exp.Between):
        for end, operator in ((node.args["low"], ">="), (node.args["high"], "<=")):
            yield from _fact(node.this, operator, [end], scope, join)
    elif isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        yield from _fact(node.this, "in", node.expressions, scope, join)
    elif type(node) in _OPERATORS and isinstance(node, exp.Binary):
        operator = _OPERATORS[type(node)]
        yield from _fact(node.left, operator, [node.right], scope, join)
        yield from _fact(node.right, _MIRRORED[operator], [node.left], scope, join)


def _fact(
    column: exp.Expr, operator: str, literals: list[exp.Expr], scope: Scope, join: Join
) -> Iterator[Fact]:
    if not isinstance(column.unnest(), exp.Column):
        return
    fragment = fragment_of(column.unnest(), scope)
    ref = fragment.column
    if ref is None:
        return
    kind = join.type_of(fragment)
    assert kind is not None
    if is_padded(kind) and operator not in ("=", "in"):
        return
    values = [_value(n, kind) for n in literals]
    known = tuple(v for v in values if v is not None)
    if len(known) == len(values):
        key = Key(ref.vertex, fragment, kind)
        span = scope.span_of(column)
        yield Fact(key, operator, known, scope.source.text_of(literals[0]), span)


def _value(node: exp.Expr, kind: str) -> Value | None:
    """The literal's value as Spark compares it with a column of that type; None if that is not plain."""
    inner = node.unnest()
    sign = 1
    if isinstance(inner, exp.Neg):
        sign, inner = -1, inner.this
    if not isinstance(inner, exp.Literal):
        return None
    if inner.is_string and is_padded(kind):
        return inner.name.rstrip(" ") if sign == 1 else None
    if inner.is_string:
        return inner.name if kind == "string" and sign == 1 else None
    if _is_double(inner):
        return None
    if kind in ("float", "double"):
        return sign * float(inner.name)
    if kind in INTEGERS or kind.startswith("decimal"):
        # Not multiplied: that would round to the digits of Decimal's context.
        value = Decimal(inner.name)
        return (value if sign == 1 else value.copy_negate()) if _fits(value, kind) else None
    return None


def _fits(value: Decimal, kind: str) -> bool:
    """Whether Spark compares the number with a column of that type without cutting digits off either."""
    precision, scale = (INTEGRAL_DIGITS[kind], 0) if kind in INTEGERS else _digits(kind)
    digits = value.as_tuple()
    behind = max(0, -int(digits.exponent))
    before = max(0, len(digits.digits) - behind)
    return max(precision - scale, before) + max(scale, behind) <= MAX_PRECISION


def _digits(kind: str) -> tuple[int, int]:
    precision, scale = kind[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def _is_double(literal: exp.Literal) -> bool:
    """A number with an exponent is a DOUBLE, in which Spark compares with less than all digits."""
    return not literal.is_string and "e" in literal.name.lower()


def always_false(node: exp.Expr) -> bool:
    """FALSE, NULL, or a comparison of two like literals that does not hold."""
    if isinstance(node, exp.Null):
        return True
    if isinstance(node, exp.Boolean):
        return not node.this
    if type(node) not in (*_OPERATORS, exp.NEQ) or not isinstance(node, exp.Binary):
        return False
    left, right = node.left.unnest(), node.right.unnest()
    if not isinstance(left, exp.Literal) or not isinstance(right, exp.Literal):
        return False
    if left.is_string != right.is_string or _is_double(left) or _is_double(right):
        return False
    one: Value = left.name if left.is_string else Decimal(left.name)
    other: Value = right.name if right.is_string else Decimal(right.name)
    if isinstance(node, exp.NEQ):
        return one == other
    return not _holds(one, _OPERATORS[type(node)], other)


def _holds(one: Value, operator: str, other: Value) -> bool:
    if operator == "=":
        return one == other
    less = bool(one < other)  # type: ignore[operator]  # one kind of value on both sides
    return {"<": less, "<=": less or one == other, ">": not less and one != other, ">=": not less}[operator]


def carried(facts: Iterable[Fact], joined: JoinClass) -> Iterator[tuple[Key, Fragment, Fact]]:
    """Equalities with a literal that the class carries to its other keys: ``a.k = 5 AND a.k = b.k``."""
    for fact in facts:
        if fact.operator != "=" or all(k.node != fact.key.node for k in joined.keys):
            continue
        for key in joined.keys:
            if key.node != fact.key.node and key.kind is not None and key.kind == fact.key.kind:
                condition = Fragment((*key.expression.pieces, f" = {fact.text}"))
                yield key, condition, Fact(key, "=", fact.values, fact.text, fact.span)


def implied_equalities(facts: Iterable[Fact], components: Iterable[frozenset[int]]) -> Iterator[Equality]:
    """Equalities that join parts of a disconnected graph: ``a.k = 5 AND b.k = 5`` makes ``a.k = b.k``.

    Time O(f^2) for f facts.
    """
    part_of = {v: number for number, part in enumerate(components) for v in part}
    if len(set(part_of.values())) < 2:
        return
    constants = [f for f in facts if f.operator == "=" and f.key.kind is not None]
    for i, one in enumerate(constants):
        for other in constants[:i]:
            same = one.values == other.values and one.key.kind == other.key.kind
            if same and part_of[one.key.vertex] != part_of[other.key.vertex]:
                yield Equality(other.key, one.key, one.span)


def contradiction(facts: Iterable[Fact]) -> Key | None:
    """A column whose facts no value meets, if there is one."""
    by_column: dict[tuple[int, str], list[Fact]] = {}
    for fact in facts:
        by_column.setdefault(fact.key.node, []).append(fact)
    return next((known[0].key for known in by_column.values() if _exclude(known)), None)


def _exclude(facts: list[Fact]) -> bool:
    """Whether no value meets all of them: by the listed values if there are some, else by the bounds."""
    listed = next((f.values for f in facts if f.operator in ("=", "in")), None)
    if listed is not None:
        return not any(all(_meets(value, fact) for fact in facts) for value in listed)
    lows = [f for f in facts if f.operator in (">", ">=")]
    highs = [f for f in facts if f.operator in ("<", "<=")]
    return any(
        not _holds(
            low.values[0], "<" if ">" in (low.operator, _MIRRORED[high.operator]) else "<=", high.values[0]
        )
        for low in lows
        for high in highs
    )


def _meets(value: Value, fact: Fact) -> bool:
    if fact.operator == "in":
        return any(value == v for v in fact.values)
    return _holds(value, fact.operator, fact.values[0])
