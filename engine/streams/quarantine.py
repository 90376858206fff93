"""The rows of a batch that could not be read, in one file of that batch: written whole, twice is once."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import StreamError
from ..catalog import disk

FILE = "rows.json"


def write_rows(folder: Path, batch: int, rows: pa.Table) -> None:
    """Write rows as lines of JSON, in the place of those of the same batch alone; no other file is touched.

    Raises
    ------
    StreamError
        ``SKIMQL_QUARANTINE_NOT_WRITTEN``; the batch is then not in the state either.
    """
    path = folder / f"batch={batch}" / FILE
    columns = {name: _values(rows[name]) for name in rows.column_names}
    every = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in every).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, data, path.with_name(f".{FILE}.{uuid.uuid4().hex}.tmp"))
    except OSError as fault:
        raise StreamError(
            f"the rows that cannot be read are not written to {path}: {fault.strerror or fault}",
            "SKIMQL_QUARANTINE_NOT_WRITTEN",
            hint="room and rights there, then RESUME",
        ) from fault


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Values of a column; of text whose bytes are none a mark stands for each that is not."""
    if not pa.types.is_string(column.type):
        return list(column.to_pylist())
    raw = column.cast(pa.binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "replace") for value in raw]
