"""What a key that a sample has not met may add to each measure, by fan-outs of tables and by footers: for certain."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from ...parser.contributions import Summed
from ...parser.keys import Decomposition
from ...parser.sampled_select import SampledQuery
from ..execution.sampled_query import unbounded
from ..sources.ranges import value_range
from .sampled_tables import SampledTables

# The least and the largest that a key adds to a measure, the one at most 0, the other at least.
Ends = tuple[float, float]

MOST_BIGINT = 2.0**63

# Where that is known.
TELLS = "local Parquet files in the order of their keys do"


@dataclass(frozen=True, slots=True)
class Added:
    """What a key adds.

    Attributes
    ----------
    ends : dict of str to (float, float)
        Between what lies what it adds to each measure; infinite where nothing bounds it.
    why : str
        What is not known where something is not bounded, and where it would be, for people.
    """

    ends: dict[str, Ends]
    why: str = ""


def most_added(
    query: SampledQuery, way: Decomposition, tables: SampledTables, dense: Collection[int] = ()
) -> Added:
    """What a key adds to each measure of a query.

    Parameters
    ----------
    query : SampledQuery
    way : Decomposition
        The class of the keys.
    tables : SampledTables
    dense : collection of int
        Keys that are always met, of which nothing is asked.
    """
    known, untold = query.contributions, dict[str, None]()
    if known is None:
        return Added({m: unbounded(m, query) for m in query.measures})

    def fan_out(table: str, columns: tuple[str, ...], own: bool) -> float:
        found = tables.fan_out(table, columns, dense if own else None)
        if not math.isfinite(found):
            alike = f"have one value of {' and '.join(columns)}" if columns else "there are"
            untold[f"nothing tells how many tuples of {table} {alike}: {TELLS}"] = None
        return found

    rows = known.rows({role.place.start: role.column for role in way.roles}, fan_out)
    ends = {m: _added(m, query, rows, tables) for m in query.measures}
    if not math.isfinite(rows):
        certain = all(m in query.ones for m in query.measures)
        return Added(
            ends, "" if certain else next(iter(untold), "nothing bounds the rows that one key makes")
        )
    sums = (m for m in query.measures if m.upper().startswith("SUM") and not all(map(math.isfinite, ends[m])))
    return Added(ends, next((f"nothing tells between what the values of {m} lie" for m in sums), ""))


def _added(measure: str, query: SampledQuery, rows: float, tables: SampledTables) -> Ends:
    """Between what lies what a key of so many rows adds to a measure."""
    assert query.contributions is not None, "rows are counted by them"
    sums = query.contributions.sums
    low, high = unbounded(measure, query)
    if math.isfinite(rows) and measure in sums:
        return _summed(sums[measure], rows, tables)
    return (0.0, min(high, rows)) if low == 0.0 else (low, high)


def _summed(summed: Summed, rows: float, tables: SampledTables) -> Ends:
    """Between what lies the sum over so many rows."""
    columns = {name: (table, column) for name, table, column in summed.columns}
    ends = value_range(summed.text, lambda name: tables.column_range(*columns[name]))
    # NULL adds nothing, and there may be no row.
    low, high = min(ends.low, 0.0), max(ends.high, 0.0)
    if ends.bits is not None and rows * max(-low, high) >= MOST_BIGINT:
        # The sum may leave its type and come out anywhere.
        return -math.inf, math.inf
    return (rows * low if low else 0.0, rows * high if high else 0.0)
