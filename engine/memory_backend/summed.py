"""The expressions that a query sums, with a glance at their values on Arrow tables."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyarrow as pa

from ...optimizer.candidates.value_draws import Summed, expressions_of
from ...optimizer.plan import Weight
from ...parser.join_graph import Query
from ..sources.ranges import value_range
from .expressions import passing
from .tables import MemoryTables
from .weights import weights_of

# Parts of a table that are looked at, and their tuples together.
PLACES, PROBE = 4, 16_384


def summed_values(query: Query, tables: MemoryTables, probe: int = PROBE) -> tuple[Summed, ...]:
    """What is summed, with the values of `probe` tuples: the first ones of the parts of its table."""
    found = []
    for vertex, expression, alone in expressions_of(query):
        relation = query.graph.vertices[vertex]
        table = tables.table(relation.table)
        each = -(-table.num_rows // PLACES)
        some = pa.concat_tables([table.slice(n * each, min(each, probe // PLACES)) for n in range(PLACES)])
        kept = passing(relation.filter, some, tables.zone)
        weight = Weight(expression)
        own = weights_of(weight, some if kept is None else some.filter(kept), query.sql, tables.zone)
        values = np.empty(0) if own.values is None else own.values / own.scale
        present = weights_of(
            Weight(expression, True), some if kept is None else some.filter(kept), query.sql, tables.zone
        )
        if own.values is not None and present.values is not None:
            values = np.where(present.values / present.scale > 0, values, math.nan)
        ends = value_range(expression, partial(tables.column_range, relation.table))
        found.append(Summed(vertex, expression, values[~np.isinf(values)], ends.low, ends.high, alone))
    return tuple(found)
