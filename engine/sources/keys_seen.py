"""The keys of some tuples of a table, read from its files in the driver: no Spark job."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql import DataFrame
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...optimizer.plan import Attribute
from ...optimizer.prediction.first_class import SeenKeys
from .files import local_files
from .keys import INTEGER_TYPES
from .selectivity import some_tuples


def keys_seen(frame: DataFrame, attribute: Attribute) -> SeenKeys | None:
    """The keys of some tuples; None of a key that is not one column of integers, or where files do not tell."""
    if len(attribute.keys) != 1 or attribute.key_types[0] not in INTEGER_TYPES:
        return None
    try:
        node = sqlglot.parse_one(attribute.keys[0], dialect="spark")
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            return None
        seen = some_tuples(local_files(frame) or [], [node.name]).column(0)
        if not pa.types.is_integer(seen.type):
            return None
        return SeenKeys.of(seen.drop_null().to_numpy().astype(np.int64), len(seen))
    except (pa.ArrowException, OSError, SqlglotError, ValueError, LookupError, StopIteration):
        return None


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
