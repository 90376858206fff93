"""How the filters of tables that meet in a key go together, by all tuples of some keys: no Spark job.

Where the files of all tables are in the order of their keys, as those of orders and of their lines mostly are, the
tuples of a range of keys stand in few row groups of each. What filters keep of them is read there in the driver.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlglot.errors import SqlglotError

from ...errors import SkimqlError
from ...optimizer.candidates.first_sample import Together
from .files import integers_between
from .selectivity import Evaluate, columns_named, without_views

PLACES = 10  # ranges of keys
TUPLES = 8_192  # of the first table, in each of them

# With more row groups for a range a table is not in the order of its keys.
MOST_GROUPS = 4

# A key column with more row groups is not looked through.
MOST_ROW_GROUPS = 50_000

# Tuples of the join behind all filters that tell how many there are.
ENOUGH = 24

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Filtered:
    """A table with a filter, by its Parquet files.

    Attributes
    ----------
    paths : sequence of str
    key : str
        A column of integers.
    condition : str or None
        SQL over the columns.
    share : float
        Of all tuples the part that it keeps, as far as is known.
    """

    paths: Sequence[str]
    key: str
    condition: str | None
    share: float


@dataclass(frozen=True, slots=True)
class _Part:
    """A row group, with the least and the greatest key in it."""

    path: str
    number: int
    low: int
    high: int


def filters_together(
    tables: Sequence[Filtered], evaluate: Evaluate, looked_at: int = TUPLES
) -> Together | None:
    """How many times more of a join passes the filters of its tables than if these were independent.

    Parameters
    ----------
    tables : sequence of Filtered
        Those that meet in the key; the keys are looked at where the first one has tuples.
    evaluate : callable
        Evaluates a condition on tuples.
    looked_at : int
        Tuples of the first table, in each range of keys.

    Returns
    -------
    Together or None
        None where the files are not in the order of the keys, or too little is met to tell.

    Notes
    -----
    Ranges of keys are looked at as a whole, so that what differs between them is the error: one standard error of a
    ratio of sums over ranges, relative to it [Cochran: Sampling techniques, 1977, section 6.4].
    """
    try:
        parts = [_parts(t) for t in tables]
        ranges = _ranges(tables[0], parts[0], looked_at)
        found = [_joined(tables, parts, low, high, evaluate) for low, high in ranges]
    except (SkimqlError, SqlglotError, pa.ArrowException, OSError, ValueError, LookupError, OverflowError):
        return None
    whole, kept = np.array(found, np.float64).reshape(-1, 2).T
    if kept.sum() < ENOUGH or len(found) < 2:
        return None
    ratio = kept.sum() / whole.sum()
    errors = kept - ratio * whole
    deviation = math.sqrt(float(errors @ errors) * len(found) / (len(found) - 1)) / kept.sum()
    return Together(float(ratio) / math.prod(t.share for t in tables), float(deviation))


def _parts(table: Filtered) -> list[_Part]:
    """The row groups of a table; LookupError where they do not tell which keys they have."""
    found: list[_Part] = []
    for path in table.paths:
        state = os.stat(path)
        found += _parts_of(path, state.st_mtime_ns, state.st_size, table.key.lower())
        if len(found) > MOST_ROW_GROUPS:
            raise LookupError("too many row groups")
    return found


@lru_cache(maxsize=256)
def _parts_of(path: str, changed: int, size: int, key: str) -> tuple[_Part, ...]:
    """The row groups of a file as it is now."""
    # A damaged footer would end the process in pyarrow.
    if integers_between(path, key) is None:
        raise LookupError(path)
    metadata, found = pq.read_metadata(path), []
    names = [metadata.schema.column(n).path.lower() for n in range(metadata.num_columns)]
    column = names.index(key)
    for number in range(metadata.num_row_groups):
        told = metadata.row_group(number).column(column).statistics
        if told is None or not told.has_min_max or not isinstance(told.min, int):
            raise LookupError(path)
        found.append(_Part(path, number, told.min, told.max))
    return tuple(found)


def _ranges(table: Filtered, parts: Sequence[_Part], looked_at: int) -> list[tuple[int, int]]:
    """Ranges of keys, from within row groups at equal distances: of the first and last ones tuples may be elsewhere."""
    step = max(len(parts) // PLACES, 1)
    found = []
    for part in parts[step // 2 :: step][:PLACES]:
        (seen,) = _read([part], [table.key], looked_at)
        keys = _keys(seen.column(0))
        if keys.size and np.all(keys[1:] >= keys[:-1]) and keys[-1] - 1 > keys[0]:
            found.append((int(keys[0]) + 1, int(keys[-1]) - 1))
    if len(found) < PLACES // 2:
        raise LookupError("not in the order of the keys")
    return found


def _joined(
    tables: Sequence[Filtered], parts: Sequence[Sequence[_Part]], low: int, high: int, evaluate: Evaluate
) -> tuple[float, float]:
    """Tuples of the join with keys of a range: all, and behind the filters."""
    keys, counts = np.empty(0, np.int64), np.empty((2, 0))
    for number, (table, own) in enumerate(zip(tables, parts, strict=True)):
        here = [p for p in own if p.low <= high and p.high >= low]
        if len(here) > MOST_GROUPS:
            raise LookupError("not in the order of the keys")
        found, added = _counted(table, here, low, high, evaluate)
        if number == 0:
            keys, counts = found, added
            continue
        keys, mine, others = np.intersect1d(keys, found, assume_unique=True, return_indices=True)
        counts = counts[:, mine] * added[:, others]
    whole, kept = counts.sum(axis=1)
    return float(whole), float(kept)


def _counted(
    table: Filtered, parts: Sequence[_Part], low: int, high: int, evaluate: Evaluate
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """The keys of a range, and of each all tuples and those that the filter keeps."""
    names = [table.key, *([] if table.condition is None else sorted(columns_named([table.condition])))]
    whole, kept = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for seen in _read(parts, names, TUPLES, high):
        column = seen.column(0)
        inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        places = np.flatnonzero(inside.fill_null(False).to_numpy())
        if not places.size:
            continue
        # In the order of the keys these are neighbours, and few.
        around = slice(int(places[0]), int(places[-1]) + 1)
        length = around.stop - around.start
        near = without_views(seen.slice(around.start, length)).filter(inside.slice(around.start, length))
        passed = near
        if table.condition is not None:
            passed = near.filter(evaluate(table.condition, near).cast(pa.bool_()).fill_null(False))
        whole.append(_keys(near.column(0)))
        kept.append(_keys(passed.column(0)))
    keys, counts = np.unique(np.concatenate(whole), return_counts=True)
    passing, some = np.unique(np.concatenate(kept), return_counts=True)
    found = np.zeros((2, keys.size))
    found[0] = counts
    found[1, np.searchsorted(keys, passing)] = some
    return keys, found


def _read(
    parts: Iterable[_Part], names: Sequence[str], tuples: int, high: int | None = None
) -> Iterator[pa.Table]:
    """Columns of row groups, the key first, so many tuples after the other: the first ones, or as far as to a key."""
    for part in parts:
        with pq.ParquetFile(part.path) as file:
            spelled = {n.lower(): n for n in file.schema_arrow.names}
            columns = list(dict.fromkeys(spelled[n.lower()] for n in names if n.lower() in spelled))
            if columns[:1] != [spelled.get(names[0].lower())]:
                raise LookupError(part.path)
            for batch in file.iter_batches(tuples, [part.number], columns, use_threads=False):
                seen = pa.Table.from_batches([batch]).select(columns)
                keys = _keys(seen.column(0))
                if high is not None and keys.size and keys.min() > high:
                    break
                yield seen
                if high is None:
                    break


def _keys(column: pa.ChunkedArray) -> Ints:
    if not pa.types.is_integer(column.type):
        raise LookupError("no integers")
    keys: Ints = column.drop_null().to_numpy().astype(np.int64)
    return keys
