"""Expressions over estimates: what SELECT, HAVING and ORDER BY compute from aggregates and group columns.

Standard library only. The engine evaluates them on numbers with intervals, Spark never sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = ("+", "-", "*", "/", "%", "neg")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
LOGIC = ("and", "or", "not", "is_null")
FUNCTIONS = ("round", "floor", "ceil", "abs", "greatest", "least", "coalesce", "nullif")
BOUNDS = ("lower_bound", "upper_bound", "absolute_error", "relative_error")
OPERATORS = (*ARITHMETIC, *COMPARISONS, *LOGIC, *FUNCTIONS, *BOUNDS)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The estimate of ``Query.aggregates[index]``."""

    index: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """The value of ``Query.groups[index]`` in a result row."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of the query."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of `OPERATORS` on its operands; NULL goes through as in SQL.

    The four of `BOUNDS` take one operand that holds an aggregate, and read its interval.
    """

    operator: str
    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        assert self.operator in OPERATORS, self.operator


Expression = Aggregated | Grouped | Constant | Operation


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it."""
    yield expression
    if isinstance(expression, Operation):
        for operand in expression.operands:
            yield from parts_of(operand)


def has_aggregate(expression: Expression) -> bool:
    """Whether its value is computed from estimates."""
    return any(isinstance(p, Aggregated) for p in parts_of(expression))


def reads_a_bound(expression: Expression) -> bool:
    """Whether the value is an end or a width of an interval; NULL where nothing is known."""
    return isinstance(expression, Operation) and expression.operator in BOUNDS


def is_estimate(expression: Expression) -> bool:
    """Whether its value is an estimate, which has an interval."""
    return has_aggregate(expression) and not reads_a_bound(expression)
