"""One stored sketch as the bytes of a Parquet file.

A row of the file is one row of an array: its name, its number, and its values in `integers` or `doubles`. The
key-value metadata ``skimql`` hold the head as JSON, ``skimql.arrays`` name, type, shape and SHA-256 of every array,
``skimql.sha256`` the checksum of both. Pages carry CRCs, which are verified: without that, pyarrow reads a flipped
byte as a number. Between them no byte that matters can change unseen.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...errors import BudgetExceeded, CorruptSketch, DataError
from ..synopses import Built
from . import checks
from .arrays import Declared, check_footer, check_schema, declared_arrays, slots_of
from .footer import read_footer
from .form import Head
from .metadata import from_json, to_json

Arrays = dict[str, NDArray[Any]]

_SCHEMA = pa.schema(
    [
        ("array", pa.string()),
        ("row", pa.int32()),
        ("integers", pa.list_(pa.int64())),
        ("doubles", pa.list_(pa.float64())),
    ]
)
# Of one sketch, as it is and as counters, where nobody says otherwise.
MOST_BYTES = 1 << 32
_HEAD, _ARRAYS, _CHECKSUM = b"skimql", b"skimql.arrays", b"skimql.sha256"


@dataclass(frozen=True, slots=True)
class StoredSketch:
    """A head and its finished sketches: one for each measure, group by group.

    Measures that one synopsis keeps have it in common.
    """

    head: Head
    built: tuple[Built, ...]

    @property
    def groups(self) -> list[tuple[Built, ...]]:
        """The sketches of each group, by its number; one group where there is no GROUP BY."""
        each = len(self.head.measures)
        return [self.built[n : n + each] for n in range(0, len(self.built), each)]


def canonical(value: Any) -> bytes:
    """JSON that is the same bytes for the same value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def digest(data: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def encode(sketch: StoredSketch) -> bytes:
    """The file of a sketch; DataError ``SKIMQL_OVERFLOW`` if a sum in it is no finite number."""
    arrays = _arrays_of(sketch)
    finite = all(a.dtype != np.float64 or np.isfinite(a).all() for a in arrays.values())
    if not finite or not all(math.isfinite(m.tally.mass) for m in sketch.head.measures):
        raise DataError(
            f"a sum in sketch {sketch.head.name} leaves the range of DOUBLE",
            "SKIMQL_OVERFLOW",
            hint="a filter or a view that leaves such values out",
        )
    head, listed = canonical(to_json(sketch.head)), canonical(_listed(arrays))
    metadata = {_HEAD: head, _ARRAYS: listed, _CHECKSUM: digest(head + listed).encode()}
    names: list[str] = []
    numbers: list[int] = []
    integers: list[NDArray[Any] | None] = []
    doubles: list[NDArray[Any] | None] = []
    for name, array in arrays.items():
        for number, row in enumerate(np.atleast_2d(array)):
            names.append(name)
            numbers.append(number)
            integers.append(row if array.dtype == np.int64 else None)
            doubles.append(row if array.dtype == np.float64 else None)
    columns = [pa.array(v, f.type) for v, f in zip((names, numbers, integers, doubles), _SCHEMA, strict=True)]
    sink = pa.BufferOutputStream()
    writer = pq.ParquetWriter(
        sink,
        _SCHEMA,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
        store_schema=False,
    )
    with writer:
        if names:
            writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA))
        writer.add_key_value_metadata(metadata)
    return bytes(sink.getvalue())


def decode(data: bytes, where: str, most_bytes: int = MOST_BYTES) -> StoredSketch:
    """The sketch in the bytes of a file.

    Nothing is decompressed before its declared size is known to fit: that of the head, of the list of arrays and of the
    Parquet footer.

    Raises
    ------
    CorruptSketch
        If a checksum does not hold or the file is no sketch; `where` names the file.
    IncompatibleSketches
        If a newer SkimQL wrote it.
    BudgetExceeded
        ``SKIMQL_MAX_BYTES`` if it takes more than `most_bytes`, as it is or as counters.
    """
    try:
        footer = read_footer(data, len(_SCHEMA))
        head, listed = footer.metadata[_HEAD], footer.metadata[_ARRAYS]
        checksum = footer.metadata[_CHECKSUM].decode()
    except (KeyError, ValueError) as fault:
        raise CorruptSketch(f"{where} is no stored sketch, or damaged: {_said(fault)}") from fault
    if digest(head + listed) != checksum:
        raise CorruptSketch(f"{where} is damaged: the SHA-256 of its metadata is not {checksum[:16]}…")
    understood = from_json(_parsed(head, where), where)
    try:
        declared = declared_arrays(understood, _parsed(listed, where))
    except (KeyError, ValueError) as fault:
        raise CorruptSketch(f"{where}: its arrays are not those that its metadata need ({fault})") from fault
    _refuse_large(understood, declared, most_bytes, where)
    try:
        check_footer(footer, declared)
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        check_schema(file.schema_arrow)
        table = file.read(use_threads=False)
    except MemoryError:
        raise  # Arrow's is one of its other errors too, and says nothing of the file
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        raise CorruptSketch(
            f"{where} is damaged: a page of it is not as it was written ({_said(fault)})"
        ) from fault
    arrays = _checked(_arrays_in(table, declared, where), declared, where)
    try:
        return StoredSketch(understood, _built(understood, arrays))
    except (KeyError, ValueError, OverflowError) as fault:
        raise CorruptSketch(f"{where}: its arrays are none of its kind ({fault})") from fault


def metadata_digest(head: Head) -> str:
    """SHA-256 of the metadata of a head."""
    return digest(canonical(to_json(head)))


def _parsed(text: bytes, where: str) -> Any:
    try:
        return checks.parse_json(text)
    except ValueError as fault:
        raise CorruptSketch(f"{where}: its metadata are no JSON ({fault})") from fault


def _refuse_large(head: Head, declared: Mapping[str, Declared], most_bytes: int, where: str) -> None:
    size = 8 * sum(d.size for d in declared.values())
    dense = head.most_bytes
    if max(size, dense) > most_bytes:
        as_counters = "" if size > most_bytes else ", made counters,"
        raise BudgetExceeded(
            f"the sketch in {where}{as_counters} takes {max(size, dense):,} bytes, and {most_bytes:,} are allowed",
            "SKIMQL_MAX_BYTES",
            hint="a larger skimql.max_bytes",
        )


def _said(fault: BaseException) -> str:
    return (str(fault) or type(fault).__name__).splitlines()[0].rstrip(".")


def _arrays_of(sketch: StoredSketch) -> Arrays:
    """Arrays of all synopses under names like ``0.counters``; the keys of a map one array for each attribute."""
    kind, step = sketch.head.kind, len(sketch.head.measures) // sketch.head.synopses
    arrays: Arrays = {}
    for number, built in enumerate(sketch.built[::step]):
        arrays |= {f"{number}.{name}": array for name, array in kind.arrays(built.sketch).items()}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _built(head: Head, arrays: Arrays) -> tuple[Built, ...]:
    scales = [m.scale for m in head.measures]
    slots: dict[str, Arrays] = {}
    for name, array in arrays.items():
        slot, _, own = name.partition(".")
        slots.setdefault(slot, {})[own] = array
    built: list[Built] = []
    for number, (size, parts) in enumerate(slots_of(head)):
        synopsis = head.kind.restored(size, slots.get(str(number), {}))
        if head.kind.exact(synopsis) != parts[0].exact:
            raise ValueError("a measure is said to be of another form than it is")
        for part in parts:
            built.append(Built(synopsis, part.tally, scales[len(built) % len(scales)]))
    return tuple(built)


def _listed(arrays: Arrays) -> dict[str, Any]:
    return {
        name: {"dtype": str(a.dtype), "shape": list(a.shape), "sha256": digest(_little_endian(a))}
        for name, a in arrays.items()
    }


def _little_endian(array: NDArray[Any]) -> bytes:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _arrays_in(table: pa.Table, declared: Mapping[str, Declared], where: str) -> Arrays:
    rows: dict[str, list[tuple[int, NDArray[Any]]]] = {name: [] for name in declared}
    try:
        for name, number, at in zip(
            table["array"].to_pylist(), table["row"].to_pylist(), range(table.num_rows), strict=True
        ):
            kind = declared[name].dtype
            values = table["integers" if kind == "int64" else "doubles"][at].values
            rows[name].append((number, _as_numpy(values, kind)))
        return {
            name: np.concatenate([r for _, r in sorted(parts, key=lambda p: p[0])]).reshape(
                declared[name].shape
            )
            for name, parts in rows.items()
        }
    except (KeyError, ValueError, TypeError, AttributeError) as fault:
        raise CorruptSketch(f"{where} is damaged: its arrays are not those it lists ({fault})") from fault


def _as_numpy(values: pa.Array, kind: str) -> NDArray[Any]:
    """The values of an Arrow array without NULLs; pyarrow's own way would import pandas."""
    if values.null_count:
        raise ValueError("a value is missing")
    if len(values) == 0:
        return np.empty(0, dtype=kind)
    return np.frombuffer(values.buffers()[1], dtype=kind, count=len(values), offset=8 * values.offset)


def _checked(arrays: Arrays, declared: Mapping[str, Declared], where: str) -> Arrays:
    for name, array in arrays.items():
        wanted = declared[name].sha256
        if digest(_little_endian(array)) != wanted:
            raise CorruptSketch(f"{where} is damaged: the SHA-256 of array {name} is not {wanted[:16]}…")
        if array.dtype == np.float64 and not np.isfinite(array).all():
            raise CorruptSketch(f"{where}: array {name} has what is no finite number")
    return arrays
