"""The groups of a query in memory: their values in Spark's order, and the numbers of every tuple's groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...optimizer.groups import grouped_vertices
from ...optimizer.operators import GROUPS
from ...parser.join_graph import Query
from ..execution.groups import Groups, VertexGroups, too_many
from ..execution.partial_aggregate import group_column
from ..observed import observed
from ..sources.python_values import python_values
from .expressions import evaluate, passing
from .tables import MemoryTables
from .values import Value, is_fraction

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemoryGroups(Groups):
    """The groups of a query, and its tables with their `group_column`, NULL where a tuple is in no group.

    Attributes
    ----------
    parts : tuple of VertexGroups
    tables : MemoryTables
    """

    parts: tuple[VertexGroups, ...]
    tables: MemoryTables


def listed(query: Query, tables: MemoryTables, most: int) -> MemoryGroups:
    """List the groups of every vertex that a query groups, in the order of their values.

    Raises
    ------
    BudgetExceeded
        If a vertex has more than `most`.
    UnsupportedQuery
        If an expression is not known in memory.
    """
    parts = []
    found = {n.lower(): (n, tables.table(n)) for n in tables}
    for number in grouped_vertices(query):
        vertex = query.graph.vertices[number]
        with observed(GROUPS, vertex.alias) as seen:
            part = _listed(query, number, found, most, tables.zone)
            seen.rows, seen.half_width = len(part.values), 0.0
        parts.append(part)
    return MemoryGroups(tuple(parts), MemoryTables(dict(found.values()), tables.zone))


def _listed(
    query: Query, number: int, found: dict[str, tuple[str, pa.Table]], most: int, zone: str
) -> VertexGroups:
    """The groups of one vertex; its table, in `found`, gets their numbers."""
    vertex = query.graph.vertices[number]
    own = [(place, g) for place, g in enumerate(query.groups) if g.vertex == number]
    name, whole = found[vertex.table.lower()]
    rows = passing(vertex.filter, whole, zone)
    chosen = np.ones(whole.num_rows, bool) if rows is None else rows.to_numpy(zero_copy_only=False)
    tuples = whole.filter(pa.array(chosen))
    columns = [evaluate(g.expression, tuples, zone) for _, g in own]
    numbers_of, first = numbered([ranks(c) for c in columns], tuples.num_rows)
    if len(first) > most:
        raise too_many(query, most)
    numbers = np.full(whole.num_rows, -1, np.int64)
    numbers[chosen] = numbers_of
    column = pa.array(numbers, mask=numbers < 0)
    found[vertex.table.lower()] = name, whole.append_column(group_column(number), column)
    places = tuple(place for place, _ in own)
    return VertexGroups(number, places, values_at(columns, first, zone))


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
