"""Functions of estimates: the interval of the value from the intervals of the arguments.

ROUND, FLOOR, CEIL, GREATEST and LEAST never fall where an argument rises, so that the ends of the arguments give the
ends of the value. What a NULL would change is in the interval wherever the argument may be NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal

from ...sketches.intervals.interval import Estimate, exact

_DOUBT = "NULL where the value is "


def apply(name: str, values: Sequence[Estimate]) -> Estimate:
    """The value of one of `parser.expressions.FUNCTIONS`."""
    first = values[0]
    match name:
        case "round":
            digits = int(values[1].value) if len(values) > 1 else 0
            return _monotone(first, lambda x: _half_up(x, digits))
        case "floor":
            return _monotone(first, _floor)
        case "ceil":
            return _monotone(first, lambda x: -_floor(-x))
        case "abs":
            return _absolute(first)
        case "greatest":
            return _extreme(values, max)
        case "least":
            return _extreme(values, min)
        case "coalesce":
            return _coalesce(first, values[1])
    return _nullif(first, values[1])


def _monotone(value: Estimate, rises: Callable[[float], float]) -> Estimate:
    return replace(value, value=rises(value.value), low=rises(value.low), high=rises(value.high))


def _half_up(number: float, digits: int) -> float:
    whole = isinstance(number, int)
    if not math.isfinite(number) or (whole and digits >= 0):
        return number
    rounded = Decimal(repr(number if whole else float(number))).quantize(
        Decimal(1).scaleb(-digits), ROUND_HALF_UP, Context(prec=400)
    )
    return int(rounded) if whole else float(rounded)


def _floor(number: float) -> float:
    return math.floor(number) if math.isfinite(number) else number


def _absolute(value: Estimate) -> Estimate:
    ends = sorted((abs(value.low), abs(value.high)))
    low = 0.0 if value.low <= 0 <= value.high else ends[0]
    return replace(value, value=abs(value.value), low=low, high=ends[1])


def _extreme(values: Sequence[Estimate], choose: Callable[[list[float]], float]) -> Estimate:
    known = [v for v in values if not (v.exact and math.isnan(v.value))]
    if not known:
        return exact(math.nan)
    ends = [choose([getattr(v, end) for v in known]) for end in ("value", "low", "high")]
    if any(math.isnan(v.value) for v in known):
        ends[0] = math.nan
    return _like(known, ends[0], ends[1], ends[2])


def _coalesce(value: Estimate, instead: Estimate) -> Estimate:
    if value.exact:
        return instead if math.isnan(value.value) else value
    if not value.low <= 0 <= value.high:
        return value
    # Where 0 is possible, perhaps nothing joins that has a value.
    estimate = instead.value if math.isnan(value.value) else value.value
    return replace(value, value=estimate, low=min(value.low, instead.low), high=max(value.high, instead.high))


def _nullif(value: Estimate, unwanted: Estimate) -> Estimate:
    if not value.low <= unwanted.value <= value.high:
        return value
    if value.exact:
        return exact(math.nan)
    note = f"{_DOUBT}{unwanted.value:g}, which the interval leaves open"
    return replace(value, certified=False, notes=(*value.notes, note))


def _like(values: Sequence[Estimate], value: float, low: float, high: float) -> Estimate:
    """An estimate from several, no more certain than any of them."""
    worst = next((v for v in values if not v.exact), values[0])
    return replace(
        worst,
        value=value,
        low=low,
        high=high,
        confidence=min(v.confidence for v in values),
        certified=all(v.certified for v in values),
        notes=tuple(dict.fromkeys(note for v in values for note in v.notes)),
    )
