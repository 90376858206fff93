"""Arguments of aggregates to terms: a sum over joined tuples of products with one factor per table.

``SUM(a.x + b.y)`` is two terms, ``x * present(y)`` and ``present(x) * y``, since the sum skips a tuple in
which either is NULL. A part that reads one table is one factor however it is written; ``+``, ``-``, ``*``
and CASE between tables are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from .fragment import Fragment, Ref, join_fragments
from .join_graph import Factor, Term
from .scope import EXACT, Scope


@dataclass(frozen=True, slots=True)
class Product:
    """Product of one-table parts, by vertex; constants stand at vertex -1 until they find a place.

    `sign` counts how often it is added. `literals` are the parts that are never NULL.
    """

    sign: float
    parts: tuple[tuple[int, Fragment], ...]
    literals: frozenset[str] = frozenset()

    def times(self, other: Product) -> Product:
        return Product(self.sign * other.sign, self.parts + other.parts, self.literals | other.literals)

    def negated(self) -> Product:
        return Product(-self.sign, self.parts, self.literals)

    def at(self, vertex: int) -> list[Fragment]:
        return [f for v, f in self.parts if v == vertex]

    def nullable_at(self, vertex: int) -> list[Fragment]:
        return [f for f in self.at(vertex) if f.sql not in self.literals]

    @property
    def meaning(self) -> tuple[tuple[tuple[int, str], ...], frozenset[str]]:
        """What it multiplies, whatever the order: products alike in this differ in `sign` only."""
        return tuple(sorted((v, f.sql) for v, f in self.parts)), self.literals

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
    if len(scope.fragment(node).vertices) <= 1:
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
    failed: list[Product] = []
    branches: list[Sum] = []
    for when in ifs:
        test = scope.fragment(when.this)
        if tested is not None:
            test = join_fragments([scope.fragment(tested), test], " = ")
        condition = _guard(test, when.this, scope, holds=True)
        branches.append(_guarded(split(when.args["true"], scope), [*failed, condition]))
        failed.append(_guard(test, when.this, scope, holds=False))
    if default is not None and not isinstance(default, exp.Null):
        branches.append(_guarded(split(default, scope), failed))
    return branches


def guard(condition: exp.Expr, scope: Scope, *, holds: bool) -> Product:
    """A factor that is 1 where a one-table condition is true (or is not), and NULL elsewhere."""
    return _guard(scope.fragment(condition), condition, scope, holds=holds)


def _guard(test: Fragment, condition: exp.Expr, scope: Scope, *, holds: bool) -> Product:
    if len(test.vertices) > 1:
        raise scope.fault(
            "a condition on several tables inside an aggregate cannot be estimated",
            "SKIMQL_CROSS_EXPRESSION",
            condition,
            EXACT,
        )
    ends = (" THEN 1 END",) if holds else (" THEN NULL ELSE 1 END",)
    whole = Fragment(("CASE WHEN ", *test.pieces, *ends), simple=True)
    return Product(1.0, ((next(iter(test.vertices), -1), whole),))


def _guarded(products: Sum, guards: list[Product]) -> Sum:
    for one in guards:
        products = [p.times(one) for p in products]
    return products


def guarded(branches: Sequence[Sum], condition: Product) -> list[Sum]:
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
        home = next((v for v, _ in product.parts if v >= 0), 0)
        parts = tuple((home if v < 0 else v, f) for v, f in product.parts)
        placed.append(Product(product.sign, parts, product.literals))
    return placed


def _sum_terms(products: Sum) -> tuple[Term, ...]:
    """Each product, counted only where no part of any other product is NULL; products with 0 add nothing."""
    placed = _placed(products)
    vertices = sorted({v for p in placed for v, _ in p.parts})
    terms = []
    for product in placed:
        if product.is_zero:
            continue
        factors = []
        for vertex in vertices:
            own = product.at(vertex)
            others = [f for p in placed if p is not product for f in p.nullable_at(vertex)]
            others = [f for f in others if all(f.sql != o.sql for o in own)]
            if own or others:
                factors.append(_factor(vertex, own, others))
        terms.append(Term(tuple(factors), product.sign))
    return tuple(terms)


def _factor(vertex: int, own: list[Fragment], others: list[Fragment]) -> Factor:
    if not own:
        return _present_factor(vertex, others)
    value = join_fragments(own, " * ").sql
    if not others:
        return Factor(vertex, value)
    return Factor(vertex, f"CASE WHEN {_all_present(others)} THEN {value} END")


def _all_present(parts: list[Fragment]) -> str:
    texts = dict.fromkeys(f.wrapped().sql for f in parts)
    return " AND ".join(f"{t} IS NOT NULL" for t in texts)


def _present_factor(vertex: int, parts: list[Fragment]) -> Factor:
    texts = dict.fromkeys(p.sql for p in parts)
    if len(texts) == 1:
        return Factor(vertex, next(iter(texts)), presence=True)
    return Factor(vertex, f"CASE WHEN {_all_present(parts)} THEN 1 END", presence=True)


def _presence(products: Sum) -> Term:
    """The tuples in which no part is NULL."""
    placed = _placed(products)
    parts = {v: [f for p in placed for f in p.nullable_at(v)] for p in placed for v, _ in p.parts}
    return Term(tuple(_present_factor(v, parts[v]) for v in sorted(parts) if parts[v]))
