"""Conjuncts of ON and WHERE: what one table decides becomes its filter, ``=`` between two tables a join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import SkimqlError
from .bound import bound_fragment, fragment_of
from .classes import Equality, Key
from .facts import Fact, always_false, facts_of
from .fragment import Fragment, join_fragments
from .joined import Join, NamedEquality
from .scope import EXACT, Scope

_COMPARISONS = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NEQ: "<>"}
_SIMPLE = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Is,
    exp.Not,
    exp.In,
    exp.Between,
    exp.Connector,
    exp.Paren,
    exp.Neg,
)


@dataclass(slots=True)
class Conditions:
    """Filters of each vertex in the user's order, and the equalities between vertices."""

    filters: dict[int, dict[str, None]] = field(default_factory=dict)
    equalities: list[Equality] = field(default_factory=list)
    ordered: set[int] = field(default_factory=set)
    facts: list[Fact] = field(default_factory=list)
    empty: str = ""

    def add_filter(self, vertex: int, condition: Fragment, *, movable: bool) -> None:
        """AND `condition` to the vertex's filter; one that could fail on some tuples keeps its place."""
        self.filters.setdefault(vertex, {})[condition.sql] = None
        if not movable:
            self.ordered.add(vertex)

    def filter_of(self, vertex: int) -> str | None:
        """The canonical filter: conjuncts sorted, unless moving one before another could raise an error."""
        texts = list(self.filters.get(vertex, ()))
        if not texts:
            return None
        if vertex not in self.ordered:
            texts.sort()
        return " AND ".join(texts)


def read_conditions(join: Join) -> Conditions:
    """Sort every condition of the join.

    Raises
    ------
    UnsupportedQuery
        For a condition over several tables that is not an equality of one expression each.
    """
    conditions = Conditions()
    for condition in join.conditions:
        if isinstance(condition, NamedEquality):
            _add_named(condition, join, conditions)
        else:
            for node in conjuncts(condition.node):
                _sort(node, condition.scope, join, conditions)
    return conditions


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of AND, through parentheses; any number of them."""
    return _operands(node, exp.And)


def _operands(node: exp.Expr, connector: type[exp.Connector]) -> Iterator[exp.Expr]:
    stack = [node]
    while stack:
        inner = stack.pop().unnest()
        if isinstance(inner, connector):
            stack += [inner.right, inner.left]
        else:
            yield inner


def _add_named(named: NamedEquality, join: Join, conditions: Conditions) -> None:
    """USING: as ``left.k = right.k``, where a side may be an expression of a subquery, or a constant."""
    sides = [bound_fragment(named.left), bound_fragment(named.right)]
    keys = [Key(next(iter(s.vertices), -1), s, join.type_of(s)) for s in sides]
    constant = next((k for k in keys if k.vertex < 0), None)
    if constant is not None:
        text = f"{sides[0].wrapped().sql} = {sides[1].wrapped().sql}"
        vertex = max(0, *(k.vertex for k in keys))
        conditions.add_filter(vertex, Fragment((text,)), movable=False)
        return
    conditions.equalities.append(Equality(keys[0], keys[1], named.span))


def _sort(node: exp.Expr, scope: Scope, join: Join, conditions: Conditions) -> None:
    if _is_true(node):
        # Also what sqlglot puts where a JOIN has no ON, which has no place in the text.
        return
    whole = fragment_of(node, scope)
    vertices = whole.vertices
    if len(vertices) > 1:
        if not (isinstance(node, exp.Or) and _sort_factored(node, scope, join, conditions)):
            conditions.equalities.append(_equality(node, scope, join))
        return
    if always_false(node):
        conditions.empty = "a condition is always false"
    conditions.facts.extend(facts_of(node, scope, join))
    vertex = next(iter(vertices), 0)
    condition = whole.wrapped() if isinstance(node, exp.Or) else whole
    conditions.add_filter(vertex, condition, movable=cannot_fail(node, scope, join))


def _sort_factored(node: exp.Or, scope: Scope, join: Join, conditions: Conditions) -> bool:
    """``(p AND q) OR (p AND r)`` as ``p AND (q OR r)``, where what is left of the OR reads one table.

    Returns whether it was of that form; Spark factors so too, and NULLs come out the same.
    """
    branches = [
        {fragment_of(c, scope).pieces: c for c in conjuncts(branch)} for branch in _operands(node, exp.Or)
    ]
    common = [c for pieces, c in branches[0].items() if all(pieces in b for b in branches)]
    shared = {fragment_of(c, scope).pieces for c in common}
    rests = [[fragment_of(c, scope) for p, c in b.items() if p not in shared] for b in branches]
    vertices = {v for rest in rests for part in rest for v in part.vertices}
    if not common or len(vertices) > 1:
        return False
    for condition in common:
        _sort(condition, scope, join, conditions)
    if all(rests):
        either = join_fragments([join_fragments(rest, " AND ") for rest in rests], " OR ")
        conditions.add_filter(next(iter(vertices), 0), either.wrapped(), movable=False)
    return True


def _is_true(node: exp.Expr) -> bool:
    """TRUE, or a literal equal to itself, as in ``WHERE 1 = 1``."""
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    return isinstance(node, exp.EQ) and isinstance(node.left, exp.Literal) and node.left == node.right


def cannot_fail(node: exp.Expr, scope: Scope, join: Join) -> bool:
    """Whether Spark evaluates it on any tuple without error: columns compared with like literals."""
    if not all(isinstance(n, _SIMPLE) for n in node.walk()):
        return False
    if not all(isinstance(n.this, exp.Literal) for n in node.find_all(exp.Neg)):
        return False
    types = {join.type_of(fragment_of(c, scope)) for c in node.find_all(exp.Column)}
    if None in types:
        return False
    numbers = any(not n.is_string for n in node.find_all(exp.Literal))
    return not (numbers and any(not _is_number(t) for t in types if t is not None)) and not (
        any(n.is_string for n in node.find_all(exp.Literal))
        and any(_is_number(t) for t in types if t is not None)
    )


def _is_number(name: str) -> bool:
    return name in ("tinyint", "smallint", "int", "bigint", "float", "double") or name.startswith("decimal")


def _equality(node: exp.Expr, scope: Scope, join: Join) -> Equality:
    """A condition over several vertices, which must be ``=`` of one expression each."""
    if not isinstance(node, exp.EQ) or _is_loose(node.left, scope) or _is_loose(node.right, scope):
        raise _refusal(node, scope)
    sides = [fragment_of(side.unnest(), scope) for side in (node.left, node.right)]
    for expression, side in zip(sides, (node.left, node.right), strict=True):
        if len(expression.vertices) != 1:
            reads = " and ".join(_aliases(expression, join)) or "no table"
            raise scope.fault(
                f"each side of '=' must read one table; this reads {reads}", "SKIMQL_MIXED_KEY", side, EXACT
            )
        if isinstance(side.unnest(), exp.Tuple):
            message = "rows cannot be join keys"
            raise scope.fault(
                message,
                "SKIMQL_KEY_TYPES",
                side,
                f"{EXACT}, or compare their columns one by one where none is NULL",
            )
    keys = [Key(next(iter(e.vertices)), e, join.type_of(e)) for e in sides]
    return Equality(keys[0], keys[1], scope.span_of(node))


def _is_loose(side: exp.Expr, scope: Scope) -> bool:
    """A predicate without parentheses as an operand: Spark may bind it otherwise (``a = b IS NULL``)."""
    first, _ = scope.source.token_range(side)
    return (
        isinstance(side.unnest(), exp.Predicate | exp.Not | exp.Connector)
        and scope.source.tokens[first].text != "("
    )


def _aliases(expression: Fragment, join: Join) -> list[str]:
    return [join.occurrences[v].alias for v in sorted(expression.vertices)]


def _refusal(node: exp.Expr, scope: Scope) -> SkimqlError:
    if isinstance(node, exp.NullSafeEQ):
        sign = "<=>" if "<=>" in scope.source.text_of(node) else "IS NOT DISTINCT FROM"
        message = f"null-safe equality {sign} between tables cannot be estimated; SkimQL joins on '='"
        return scope.fault(message, "SKIMQL_NULL_SAFE_JOIN", node, EXACT)
    if isinstance(node, exp.Or):
        return scope.fault(
            "OR between tables cannot be estimated; SkimQL joins on equality, ANDed",
            "SKIMQL_OR_JOIN",
            node,
            EXACT,
        )
    sign = next((s for kind, s in _COMPARISONS.items() if isinstance(node, kind)), "")
    if sign:
        message = f"join on '{sign}' cannot be estimated; SkimQL joins on equality"
        return scope.fault(message, "SKIMQL_NON_EQUI_JOIN", node, EXACT)
    message = "a condition over several tables cannot be estimated unless it is an equality"
    return scope.fault(message, "SKIMQL_CROSS_PREDICATE", node, EXACT)
