"""The rows of a batch that could not be read, in one file of that batch: written whole, twice is once."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

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
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.to_pylist()).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, data, path.with_name(f".{FILE}.{uuid.uuid4().hex}.tmp"))
    except OSError as fault:
        raise StreamError(
            f"the rows that cannot be read are not written to {path}: {fault.strerror or fault}",
            "SKIMQL_QUARANTINE_NOT_WRITTEN",
            hint="room and rights there, then RESUME",
        ) from fault
