"""Outer joins that later conditions make inner: a condition that no NULL-padded tuple can meet.

``x LEFT JOIN y ON ... WHERE y.m > 0`` keeps no tuple of x without a partner, so it is an inner join. A
condition is judged by its form alone: comparisons, LIKE, IN and BETWEEN of an expression that is NULL
whenever y's columns are, and IS NOT NULL of one.
"""

from __future__ import annotations

from sqlglot import exp

from .fragment import Ref
from .joined import Conjunct, Join, NamedEquality
from .scope import EXACT, Output, Scope

_STRICT = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.IntDiv,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.Between,
)
_TRANSPARENT = (exp.Paren, exp.Neg, exp.Cast, exp.TryCast)


def refuse_outer_joins(join: Join, scope: Scope) -> None:
    """Refuse every outer join that stays one.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_OUTER_JOIN``, at the join.

    Notes
    -----
    An outer join made inner makes its own ON a condition on every result, which may make another inner.
    """
    made_inner: set[int] = set()
    found = True
    while found:
        found = False
        for index, outer in enumerate(join.outer_joins):
            if index in made_inner:
                continue
            above = [c for c in join.conditions[outer.above :] if c.origin is None or c.origin in made_inner]
            if all(any(_rejects(c, side) for c in above) for side in outer.nullable):
                made_inner.add(index)
                found = True
    for index, outer in enumerate(join.outer_joins):
        if index not in made_inner:
            raise scope.fault(
                f"{outer.words} cannot be estimated; SkimQL joins on equality, inner joins only",
                "SKIMQL_OUTER_JOIN",
                outer.span,
                EXACT,
            )


def _rejects(condition: Conjunct | NamedEquality, side: frozenset[int]) -> bool:
    if isinstance(condition, NamedEquality):
        return any(_output_is_null(o, side) for o in (condition.left, condition.right))
    return _never_true(condition.node, condition.scope, side)


def _never_true(node: exp.Expr, scope: Scope, side: frozenset[int]) -> bool:
    """Whether the condition is false or NULL when every column of `side` is NULL."""
    if isinstance(node, exp.Paren):
        return _never_true(node.this, scope, side)
    if isinstance(node, exp.And):
        return _never_true(node.left, scope, side) or _never_true(node.right, scope, side)
    if isinstance(node, exp.Or):
        return _never_true(node.left, scope, side) and _never_true(node.right, scope, side)
    if isinstance(node, exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return _is_null(inner.this, scope, side)
        return _is_null(inner, scope, side)
    if isinstance(node, exp.Is):
        return isinstance(node.expression, exp.Boolean) and _is_null(node.this, scope, side)
    return _is_null(node, scope, side)


def _is_null(node: exp.Expr, scope: Scope, side: frozenset[int]) -> bool:
    """Whether the expression is NULL when every column of `side` is NULL."""
    if isinstance(node, exp.Column):
        return _output_is_null(scope.resolve(node)[0], side)
    if isinstance(node, exp.In):
        return not node.args.get("query") and _is_null(node.this, scope, side)
    if isinstance(node, _TRANSPARENT):
        return _is_null(node.this, scope, side)
    if isinstance(node, _STRICT):
        return any(_is_null(part, scope, side) for part in node.iter_expressions())
    return False


def _output_is_null(output: Output, side: frozenset[int]) -> bool:
    if not output.strict:
        return False
    if isinstance(output.bound, Ref):
        return output.bound.vertex in side
    node, scope = output.bound
    return _is_null(node, scope, side)
