"""Aggregates as what a key adds to them: what Spark computes for every key of a sample, and what adds up over keys.

A measure is SQL. The terms of an `Aggregate` have one factor each, whose expression is the measure; COUNT(*) has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from .aggregates import count_rows
from .bound import fragment_of
from .extremes import Extreme, extreme_of
from .fragment import Fragment, Ref
from .join_graph import Aggregate, Factor, Span, Term
from .scope import EXACT, Scope, columns_of

COUNT_ROWS = "COUNT(*)"

_LIST = "COLLECT_LIST("

# What Spark's functions of one column of values, and of two, are called here.
_VARIANCES: dict[type[exp.Expr], str] = {
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}
_COVARIANCES: dict[type[exp.Expr], str] = {
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
}


@dataclass
class MeasureReader:
    """Reads the aggregates of a query that is run on a sample of keys.

    Attributes
    ----------
    distinct : list of (frozenset of Ref, Span)
        The columns of each COUNT(DISTINCT): it adds up over keys where they have the key among them.
    ones : list of str
        The measures to which a key adds 1 at most, if the column that is counted is the key.
    whole : mapping of Ref to (str, str)
        The table and column of those columns of which MIN and MAX are looked for in files.
    summed : dict of str to Fragment
        What each measure sums that is a sum.
    conditions : list of tuple of exp.Expr
        Those of the rows that add to an aggregate, of each that has some: FILTER, COUNT_IF, a CASE that is 0 elsewhere.
    extremes : dict of str to Extreme
        What files are to tell, by its measure.
    """

    whole: Mapping[Ref, tuple[str, str]] = field(default_factory=dict)
    summed: dict[str, Fragment] = field(default_factory=dict)
    conditions: list[tuple[exp.Expr, ...]] = field(default_factory=list)
    extremes: dict[str, Extreme] = field(default_factory=dict)
    distinct: list[tuple[frozenset[Ref], Span]] = field(default_factory=list)
    ones: list[str] = field(default_factory=list)

    def __call__(self, node: exp.Expr, name: str, scope: Scope) -> Aggregate:
        """One aggregate.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_UNSUPPORTED_AGGREGATE`` if what keys add does not tell it.
        """
        inner, only, span = node, "", scope.span_of(node)
        if isinstance(node, exp.Filter):
            inner = node.this
            condition = node.expression.this
            fragment_of(condition, scope)
            only = f" FILTER (WHERE {scope.source.text_of(condition)})"
        if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star) and not only:
            return count_rows(name, span)
        conditions = _conditions(node, inner)
        if conditions:
            self.conditions.append(conditions)
        if isinstance(inner, exp.ApproxDistinct) or isinstance(inner.this, exp.Distinct):
            return self._distinct(inner, name, only, span, scope)
        if isinstance(inner, exp.Median | exp.Quantile):
            return self._quantile(inner, name, only, span, scope)
        texts = self._arguments(inner, scope)
        if isinstance(inner, exp.Count | exp.CountIf):
            word = "COUNT_IF" if isinstance(inner, exp.CountIf) else "COUNT"
            terms = _measured(f"{word}({', '.join(texts)}){only}")
            return Aggregate("count", name, terms, terms, span)
        std = isinstance(inner, exp.Anonymous) and inner.name.lower() == "std"
        spread = "stddev_samp" if std else _VARIANCES.get(type(inner)) or _COVARIANCES.get(type(inner), "")
        if spread and len(texts) == (2 if type(inner) in _COVARIANCES else 1):
            return Aggregate(spread, name, *_moments(spread, texts, only), span)
        if isinstance(inner, exp.Min | exp.Max) and len(texts) == 1:
            return self._extreme(inner, name, only, span, scope)
        mean = isinstance(inner, exp.Anonymous) and inner.name.lower() == "mean"
        if not (isinstance(inner, exp.Sum | exp.Avg) or mean) or len(texts) != 1:
            raise self._refusal(inner, scope)
        function = "sum" if isinstance(inner, exp.Sum) else "avg"
        total, presence = _measured(f"SUM({texts[0]}){only}"), _measured(f"COUNT({texts[0]}){only}")
        self.summed[measure_of(total[0])] = fragment_of(inner.expressions[0] if mean else inner.this, scope)
        return Aggregate(function, name, total, presence, span)

    def _arguments(self, node: exp.Expr, scope: Scope) -> list[str]:
        """The arguments as they stand; raises as `fragment_of` for what is in them."""
        given = node.expressions if isinstance(node, exp.Anonymous) else [node.this, *node.expressions]
        given += [node.expression] if type(node) in _COVARIANCES else []
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return ["*"]
        if not given or any(a is None for a in given):
            raise self._refusal(node, scope)
        for argument in given:
            fragment_of(argument, scope)
        return [scope.source.text_of(a) for a in given]

    def _extreme(self, node: exp.Expr, name: str, only: str, span: Span, scope: Scope) -> Aggregate:
        """MIN or MAX: what files tell, or the end of its interval that a sample knows."""
        function = "min" if isinstance(node, exp.Min) else "max"
        found = extreme_of(node, scope, self.whole, filtered=bool(only))
        text = scope.source.text_of(node.this)
        total, presence = _measured(f"{function.upper()}({text}){only}"), _measured(f"COUNT({text}){only}")
        if found is not None:
            self.extremes[measure_of(total[0])] = found
        return Aggregate(function, name, total, presence, span)

    def _quantile(self, node: exp.Expr, name: str, only: str, span: Span, scope: Scope) -> Aggregate:
        """A quantile: the coefficient of its one term is the share of the values below it."""
        share = node.args.get("quantile") if isinstance(node, exp.Quantile) else exp.Literal.number("0.5")
        given = isinstance(share, exp.Literal) and not share.is_string and 0.0 <= float(share.name) <= 1.0
        if not given or isinstance(node.this, exp.Distinct):
            # Several shares give an array; a third argument of PERCENTILE counts values several times.
            raise self._refusal(node, scope)
        assert share is not None, "it is given"
        fragment_of(node.this, scope)
        text = scope.source.text_of(node.this)
        lists = f"{_LIST}CAST({text} AS DOUBLE)){only}"
        function = "percentile_approx" if isinstance(node, exp.ApproxQuantile) else "percentile"
        (present,) = _measured(f"COUNT({text}){only}")
        return Aggregate(function, name, (Term((Factor(0, lists),), float(share.name)),), (present,), span)

    def _distinct(self, node: exp.Expr, name: str, only: str, span: Span, scope: Scope) -> Aggregate:
        values = [node.this] if isinstance(node, exp.ApproxDistinct) else list(node.this.expressions)
        if not isinstance(node, exp.Count | exp.ApproxDistinct) or not values:
            raise self._refusal(node, scope)
        refs: set[Ref] = set()
        for value in values:
            fragment_of(value, scope)
            bare = _column_in(value)
            if bare is not None:
                bound = scope.resolve(bare)[0].bound
                refs |= {bound} if isinstance(bound, Ref) and len(list(columns_of(bare))) == 1 else set()
        self.distinct.append((frozenset(refs), span))
        texts = ", ".join(scope.source.text_of(v) for v in values)
        terms = _measured(f"COUNT(DISTINCT {texts}){only}")
        if len(values) == 1:
            self.ones.append(measure_of(terms[0]))
        return Aggregate("count", name, terms, terms, span)

    @staticmethod
    def _refusal(node: exp.Expr, scope: Scope) -> Exception:
        name = (
            node.name.upper() if isinstance(node, exp.Anonymous) else scope.source.text_of(node).split("(")[0]
        )
        message = (
            f"{name.strip().upper()} does not add up over keys; a sampled query estimates COUNT, SUM, AVG, COUNT_IF,"
            " deviations, correlations, quantiles of one share, and COUNT(DISTINCT x) where x has the key in it"
        )
        return scope.fault(message, "SKIMQL_UNSUPPORTED_AGGREGATE", node, EXACT)


def _column_in(value: exp.Expr) -> exp.Column | None:
    """The column that a value is wherever it is not NULL: itself, or what CASE or IF lets through of it."""
    inner = value.unnest()
    if isinstance(inner, exp.Column):
        return inner
    if not isinstance(inner, exp.Case | exp.If):
        return None
    branches = (
        [i.args["true"] for i in inner.args["ifs"]] if isinstance(inner, exp.Case) else [inner.args["true"]]
    )
    other = inner.args.get("default") or inner.args.get("false")
    parts = [p for p in (*branches, other) if p is not None and not isinstance(p, exp.Null)]
    columns = [_column_in(p) for p in parts]
    first = columns[0] if columns else None
    return first if first is not None and all(c == first for c in columns) else None


def _conditions(node: exp.Expr, inner: exp.Expr) -> tuple[exp.Expr, ...]:
    """What the rows fulfil that add to an aggregate, as far as it says so."""
    found = [node.expression.this] if isinstance(node, exp.Filter) else []
    value = inner.this.unnest() if isinstance(inner.this, exp.Expr) else None
    if isinstance(inner, exp.CountIf) and value is not None:
        found.append(value)
    if isinstance(value, exp.Case) and value.this is None and len(value.args["ifs"]) == 1:
        branch, other = value.args["ifs"][0], value.args.get("default")
    elif isinstance(value, exp.If):
        branch, other = value, value.args.get("false")
    else:
        return tuple(found)
    nothing = isinstance(other, exp.Literal) and not other.is_string and float(other.name) == 0.0
    if other is None or isinstance(other, exp.Null) or nothing:
        found.append(branch.this)
    return tuple(found)


def _measured(sql: str) -> tuple[Term, ...]:
    return (Term((Factor(0, sql),)),)


def _moments(function: str, texts: list[str], only: str) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """What a key says of its values, around its own mean: of a variance, or of two columns where neither is NULL."""
    # Means of decimals would be rounded.
    x, *others = (f"CAST({text} AS DOUBLE)" for text in texts)
    if not others:
        return _several((f"VAR_POP({x})", f"AVG({x})"), only), _measured(f"COUNT({x}){only}")
    (y,) = others
    needed = [f"COVAR_POP({x}, {y})", f"REGR_AVGX({y}, {x})", f"REGR_AVGY({y}, {x})"]
    if function == "corr":
        needed += [f"REGR_SXX({y}, {x})", f"REGR_SYY({y}, {x})"]
    return _several(needed, only), _measured(f"REGR_COUNT({y}, {x}){only}")


def _several(measures: Sequence[str], only: str) -> tuple[Term, ...]:
    return tuple(t for m in measures for t in _measured(f"{m}{only}"))


def is_list(measure: str) -> bool:
    """Whether a measure is all values of a key, and no number."""
    return measure.startswith(_LIST)


def measure_of(term: Term) -> str:
    """The SQL of a term."""
    return term.factors[0].expression if term.factors else COUNT_ROWS
