"""HAVING, ORDER BY, LIMIT and OFFSET on rows of estimates, and which of their decisions are certain.

A row belongs to the first n for certain where fewer than n rows can come before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key

import numpy as np

from ...parser.join_graph import Order, Query
from ...sketches.intervals.interval import Estimate
from .conditions import SIGNS, Truth, ends_of, point_of, signs_of
from .expressions import Cell
from .scalars import compare


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the result before it is ordered and cut.

    `number` breaks ties, `passes` is HAVING's decision, `keys` are the values of ORDER BY.
    """

    number: int
    cells: tuple[Cell, ...]
    passes: Truth
    keys: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows of the answer in order, and for each whether it is uncertain that it belongs there.

    `doubtful` counts the rows that HAVING left out although their intervals allow them.
    """

    rows: tuple[Row, ...]
    uncertain: tuple[bool, ...]
    doubtful: int


def show(rows: Sequence[Row], query: Query) -> Shown:
    """Order and cut rows; the work grows with rows times rows shown where an ORDER BY is cut."""
    passes = [r for r in rows if r.passes.value is True]
    passes.sort(key=cmp_to_key(lambda a, b: _sign(a, b, query)))
    end = None if query.limit is None else query.offset + query.limit
    chosen = passes[query.offset : end]
    cut = is_cut(query)
    uncertain = tuple(
        not row.passes.must_hold or (cut and not surely_within(row, rows, query, end)) for row in chosen
    )
    doubtful = sum(1 for r in rows if r.passes.value is not True and r.passes.may_hold)
    return Shown(tuple(chosen), uncertain, doubtful)


def is_cut(query: Query) -> bool:
    """Whether rows in an order are cut by LIMIT or OFFSET."""
    return (query.limit is not None or query.offset > 0) and bool(query.order)


def edge(rows: Sequence[Row], query: Query) -> frozenset[int]:
    """The numbers of the rows that LIMIT and OFFSET may let in or leave out, by the first key of ORDER BY alone.

    None where that is no estimate.
    """
    may = [r for r in rows if r.passes.may_hold]
    if not is_cut(query) or not any(isinstance(r.keys[0], Estimate) for r in may):
        return frozenset()
    first = query.order[0]
    ends = np.array([_place(r.keys[0], first) for r in may])
    sure = np.array([r.passes.must_hold for r in may])
    low, high = np.sort(ends[:, 0]), np.sort(ends[sure, 1])
    # Others that may come before each row, and those that do.
    most = np.searchsorted(low, ends[:, 1], "right") - 1
    least = np.searchsorted(high, ends[:, 0], "left")
    end = math.inf if query.limit is None else query.offset + query.limit
    within = (least >= query.offset) & (most < end)
    without = (most < query.offset) | (least >= end)
    return frozenset(r.number for r, sure in zip(may, within | without, strict=True) if not sure)


def _place(cell: Cell, key: Order) -> tuple[float, float]:
    """The ends of the first key of ORDER BY, least first in the order of the rows."""
    if isinstance(cell, Estimate) and math.isnan(cell.value) and not cell.exact:
        return -math.inf, math.inf
    if point_of(cell) is None:
        place = -math.inf if key.nulls_first else math.inf
        return place, place
    low, high = ends_of(cell)
    return (-high, -low) if key.descending else (low, high)


def surely_within(row: Row, rows: Sequence[Row], query: Query, end: int | None) -> bool:
    """Whether the place of a row lies in [offset, end) whatever the true values in the intervals."""
    others = [r for r in rows if r is not row]
    least = sum(1 for r in others if r.passes.must_hold and _precedes(r, row, query, surely=True))
    most = sum(1 for r in others if r.passes.may_hold and _precedes(r, row, query, surely=False))
    return least >= query.offset and (end is None or most < end)


def _sign(a: Row, b: Row, query: Query) -> int:
    for key, x, y in zip(query.order, a.keys, b.keys, strict=True):
        sign = _key_sign(key, x, y, query.sql)
        if sign:
            return sign
    return a.number - b.number


def _precedes(a: Row, b: Row, query: Query, *, surely: bool) -> bool:
    """Whether a can come before b, or surely does. SQL leaves ties open: they go by number, as in the sort."""
    for key, x, y in zip(query.order, a.keys, b.keys, strict=True):
        signs = _key_signs(key, x, y, query.sql)
        if surely and 1 in signs:
            return False
        if -1 in signs and (not surely or 0 not in signs):
            return True
        if 0 not in signs:
            return False
    return a.number < b.number


def _key_sign(key: Order, x: Cell, y: Cell, sql: str) -> int:
    x, y = (point_of(c) for c in (x, y))
    if x is None or y is None:
        return _null_sign(key, x is None, y is None)
    return compare(x, y, sql) * (-1 if key.descending else 1)


def _key_signs(key: Order, x: Cell, y: Cell, sql: str) -> frozenset[int]:
    """Every order of two values of one ORDER BY key that their intervals leave possible."""
    estimates = [c for c in (x, y) if isinstance(c, Estimate)]
    if any(math.isnan(e.value) and not e.exact for e in estimates):
        return SIGNS
    if not estimates or any(point_of(c) is None for c in (x, y)):
        return frozenset((_key_sign(key, x, y, sql),))
    (low, high), (other_low, other_high) = ends_of(x), ends_of(y)
    signs = signs_of(low - other_high, high - other_low)
    return frozenset(-s for s in signs) if key.descending else signs


def _null_sign(key: Order, x: bool, y: bool) -> int:
    return 0 if x and y else (-1 if x == key.nulls_first else 1)
