"""Text, bytes and composite keys as 64-bit integers: Spark's ``xxhash64``, the same on every machine and in every run.

Python's own ``hash`` is salted anew in every process: sketches of it cannot be merged. Two of n different texts
have one fingerprint with probability n^2 / 2^65, and so have a text and a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .xxhash import SPARK_SEED, Words, xxh64_of_bytes, xxh64_of_int, xxh64_of_long

Ints = NDArray[np.int64]


def fingerprint(*columns: ArrayLike) -> Ints:
    """Spark's ``xxhash64(column, ...)`` of the values of one or several columns.

    Parameters
    ----------
    *columns : array of shape (n,)
        Text (hashed as UTF-8), bytes, or integers: int64 as Spark's BIGINT, narrower ones as its INT. numpy arrays of
        text, of bytes or of objects, lists, and pyarrow or pandas columns; several make a composite key.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    ValueError
        For NULLs (which join nothing: leave them out), floats, a mixture of text and bytes, or columns of different
        lengths.
    """
    if not columns:
        raise ValueError("a fingerprint is that of one column or several, not of none")
    found: Words | None = None
    for column in columns:
        array = as_column(column)
        if array.ndim != 1:
            raise ValueError(f"a column is a one-dimensional array, not of shape {array.shape}")
        start = np.full(array.size, SPARK_SEED, np.uint64) if found is None else found
        if start.size != array.size:
            raise ValueError(f"columns of {start.size} and {array.size} values are no composite key")
        found = _hashed(array, start)
    assert found is not None, "there is a column"
    return found.view(np.int64)


def as_column(values: ArrayLike) -> NDArray[Any]:
    """An array of the values; of a list with text in it one of objects, as numpy would make text of all of it."""
    if isinstance(values, (list, tuple)) and any(isinstance(v, (str, bytes)) for v in values):
        column = np.empty(len(values), object)
        column[:] = values
        return column
    return np.asarray(values)


def is_text(array: NDArray[Any]) -> bool:
    """Whether an array holds text or bytes, in one of the forms that numpy has for them."""
    return array.dtype.kind in "USTO"


def _hashed(array: NDArray[Any], start: Words) -> Words:
    if array.size == 0:
        return np.empty(0, np.uint64)
    if is_text(array):
        data, lengths = _joined(array.tolist())
        return xxh64_of_bytes(data, lengths, start)
    if array.dtype.kind == "i" and array.dtype.itemsize == 8:
        return xxh64_of_long(np.ascontiguousarray(array, np.int64), start)
    if array.dtype.kind == "b" or (array.dtype.kind == "i" and array.dtype.itemsize < 8):
        return xxh64_of_int(array.astype(np.int32), start)
    raise ValueError(f"keys are text, bytes or signed integers, not {array.dtype}; cast them first")


def _joined(values: Sequence[Any]) -> tuple[bytes, Ints]:
    """All values as bytes, one after the other, and the length of each."""
    kinds = set(map(type, values))
    if kinds == {str}:
        parts: list[bytes] = [v.encode() for v in values]
    elif kinds <= {bytes, bytearray}:
        parts = list(values)
    elif all(issubclass(k, str) for k in kinds):
        parts = [str(v).encode() for v in values]
    else:
        wrong = next(
            n
            for n, v in enumerate(values)
            if not isinstance(v, (str, bytes)) or type(v) is not type(values[0])
        )
        said = (
            "a NULL joins nothing, leave it out"
            if values[wrong] is None
            else "keys are all text or all bytes"
        )
        raise ValueError(f"key {values[wrong]!r} at position {wrong}: {said}")
    return b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts))
