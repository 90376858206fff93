"""The arrays of a stored sketch as its head and its footer declare them, checked before one of them is decompressed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from . import checks
from .footer import Footer
from .form import Head, Part
from .kinds.kind import Size

# A value takes 8 bytes and its levels; a row its name, number and page headers.
_VALUE_BYTES, _ROW_BYTES, _MORE_BYTES = 12, 1 << 10, 1 << 20
_TYPES = {
    "array": pa.string(),
    "row": pa.int32(),
    "integers": pa.list_(pa.int64()),
    "doubles": pa.list_(pa.float64()),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """An array: its type, its shape and the SHA-256 of its values."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def size(self) -> int:
        """Its values."""
        return math.prod(self.shape)

    @property
    def rows(self) -> int:
        """The rows of the file that it lies in."""
        return self.shape[0] if len(self.shape) == 2 else 1


def declared_arrays(head: Head, listed: Any) -> dict[str, Declared]:
    """The list of arrays of a file; ValueError unless they are just those that its head needs, in its sizes."""
    found = {name: _declared(value) for name, value in checks.mapping(listed, "the list of arrays").items()}
    slots: dict[str, dict[str, Declared]] = {}
    for name, array in found.items():
        slot, _, own = name.partition(".")
        slots.setdefault(slot, {})[own] = array
    for number, (size, parts) in enumerate(slots_of(head)):
        _check_slot(head, size, parts, slots.pop(str(number), {}))
    if slots:
        raise ValueError("there are arrays of no measure")
    return found


def slots_of(head: Head) -> Iterator[tuple[Size, tuple[Part, ...]]]:
    """The synopses of a sketch in the order in which its file numbers them: all of one group, then of the next.

    Each with its size and its parts: one for each weight that it keeps.
    """
    for parts in head.parts():
        if head.kind.joint:
            yield head.size(head.measures[0]), parts
        else:
            for measure, part in zip(head.measures, parts, strict=True):
                yield head.size(measure), (part,)


def check_footer(footer: Footer, declared: Mapping[str, Declared]) -> None:
    """Raise ValueError unless the footer of a file is that of a table of just these arrays."""
    rows = sum(d.rows for d in declared.values())
    if footer.rows != rows or len(footer.chunks) > len(_TYPES) * max(rows, 1):
        raise ValueError(f"it has {footer.rows:,} rows for {rows:,}")
    values = {
        kind: sum(d.size for d in declared.values() if d.dtype == kind) for kind in ("int64", "float64")
    }
    most = (rows, rows, values["int64"] + rows, values["float64"] + rows)
    for column, allowed in enumerate(most):
        chunks = [c for c in footer.chunks if c.column == column]
        count, nbytes = sum(c.values for c in chunks), sum(c.uncompressed for c in chunks)
        if count > allowed or nbytes > _VALUE_BYTES * allowed + _ROW_BYTES * rows + _MORE_BYTES:
            raise ValueError(f"a column has {count:,} values in {nbytes:,} bytes for {allowed:,}")


def check_schema(schema: pa.Schema) -> None:
    """Raise ValueError unless the columns of a file are those of a stored sketch."""
    if schema.names != list(_TYPES) or not all(
        _same_type(schema.field(n).type, t) for n, t in _TYPES.items()
    ):
        raise ValueError("it has other columns than a sketch")


def _declared(value: Any) -> Declared:
    data = checks.mapping(value, "an array")
    shape = tuple(checks.integer(n, 0, 1 << 40, "a shape") for n in checks.items(data["shape"], "shape", 2))
    if not shape:
        raise ValueError("an array without a shape")
    return Declared(
        checks.one_of(data["dtype"], ("int64", "float64"), "dtype"),
        shape,
        checks.text(data["sha256"], "sha256", 64),
    )


def _check_slot(head: Head, size: Size, parts: Sequence[Part], arrays: Mapping[str, Declared]) -> None:
    first, *others = parts
    head.kind.check(size, first.exact, arrays)
    whole, held = 8 * sum(a.size for a in arrays.values()), first.nbytes
    sized = held <= whole if head.kind.packed(size) else held == whole
    if not sized or any(p.nbytes or p.exact != first.exact for p in others):
        raise ValueError("a measure is said to be of another form or size than it is")
    entries = arrays["weights"].size if first.exact and "weights" in arrays else 0
    if entries and (first.tally.mass == 0 or (first.tally.tuples == 0 and not first.tally.negative)):
        raise ValueError("a measure has keys and no tuples")


def _same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted):
        return bool(pa.types.is_list(found) and found.value_type == wanted.value_type)
    return bool(found == wanted)
