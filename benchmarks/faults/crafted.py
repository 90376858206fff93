"""Hostile values in place of parts of JSON, and sketch files that hold them under checksums that are right."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skimql.engine.catalog.file import digest

# Values that no writer of ours writes in most places.
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    1 << 31,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    -(1 << 63) - 1,
    1 << 200,
    10**400,
    0.0,
    -0.5,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "x",
    "\x1b[2J\x1b]0;title\x07",
    "\u202eevil\u2066",
    "a\nerror: all is lost\n",
    "\ud800",
    "\x00",
    "../../etc/passwd",
    "/dev/zero",
    "reflect('java.lang.System', 'exit', 1)",
    "`k` > (SELECT 1)",
    "'",
    "`",
    "x" * 100_000,
    [],
    {},
    [None],
    [[]],
    [1, 2, 3],
    {"a": {"b": {}}},
    "deep",
    "deep object",
)
_DEPTH = 100_000


def mutated(value: Any, draw: random.Random) -> Any:
    """A copy of JSON with one to three of its parts replaced, left out, repeated or added."""
    whole = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        places = list(_places(whole))
        if not places:
            break
        holder, key = draw.choice(places)
        match draw.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(draw.randrange(len(holder) + 1), copy.deepcopy(draw.choice(holder)))
            case 1:
                holder[str(draw.choice(HOSTILE))[:40]] = copy.deepcopy(draw.choice(HOSTILE))
            case 2:
                other, name = draw.choice(places)
                holder[key] = copy.deepcopy(other[name])
            case 3 if isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
                holder[key] = holder[key] * draw.choice((-1, 2, 1024, 1 << 40)) + draw.choice((0, 1))
            case _:
                holder[key] = copy.deepcopy(draw.choice(HOSTILE))
    return whole


def text_of(value: Any) -> bytes:
    """JSON, with what Python lets through and JSON does not, and with nests deeper than anybody reads."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = text.replace('"deep object"', '{"a":' * _DEPTH + "1" + "}" * _DEPTH)
    text = text.replace('"deep"', "[" * _DEPTH + "]" * _DEPTH)
    return text.encode("utf-8", "surrogatepass")


def sketch_file(head: bytes, listed: bytes, table: pa.Table, draw: random.Random) -> bytes:
    """A sketch's file of this content, its checksum of the metadata right."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression=draw.choice(("zstd", "snappy", "none", "gzip")),
        use_dictionary=draw.random() < 0.3,
        write_page_checksum=draw.random() < 0.8,
        data_page_version=draw.choice(("1.0", "2.0")),
    ) as writer:
        writer.write_table(table, row_group_size=draw.choice((None, 1, 3)))
        writer.add_key_value_metadata(
            {b"skimql": head, b"skimql.arrays": listed, b"skimql.sha256": digest(head + listed).encode()}
        )
    return bytes(sink.getvalue())


def arrays_table(arrays: Mapping[str, np.ndarray], draw: random.Random, hostile: bool) -> pa.Table:
    """The table of a sketch's file; a hostile one has rows, values or columns that it should not have."""
    names, numbers, integers, doubles = [], [], [], []
    for name, array in arrays.items():
        for number, row in enumerate(np.atleast_2d(array)):
            names.append(name)
            numbers.append(number)
            integers.append(row.tolist() if row.dtype == np.int64 else None)
            doubles.append(row.tolist() if row.dtype == np.float64 else None)
    if hostile and names:
        at = draw.randrange(len(names))
        match draw.randrange(8):
            case 0:
                names[at] = draw.choice((None, "", "0.counters", "9.keys.7", "\x1b[2J"))
            case 1:
                numbers[at] = draw.choice((None, -1, 7, (1 << 31) - 1))
            case 2:
                integers[at] = draw.choice(
                    (None, [], [None], [1, None, 3], [0] * draw.choice((1, 10**5, 10**6)))
                )
            case 3:
                doubles[at] = draw.choice((None, [], [float("nan")], [float("inf")] * 8, [0.0] * 10**5))
            case 4:
                for column in (names, numbers, integers, doubles):
                    column.append(column[at])
            case 5:
                for column in (names, numbers, integers, doubles):
                    del column[at]
            case 6 if integers[at]:
                integers[at] = [draw.choice((-(1 << 63), (1 << 63) - 1, 0, 5)) for _ in integers[at]]
            case _:
                # As many values in the wrong column.
                whole, real = integers[at], doubles[at]
                integers[at] = None if real is None else [0 for _ in real]
                doubles[at] = None if whole is None else list(map(float, whole))
    columns = {
        "array": pa.array(names, pa.string()),
        "row": pa.array(numbers, pa.int32()),
        "integers": pa.array(integers, pa.list_(pa.int64())),
        "doubles": pa.array(doubles, pa.list_(pa.float64())),
    }
    if hostile and draw.random() < 0.15:
        name = draw.choice(list(columns))
        match draw.randrange(3):
            case 0:
                del columns[name]
            case 1:
                columns[name] = pa.array([draw.choice((1, 2))] * len(names))
            case _:
                columns["more"] = pa.array(["x"] * len(names))
    return pa.table(columns)


def _places(value: Any):
    """Every (holder, key) of JSON."""
    stack = [value]
    while stack:
        holder = stack.pop()
        inner = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, found in inner:
            yield holder, key
            if isinstance(found, (dict, list)) and found:
                stack.append(found)
