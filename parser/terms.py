"""Arguments of aggregates to terms: a sum over joined tuples of products with one factor per table.

``SUM(a.x + b.y)`` is two terms, ``x * present(y)`` and ``present(x) * y``, since the sum skips a tuple in
which either is NULL. A part that reads one table is one factor however it is written; ``+``, ``-``, ``*``
and CASE between tables are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from .bound import fragment_of
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
    """Product of one-table parts, by vertex; constants stand at vertex -1 until they find a place.

    `sign` counts how often it is added. `literals` are the parts that are never NULL. `guards` are asked before the
    parts, the first of them first.
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
    def meaning(self) -> tuple[object, ...]:
        """What it multiplies, whatever the order: products alike in this differ in `sign` only."""
        guards = tuple((g.vertex, g.test.sql, g.holds) for g in self.guards)
        return tuple(sorted((v, f.sql) for v, f in self.parts)), self.literals, guards

    @property
    def is_zero(self) -> bool:
        """Whether it adds nothing: a literal 0 is among its parts, or equal products have cancelled."""
        return not self.sign or any(
            f.sql in self.literals and f.sql.strip("(). ") in ("0", "0.0") for _, f in self.parts
        )


# Products of one aggregate: each is joined by itself, and its factors test all parts of the others.
MOST_PRODUCTS = 256

# A sum of products that counts where all its parts are present.
Sum = list[Product]


def sum_terms(branches: Sequence[Sum]) -> tuple[Term, ...]:
    """The terms of SUM over exclusive branches."""
    terms = tuple(t for products in branches for t in _sum_terms(products))
    # What is nothing but zeros is still a sum over the tuples that have a value.
    return terms or tuple(Term(_presence(products).factors, 0.0) for products in branches)


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
    if len(fragment_of(node, scope).vertices) <= 1:
        return [split(node, scope)]
    bound = _behind_column(node, scope)
    if bound is not None:
        return split_branches(*bound)
    if isinstance(node, exp.Paren):
        return split_branches(node.this, scope)
    if isinstance(node, exp.Case):
        return _case_branches(node.args["ifs"], node.args.get("default"), scope, node.this)
    if isinstance(node, exp.If):
        return _case_branches([node], node.args.get("false"), scope)
    return [split(node, scope)]


def _case_branches(
    ifs: list[exp.If], default: exp.Expr | None, scope: Scope, tested: exp.Expr | None = None
) -> list[Sum]:
    """``CASE WHEN c THEN a ELSE b END``: a where c is true, b where it is not; the guards are factors.

    ``CASE t WHEN c`` tests ``t = c``.
    """
    failed: list[Guard] = []
    branches: list[Sum] = []
    for when in ifs:
        test = fragment_of(when.this, scope)
        if tested is not None:
            test = join_fragments([fragment_of(tested, scope), test], " = ")
        condition = _guard(test, when.this, scope)
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
    return _guard(fragment_of(condition, scope), condition, scope)


def _guard(test: Fragment, condition: exp.Expr, scope: Scope) -> Guard:
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
    whole = fragment_of(node, scope)
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
    if isinstance(node, exp.Add | exp.Sub):
        return _added(node, scope)
    if isinstance(node, exp.Mul):
        left, right = split(node.left, scope), split(node.right, scope)
        return _bounded(_collected([p.times(q) for p in left for q in right]), node, scope)
    raise scope.fault(
        "an expression over several tables cannot be split; SkimQL splits +, - and * between tables",
        "SKIMQL_CROSS_EXPRESSION",
        node,
        EXACT,
    )


def _added(node: exp.Expr, scope: Scope) -> Sum:
    """A chain of + and -, however long, from its right end."""
    parts: list[tuple[exp.Expr, bool]] = []
    while isinstance(node, exp.Add | exp.Sub):
        parts.append((node.right, isinstance(node, exp.Sub)))
        node = node.left
    products = split(node, scope)
    for part, subtracted in reversed(parts):
        own = split(part, scope)
        products += [p.negated() for p in own] if subtracted else own
    return _bounded(_collected(products), node, scope)


def _collected(products: Sum) -> Sum:
    """Equal products as one; the parts of those that cancel stay, as a NULL in them still counts."""
    found: dict[tuple[object, ...], Product] = {}
    for product in products:
        known = found.get(product.meaning)
        sign = product.sign + (known.sign if known is not None else 0.0)
        found[product.meaning] = Product(sign, (known or product).parts, product.literals)
    return list(found.values())


def _bounded(products: Sum, node: exp.Expr, scope: Scope) -> Sum:
    if len(products) > MOST_PRODUCTS:
        message = f"multiplied out, this has {len(products):,} products; SkimQL takes {MOST_PRODUCTS} at most"
        raise scope.fault(message, "SKIMQL_CROSS_EXPRESSION", node, EXACT)
    return products


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
