"""The order in which Spark evaluates the conjuncts of a filter: as they are written, and no more than decide."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from ...errors import SkimqlError
from ...parser.join_graph import Span
from ...parser.select import parse_expression

# Types that are compared in a nanosecond or two; a text is first looked up in the dictionary of its page.
CHEAP: tuple[type[DataType], ...] = (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    TimestampNTZType,
    TimestampType,
)

# What a conjunct may consist of that is evaluated before its turn: none of it can fail.
_COMPARES = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.DataType),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In, exp.Is),
    *(exp.And, exp.Or, exp.Not, exp.Paren),
)

# What else cannot fail, though it takes longer.
_DECIDES = (exp.Case, exp.If, exp.Like, exp.ILike, exp.RegexpLike)


def filtered(frame: DataFrame, filters: Iterable[str | None]) -> DataFrame:
    """The tuples that any of some filters keeps: all, where one of them is None."""
    known = list(filters)
    texts = [cheap_first(f, frame.schema) for f in known if f is not None]
    if len(texts) < len(known):
        return frame
    return frame.where(reduce(lambda a, b: a | b, map(F.expr, texts)))


def cheap_first(condition: str, schema: StructType) -> str:
    """The same filter, with the conjuncts first that compare numbers, dates and times; others keep their order.

    Those that compare with a constant come before those that compare columns: they mostly keep fewer tuples. Nothing
    that may fail moves before what guards it: a conjunct with arithmetic, a function, or a cast of anything but a
    literal stays behind those that were before it.
    """
    found = _conjuncts(condition)
    if len(found) < 2:
        return condition
    cheap = {f.name.lower() for f in schema.fields if isinstance(f.dataType, CHEAP)}

    def turn(conjunct: tuple[exp.Expr, str]) -> int:
        if not _is_cheap(conjunct[0], cheap):
            return 2
        return 0 if conjunct[0].find(exp.Literal) else 1

    ordered = sorted(found, key=turn)
    return condition if ordered == found else " AND ".join(text for _, text in ordered)


def cannot_fail(expression: str) -> bool:
    """Whether Spark evaluates an expression on any tuple without error: comparisons and CASE over columns."""
    try:
        tree = parse_expression(expression, Span(0, len(expression))).tree
    except SkimqlError:
        return False
    negated = all(isinstance(n.this, exp.Literal) for n in tree.find_all(exp.Neg))
    return negated and all(isinstance(node, (*_COMPARES, *_DECIDES)) for node in tree.walk())


def _conjuncts(condition: str) -> list[tuple[exp.Expr, str]]:
    """The conjuncts of a condition with their own texts, in order; none if the texts cannot be told apart.

    The text is never written anew: sqlglot's own spelling of an expression may mean something else.
    """
    try:
        source = parse_expression(condition, Span(0, len(condition)))
    except SkimqlError:
        return []
    tree = source.tree
    parts = list(tree.flatten(unnest=False)) if isinstance(tree, exp.And) else [tree]
    spans = [source.span_of(p) for p in parts]
    between = [condition[a.end : b.start].strip().upper() for a, b in pairwise(spans)]
    whole = not condition[: spans[0].start].strip() and not condition[spans[-1].end :].strip()
    if not whole or any(word != "AND" for word in between):
        return []
    return [(p, condition[s.start : s.end]) for p, s in zip(parts, spans, strict=True)]


def _is_cheap(conjunct: exp.Expr, cheap: set[str]) -> bool:
    # The negative of the smallest integer fails.
    negated = all(isinstance(n.this, exp.Literal) for n in conjunct.find_all(exp.Neg))
    return (
        negated
        and all(
            isinstance(node, _COMPARES) or (isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal))
            for node in conjunct.walk()
        )
        and all(len(c.parts) == 1 and c.name.lower() in cheap for c in conjunct.find_all(exp.Column))
    )
