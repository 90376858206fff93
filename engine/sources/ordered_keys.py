"""The keys that stand in the most tuples of a table whose files are in the order of its keys, without a Spark job.

Equal keys are neighbours there. Their column alone is read, in the driver: about 10 to 20 ns a tuple.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]

# So many keys are known by themselves, and so many of them may be listed.
MOST_KNOWN = 4096
MOST_LISTED = 1024

# Of more files, and of fewer row groups than that, nothing is said of their order.
MOST_FILES = 200
LEAST_GROUPS = 2


@dataclass(frozen=True, slots=True, eq=False)
class KeyCounts:
    """The keys with the most tuples.

    Attributes
    ----------
    keys, counts : ndarray of int64, shape (n,)
        The keys with the most tuples, the most first.
    other : int
        No other key has more.
    distinct : int
        How many keys there are.
    """

    keys: Ints
    counts: Ints
    other: int
    distinct: int = 0

    def above(self, most: float) -> tuple[Ints, float]:
        """The keys with more tuples than `most`, `MOST_LISTED` of them at most, and the most tuples of any other."""
        keys, _ = self.listed(most)
        rest = int(self.counts[keys.size]) if keys.size < self.counts.size else self.other
        return keys, float(rest)

    def listed(self, most: float) -> tuple[Ints, Ints]:
        """The keys with more tuples than `most`, `MOST_LISTED` of them at most, ascending, and how many each has."""
        number = min(int(np.count_nonzero(self.counts > most)), MOST_LISTED)
        order = np.argsort(self.keys[:number], kind="stable")
        return self.keys[:number][order], self.counts[:number][order]

    def most(self, but: Collection[int] = ()) -> float:
        """The most tuples of a key that is none of some."""
        left = self.counts if not but else self.counts[~np.isin(self.keys, np.array([*but], np.int64))]
        return float(max(left.max(initial=0), self.other))


NO_KEYS = KeyCounts(np.empty(0, np.int64), np.empty(0, np.int64), 0)


def key_counts(runs: Iterator[tuple[Ints, Ints]]) -> KeyCounts:
    """Of the runs of a column in the order of its keys, ``(keys, lengths)``, those that are longest."""
    found, distinct = NO_KEYS, 0
    for keys, lengths in runs:
        distinct += keys.size
        # Most columns have one tuple of each key, or two: of these it is enough to know that they are there.
        longer = lengths > found.other
        keys, counts = (
            np.concatenate([found.keys, keys[longer]]),
            np.concatenate([found.counts, lengths[longer]]),
        )
        if keys.size > MOST_KNOWN:
            # Those with as many as the last one that there is room for are none of them.
            other = int(np.partition(counts, -MOST_KNOWN - 1)[-MOST_KNOWN - 1])
            keys, counts = keys[counts > other], counts[counts > other]
        else:
            other = found.other
        found = KeyCounts(keys, counts, max(other, int(lengths[~longer].max(initial=0))))
    order = np.argsort(-found.counts, kind="stable")
    return KeyCounts(found.keys[order], found.counts[order], found.other, distinct)


def counted_in_order(paths: Sequence[str], column: str) -> KeyCounts | None:
    """The keys of a column of integers, by Parquet files in the order of it; None where they are not, or have it not.

    Parameters
    ----------
    paths : sequence of str
        All files of the table, in any order.
    column : str
        In any case.
    """
    try:
        stats = [(path, os.stat(path)) for path in paths]
        return _counted(tuple((p, s.st_mtime_ns, s.st_size) for p, s in stats), column.lower())
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return None


@lru_cache(maxsize=64)
def _counted(files: tuple[tuple[str, int, int], ...], column: str) -> KeyCounts:
    """The same, of files as they are now."""
    return key_counts(_runs(in_order([path for path, _, _ in files], column), column))


def ordered_columns(paths: Sequence[str]) -> tuple[str, ...]:
    """The columns of integers whose row groups follow each other, by the footers of Parquet files; few tell nothing."""
    if not 0 < len(paths) <= MOST_FILES:
        return ()
    try:
        return _ordered(tuple((p, s.st_mtime_ns, s.st_size) for p in paths for s in [os.stat(p)]))
    except (pa.ArrowException, OSError, ValueError):
        return ()


@lru_cache(maxsize=256)
def _ordered(files: tuple[tuple[str, int, int], ...]) -> tuple[str, ...]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    groups = 0
    for path, *_ in files:
        footer = pq.read_metadata(path)
        groups += footer.num_row_groups
        schema = footer.schema.to_arrow_schema()
        names = [n for n in schema.names if "." not in n and pa.types.is_signed_integer(schema.field(n).type)]
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for place in range(group.num_columns):
                column = group.column(place)
                told = column.statistics if column.path_in_schema in names else None
                if told is not None and told.has_min_max:
                    ranges.setdefault(column.path_in_schema.lower(), []).append((told.min, told.max))
    return tuple(
        name
        for name, own in ranges.items()
        if len(own) == groups >= LEAST_GROUPS and _follow(sorted(own)) and own[0] != own[-1]
    )


def _follow(ranges: Sequence[tuple[int, int]]) -> bool:
    return all(one[1] <= other[0] for one, other in pairwise(ranges))


def in_order(paths: Sequence[str], column: str) -> list[str]:
    """Files in the order of their least keys."""
    return [path for _, path in sorted((_least(path, column), path) for path in paths)]


def _runs(paths: Sequence[str], column: str) -> Iterator[tuple[Ints, Ints]]:
    """The keys of row groups and the lengths of their runs, of which each stands whole in one of the pairs."""
    last, length = None, 0
    for path in paths:
        with pq.ParquetFile(path) as file:
            name = spelled(file.schema_arrow, column)
            if not pa.types.is_signed_integer(file.schema_arrow.field(name).type):
                raise LookupError(column)
            for number in range(file.num_row_groups):
                read = file.read_row_group(number, columns=[name], use_threads=False).column(0)
                keys = read.drop_null().to_numpy().astype(np.int64, copy=False)
                if not keys.size:
                    continue
                ends = np.flatnonzero(keys[1:] != keys[:-1])
                firsts = np.concatenate([[0], ends + 1])
                own, lengths = keys[firsts], np.diff(np.append(firsts, keys.size))
                if np.any(own[1:] < own[:-1]) or (last is not None and own[0] < last):
                    raise LookupError("not in the order of the keys")
                if last is not None and own[0] == last:
                    lengths[0] += length
                elif last is not None:
                    yield np.array([last], np.int64), np.array([length], np.int64)
                last, length = int(own[-1]), int(lengths[-1])
                yield own[:-1], lengths[:-1]
    if last is not None:
        yield np.array([last], np.int64), np.array([length], np.int64)


def _least(path: str, column: str) -> float:
    """The least key of a file by its footer; of one without keys, or that does not tell, less than any."""
    # Late: what counts keys in memory needs no pyspark.
    from .files import integers_between

    told = integers_between(path, column)
    return float("-inf") if told is None else told[0]


def spelled(schema: pa.Schema, column: str) -> str:
    """The name of a column as a file spells it; LookupError without one, or with several."""
    names = [n for n in schema.names if n.lower() == column.lower()]
    # A name with a point may be that of a column of a struct.
    if len(names) != 1 or "." in column:
        raise LookupError(column)
    return str(names[0])
