"""Aggregates of the SELECT list to terms: a sum over joined tuples of products with one factor per table.

``SUM(a.x + b.y)`` is two terms, ``x * present(y)`` and ``present(x) * y``, since the sum skips a tuple in
which either is NULL. A part that reads one table is one factor however it is written; only ``+``, ``-`` and
``*`` between tables are split.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ..errors import SkimqlError
from .fragment import Fragment, Ref, join_fragments, spaced
from .join_graph import Aggregate, Factor, Span, Term
from .scope import EXACT, Scope

FUNCTIONS = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


@dataclass(frozen=True, slots=True)
class Product:
    """Signed product of one-table parts, by vertex; constants stand at vertex -1 until they find a place.

    `literals` are the parts that are never NULL.
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


def read_aggregates(select: exp.Select, scope: Scope) -> tuple[Aggregate, ...]:
    """Every item of the SELECT list, in order.

    Raises
    ------
    UnsupportedQuery
        For an item that is not COUNT, SUM or AVG, or whose argument cannot be split.
    """
    taken: set[str] = set()
    result = []
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        name = item.alias if isinstance(item, exp.Alias) else default_name(inner, scope)
        result.append(_aggregate(inner.unnest(), _free(name, taken), scope))
    return tuple(result)


def _free(name: str, taken: set[str]) -> str:
    """The name, numbered if an earlier item has it: result columns are looked up by name."""
    free, number = name, 2
    while free.lower() in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free.lower())
    return free


def default_name(node: exp.Expr, scope: Scope) -> str:
    """``count(1)`` for COUNT(*), as Spark prints it; else the text in small letters, without qualifiers."""
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count(1)"
    first, last = scope.source.token_range(node)
    tokens, sql = scope.source.tokens, scope.source.sql
    parts = []
    qualifiers = {
        i
        for column in node.find_all(exp.Column)
        for p in column.parts[:-1]
        for i in (scope.source.index_at[p.meta["start"]], scope.source.index_at[p.meta["start"]] + 1)
    }
    for index, text in spaced(tokens, sql, first, last):
        if index in qualifiers:
            if text.startswith(" "):
                parts.append(" ")
            continue
        raw = sql[tokens[index].start : tokens[index].end + 1]
        blank = " " if text.startswith(" ") else ""
        parts.append(blank + (raw.strip("`") if raw[0] in "'\"`" else raw.lower()))
    return "".join(parts).replace("  ", " ").strip()


def _aggregate(node: exp.Expr, name: str, scope: Scope) -> Aggregate:
    function = next((name for kind, name in FUNCTIONS.items() if isinstance(node, kind)), None)
    span = scope.span_of(node)
    if function is None:
        raise _not_an_aggregate(node, scope)
    if isinstance(node.this, exp.Distinct):
        raise scope.fault("DISTINCT in an aggregate cannot be estimated", "SKIMQL_DISTINCT", node, EXACT)
    if isinstance(node, exp.Count):
        return _count(node, name, span, scope)
    products = split(node.this, scope)
    return Aggregate(function, name, _sum_terms(products), (_presence(products),), span)


def _not_an_aggregate(node: exp.Expr, scope: Scope) -> SkimqlError:
    other = node.find(exp.AggFunc)
    if isinstance(node, exp.AggFunc):
        name = scope.source.text_of(node).split("(")[0].strip().upper()
        return scope.fault(
            f"{name} cannot be estimated; SkimQL estimates COUNT, SUM and AVG",
            "SKIMQL_UNSUPPORTED_AGGREGATE",
            node,
            EXACT,
        )
    if other is not None:
        message = "an expression over aggregates cannot be estimated"
        return scope.fault(message, "SKIMQL_AGGREGATE_EXPRESSION", node, "select the aggregates one by one")
    if isinstance(node, exp.Star):
        return scope.fault(
            "SELECT * cannot be estimated", "SKIMQL_NOT_AGGREGATED", node, "SELECT APPROXIMATE COUNT(*) ..."
        )
    text = scope.source.text_of(node)
    return scope.fault(
        f"{text} is not an aggregate",
        "SKIMQL_NOT_AGGREGATED",
        node,
        f"COUNT({text}), SUM({text}) or AVG({text})",
    )


def _count(node: exp.Count, name: str, span: Span, scope: Scope) -> Aggregate:
    """COUNT(*), COUNT(e) and COUNT(e, f): the tuples in which no argument is NULL."""
    arguments = [a for a in (node.this, *node.expressions) if not isinstance(a, exp.Star)]
    always = [a for a in arguments if isinstance(a.unnest(), exp.Literal | exp.Boolean)]
    products = [p for a in arguments if a not in always for p in split(a, scope)]
    present = _presence(products)
    return Aggregate("count", name, (present,), (present,), span)


def split(node: exp.Expr, scope: Scope) -> list[Product]:
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


def _placed(products: list[Product]) -> list[Product]:
    """Constants moved to a vertex of their product, or to the first vertex if there is none."""
    placed = []
    for product in products:
        home = next((v for v, _ in product.parts if v >= 0), 0)
        parts = tuple((home if v < 0 else v, f) for v, f in product.parts)
        placed.append(Product(product.sign, parts, product.literals))
    return placed


def _sum_terms(products: list[Product]) -> tuple[Term, ...]:
    """Each product, counted only where no part of any other product is NULL."""
    placed = _placed(products)
    vertices = sorted({v for p in placed for v, _ in p.parts})
    terms = []
    for product in placed:
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


def _presence(products: list[Product]) -> Term:
    """The tuples in which no part is NULL."""
    placed = _placed(products)
    parts = {v: [f for p in placed for f in p.nullable_at(v)] for p in placed for v, _ in p.parts}
    return Term(tuple(_present_factor(v, parts[v]) for v in sorted(parts) if parts[v]))
