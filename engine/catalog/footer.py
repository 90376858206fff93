"""What a Parquet file says of itself: its footer and the headers of its pages, read before a page is decompressed.

pyarrow ends the process where the footer of a damaged file promises columns that are not there, and takes the sizes in
page headers as they are; so both are read here first. Only lengths and counts are: the rest is pyarrow's.

References
----------
.. [1] Apache Parquet, ``parquet.thrift``; Apache Thrift, compact protocol.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAGIC = b"PAR1"
_MOST_DEPTH = 12
_MOST_NESTED = 100  # structs, lists and maps within one another, in a schema
# Bytes of the physical types INT32 and INT64, and the converted types of signed integers (none is one too).
_INTEGERS = {1: 4, 2: 8}
_SIGNED = (None, 15, 16, 17, 18)
# The physical types FLOAT and DOUBLE, BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY, and the converted type of decimals.
_REALS = {4: ("<f", 4), 5: ("<d", 8)}
_BYTES = (6, 7)
_DECIMAL = 5
_MOST_DECIMAL_BYTES = 17
_MOST_SCALE = 38
_END_BYTES = 8  # length of the footer and the magic bytes


@dataclass(frozen=True, slots=True)
class Footer:
    """Key-value metadata, tuples, and for each column of each row group what its pages hold."""

    metadata: dict[bytes, bytes]
    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group: its number, and what its page headers declare in all."""

    column: int
    values: int
    uncompressed: int


def read_footer(data: bytes, columns: int) -> Footer:
    """The footer of a file of so many columns.

    Raises
    ------
    ValueError
        If it is not that of a Parquet file, or promises what the bytes of the file cannot hold.
    """
    if len(data) < 3 * len(MAGIC) or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ValueError("it is no Parquet file, or cut short")
    length = int.from_bytes(data[-_END_BYTES:-4], "little")
    start = len(data) - _END_BYTES - length
    if start < len(MAGIC):
        raise ValueError("its footer is longer than the file")
    whole = _Reader(data, start, len(data) - _END_BYTES).struct()
    groups = _list(whole, 4)
    chunks = [
        _chunk(data, start, number, chunk)
        for group in groups
        for number, chunk in enumerate(_columns(group, columns))
    ]
    return Footer(
        {_bytes(pair, 1): _bytes(pair, 2) for pair in _list(whole, 5)}, _count(whole, 3), tuple(chunks)
    )


@dataclass(frozen=True, slots=True)
class Ends:
    """The least and the greatest value of a column, as statistics tell; None where they do not.

    `integers` of a column of integers, `numbers` of any column of numbers, of decimals and doubles too. Statistics
    leave NaN out.
    """

    integers: tuple[int, int] | None
    numbers: tuple[float, float] | None


def ends_of(footer: bytes) -> dict[str, Ends]:
    """What each column lies between, by its path in lower case, with dots between; without those not told of.

    Parameters
    ----------
    footer : bytes
        The footer alone, without its length and the magic bytes behind it.

    Raises
    ------
    ValueError
        If it is not the footer of a Parquet file.
    """
    return {name: Ends(told.integers, told.numbers) for name, told in _statistics(footer).items()}


@dataclass(frozen=True, slots=True)
class _Statistics:
    """The least and the greatest value of a column in each row group, as bytes, and what it is of.

    `ordered` says whether they stand in the fields that are ordered as the values are.
    """

    physical: int
    element: dict[int, Any]
    ends: list[tuple[bytes, bytes]]
    ordered: bool

    @property
    def is_integer(self) -> bool:
        """Whether it is of signed integers, not of dates, times or decimals stored as such."""
        element = self.element
        return (element.get(6) in _SIGNED and 10 not in element) or _is_signed(element.get(10))

    @property
    def scale(self) -> int | None:
        """The scale of decimals; None where it is none of them."""
        logical = _as_struct(self.element.get(10) or {}).get(5)
        scale = _as_struct(logical).get(1, 0) if logical is not None else self.element.get(7, 0)
        is_decimal = logical is not None or self.element.get(6) == _DECIMAL
        return int(scale) if is_decimal and type(scale) is int and 0 <= scale <= _MOST_SCALE else None

    @property
    def integers(self) -> tuple[int, int] | None:
        """The least and the greatest of integers."""
        if not self.is_integer or self.physical not in _INTEGERS:
            return None
        width = _INTEGERS[self.physical]
        if any(len(low) != width or len(high) != width for low, high in self.ends):
            return None
        ends = [(_integer(low), _integer(high)) for low, high in self.ends]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def numbers(self) -> tuple[float, float] | None:
        """The least and the greatest of numbers."""
        ends = [(self.number(low), self.number(high)) for low, high in self.ends]
        lows, highs = [low for low, _ in ends], [high for _, high in ends]
        known = [n for n in (*lows, *highs) if n is not None and not math.isnan(n)]
        if len(known) < 2 * len(ends):
            return None
        return min(n for n in lows if n is not None), max(n for n in highs if n is not None)

    def number(self, value: bytes) -> float | None:
        """One end as a number, None where it is none."""
        if self.physical in _REALS:
            form, width = _REALS[self.physical]
            return float(struct.unpack(form, value)[0]) if len(value) == width else None
        if self.physical in _INTEGERS and len(value) != _INTEGERS[self.physical]:
            return None
        if self.is_integer and self.physical in _INTEGERS:
            return float(_integer(value))
        if self.scale is None or not value:
            return None
        if self.physical in _INTEGERS:
            return float(_integer(value) / 10**self.scale)
        if self.physical in _BYTES and self.ordered and len(value) <= _MOST_DECIMAL_BYTES:
            return float(int.from_bytes(value, "big", signed=True) / 10**self.scale)
        return None


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "little", signed=True)


def _statistics(footer: bytes) -> dict[str, _Statistics]:
    """What the statistics of each column tell that every row group and the schema have."""
    whole = _Reader(footer, 0, len(footer)).struct()
    groups = _list(whole, 4)
    found: dict[str, list[tuple[int, bytes, bytes, bool]]] = {}
    depths: dict[str, set[int]] = {}
    for group in groups:
        own: set[str] = set()
        for chunk in _list(_as_struct(group), 1):
            about = _as_struct(_as_struct(chunk).get(3, {}))
            path = [p for p in _list(about, 3) if type(p) is bytes]
            name = b".".join(path).decode("utf-8", "replace").lower()
            depths.setdefault(name, set()).add(len(path))
            # Of columns that differ by case alone the first one counts, whether it is told of or not.
            if name in own:
                continue
            own.add(name)
            told = _as_struct(about.get(12, {}))
            kind = about.get(1)
            low, high = (told.get(new, told.get(old)) for new, old in ((6, 2), (5, 1)))
            if type(kind) is int and type(low) is bytes and type(high) is bytes:
                found.setdefault(name, []).append((kind, low, high, 5 in told and 6 in told))
    elements = _elements(_list(whole, 2))
    known = {}
    for name, ends in found.items():
        kinds = {kind for kind, *_ in ends}
        # A column of a struct, a{b}, and one that is called a.b are not told apart.
        alone = name in elements and len(depths[name]) == 1
        if alone and len(kinds) == 1 and len(ends) == len(groups):
            ordered = all(own for *_, own in ends)
            known[name] = _Statistics(
                kinds.pop(), elements[name], [(low, high) for _, low, high, _ in ends], ordered
            )
    return known


def _elements(schema: list[Any]) -> dict[str, dict[int, Any]]:
    """The elements of a schema by their paths; of several of one path the first."""
    elements, found = iter(schema), dict[str, dict[int, Any]]()

    def walk(path: str, children: int, depth: int) -> None:
        if depth > _MOST_NESTED:
            raise ValueError("its columns are nested too deeply")
        for _ in range(children):
            element = _as_struct(next(elements, None))
            own = f"{path}.{_bytes(element, 4).decode('utf-8', 'replace').lower()}".lstrip(".")
            walk(own, _count(element, 5) if 5 in element else 0, depth + 1)
            found.setdefault(own, element)

    root = _as_struct(next(elements, None))
    walk("", _count(root, 5), 0)
    return found


def _is_signed(logical: Any) -> bool:
    integer = _as_struct(logical or {}).get(10)
    return type(integer) is dict and integer.get(2) is True


def _columns(group: Any, columns: int) -> list[Any]:
    found = _list(_as_struct(group), 1)
    if len(found) != columns:
        raise ValueError(f"a row group has {len(found)} columns, not {columns}")
    return found


def _chunk(data: bytes, most: int, number: int, chunk: Any) -> Chunk:
    chunk = _as_struct(chunk)
    if 1 in chunk:
        raise ValueError("a column lies in another file")
    about = _as_struct(chunk.get(3))
    start = min(_count(about, n) for n in (9, 11) if n in about)
    end = start + _count(about, 7)
    if not len(MAGIC) <= start <= end <= most:
        raise ValueError("a column lies outside the file")
    values = uncompressed = 0
    for page in _pages(data, start, end):
        uncompressed += _count(page, 2)
        values += max((_count(_as_struct(page[n]), 1) for n in (5, 8) if n in page), default=0)
    return Chunk(number, max(values, _count(about, 5)), max(uncompressed, _count(about, 6)))


def _pages(data: bytes, start: int, end: int) -> Iterator[dict[int, Any]]:
    while start < end:
        reader = _Reader(data, start, end)
        page = reader.struct()
        yield page
        start = reader.at + _count(page, 3)
    if start != end:
        raise ValueError("a page is longer than its column")


def _as_struct(value: Any) -> dict[int, Any]:
    if type(value) is not dict:
        raise ValueError("its footer is not one of Parquet's")
    return value


def _list(struct: dict[int, Any], number: int) -> list[Any]:
    found = struct.get(number, [])
    if type(found) is not list:
        raise ValueError("its footer is not one of Parquet's")
    return found


def _bytes(struct: Any, number: int) -> bytes:
    found = _as_struct(struct).get(number, b"")
    if type(found) is not bytes:
        raise ValueError("its footer is not one of Parquet's")
    return found


def _count(struct: dict[int, Any], number: int) -> int:
    found = struct.get(number)
    if type(found) is not int or found < 0:
        raise ValueError("a size or count in it is missing or negative")
    return found


class _Reader:
    """A struct of Thrift's compact protocol, as its fields by number."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self.data = data
        self.at = start
        self.end = end

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MOST_DEPTH:
            raise ValueError("its footer is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return self._take(8)
            case 8:
                return self._take(self._varint())
            case 9 | 10:
                return self._values(depth)
            case 12:
                return self.struct(depth + 1)
        raise ValueError("its footer has a field of no kind that Parquet uses")

    def _values(self, depth: int) -> list[Any]:
        head = self._byte()
        size = self._varint() if head >> 4 == 15 else head >> 4
        if size > self.end - self.at:
            raise ValueError("a list in its footer is longer than the footer")
        kind = head & 15
        # In a list a boolean is a byte of its own.
        return [self._byte() if kind in (1, 2) else self._value(kind, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        if self.at >= self.end:
            raise ValueError("its footer is cut short")
        self.at += 1
        return self.data[self.at - 1]

    def _take(self, length: int) -> bytes:
        if length > self.end - self.at:
            raise ValueError("its footer is cut short")
        self.at += length
        return self.data[self.at - length : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number in its footer is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
