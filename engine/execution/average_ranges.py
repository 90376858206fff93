"""Between which an average lies for certain: no mean is outside of what the values lie between that it is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...optimizer.plan import Message, Plan, PlannedAggregate, PlannedTerm, Synopsis, Weight
from ...sketches.samples.known_keys import product_range
from .sample_tree import SampleTree

Terms = tuple[PlannedTerm, ...]

# What a mean of doubles may leave their range by, relative to its end: near it all of them are as large. Additions of
# small whole numbers are not rounded.
ROUNDING = 1e-9
SMALL = float(1 << 20)


def average_ranges(plan: Plan, scans: SampleTree) -> dict[tuple[Terms, Terms], tuple[float, float]]:
    """The least and the largest that each AVG of a plan can be, by its terms, where anything is known of it."""
    found: dict[tuple[Terms, Terms], tuple[float, float]] = {}
    for aggregate in plan.aggregates:
        if aggregate.function == "avg" and len(aggregate.presence) == 1:
            low, high = _range(plan, aggregate, scans)
            if math.isfinite(low) and math.isfinite(high):
                found[aggregate.total, aggregate.presence] = low - _rounding(low), high + _rounding(high)
    return found


def _rounding(end: float) -> float:
    return 0.0 if end.is_integer() and abs(end) < SMALL else ROUNDING * abs(end)


def _range(plan: Plan, aggregate: PlannedAggregate, scans: SampleTree) -> tuple[float, float]:
    """Between which lies what a tuple that counts adds to the sum."""
    low = high = 0.0
    counted = [plan.synopses[i] for i in aggregate.presence[0].synopses]
    for term in aggregate.total:
        least = most = np.array([term.coefficient])
        for number, own in zip(term.synopses, counted, strict=True):
            ends = _of_relation(plan.synopses[number], own, scans)
            least, most = product_range(least, most, np.array([ends[0]]), np.array([ends[1]]))
        low, high = low + float(least[0]), high + float(most[0])
    return low, high


def _of_relation(summed: Synopsis, counted: Synopsis, scans: SampleTree) -> tuple[float, float]:
    """Between which the factor of a relation lies in tuples that count there."""
    if not _alike(summed.messages, counted.messages):
        return -math.inf, math.inf
    weight = summed.weight
    if weight.expression is None or weight == counted.weight:
        return 1.0, 1.0
    if weight.presence:
        return 0.0, 1.0
    found = scans.values(summed, weight.expression)
    if counted.weight == Weight(weight.expression, presence=True):
        return found.low, found.high
    # Where it is NULL it adds nothing.
    return min(found.low, 0.0), max(found.high, 0.0)


def _alike(summed: Sequence[Message], counted: Sequence[Message]) -> bool:
    """Whether all that was sent into a relation only counts, and the same tuples."""
    return list(summed) == list(counted) and all(_counts(m) for m in summed)


def _counts(message: Message) -> bool:
    weight = message.weight
    return (weight.expression is None or weight.presence) and all(map(_counts, message.messages))
