"""The keys of some tuples of a table, read from its files in the driver: no Spark job."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...optimizer.plan import Attribute
from ...optimizer.prediction.first_class import SeenKeys
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS
from .files import local_files
from .keys import INTEGER_TYPES
from .selectivity import PROBE, some_tuples

# An odd number of which no bit is like its neighbour for long.
MIXED = np.uint64(0x9E3779B97F4A7C15)


def keys_seen(frame: DataFrame, attribute: Attribute, paths: Sequence[str] | None = None) -> SeenKeys | None:
    """The keys of some tuples; None of a key that is not of columns of integers, or where files do not tell.

    `paths` are the files of the frame, where they are known already.
    """
    if not set(attribute.key_types) <= set(INTEGER_TYPES):
        return None
    try:
        named = [name for key in attribute.keys if (name := column_of(key)) is not None]
        if len(named) < len(attribute.keys):
            return None
        files = (local_files(frame) or []) if paths is None else paths
        stats = [(path, os.stat(path)) for path in files]
        return _seen(tuple((p, s.st_mtime_ns, s.st_size) for p, s in stats), tuple(named))
    except (pa.ArrowException, OSError, ValueError, LookupError, StopIteration):
        return None


@lru_cache(maxsize=64)
def _seen(files: tuple[tuple[str, int, int], ...], named: tuple[str, ...]) -> SeenKeys | None:
    """The same, of files as they are now."""
    seen = some_tuples([path for path, _, _ in files], named)
    if not all(pa.types.is_integer(column.type) for column in seen.columns):
        return None
    known = seen.drop_null()
    columns = [known[name].to_numpy().astype(np.int64) for name in named]
    return SeenKeys.of(_as_one(columns), seen.num_rows, columns[0])


def column_of(key: str) -> str | None:
    """The column that a key is, None of an expression."""
    try:
        node = sqlglot.parse_one(key, dialect="spark")
    except SqlglotError:
        return None
    return node.name if isinstance(node, exp.Column) and len(node.parts) == 1 else None


def keys_of_first(
    spark: SparkSession,
    table: str,
    frame: DataFrame,
    attribute: Attribute,
    listener: ProgressListener | None = None,
) -> SeenKeys | None:
    """As `keys_seen`, of the first tuples of a table: a job that ends when it has them."""
    if not set(attribute.key_types) <= set(INTEGER_TYPES) or len(attribute.keys) != 1:
        return None
    first = frame.selectExpr(f"CAST({attribute.keys[0]} AS BIGINT) AS k").limit(PROBE)
    try:
        column = run_job(spark, f"glance at {table}", first.toArrow, listener).column("k")
    except SPARK_FAULTS:
        return None
    keys = column.drop_null().to_numpy()
    return SeenKeys.of(keys, len(column), keys)


def _as_one(columns: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """One number for each key: different ones of different keys but for a chance in 2^64, where several make it."""
    if len(columns) == 1:
        return columns[0]
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ column.view(np.uint64)) * MIXED
        found ^= found >> np.uint64(29)
    return found.view(np.int64)


def distinct_keys(paths: Sequence[str], columns: Sequence[str]) -> float:
    """The distinct keys of Parquet files, all of which are read; infinite where they do not have the columns.

    Parameters
    ----------
    paths : sequence of str
    columns : sequence of str
        Of the key, in any case.
    """
    if not paths:
        return math.inf
    try:
        own = [_named(path, columns) for path in paths]
        parts = [
            _numbered(pq.read_table(path, columns=names)) for path, names in zip(paths, own, strict=True)
        ]
        found = pa.concat_tables(parts)
        return float(found.group_by(found.column_names).aggregate([]).num_rows)
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return math.inf


def seen_distinct(paths: Sequence[str], columns: Sequence[str], tuples: float) -> float:
    """About as many distinct keys as Parquet files have at the least, by some of their tuples.

    The estimator that errs by the root of tuples over tuples seen at most, either way, whatever the keys [Charikar,
    Chaudhuri, Motwani, Narasayya: Towards estimation error guarantees for distinct values, PODS 2000]; of keys that
    are each there once it tells the fewest.

    Parameters
    ----------
    paths, columns
        As for `distinct_keys`.
    tuples : float
        Of all files.
    """
    try:
        seen = _numbered(some_tuples(paths, _named(paths[0], columns)))
        counts = seen.group_by(seen.column_names).aggregate([([], "count_all")])["count_all"].to_numpy()
    except (pa.ArrowException, OSError, ValueError, LookupError, StopIteration):
        return math.inf
    once = int(np.count_nonzero(counts == 1))
    return math.sqrt(max(tuples / max(seen.num_rows, 1), 1.0)) * once + len(counts) - once


def _named(path: str, columns: Sequence[str]) -> list[str]:
    """The columns as a file spells them; KeyError without one."""
    names = {n.lower(): n for n in pq.read_schema(path).names}
    return [names[c.lower()] for c in columns]


def _numbered(read: pa.Table) -> pa.Table:
    return read.rename_columns([f"k{n}" for n in range(read.num_columns)])
