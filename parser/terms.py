"""Arguments of aggregates to terms: a sum over joined tuples of products with one factor per table.

``SUM(a.x + b.y)`` is two terms, ``x * present(y)`` and ``present(x) * y``, since the sum skips a tuple in
which either is NULL. A part that reads one table is one factor however it is written; ``+``, ``-``, ``*``
and CASE between tables are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from .fragment import Fragment, Ref, join_fragments
from .join_graph import Factor, Term
from .scope import EXACT, Scope


@dataclass(frozen=True, slots=True)
class Guard:
    """A one-table condition under which alone a product counts, and its other parts are evaluated.

    `holds` is false where they count unless the condition is true, as behind a WHEN that was not taken.
    """

    vertex: int
    test: Fragment
    holds: bool = True

    def around(self, value: str) -> str:
        """The value where the guard lets it be evaluated, else NULL, in the value's own type."""
        then = f"{value} END" if self.holds else f"NULL ELSE {value} END"
        return f"CASE WHEN {self.test.sql} THEN {then}"


@dataclass(frozen=True, slots=True)
class Product:
    """Signed product of one-table parts, by vertex; constants stand at vertex -1 until they find a place.

    `literals` are the parts that are never NULL. `guards` are asked before the parts, the first of them first.
    """

    sign: float
    parts: tuple[tuple[int, Fragment], ...]
    literals: frozenset[str] = frozenset()
    guards: tuple[Guard, ...] = ()

    def times(self, other: Product) -> Product:
        return Product(
            self.sign * other.sign,
            self.parts + other.parts,
            self.literals | other.literals,
            self.guards + other.guards,
        )

    def negated(self) -> Product:
        return replace(self, sign=-self.sign)

    def guarded(self, guards: Sequence[Guard]) -> Product:
        """The product behind more guards, which are asked before its own."""
        return replace(self, guards=(*guards, *self.guards))

    def at(self, vertex: int) -> list[Fragment]:
        return [f for v, f in self.parts if v == vertex]

    def nullable_at(self, vertex: int) -> list[Fragment]:
        return [f for f in self.at(vertex) if f.sql not in self.literals]

    def behind_guards(self, vertex: int, value: str) -> str:
        """A value of one vertex, evaluated only where the guards on it allow."""
        for guard in reversed([g for g in self.guards if g.vertex == vertex]):
            value = guard.around(value)
        return value

    @property
    def vertices(self) -> set[int]:
        """Where its parts and guards are."""
        return {v for v, _ in self.parts} | {g.vertex for g in self.guards}

    @property
    def is_zero(self) -> bool:
        """Whether a literal 0 is among its parts."""
        return any(f.sql in self.literals and f.sql.strip("(). ") in ("0", "0.0") for _, f in self.parts)


# A sum of products that counts where all its parts are present.
Sum = list[Product]


def sum_terms(branches: Sequence[Sum]) -> tuple[Term, ...]:
    """The terms of SUM over exclusive branches."""
    return tuple(t for products in branches for t in _sum_terms(products))


def presence_terms(branches: Sequence[Sum]) -> tuple[Term, ...]:
    """The terms that count the tuples in which the expression is not NULL."""
    return tuple(_presence(products) for products in branches)


def split_branches(node: exp.Expr, scope: Scope) -> list[Sum]:
    """The expression as exclusive branches of sums: one, unless it is a CASE between tables.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_CROSS_EXPRESSION`` for what mixes tables in another way.
    """
    if len(scope.fragment(node).vertices) <= 1:
        return [split(node, scope)]
    bound = _behind_column(node, scope)
    if bound is not None:
        return split_branches(*bound)
    if isinstance(node, exp.Paren):
        return split_branches(node.this, scope)
    if isinstance(node, exp.Case) and node.this is None:
        return _case_branches(node.args["ifs"], node.args.get("default"), scope)
    if isinstance(node, exp.If):
        return _case_branches([node], node.args.get("false"), scope)
    return [split(node, scope)]


def _case_branches(ifs: list[exp.If], default: exp.Expr | None, scope: Scope) -> list[Sum]:
    """``CASE WHEN c THEN a ELSE b END``: a where c is true, b where it is not; the guards are factors."""
    failed: list[Guard] = []
    branches: list[Sum] = []
    for when in ifs:
        condition = guard(when.this, scope)
        branches.append(_guarded(split(when.args["true"], scope), [*failed, condition]))
        failed.append(replace(condition, holds=False))
    if default is not None and not isinstance(default, exp.Null):
        branches.append(_guarded(split(default, scope), failed))
    return branches


def guard(condition: exp.Expr, scope: Scope) -> Guard:
    """The guard of a one-table condition.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_CROSS_EXPRESSION`` for a condition on several tables.
    """
    test = scope.fragment(condition)
    if len(test.vertices) > 1:
        raise scope.fault(
            "a condition on several tables inside an aggregate cannot be estimated",
            "SKIMQL_CROSS_EXPRESSION",
            condition,
            EXACT,
        )
    return Guard(next(iter(test.vertices), -1), test)


def _guarded(products: Sum, guards: Sequence[Guard]) -> Sum:
    return [p.guarded(guards) for p in products]


def guarded(branches: Sequence[Sum], condition: Guard) -> list[Sum]:
    """Every branch where the condition holds, as FILTER (WHERE ...) asks."""
    return [_guarded(products, [condition]) for products in branches]


def split(node: exp.Expr, scope: Scope) -> Sum:
    """The expression as a sum of products of one-table parts."""
    whole = scope.fragment(node)
    if len(whole.vertices) <= 1:
        vertex = next(iter(whole.vertices), -1)
        literals = [whole.sql] if isinstance(node.unnest(), exp.Literal) else []
        return [Product(1.0, ((vertex, whole),), frozenset(literals))]
    bound = _behind_column(node, scope)
    if bound is not None:
        return split(*bound)
    if isinstance(node, exp.Paren):
        return split(node.this, scope)
    if isinstance(node, exp.Neg):
        return [p.negated() for p in split(node.this, scope)]
    if isinstance(node, exp.Add):
        return split(node.left, scope) + split(node.right, scope)
    if isinstance(node, exp.Sub):
        return split(node.left, scope) + [p.negated() for p in split(node.right, scope)]
    if isinstance(node, exp.Mul):
        return [p.times(q) for p in split(node.left, scope) for q in split(node.right, scope)]
    raise scope.fault(
        "an expression over several tables cannot be split; SkimQL splits +, - and * between tables",
        "SKIMQL_CROSS_EXPRESSION",
        node,
        EXACT,
    )


def _behind_column(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, Scope] | None:
    """What a column of a subquery stands for, if it is an expression there."""
    if not isinstance(node, exp.Column):
        return None
    output, used = scope.resolve(node)
    if used != len(node.parts) or isinstance(output.bound, Ref):
        return None
    return output.bound


def _placed(products: Sum) -> Sum:
    """Constants moved to a vertex of their product, or to the first vertex if there is none."""
    placed = []
    for product in products:
        home = min((v for v in product.vertices if v >= 0), default=0)
        parts = tuple((home if v < 0 else v, f) for v, f in product.parts)
        guards = tuple(replace(g, vertex=home) if g.vertex < 0 else g for g in product.guards)
        placed.append(replace(product, parts=parts, guards=guards))
    return placed


def _sum_terms(products: Sum) -> tuple[Term, ...]:
    """Each product, counted only where no part of any other product is NULL; products with 0 add nothing.

    The products of one branch have the same guards.
    """
    placed = _placed(products)
    vertices = sorted({v for p in placed for v in p.vertices})
    terms = []
    for product in placed:
        if product.is_zero:
            continue
        factors = []
        for vertex in vertices:
            own = product.at(vertex)
            others = [f for p in placed if p is not product for f in p.nullable_at(vertex)]
            others = [f for f in others if all(f.sql != o.sql for o in own)]
            if own:
                factors.append(Factor(vertex, _value(product, vertex, own, others)))
            elif others or any(g.vertex == vertex for g in product.guards):
                factors.append(Factor(vertex, _presence_of(product, vertex, others), presence=True))
        terms.append(Term(tuple(factors), product.sign))
    return tuple(terms)


def _value(product: Product, vertex: int, own: list[Fragment], others: list[Fragment]) -> str:
    """The product of the parts of one vertex where other parts are present too."""
    value = join_fragments(own, " * ").sql
    if others:
        value = f"CASE WHEN {_all_present([f.wrapped().sql for f in others])} THEN {value} END"
    return product.behind_guards(vertex, value)


def _presence_of(product: Product, vertex: int, parts: list[Fragment]) -> str:
    """What is NULL where any of the parts is, or a guard fails."""
    texts = list(dict.fromkeys(p.sql for p in parts))
    if not texts:
        return product.behind_guards(vertex, "1")
    if len(texts) == 1:
        return product.behind_guards(vertex, texts[0])
    wrapped = [p.wrapped().sql for p in parts]
    return product.behind_guards(vertex, f"CASE WHEN {_all_present(wrapped)} THEN 1 END")


def _all_present(texts: list[str]) -> str:
    return " AND ".join(f"{t} IS NOT NULL" for t in dict.fromkeys(texts))


def _presence(products: Sum) -> Term:
    """The tuples in which every product counts and none of its parts is NULL."""
    factors = []
    placed = _placed(products)
    for vertex in sorted({v for p in placed for v in p.vertices}):
        guards = {p.guards for p in placed}
        if len(guards) == 1:
            parts = [f for p in placed for f in p.nullable_at(vertex)]
            texts = [_presence_of(placed[0], vertex, parts)]
            present = bool(parts) or any(g.vertex == vertex for g in placed[0].guards)
        else:
            # Several arguments of COUNT, each with guards of its own.
            own = [p for p in placed if p.nullable_at(vertex) or any(g.vertex == vertex for g in p.guards)]
            texts = list(dict.fromkeys(_presence_of(p, vertex, p.nullable_at(vertex)) for p in own))
            present = bool(own)
        if present:
            text = texts[0] if len(texts) == 1 else f"CASE WHEN {_all_present(texts)} THEN 1 END"
            factors.append(Factor(vertex, text, presence=True))
    return Term(tuple(factors))
