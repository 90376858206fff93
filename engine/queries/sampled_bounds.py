"""What a key that a sample has not met may add to each measure, by fan-outs of tables and by footers: for certain."""

from __future__ import annotations

import math
from collections.abc import Collection

from ...parser.contributions import Summed
from ...parser.keys import Decomposition
from ...parser.sampled_select import SampledQuery
from ..sources.ranges import value_range
from .sampled_tables import SampledTables

# The least and the largest that a key adds to a measure, the one at most 0, the other at least.
Ends = tuple[float, float]

UNBOUNDED: Ends = (-math.inf, math.inf)


def most_added(
    query: SampledQuery, way: Decomposition, tables: SampledTables, dense: Collection[int] = ()
) -> dict[str, Ends]:
    """Between what lies what a key adds to each measure of a query.

    Parameters
    ----------
    query : SampledQuery
    way : Decomposition
        The class of the keys.
    tables : SampledTables
    dense : collection of int
        Keys that are always met, of which nothing is asked.

    Returns
    -------
    dict of str to (float, float)
        Infinite where nothing bounds it.
    """
    known = query.contributions
    if known is None:
        return dict.fromkeys(query.measures, UNBOUNDED)

    def fan_out(table: str, columns: tuple[str, ...], own: bool) -> float:
        return tables.fan_out(table, columns, dense if own else None)

    rows = known.rows({role.place.start: role.column for role in way.roles}, fan_out)
    found = {}
    for measure in query.measures:
        if measure in query.ones:
            found[measure] = (0.0, 1.0)
        elif not math.isfinite(rows):
            found[measure] = UNBOUNDED
        elif measure in known.sums:
            found[measure] = _summed(known.sums[measure], rows, tables)
        else:
            found[measure] = (0.0, rows) if measure.upper().startswith("COUNT") else UNBOUNDED
    return found


def _summed(summed: Summed, rows: float, tables: SampledTables) -> Ends:
    """Between what lies the sum over so many rows."""
    columns = {name: (table, column) for name, table, column in summed.columns}
    ends = value_range(summed.text, lambda name: tables.column_range(*columns[name]))
    # NULL adds nothing, and there may be no row.
    low, high = min(ends.low, 0.0), max(ends.high, 0.0)
    return (rows * low if low else 0.0, rows * high if high else 0.0)
