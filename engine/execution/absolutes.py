"""Absolute values beside what a plan adds up: they tell how far rounding may move sums of doubles."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ...optimizer.plan import Message, Plan, Synopsis, Weight
from ...parser.expressions import Aggregated

Terms = tuple[tuple[int, ...], ...]
Part = TypeVar("Part", Synopsis, Message)


def with_absolutes(plan: Plan, terms: Terms) -> tuple[Plan, Terms, dict[int, int]]:
    """A plan that adds up absolute values too, for every term that may be a sum of doubles.

    Parameters
    ----------
    plan : Plan
    terms : tuple of tuples of int
        The synopses of each term that is evaluated.

    Returns
    -------
    plan : Plan
        With more synopses, in the same scans.
    terms : tuple of tuples of int
        The same, and behind them the terms of absolute values.
    absolutes : dict of int to int
        For the position of a term that of its absolute values.
    """
    synopses = list(plan.synopses)
    place = {synopsis: i for i, synopsis in reversed(list(enumerate(synopses)))}
    scan = {i: s.table for s in plan.scans for i in s.synopses}
    found: dict[int, int] = {}
    more: list[tuple[int, ...]] = []
    whole = _whole(plan)
    for number, term in enumerate(terms):
        if term in whole or not any(_weighs(synopses[i]) for i in term):
            continue
        own = []
        for i in term:
            absolute = _absolute(synopses[i])
            if absolute not in place:
                place[absolute] = len(synopses)
                scan[len(synopses)] = scan.get(i, absolute.table)
                synopses.append(absolute)
            own.append(place[absolute])
        found[number] = len(terms) + len(more)
        more.append(tuple(own))
    scans = tuple(replace(s, synopses=tuple(i for i, t in scan.items() if t == s.table)) for s in plan.scans)
    return replace(plan, synopses=tuple(synopses), scans=scans), (*terms, *more), found


def _whole(plan: Plan) -> set[tuple[int, ...]]:
    """The terms of sums whose type says that they are of integers or decimals."""
    found: set[tuple[int, ...]] = set()
    for item in plan.query.items:
        kind = item.type or ""
        if isinstance(item.expression, Aggregated) and (kind == "bigint" or kind.startswith("decimal")):
            found |= {t.synopses for t in plan.aggregates[item.expression.index].total}
    return found


def _weighs(part: Synopsis | Message) -> bool:
    own = part.weight.expression is not None and not part.weight.presence
    return own or any(map(_weighs, part.messages))


def _absolute(part: Part) -> Part:
    weight = part.weight
    if weight.expression is not None and not weight.presence:
        weight = Weight(f"abs(CAST(({weight.expression}) AS DOUBLE))")
    return replace(part, weight=weight, messages=tuple(map(_absolute, part.messages)))
