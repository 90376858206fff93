"""What the files behind a table tell without a Spark job: their state, their tuples, about how many partitions."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from ..catalog.footer import MAGIC, Ends, ends_of
from .filters import filtered
from .listing import local_path
from .ranges import ANY, Range
from .source_state import stamps
from .tables import Tables

# With more files than this Spark counts the tuples.
MOST_FOOTERS = 2000

# And with more than this nothing is looked up in their footers but that.
MOST_RANGED = 200
# Of a footer, whatever its file, or as a part of the file: reading it takes a twentieth of a scan then.
MOST_RANGED_BYTES, MOST_RANGED_PART = 1 << 20, 1 / 1024

# Bytes of a partition, as Spark cuts files, and the partitions of a table without.
PARTITION_BYTES = 128 << 20
PARTITIONS = 32

_INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}

# Of so many columns it is remembered whether they have a NaN, by the state of their files.
MOST_KNOWN = 4096
_NAN: dict[object, bool] = {}

# More cuts that keep all cores busy with a small table.
CUTS = 8


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a table: a state that changes when they do, their tuples where footers tell, and their bytes.

    `state` equals no other where nobody can tell whether the table has changed. `bytes` is infinite where files are
    elsewhere, None where there are none.
    """

    state: object
    tuples: float | None
    bytes: float | None


def files_of(tables: Tables, name: str, frame: DataFrame, *, count: bool) -> Files:
    """What the files behind a table tell without a job; `count` asks for the number of tuples as well."""
    kind, _ = tables.origin(name)
    if kind == "file":
        paths = tables.once(("files", name.lower()), lambda: local_files(frame))
        return _of_path(frame, paths, count)
    sources = tables.sources(name)
    found = stamps(sources.files)
    known = sources.state.complete and found is not None
    state = (sources.state.plan, found) if known else object()
    size = None if not sources.files else math.inf if found is None else float(sum(s for _, _, s in found))
    if kind == "frame":
        return Files(state, None, None)
    counted = count and sources.whole and found and len(found) <= MOST_FOOTERS
    return Files(state, _footers(found) if counted and found else None, size)


def _of_path(frame: DataFrame, local: list[str] | None, count: bool) -> Files:
    if local is None:
        return Files(tuple(frame.inputFiles()), None, math.inf)
    try:
        stats = [os.stat(path) for path in local]
    except OSError:
        return Files(object(), None, math.inf)
    state = tuple((path, s.st_mtime_ns, s.st_size) for path, s in zip(local, stats, strict=True))
    size = float(sum(s.st_size for s in stats))
    if not count or not local or len(local) > MOST_FOOTERS:
        return Files(state, None, size)
    return Files(state, _footers(state), size)


def paths_of(tables: Tables, name: str, frame: DataFrame) -> list[str]:
    """The local files behind a registered table, looked for once; none where one is not on this machine."""
    kind, _ = tables.origin(name)
    if kind == "file":
        return tables.once(("files", name.lower()), lambda: local_files(frame)) or []
    found = [local_path(path) for path in tables.sources(name).files]
    return [str(path) for path in found if path is not None] if None not in found else []


def local_files(frame: DataFrame) -> list[str] | None:
    """The paths of the files that a frame reads, None where one is not on this machine."""
    paths = [_local(uri) for uri in frame.inputFiles()]
    local = [path for path in paths if path is not None]
    return local if len(local) == len(paths) else None


def values_between(frame: DataFrame, column: str, paths: Sequence[str] | None = None) -> float:
    """Integers from the least to the greatest value of a column, by the footers of Parquet files.

    Infinite where they do not tell: many files, none of Parquet, another type, no statistics. `paths` are the files of
    the frame, where they are known already.
    """
    if paths is None:
        paths = local_files(frame) or []
    if not 0 < len(paths) <= MOST_RANGED:
        return math.inf
    low, high = math.inf, -math.inf
    try:
        for path in paths:
            told = integers_between(path, column)
            if told is None:
                return math.inf
            low, high = min(low, told[0]), max(high, told[1])
    except (OSError, ValueError):
        return math.inf
    return max(high - low + 1, 1.0)


def integers_between(path: str, column: str) -> tuple[float, float] | None:
    """Least and greatest integer of a column of a Parquet file; None where its footer does not tell."""
    state = os.stat(path)
    return _range(path, state.st_mtime_ns, state.st_size, column.lower())


def column_range(tables: Tables, name: str, column: str) -> Range:
    """What the values of a column of a registered table lie between, by the footers of its Parquet files.

    Unbounded where they do not tell, and for views and DataFrames whose columns need not be those of the files.
    Footers leave NaN out: `has_nan` looks for them.
    """
    kind, told = _ends(tables, name, column, _numbers)
    # Without its type an integer would not overflow.
    return ANY if told is None else Range(*told, _INTEGER_BITS.get(kind))


def range_without_nan(
    tables: Tables,
    name: str,
    column: str,
    run: Callable[[DataFrame, str], pa.Table],
    condition: str | None = None,
) -> Range:
    """As `column_range`, behind a filter, and unbounded where there is a NaN; `run` takes the name of its job too."""
    found = column_range(tables, name, column)
    if not found.bounded or found.bits is not None:
        return found
    job = f"NaN in {column} of {name}"
    return ANY if has_nan(tables, name, column, lambda frame: run(frame, job), condition) else found


def integer_range(tables: Tables, name: str, column: str) -> tuple[int, int] | None:
    """The least and the greatest value of a column of integers, as `column_range`, with all their digits."""
    kind, told = _ends(tables, name, column, _range)
    return None if told is None or kind not in _INTEGER_BITS else (int(told[0]), int(told[1]))


def _ends(
    tables: Tables,
    name: str,
    column: str,
    read: Callable[[str, int, int, str], tuple[float, float] | None],
) -> tuple[str, tuple[float, float] | None]:
    """The type of a column of a registered table, and its ends by what `read` finds in each of its files."""
    kind, paths = own_files(tables, name, column)
    found = []
    try:
        for path in paths:
            state = os.stat(path)
            found.append(read(path, state.st_mtime_ns, state.st_size, column.lower()))
    except (OSError, ValueError):
        return "", None
    known = [ends for ends in found if ends is not None]
    if not known or len(known) < len(found):
        return "", None
    return kind, (min(low for low, _ in known), max(high for _, high in known))


def own_files(tables: Tables, name: str, column: str) -> tuple[str, list[str]]:
    """The type of a column of a registered table, and the files that have it; none where they need not be its own.

    Columns of views and of DataFrames are those of the files only where nothing stands between.
    """
    kind, _ = tables.origin(name)
    frame = tables.frame(name)
    if kind != "file" and not tables.sources(name).bare:
        return "", []
    # Names are looked up as Spark does by default, whatever their case.
    kinds = [f.dataType.typeName() for f in frame.schema if f.name.lower() == column.lower()]
    paths = paths_of(tables, name, frame)
    if len(kinds) != 1 or not 0 < len(paths) <= MOST_RANGED or not _has_values_of(paths, column, kinds[0]):
        return "", []
    return kinds[0], paths


def _has_values_of(paths: Sequence[str], column: str, kind: str) -> bool:
    """Whether Spark reads the values of a column as files have them.

    Not where folders tell them (``k=1/``), and not where integers are read as narrower ones, which wraps them around.
    """
    folder = f"{column.lower()}="
    if any(unquote(part).lower().startswith(folder) for path in paths for part in path.split("/")):
        return False
    bits = _INTEGER_BITS.get(kind, 64)
    try:
        return bits == 64 or all(_fits(path, column, bits) for path in paths)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return False


def _fits(path: str, column: str, bits: int) -> bool:
    """Whether the integers of a column of a file fit into so many bits, by their ends or their type."""
    ends, most = integers_between(path, column), float(1 << (bits - 1))
    if ends is not None:
        return -most <= ends[0] and ends[1] < most
    schema = pq.read_schema(path)
    kinds = [schema.field(n).type for n in schema.names if n.lower() == column.lower()]
    return len(kinds) == 1 and pa.types.is_signed_integer(kinds[0]) and kinds[0].bit_width <= bits


def has_nan(
    tables: Tables,
    name: str,
    column: str,
    run: Callable[[DataFrame], pa.Table],
    condition: str | None = None,
) -> bool:
    """Whether a column of a registered table has a NaN; of one of DOUBLE or FLOAT that is counted by one job.

    Behind a filter only where the column has one at all.

    Parameters
    ----------
    tables : Tables
    name, column : str
    run : callable
        Gives the rows of a DataFrame. It is asked once for each state of the files and each filter.
    condition : str, optional
        The filter.
    """
    frame = tables.frame(name)
    kinds = [f.dataType.typeName() for f in frame.schema if f.name.lower() == column.lower()]
    if not set(kinds) & {"double", "float"}:
        return False
    if condition is not None and not has_nan(tables, name, column, run):
        return False
    state = (files_of(tables, name, frame, count=False).state, column.lower(), condition)
    if state not in _NAN:
        quoted = "`" + column.replace("`", "``") + "`"
        kept = filtered(frame, [condition])
        counted = run(kept.selectExpr(f"count_if(isnan({quoted})) AS n"))
        while len(_NAN) >= MOST_KNOWN:
            del _NAN[next(iter(_NAN))]
        _NAN[state] = bool(counted["n"][0].as_py())
    return _NAN[state]


def _numbers(path: str, changed: int, size: int, column: str) -> tuple[float, float] | None:
    """Least and greatest number of a column of a Parquet file as it is now; None where nothing tells."""
    found = _told(path, changed, size).get(column)
    return None if found is None else found.numbers


def _range(path: str, changed: int, size: int, column: str) -> tuple[float, float] | None:
    """Least and greatest integer of a column of a Parquet file as it is now; None where nothing tells."""
    found = _told(path, changed, size).get(column)
    return None if found is None else found.integers


@lru_cache(maxsize=4096)
def _told(path: str, changed: int, size: int) -> dict[str, Ends]:
    """What the columns of a Parquet file lie between as it is now, read once for all of them."""
    # Not by pyarrow, which ends the process where the footer of a damaged file contradicts itself.
    footer = _footer(path, max(MOST_RANGED_BYTES, int(MOST_RANGED_PART * size)))
    return {} if footer is None else ends_of(footer)


def _footer(path: str, most: int) -> bytes | None:
    """The footer of a Parquet file, None where it is none or takes more bytes."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > min(most, end - 8):
            return None
        file.seek(end - 8 - length)
        return file.read(length)


def partitions(frame: DataFrame) -> int:
    """About how many partitions the tuples of a frame come in, rather more: by its files, a guess without."""
    files = frame.inputFiles()
    try:
        sizes = [os.stat(path).st_size for path in local_files(frame) or ()]
    except OSError:
        sizes = []
    if not sizes:
        return max(PARTITIONS, len(files))
    return max(math.ceil(sum(sizes) / PARTITION_BYTES), len(files)) + CUTS


def _footers(stamped: Iterable[tuple[str, int, int]]) -> float | None:
    """Tuples in Parquet files, given with their times and sizes; None where one is no Parquet."""
    try:
        return float(sum(_tuples(*file) for file in stamped))
    except (pa.ArrowException, OSError):
        return None


@lru_cache(maxsize=2 * MOST_FOOTERS)
def _tuples(path: str, changed: int, size: int) -> int:
    """Tuples of a Parquet file as it is now."""
    return int(pq.read_metadata(path).num_rows)


def _local(uri: str) -> str | None:
    parsed = urlparse(uri)
    if parsed.scheme not in ("", "file") or parsed.netloc:
        return None
    return unquote(parsed.path)
