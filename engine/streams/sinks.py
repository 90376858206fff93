"""Where views write their rows after every batch: a Parquet file for each batch of each stream, each batch once.

The file is written before the state is replaced, under a name that is the batch's own, and says in its metadata of
which stream, view and batch it is: a batch that is delivered again writes it again, and no other file is replaced.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import StreamError
from ..catalog import disk
from .planned import PlannedView
from .state import StreamState
from .views import answer

SINK = "sink"  # in WITH

_MARK = b"skimql.batch"


def write_row(view: PlannedView, states: Mapping[str, StreamState], stream: str, batch: int) -> None:
    """Write what a view has after a batch of a stream.

    Parameters
    ----------
    view : PlannedView
        One with a sink.
    states : mapping of str to StreamState
        Of all its streams, by lower-cased name; that of `stream` has the batch already.
    stream : str
    batch : int

    Raises
    ------
    StreamError
        ``SKIMQL_SINK_NOT_WRITTEN`` where the folder cannot be written; the batch is then not in the state either.
    """
    folder = Path(view.view.settings[SINK])
    rows = answer(view, states).arrow()
    told = {"stream": [stream] * rows.num_rows, "batch": [batch] * rows.num_rows}
    told["at"] = [states[stream.lower()].updated] * rows.num_rows
    for name, values in told.items():
        taken = {n.lower() for n in rows.column_names}
        own = next(n for n in (name, *(f"{name}_{k}" for k in range(2, 99))) if n not in taken)
        rows = rows.append_column(own, pa.array(values))
    name = f"{stream.lower()}-{batch:012}.parquet"
    mark = {_MARK: f"{view.view.name} {view.view.created} {stream.lower()} {batch}".encode()}
    data = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata(mark), data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / name, data.getvalue().to_pybytes(), mark)
    except OSError as fault:
        raise StreamError(
            f"the sink {folder} of view {view.view.name} cannot be written: {fault.strerror or fault}",
            "SKIMQL_SINK_NOT_WRITTEN",
            hint="room and rights there, then RESUME",
        ) from fault


def _write(path: Path, data: bytes, mark: Mapping[bytes, bytes]) -> None:
    """Write a file, in the place of the one of the same batch alone."""
    try:
        disk.create(path, data)
    except FileExistsError:
        try:
            known = pq.read_schema(path).metadata or {}
        except pa.ArrowException:
            known = {}
        if known.get(_MARK) != mark[_MARK]:
            raise OSError(errno.EEXIST, f"there is a {path.name} that is not of this batch") from None
        disk.replace(path, data, path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
