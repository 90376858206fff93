"""The order in which Spark evaluates the conjuncts of a filter: as they are written, and no more than decide."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import sqlglot
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
from sqlglot.errors import SqlglotError

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


def kept_by(frame: DataFrame, filters: Iterable[str | None]) -> DataFrame:
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
    try:
        parsed = sqlglot.parse_one(condition, dialect="spark")
    except SqlglotError:
        return condition
    conjuncts = list(parsed.flatten(unnest=False)) if isinstance(parsed, exp.And) else [parsed]
    cheap = {f.name.lower() for f in schema.fields if isinstance(f.dataType, CHEAP)}

    def turn(conjunct: exp.Expr) -> int:
        if not _is_cheap(conjunct, cheap):
            return 2
        return 0 if conjunct.find(exp.Literal) else 1

    ordered = sorted(conjuncts, key=turn)
    return condition if ordered == conjuncts else " AND ".join(c.sql(dialect="spark") for c in ordered)


def _is_cheap(conjunct: exp.Expr, cheap: set[str]) -> bool:
    return all(
        isinstance(node, _COMPARES) or (isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal))
        for node in conjunct.walk()
    ) and all(len(c.parts) == 1 and c.name.lower() in cheap for c in conjunct.find_all(exp.Column))
