"""Sums of doubles that Spark has added up, as far as they are known: the order of the tuples decides the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...optimizer.plan import Plan
from ...parser.absolutes import UNIT, sums_in
from ...parser.expressions import Aggregated, Expression, Grouped, parts_of
from ...parser.join_graph import Item, Query
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.intervals.rounding import rounded, shown, slack_of
from .answer import Answer
from .expressions import Evaluator

UNTOLD = "a sum of doubles: nothing tells how far the order of adding them decides it"
# Below, sums of whole numbers have all their digits in a DOUBLE, whatever the order and the rounding of their mass.
WHOLE = float(1 << 52)


def with_rounding(
    answer: Answer, query: Query, sums: Sequence[Mapping[int, Sequence[Any]]], whole: frozenset[int]
) -> Answer:
    """An exact answer whose cells say how far rounding may have moved them, where that shows.

    Parameters
    ----------
    answer : Answer
        The rows as Spark gives them.
    query : Query
    sums : sequence of mappings
        For each row, by aggregate, its value, and of SUM and AVG absolute values in `UNIT` and how many there are.
    whole : frozenset of int
        The aggregates of integers.
    """
    if not sums:
        return answer
    items = [item.expression for item in query.items]
    rows = []
    for row, own in zip(answer.rows, sums, strict=True):
        known = [_known(query, a, own[a], a in whole) if a in own else exact(math.nan) for a in _all(query)]
        groups = {e.index: c for e, c in zip(items, row, strict=True) if isinstance(e, Grouped)}
        group = [groups.get(n) for n in range(len(query.groups))]
        evaluator = Evaluator(Plan(query, 0, (), (), (), (), ()), None, 1.0, group, known)
        rows.append(
            tuple(
                _cell(cell, expression, evaluator) if _reads(expression, own, groups) else cell
                for cell, expression in zip(row, items, strict=True)
            )
        )
    cells = [c for row in rows for c in row if isinstance(c, Estimate)]
    notes = dict.fromkeys(n for c in cells for n in c.notes)
    return replace(answer, rows=tuple(rows), notes=(*answer.notes, *notes))


def untold(answer: Answer, query: Query) -> Answer:
    """An exact answer whose sums of doubles are not certified, as nothing says how far rounding may have moved them."""

    def cell(found: Any, item: Item) -> Any:
        if not isinstance(found, float) or not math.isfinite(found) or not sums_in(query, item):
            return found
        return Estimate(found, found, found, 1.0, False, "theorem", (UNTOLD,))

    rows = tuple(tuple(map(cell, row, query.items)) for row in answer.rows)
    told = any(isinstance(c, Estimate) for row in rows for c in row)
    return replace(answer, rows=rows, notes=(*answer.notes, UNTOLD) if told else answer.notes)


def _all(query: Query) -> range:
    return range(len(query.aggregates))


def _reads(expression: Expression, sums: Mapping[int, Any], groups: Mapping[int, Any]) -> bool:
    """Whether everything that an expression is computed from is at hand, sums of doubles among it."""
    parts = list(parts_of(expression))
    used = [p.index for p in parts if isinstance(p, Aggregated)]
    return (
        all(a in sums for a in used)
        and any(len(sums[a]) > 1 for a in used)
        and all(p.index in groups for p in parts if isinstance(p, Grouped))
    )


def _known(query: Query, aggregate: int, found: Sequence[Any], whole: bool) -> Estimate:
    value, *told = found
    if value is None:
        return exact(math.nan)
    if not told or not isinstance(value, float):
        return exact(value)
    mass, count = (told[0] or 0.0) / UNIT, int(told[1])
    if not math.isfinite(told[0] or 0.0) or (whole and mass < WHOLE):
        # An infinity or a NaN among the values decides the sum in any order.
        return exact(value)
    if query.aggregates[aggregate].function == "sum":
        return rounded(value, slack_of(count, mass))
    return rounded(value, slack_of(count, mass) / max(count, 1))


def _cell(cell: Any, expression: Expression, evaluator: Evaluator) -> Any:
    """The value as Spark gives it, with its interval where rounding shows."""
    if not isinstance(cell, float):
        return cell
    found = evaluator.cell(expression)
    if not isinstance(found, Estimate) or found.exact:
        return cell
    if not math.isfinite(cell):
        return replace(found, value=math.nan)
    return shown(replace(found, value=cell, low=min(cell, found.low), high=max(cell, found.high)))
