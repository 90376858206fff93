"""The part of a sum that large values add, beside the whole: that of what is drawn tuple by tuple."""

from __future__ import annotations

from dataclasses import replace

from ...optimizer.plan import Plan, ValueDraw, Weight

Terms = tuple[tuple[int, ...], ...]


def with_large(plan: Plan, terms: Terms) -> tuple[Plan, Terms, dict[int, tuple[int, int]]]:
    """A plan whose scans add up by themselves the values for which tuples are drawn.

    Parameters
    ----------
    plan : Plan
        With a sample.
    terms : tuple of tuples of int
        The synopses of each term that is evaluated.

    Returns
    -------
    plan : Plan
        With more synopses, in the same scans.
    terms : tuple of tuples of int
        The same, and behind them the terms of large values alone.
    large : dict of int to (int, int)
        For the position of a term the draw of its values, and the position of its large values.
    """
    assert plan.sample is not None, "values are drawn beside a sample"
    synopses, scans = list(plan.synopses), list(plan.scans)
    more: list[tuple[int, ...]] = []
    found: dict[int, tuple[int, int]] = {}
    for number, draw in enumerate(plan.sample.value_draws):
        vertex, _ = plan.sample.members[draw.member]
        for position, term in enumerate(terms):
            whole = synopses[term[vertex]]
            if whole.weight != Weight(draw.expression) or position in found:
                continue
            large = replace(whole, weight=Weight(_large(draw)))
            if large not in synopses:
                synopses.append(large)
                scans = [
                    replace(s, synopses=(*s.synopses, len(synopses) - 1)) if s.table == large.table else s
                    for s in scans
                ]
            found[position] = number, len(terms) + len(more)
            more.append((*term[:vertex], synopses.index(large), *term[vertex + 1 :]))
    return replace(plan, synopses=tuple(synopses), scans=tuple(scans)), (*terms, *more), found


def _large(draw: ValueDraw) -> str:
    value = f"abs(CAST(({draw.expression}) AS DOUBLE))"
    return f"CASE WHEN {value} >= CAST({float(draw.least)!r} AS DOUBLE) THEN ({draw.expression}) END"
