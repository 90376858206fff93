"""Join keys as 64-bit integers, the same as `sources.keys` has Spark compute."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...optimizer.plan import Attribute
from ...parser.types import PADDED
from ...sketches.hashing.xxhash import SPARK_SEED, Words, xxh64_of_bytes, xxh64_of_int, xxh64_of_long
from ..sources.keys import INTEGER_TYPES
from .casts import cast, unscaled, whole_unscaled
from .expressions import evaluate
from .values import Value, is_decimal, not_known

# Digits of the longest DECIMAL that Spark hashes as a BIGINT.
LONGEST_LONG = 18


def key_values(attribute: Attribute, table: pa.Table, zone: str = "UTC") -> pa.Array:
    """The 64-bit integer of a join attribute of every tuple: BIGINT, NULL where any part is NULL.

    Raises
    ------
    UnsupportedQuery, ValueFault
        As `evaluate`.
    """
    pairs = zip(attribute.keys, attribute.key_types, strict=True)
    parts = [compared(evaluate(key, table, zone), kind, zone) for key, kind in pairs]
    if len(parts) == 1 and attribute.key_types[0] in INTEGER_TYPES:
        return cast(parts[0], "bigint").data
    return fingerprints(parts)


def compared(value: Value, kind: str, zone: str) -> Value:
    """A key in the type in which it is compared; of padded text without the blanks at its end."""
    if kind == PADDED:
        return Value("string", pc.utf8_rtrim(cast(value, "string", zone).data, characters=" "))
    return cast(value, kind, zone)


def fingerprints(parts: list[Value]) -> pa.Array:
    """Spark's ``xxhash64`` of several columns together, NULL where any of them is."""
    known = np.ones(len(parts[0]), bool)
    for part in parts:
        known &= part.data.is_valid().to_numpy(zero_copy_only=False)
    chosen = pa.array(known)
    words = np.full(int(known.sum()), SPARK_SEED, np.uint64)
    for part in parts:
        words = _hashed(Value(part.kind, part.data.filter(chosen)), words)
    found = np.zeros(len(known), np.int64)
    found[known] = words.view(np.int64)
    return pa.array(found, mask=~known)


def _hashed(part: Value, seeds: Words) -> Words:
    data = part.data
    if not len(data):
        return seeds
    match part.kind:
        case "tinyint" | "smallint" | "int" | "boolean":
            return xxh64_of_int(data.cast(pa.int32()).to_numpy(), seeds)
        case "date":
            return xxh64_of_int(data.cast(pa.int32()).to_numpy(), seeds)
        case "bigint" | "timestamp" | "timestamp_ntz":
            return xxh64_of_long(np.ascontiguousarray(data.cast(pa.int64()).to_numpy()), seeds)
        case "float":
            return xxh64_of_int(_one_zero(data.to_numpy(), np.float32).view(np.int32), seeds)
        case "double":
            return xxh64_of_long(_one_zero(data.to_numpy(), np.float64).view(np.int64), seeds)
        case "string" | "binary":
            return _of_bytes(data.cast(pa.large_binary()), seeds)
    if is_decimal(part.kind):
        if data.type.precision <= LONGEST_LONG:
            return xxh64_of_long(np.ascontiguousarray(unscaled(data).to_numpy()), seeds)
        texts = [_java_bytes(n) for n in whole_unscaled(data) if n is not None]
        return _of_bytes(pa.array(texts, pa.large_binary()), seeds)
    raise not_known(f"a key of type {part.kind}")


def _one_zero(values: npt.NDArray[np.generic], kind: type[np.floating]) -> npt.NDArray[np.floating]:
    """Floats with one zero and one NaN."""
    floats = np.array(values, kind)
    floats[floats == 0] = 0.0
    floats[np.isnan(floats)] = np.nan
    return floats


def _of_bytes(data: pa.Array, seeds: Words) -> Words:
    offsets = np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1]
    buffer = data.buffers()[2]
    octets = b"" if buffer is None else buffer.to_pybytes()[offsets[0] : offsets[-1]]
    return xxh64_of_bytes(octets, np.diff(offsets), seeds)


def _java_bytes(number: int) -> bytes:
    """The bytes of a Java BigInteger: the fewest that hold it, highest first."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
