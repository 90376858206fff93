"""The groups of a query in memory: their values in Spark's order, and the number of every tuple's group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BudgetExceeded
from ...parser.join_graph import Query
from ..execution.partial_aggregate import GROUP_COLUMN, group_column
from ..sources.python_values import python_values
from .expressions import evaluate, kept
from .tables import MemoryTables
from .values import Value, is_fraction

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VertexGroups:
    """The groups of one vertex: where its expressions stand in GROUP BY, and their values by group number."""

    vertex: int
    places: tuple[int, ...]
    values: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """The tables of a grouped query, its grouped ones with the numbers of their tuples' groups.

    Attributes
    ----------
    tables : MemoryTables
        NULL is the number of a tuple that is in no group.
    parts : tuple of VertexGroups
        One for each vertex whose tuples are grouped, ascending.
    """

    tables: MemoryTables
    parts: tuple[VertexGroups, ...]

    @property
    def counts(self) -> Mapping[int, int]:
        """How many groups each grouped vertex has."""
        return {p.vertex: len(p.values) for p in self.parts}

    @property
    def number(self) -> int:
        """How many groups the query may have at most."""
        return math.prod(self.counts.values())

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """The groups of the query as numbers of groups of its vertices."""
        return product(*(range(len(p.values)) for p in self.parts))

    def values(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        """The value of each GROUP BY expression in one group of the query."""
        found = {
            place: value
            for part, number in zip(self.parts, numbers, strict=True)
            for place, value in zip(part.places, part.values[number], strict=True)
        }
        return tuple(found[place] for place in range(len(found)))


def listed(query: Query, tables: MemoryTables, most: int) -> Groups:
    """List the groups of every vertex that a query groups, in the order of their values.

    Raises
    ------
    BudgetExceeded
        If a vertex has more than `most`.
    UnsupportedQuery
        If an expression is not known in memory.
    """
    parts = []
    for number in sorted({g.vertex for g in query.groups}):
        part, numbers = _vertex_groups(query, tables, number, most)
        parts.append(part)
        table = query.graph.vertices[number].table
        tables = tables.with_column(table, group_column(number), numbers)
    if len(parts) == 1:
        tables = tables.with_column(table, GROUP_COLUMN, numbers)
    return Groups(tables, tuple(parts))


def _vertex_groups(
    query: Query, tables: MemoryTables, number: int, most: int
) -> tuple[VertexGroups, pa.Array]:
    """The groups of a vertex, and the number of every tuple of its table."""
    own = [(place, g) for place, g in enumerate(query.groups) if g.vertex == number]
    vertex = query.graph.vertices[number]
    whole = tables.table(vertex.table)
    rows = kept(vertex.filter, whole, tables.zone)
    chosen = np.ones(whole.num_rows, bool) if rows is None else rows.to_numpy(zero_copy_only=False)
    tuples = whole.filter(pa.array(chosen))
    columns = [evaluate(g.expression, tuples, tables.zone) for _, g in own]
    which, first = numbered([ranks(c) for c in columns], tuples.num_rows)
    if len(first) > most:
        raise BudgetExceeded(
            f"more than {most:,} groups of {', '.join(g.name for g in query.groups)}; each takes its own sketches",
            "SKIMQL_TOO_MANY_GROUPS",
            query.sql,
            (query.groups[0].span.start, query.groups[-1].span.end),
            "SET skimql.max_groups = ..., or EXACT SELECT ...",
        )
    numbers = np.full(whole.num_rows, -1, np.int64)
    numbers[chosen] = which
    places = tuple(place for place, _ in own)
    part = VertexGroups(number, places, values_at(columns, first, tables.zone))
    return part, pa.array(numbers, mask=numbers < 0)


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
