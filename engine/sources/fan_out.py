"""The most tuples of a table that agree on some of its columns, by its Parquet files, without a Spark job.

Files in the order of one of the columns are read a row group at a time, 10 to 20 ns a tuple and column; small ones in
any order. What a key can add to a query is bounded by it: `parser.contributions`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .ordered_keys import Ints, KeyCounts, counted_in_order, in_order, key_counts, spelled

# Tuples that are read at most, of files in order and of others.
MOST_IN_ORDER, MOST_IN_ANY = 2e8, float(1 << 21)

# Tuples with one value that are compared with each other, by so many of their neighbours at most.
MOST_NEIGHBOURS = 64

# What mixes integers into one: an odd number near the golden part of 2^64.
_ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)

_Files = tuple[tuple[str, int, int], ...]


def fan_out(paths: Sequence[str], columns: Sequence[str], tuples: float, but: Collection[int] = ()) -> float:
    """The most tuples that agree on some columns; infinite where files do not tell.

    Parameters
    ----------
    paths : sequence of str
        All files of the table.
    columns : sequence of str
        In any case; NULL agrees with nothing.
    tuples : float
        How many the table has.
    but : collection of int
        Values of the first column that are not looked at.
    """
    if not columns:
        return tuples
    try:
        files = _stamped(paths)
    except OSError:
        return math.inf
    counted = [counts_of(paths, c, tuples) for c in columns]
    singles = [math.inf if c is None else c.most(but if n == 0 else ()) for n, c in enumerate(counted)]
    least = min(singles)
    if len(columns) == 1 or least <= 1.0:
        return least
    try:
        return min(least, _together(files, tuple(c.lower() for c in columns), least, tuples))
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return least


def counts_of(paths: Sequence[str], column: str, tuples: float) -> KeyCounts | None:
    """The values of a column that most tuples have: of integers with their keys, of others the number alone."""
    if not paths or tuples > MOST_IN_ORDER:
        return None
    found = counted_in_order(paths, column)
    if found is not None or tuples > MOST_IN_ANY:
        return found
    try:
        return _counted(_stamped(paths), column.lower())
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return None


def nulls(paths: Sequence[str], column: str) -> float:
    """How many tuples have no value in a column; infinite where footers do not tell."""
    try:
        return _nulls(_stamped(paths), column.lower()) if paths else math.inf
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return math.inf


def _stamped(paths: Sequence[str]) -> _Files:
    """Files as they are now."""
    stats = [(path, os.stat(path)) for path in paths]
    return tuple((path, s.st_mtime_ns, s.st_size) for path, s in stats)


@lru_cache(maxsize=256)
def _counted(files: _Files, column: str) -> KeyCounts:
    """The values of a column of a small table."""
    read = pa.concat_tables(
        [_read(path, (column,)).rename_columns(["v"]) for path, _, _ in files]
    ).drop_null()
    if pa.types.is_signed_integer(read.schema.field(0).type):
        return key_counts(iter([_runs_of(read.column(0).to_numpy())]))
    return KeyCounts(np.empty(0, np.int64), np.empty(0, np.int64), _most_alike(read))


def _runs_of(values: Ints) -> tuple[Ints, Ints]:
    """Integers in their order, and how often each is there."""
    ordered = np.sort(values.astype(np.int64, copy=False))
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])
    return ordered[starts], np.diff(np.append(starts, ordered.size))


def _most_alike(read: pa.Table) -> int:
    """The most rows of a table that are equal; of integers alone it may be more, if different ones have one hash."""
    if read.num_columns > 1 and all(pa.types.is_signed_integer(f.type) for f in read.schema):
        mixed = np.zeros(read.num_rows, np.uint64)
        for column in read.columns:
            mixed = (mixed ^ (mixed >> _SHIFT)) * _ODD + column.to_numpy().astype(np.int64).view(np.uint64)
        return int(_runs_of((mixed * _ODD).view(np.int64))[1].max(initial=0))
    counted = read.group_by(read.column_names, use_threads=False).aggregate([([], "count_all")])
    return int(counted.column("count_all").to_numpy().max(initial=0))


@lru_cache(maxsize=256)
def _nulls(files: _Files, column: str) -> float:
    found = 0
    for path, _, _ in files:
        with _opened(path) as file:
            name = spelled(file.schema_arrow, column)
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                leaves = [group.column(n) for n in range(group.num_columns)]
                told = [leaf.statistics for leaf in leaves if leaf.path_in_schema == name]
                if len(told) != 1 or told[0] is None or not told[0].has_null_count:
                    return math.inf
                found += told[0].null_count
    return float(found)


@lru_cache(maxsize=256)
def _together(files: _Files, columns: tuple[str, ...], least: float, tuples: float) -> float:
    """The most tuples that agree on several columns, on each of which `least` or more may."""
    if tuples <= MOST_IN_ANY:
        names = [f"c{n}" for n in range(len(columns))]
        read = [_read(path, columns).rename_columns(names) for path, _, _ in files]
        return float(_most_alike(pa.concat_tables(read).drop_null()))
    paths = [path for path, _, _ in files]
    for column in columns:
        runs = counted_in_order(paths, column)
        if runs is not None and runs.most() <= MOST_NEIGHBOURS:
            return 1.0 if _is_unique(in_order(paths, column), columns, int(runs.most())) else least
    return least


def _is_unique(paths: Sequence[str], columns: tuple[str, ...], longest: int) -> bool:
    """Whether no two tuples agree, of files in which those that may are no further apart than a run is long."""
    before: list[np.ndarray] = []
    for read in _row_groups(paths, columns):
        here = [np.concatenate([b, r]) for b, r in zip(before, read, strict=True)] if before else read
        for step in range(1, min(longest, len(here[0]))):
            if np.all([h[step:] == h[:-step] for h in here], axis=0).any():
                return False
        before = [h[max(len(h) - longest, 0) :] for h in here]
    return True


def _row_groups(paths: Sequence[str], columns: tuple[str, ...]) -> Iterator[list[np.ndarray]]:
    for path in paths:
        with _opened(path) as file:
            names = [spelled(file.schema_arrow, c) for c in columns]
            if not all(pa.types.is_signed_integer(file.schema_arrow.field(n).type) for n in names):
                raise LookupError(columns)
            for number in range(file.num_row_groups):
                read = file.read_row_group(number, columns=names, use_threads=False).drop_null()
                yield [read.column(n).to_numpy() for n in names]


def _read(path: str, columns: tuple[str, ...]) -> pa.Table:
    """Columns whose equal values are equal bytes, in Spark too; LookupError for others."""
    with _opened(path) as file:
        names = [spelled(file.schema_arrow, c) for c in columns]
        for kind in (file.schema_arrow.field(n).type for n in names):
            if not (pa.types.is_signed_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind)):
                # INT96 has digits that Spark leaves out.
                raise LookupError(columns)
        return file.read(names, use_threads=False).select(names)


def _opened(path: str) -> pq.ParquetFile:
    """A file whose footer this project's own reader could read: a damaged one ends the process in pyarrow."""
    from .files import integers_between

    integers_between(path, "")
    return pq.ParquetFile(path)
