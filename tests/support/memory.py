"""Questions on Arrow tables without Spark, asked as a session is: for what a text means, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings

_KINDS = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "DATE": pa.date32(),
}


def arrow(schema, rows):
    """A table of ``"k INT, s STRING"`` and rows of Python values."""
    fields = [pa.field(name, _KINDS[kind]) for name, kind in (column.split() for column in schema.split(","))]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )


class InMemory:
    """What `Session` is for SELECT APPROXIMATE, with the fixture's settings: sketches, whatever would be cheaper.

    `tables` are Arrow tables or (schema, rows), by name.
    """

    def __init__(self, tables, **settings):
        whole = {n: t if isinstance(t, pa.Table) else arrow(*t) for n, t in tables.items()}
        self.backend = MemoryBackend(MemoryTables(whole))
        self.settings = replace(Settings(error=None), **settings)

    def run(self, text):
        return MemoryRun.of(text, self.backend, self.settings)

    def sql(self, text):
        return self.run(text).answer()

    def plan(self, text):
        return self.run(text).plan()
