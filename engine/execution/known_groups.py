"""The aggregates of a group from the exact sums of their terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ...parser.join_graph import Aggregate, Query, Term
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.intervals.rounding import rounded, slack_of

# How many tuples joined, and behind the name of a sum of doubles, that of their absolute values.
JOINED, ABSOLUTE = "joined", " absolute"


def known_of(query: Query, row: Mapping[str, Any] | None) -> tuple[Estimate, ...]:
    """The aggregates of one group from its row of `exact_frame`; without a row, of a group that joins nothing."""

    def total(a: int, part: str, terms: Sequence[Term]) -> Any:
        if row is None:
            return 0
        return sum(_scaled(row[f"s{a}_{part}_{t}"] or 0, term.coefficient) for t, term in enumerate(terms))

    def value(a: int, aggregate: Aggregate) -> Estimate:
        if aggregate.distinct:
            return exact(0 if row is None else int(row[f"d{a}"]))
        found = total(a, "total", aggregate.total)
        presence = total(a, "presence", aggregate.presence)
        if not isinstance(found, float) or row is None or not presence:
            return exact(_value(aggregate, found, presence))
        masses = [
            abs(term.coefficient) * (row.get(f"s{a}_total_{t}{ABSOLUTE}") or 0.0)
            for t, term in enumerate(aggregate.total)
        ]
        estimate = rounded(found, slack_of(row[JOINED], math.fsum(masses)))
        return _times(estimate, 1 / int(presence)) if aggregate.function == "avg" else estimate

    return tuple(value(a, aggregate) for a, aggregate in enumerate(query.aggregates))


def _value(aggregate: Aggregate, total: Any, presence: Any) -> float | Fraction:
    if aggregate.function == "count":
        return int(total)
    if not presence:
        return math.nan
    if aggregate.function == "avg":
        return float(total) / presence if isinstance(total, float) else Fraction(total) / int(presence)
    return total if isinstance(total, (int, float)) else Fraction(total)


def _scaled(value: Any, coefficient: float) -> Any:
    """Decimals with all their digits; a literal is the decimal that it is written as."""
    if isinstance(value, float):
        return value * coefficient
    if isinstance(value, int) and coefficient == 1:
        return value
    return Fraction(value) * Fraction(repr(coefficient))


def _times(estimate: Estimate, factor: float) -> Estimate:
    return replace(
        estimate, value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor
    )
