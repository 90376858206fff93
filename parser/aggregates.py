"""COUNT, SUM, AVG and COUNT(DISTINCT) of a query to `Aggregate` values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from ..errors import SkimqlError
from .bound import bound_fragment, fragment_of
from .fragment import Fragment, spaced
from .join_graph import Aggregate, Factor, Span, Term
from .outputs import star_outputs
from .scope import EXACT, Scope, columns_of, walk_outside_subqueries
from .terms import Product, Sum, guard, guarded, presence_terms, split_branches, sum_terms

MAX_SHOWN = 40

# Spark's aggregates that sqlglot takes for plain functions.
_OTHER_AGGREGATE_TEXT = """
    any bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or
    collect_list collect_set collect_union count_min_sketch every first first_value grouping grouping_id
    histogram_numeric kurtosis last last_value listagg mean measure percentile_approx regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std
    string_agg try_avg try_sum
"""
_OTHER_AGGREGATES = frozenset(_OTHER_AGGREGATE_TEXT.split())
_AGGREGATE_NAMES = re.compile(
    r"(approx_top_k|hll|kll|theta|tuple)_\w*(agg|accumulate|combine)\w*|approx_top_k"
)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate itself, with or without FILTER (WHERE ...)."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name in _OTHER_AGGREGATES or _AGGREGATE_NAMES.fullmatch(name) is not None
    return isinstance(node, exp.AggFunc | exp.Filter)


def read_aggregate(node: exp.Expr, name: str, scope: Scope) -> Aggregate:
    """One aggregate.

    Raises
    ------
    UnsupportedQuery
        If it is not COUNT, SUM, AVG or COUNT(DISTINCT), or its argument cannot be split.
    """
    condition = None
    inner = node
    if isinstance(node, exp.Filter):
        inner, condition = node.this, node.expression.this
    span = scope.span_of(node)
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "mean" and len(inner.expressions) == 1:
        inner = exp.Avg(this=inner.expressions[0])
    if isinstance(inner.this, exp.Distinct):
        return _distinct(inner, condition, name, span, scope)
    if isinstance(inner, exp.Count):
        branches = _counted(inner, scope)
    elif isinstance(inner, exp.CountIf):
        branches = guarded([_ROWS], guard(inner.this, scope))
    elif isinstance(inner, exp.Sum | exp.Avg):
        branches = split_branches(inner.this, scope)
    else:
        raise _unsupported(inner, scope)
    if condition is not None:
        branches = guarded(branches, guard(condition, scope))
    presence = presence_terms(branches)
    if isinstance(inner, exp.Count | exp.CountIf):
        return Aggregate("count", name, presence, presence, span)
    function = "sum" if isinstance(inner, exp.Sum) else "avg"
    return Aggregate(function, name, sum_terms(branches), presence, span)


def _counted(node: exp.Count, scope: Scope) -> list[Sum]:
    """COUNT(*), COUNT(e) and COUNT(e, f): the tuples in which no argument is NULL."""
    if node.this is None:
        raise _without_argument(node, scope)
    arguments = [a for a in (node.this, *node.expressions) if not isinstance(a, exp.Star)]
    arguments = [a for a in arguments if not isinstance(a.unnest(), exp.Literal | exp.Boolean)]
    if len(arguments) == 1:
        return split_branches(arguments[0], scope)
    branches = [split_branches(a, scope) for a in arguments]
    for argument, branch in zip(arguments, branches, strict=True):
        if len(branch) > 1:
            message = "CASE over several tables beside other arguments cannot be counted"
            raise scope.fault(message, "SKIMQL_CROSS_EXPRESSION", argument, EXACT)
    if not branches:
        return [_ROWS]
    return [[p for branch in branches for p in branch[0]]]


# COUNT(*) counts as COUNT(1) does: a literal is never NULL.
_ROWS: Sum = [Product(1.0, ((-1, Fragment(("1",), simple=True)),), frozenset(["1"]))]


def _without_argument(node: exp.Expr, scope: Scope) -> SkimqlError:
    return scope.fault("COUNT takes *, or what it counts", "SKIMQL_UNSUPPORTED_AGGREGATE", node, "COUNT(*)")


def _distinct(node: exp.Expr, condition: exp.Expr | None, name: str, span: Span, scope: Scope) -> Aggregate:
    """COUNT(DISTINCT e, ...): every column on one table, NULLs not counted."""
    if not isinstance(node, exp.Count):
        function = scope.source.text_of(node).split("(")[0].strip().upper()
        message = f"{function}(DISTINCT ...) cannot be estimated; COUNT(DISTINCT ...) can"
        raise scope.fault(message, "SKIMQL_DISTINCT", node, EXACT)
    only = None if condition is None else guard(condition, scope)
    if not node.this.expressions:
        raise _without_argument(node, scope)
    factors = []
    for column, fragment in _distinct_columns(node.this.expressions, scope):
        if len(fragment.vertices) > 1:
            message = "a distinct value must be computed from one table"
            raise scope.fault(message, "SKIMQL_CROSS_EXPRESSION", column, EXACT)
        vertex = next(iter(fragment.vertices), 0)
        # A column is there anyway; what is computed may fail where the condition does not hold.
        shielded = only is not None and only.vertex == vertex and fragment.column is None
        factors.append(Factor(vertex, only.around(fragment.sql) if only and shielded else fragment.sql))
    if only is not None:
        # Where the condition fails the marker is NULL, and such a tuple is not counted.
        factors.append(Factor(max(only.vertex, 0), only.around("1")))
    return Aggregate("count_distinct", name, (), (), span, tuple(factors))


def _distinct_columns(nodes: list[exp.Expr], scope: Scope) -> Iterator[tuple[exp.Expr, Fragment]]:
    """What is counted: ``*`` is all columns; a literal beside columns tells no values apart."""
    literals = [n for n in nodes if isinstance(n.unnest(), exp.Literal)]
    for node in nodes if len(literals) == len(nodes) else [n for n in nodes if n not in literals]:
        inner = node.unnest()
        if isinstance(inner, exp.Star):
            for output in star_outputs(inner, scope):
                yield node, bound_fragment(output)
        else:
            yield node, fragment_of(inner, scope)


def count_rows(name: str, span: Span) -> Aggregate:
    """COUNT(*)."""
    return Aggregate("count", name, (Term(),), (Term(),), span)


def default_name(node: exp.Expr, scope: Scope) -> str:
    """``count(1)`` for COUNT(*), as Spark prints it; else the text in small letters, without qualifiers."""
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count(1)"
    first, last = scope.source.token_range(node)
    tokens, sql = scope.source.tokens, scope.source.sql
    parts = []
    qualifiers = {
        i
        for column in columns_of(node)
        for p in column.parts[:-1]
        for i in (scope.source.index_at[p.meta["start"]], scope.source.index_at[p.meta["start"]] + 1)
    }
    for index, text in spaced(tokens, sql, first, last):
        blank = " " if text.startswith(" ") else ""
        if index in qualifiers:
            parts.append(blank)
            continue
        raw = sql[tokens[index].start : tokens[index].end + 1]
        parts.append(blank + (raw.strip("`") if raw[0] in "'\"`" else raw.lower()))
    return "".join(parts).replace("  ", " ").strip()


def _unsupported(node: exp.Expr, scope: Scope) -> SkimqlError:
    name = node.name.upper() if isinstance(node, exp.Anonymous) else scope.source.text_of(node).split("(")[0]
    name = name.strip().upper()
    message = f"{name} cannot be estimated; SkimQL estimates COUNT, SUM, AVG and COUNT(DISTINCT)"
    return scope.fault(message, "SKIMQL_UNSUPPORTED_AGGREGATE", node, EXACT)


def not_aggregated(
    node: exp.Expr, scope: Scope, grouped: Sequence[Span] = (), *, groupable: bool = True
) -> SkimqlError:
    """An item that is neither an aggregate nor grouped by.

    `grouped` are the places of what is; `groupable` says whether it means the same in GROUP BY.
    """
    if isinstance(node, exp.Star) or isinstance(node.this, exp.Star):
        return scope.fault("SELECT * cannot be estimated", "SKIMQL_NOT_AGGREGATED", node, EXACT)
    subquery = next((n for n in walk_outside_subqueries(node) if isinstance(n, exp.Query)), None)
    if subquery is not None:
        message = "a subquery beside aggregates cannot be estimated"
        return scope.fault(message, "SKIMQL_SUBQUERY", subquery, "write its value, or " + EXACT)
    text = " ".join(scope.source.text_of(node).split())
    text = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."
    if not any(True for _ in columns_of(node)):
        message = f"{text} reads no table; Spark computes it, SkimQL does not"
        return scope.fault(message, "SKIMQL_NOT_AGGREGATED", node, EXACT)
    message = f"{text} is neither an aggregate nor in GROUP BY"
    # A value computed from what is grouped makes no more groups.
    keys = [*(scope.shown[s.start : s.end] for s in grouped), text]
    hint = f"GROUP BY {', '.join(keys)}, or {EXACT}" if groupable else EXACT
    return scope.fault(message, "SKIMQL_NOT_AGGREGATED", node, hint)


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate stands in the expression."""
    return any(is_aggregate(n) for n in walk_outside_subqueries(node))
