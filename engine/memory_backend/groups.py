"""The groups of a query in memory: their values in Spark's order, and the number of every tuple's group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BudgetExceeded
from ...parser.join_graph import Query
from ..execution.partial_aggregate import GROUP_COLUMN
from ..sources.python_values import python_values
from .expressions import evaluate, kept
from .tables import MemoryTables
from .values import Value, is_fraction

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouped:
    """The tables of a query, the grouped one with `GROUP_COLUMN`, NULL where a tuple is in no group.

    Attributes
    ----------
    tables : MemoryTables
    table : str
        The one whose tuples are grouped.
    values : tuple of tuples
        The values of the grouped expressions in each group, by group number.
    """

    tables: MemoryTables
    table: str
    values: tuple[tuple[Any, ...], ...]


def listed(query: Query, tables: MemoryTables, most: int) -> Grouped:
    """List the groups of a query that groups by one table, in the order of their values.

    Raises
    ------
    BudgetExceeded
        If there are more than `most`.
    UnsupportedQuery
        If an expression is not known in memory.
    """
    vertex = query.graph.vertices[query.groups[0].vertex]
    whole = tables.table(vertex.table)
    rows = kept(vertex.filter, whole, tables.zone)
    chosen = np.ones(whole.num_rows, bool) if rows is None else rows.to_numpy(zero_copy_only=False)
    tuples = whole.filter(pa.array(chosen))
    columns = [evaluate(g.expression, tuples, tables.zone) for g in query.groups]
    own, first = numbered([ranks(c) for c in columns], tuples.num_rows)
    if len(first) > most:
        raise BudgetExceeded(
            f"more than {most:,} groups of {', '.join(g.name for g in query.groups)}; each takes its own sketches",
            "SKIMQL_TOO_MANY_GROUPS",
            query.sql,
            (query.groups[0].span.start, query.groups[-1].span.end),
            "SET skimql.max_groups = ..., or EXACT SELECT ...",
        )
    numbers = np.full(whole.num_rows, -1, np.int64)
    numbers[chosen] = own
    column = pa.array(numbers, mask=numbers < 0)
    with_numbers = {n: tables.table(n) for n in tables}
    name = next(n for n in tables if n.lower() == vertex.table.lower())
    with_numbers[name] = whole.append_column(GROUP_COLUMN, column)
    return Grouped(MemoryTables(with_numbers, tables.zone), name, values_at(columns, first, tables.zone))


def values_at(columns: list[Value], rows: Ints, zone: str) -> tuple[tuple[Any, ...], ...]:
    """The values of columns in some rows, as they are in results."""
    taken = [in_zone(_one_zero(c.data.take(pa.array(rows))), zone) for c in columns]
    return tuple(zip(*(python_values(pa.chunked_array([t])) for t in taken), strict=True))


def in_zone(data: pa.Array, zone: str) -> pa.Array:
    """Timestamps in the session's zone."""
    if pa.types.is_timestamp(data.type) and data.type.tz is not None:
        return data.cast(pa.timestamp("us", zone))
    return data


def ranks(value: Value) -> Ints:
    """Numbers in Spark's order, equal where Spark has one group: NULL first, NaN last, one zero."""
    data = value.data
    if is_fraction(value.kind):
        data = _one_zero(data)
    if value.kind == "boolean":
        data = data.cast(pa.int8())
    if value.kind == "void":
        return np.zeros(len(data), np.int64)
    encoded = data.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(len(order) + 1, np.int64)
    places[order] = np.arange(1, len(order) + 1)
    places[-1] = 0
    codes = encoded.indices.fill_null(len(order)).to_numpy()
    found: Ints = places[codes]
    return found


def _one_zero(data: pa.Array) -> pa.Array:
    """Floats with one zero, as Spark groups them."""
    if not pa.types.is_floating(data.type):
        return data
    return pc.if_else(pc.equal(data, 0.0), pa.scalar(0.0, data.type), data)


def numbered(columns: list[Ints], count: int) -> tuple[Ints, Ints]:
    """The number of each row's combination of values, in their order, and a row of each."""
    if not columns:
        return np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64)
    which = np.zeros(count, np.int64)
    for column in columns:
        distinct, own = np.unique(column, return_inverse=True)
        # Dense again each time, so that no product of numbers leaves 64 bits.
        _, which = np.unique(which * len(distinct) + own, return_inverse=True)
    _, first = np.unique(which, return_index=True)
    return which.astype(np.int64), first.astype(np.int64)
