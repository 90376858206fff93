"""The exact values beside an answer's estimates, group by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import UnsupportedQuery
from ...parser.expressions import Grouped, has_aggregate
from .answer import Answer


def beside(answer: Answer, exact: Answer) -> Answer:
    """The answer with the rows of the exact result that belong to its own.

    Raises
    ------
    UnsupportedQuery
        If a column that the query groups by is not in its result: rows could not be told apart.
    """
    seconds = {**answer.seconds, "exact": exact.seconds["exact"]}
    query = answer.plan.query if answer.plan is not None else None
    if query is None or not query.groups:
        rows = exact.rows if answer.rows else ()
        compared = tuple(rows[i] if i < len(rows) else None for i in range(len(answer.rows)))
        return replace(answer, compared=compared, compared_types=exact.types, seconds=seconds)
    named = {i.expression.index for i in query.items if isinstance(i.expression, Grouped)}
    if len(named) < len(query.groups):
        raise UnsupportedQuery(
            "estimates and exact values are matched by their groups, which the result does not name",
            "SKIMQL_NOTHING_TO_COMPARE",
            query.sql,
            hint="every GROUP BY column in the SELECT list",
        )
    plain = [i for i, item in enumerate(query.items) if not has_aggregate(item.expression)]
    by_group = {_group(row, plain): row for row in exact.rows}
    compared = tuple(by_group.get(_group(row, plain)) for row in answer.rows)
    return replace(answer, compared=compared, compared_types=exact.types, seconds=seconds)


def _group(row: Sequence[Any], plain: Sequence[int]) -> tuple[Any, ...]:
    # NaN is no key: it does not equal itself.
    values = [row[i] for i in plain]
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else _frozen(v) for v in values)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
