"""Arrow tables by name, with the schema that the parser resolves names in, and the types of expressions over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...optimizer.plan import Attribute, Weight
from ...parser.join_graph import Column, Query, TableSchema
from ..results.distinct import with_counted_types
from ..sources.keys import with_key_types
from ..sources.ranges import ANY, Range
from .expressions import evaluate, passing
from .keys import key_values
from .values import spark_type
from .weights import Weights, weights_of


class MemoryTables(Mapping[str, TableSchema]):
    """Arrow tables by name, ignoring case.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
    zone : str
        The time zone in which dates, texts and timestamps are compared.
    """

    def __init__(self, tables: Mapping[str, pa.Table], zone: str = "UTC") -> None:
        self._tables = {name.lower(): (name, table) for name, table in tables.items()}
        self.zone = zone

    def table(self, name: str) -> pa.Table:
        """The tuples of a table."""
        return self._tables[name.lower()][1]

    def behind(self, name: str, condition: str | None) -> pa.Table:
        """The tuples of a table behind a filter."""
        found = self.table(name)
        rows = passing(condition, found, self.zone)
        return found if rows is None else found.filter(rows)

    def key_values(self, attribute: Attribute, tuples: pa.Table) -> pa.Array:
        """The keys of some tuples of a table, see `key_values`."""
        return key_values(attribute, tuples, self.zone)

    def weights(self, weight: Weight, tuples: pa.Table, sql: str) -> Weights:
        """What each of some tuples of a table weighs, see `weights_of`."""
        return weights_of(weight, tuples, sql, self.zone)

    def column_range(self, name: str, column: str, kept: pa.Table | None = None) -> Range:
        """What the numbers of a column lie between; a NaN lies between none, if any is among those that are kept."""
        table = self.table(name)
        if column not in table.column_names:
            return ANY
        kind = table.schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return ANY
        if (
            pa.types.is_floating(kind)
            and pc.any(pc.is_nan((table if kept is None else kept)[column])).as_py()
        ):
            return ANY
        ends = pc.min_max(table[column])
        if ends["min"].as_py() is None:
            return ANY
        bits = kind.bit_width if pa.types.is_signed_integer(kind) else None
        return Range(float(ends["min"].as_py()), float(ends["max"].as_py()), bits)

    def __getitem__(self, name: str) -> TableSchema:
        declared, table = self._tables[name.lower()]
        return TableSchema(declared, tuple(Column(f.name, spark_type(f.type)) for f in table.schema))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def typed(self, query: Query) -> Query:
        """The query with the types of all keys, and of the values that it counts, known.

        Raises
        ------
        UnsupportedQuery
            If two keys are not comparable, or an expression is not known in memory.
        """
        types = _Types(self)
        keyed = with_key_types(query, None, ansi=True, known=types)
        return with_counted_types(keyed, None, types) if query.counts_distinct else keyed


class _Types(Mapping[tuple[str, str], str]):
    """The Spark types of expressions, by table and expression."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def __getitem__(self, asked: tuple[str, str]) -> str:
        table, expression = asked
        return evaluate(expression, self._tables.table(table).slice(0, 0), self._tables.zone).kind

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def __len__(self) -> int:
        return 0
