"""A SELECT that shows more: beside sums of doubles those of absolute values, which say how far rounding moves them.

The user's text stays as it is; the columns stand behind its own, where no ordinal and no name of it changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .expressions import Aggregated, parts_of
from .join_graph import Aggregate, Item, Query

# Absolute values are added up in this unit: no sum of them leaves the range of DOUBLE that their values do not leave.
UNIT = 2.0**-64

_CALL = re.compile(r"(?:TRY_)?(?:SUM|AVG|MEAN)\s*\(\s*(?:ALL\s)?", re.IGNORECASE)
_PIECES = re.compile(
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|[()]|\bFROM\b""",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class WithAbsolutes:
    """The SELECT with more columns behind those of the user.

    `columns` are the places, from 0 behind the user's, of each aggregate that a column in DOUBLE may be computed from:
    its value and, of SUM and AVG, the absolute values added up in `UNIT`, how many there are, and the least value, for
    its type.
    """

    text: str
    columns: dict[int, tuple[int, ...]]


def sums_in(query: Query, item: Item) -> list[int]:
    """The aggregates of an item, where it may be in DOUBLE and computed from a SUM or AVG; else none."""
    used = [part.index for part in parts_of(item.expression) if isinstance(part, Aggregated)]
    summed = any(query.aggregates[a].function in ("sum", "avg") for a in used)
    return used if summed and item.type in (None, "double", "float") else []


def with_absolutes(query: Query) -> WithAbsolutes | None:
    """The SELECT of a query with what tells the rounding of its `sums_in`; None where its text is not understood."""
    asked = dict.fromkeys(a for item in query.items for a in sums_in(query, item))
    place = _place_of_from(query)
    more: list[str] = []
    columns = {}
    for a in asked:
        written = _columns(query.aggregates[a], query.select_sql)
        if written is None:
            return None
        columns[a] = tuple(range(len(more), len(more) + len(written)))
        more += written
    if place is None:
        return None
    before, behind = query.exact_part(0, place), query.exact_part(place, len(query.select_sql))
    return WithAbsolutes(f"{before}, {', '.join(more)} {behind}", columns)


def _columns(aggregate: Aggregate, text: str) -> list[str] | None:
    whole = text[aggregate.span.start : aggregate.span.end]
    if aggregate.function not in ("sum", "avg"):
        return [whole]
    call = _CALL.match(whole)
    end = None if call is None else _closing(whole, call.end())
    if call is None or end is None:
        return None
    # On a line of its own, in case that a comment is the last of it.
    argument, condition = f"({whole[call.end() : end]}\n)", whole[end + 1 :]
    return [
        whole,
        f"SUM(ABS(CAST({argument} AS DOUBLE) * {UNIT!r}D)){condition}",
        f"COUNT({argument}){condition}",
        f"MIN({argument}){condition}",
    ]


def _closing(text: str, start: int) -> int | None:
    """Where the parenthesis closes that was opened before `start`."""
    depth = 1
    for piece in _PIECES.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(piece.group(), 0)
        if depth == 0:
            return piece.start()
    return None


def _place_of_from(query: Query) -> int | None:
    """Where the FROM of the outer SELECT stands."""
    depth = 0
    for piece in _PIECES.finditer(query.select_sql, max(i.span.end for i in query.items)):
        word = piece.group()
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word.upper() == "FROM" and depth <= 0:
            return piece.start()
    return None
