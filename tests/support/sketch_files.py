"""Files of kept sketches with something changed under checksums that are right."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from skimql.engine.catalog.file import canonical, digest


def with_metadata(data, values=None, **changes):
    """The file with other metadata or values, its checksums right but those of the arrays."""
    file = pq.ParquetFile(pa.BufferReader(data))
    metadata = dict(file.metadata.metadata)
    head = canonical({**json.loads(metadata[b"skimql"]), **changes})
    metadata[b"skimql"] = head
    metadata[b"skimql.sha256"] = digest(head + metadata[b"skimql.arrays"]).encode()
    sink, table = pa.BufferOutputStream(), file.read()
    if values is not None:
        rows = [[values(v) for v in row] for row in table["integers"].to_pylist()]
        column = pa.array(rows, table.schema.field("integers").type)
        table = table.set_column(2, table.schema.field("integers"), column)
    with pq.ParquetWriter(sink, file.schema_arrow) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    return bytes(sink.getvalue())
