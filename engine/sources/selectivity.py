"""What filters keep, by a glance at the files of their tables: no Spark job.

A few thousand tuples are read from Parquet in the driver, from row groups spread over the files; Spark's optimizer
evaluates the filter on them, as it does on any local relation.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ..spark.session import SPARK_FAULTS
from .files import local_files

PROBE = 16_384  # tuples
PLACES = 4  # row groups


def filter_selectivity(spark: SparkSession, frame: DataFrame, condition: str) -> float:
    """The share of the tuples that a filter keeps, 1 where the files do not tell.

    Parameters
    ----------
    spark : SparkSession
    frame : DataFrame
        Of Parquet files.
    condition : str
        SQL over its columns.
    """
    try:
        schema = _used(frame.schema, condition)
        seen = some_tuples(local_files(frame) or [], schema.names)
        kept = len(spark.createDataFrame(seen, schema).where(condition).selectExpr("1L").collect())
    except (pa.ArrowException, OSError, SqlglotError, ValueError, LookupError, StopIteration, *SPARK_FAULTS):
        return 1.0
    return kept / max(int(seen.num_rows), 1)


def groups_seen(
    spark: SparkSession, frame: DataFrame, condition: str | None, expressions: Sequence[str]
) -> int | None:
    """How many groups some tuples that a filter keeps are of; None where nothing tells.

    Parameters are those of `filter_selectivity`; `expressions` are SQL over the columns.
    """
    try:
        text = " AND ".join(f"(({e}) IS NULL)" for e in expressions)
        schema = _used(frame.schema, text if condition is None else f"{text} AND ({condition})")
        seen = spark.createDataFrame(some_tuples(local_files(frame) or [], schema.names), schema)
        kept = seen if condition is None else seen.where(condition)
        return len(kept.selectExpr(*expressions).distinct().collect()) or None
    except (pa.ArrowException, OSError, SqlglotError, ValueError, LookupError, StopIteration, *SPARK_FAULTS):
        return None


def values_seen(
    spark: SparkSession, frame: DataFrame, condition: str | None, expression: str
) -> list[float | None]:
    """The values of an expression on some tuples that a filter keeps, None for NULL; none where nothing tells.

    Parameters are those of `filter_selectivity`; `expression` is SQL over the columns, of any numeric type.
    """
    try:
        schema = _used(frame.schema, expression if condition is None else f"({expression}) AND ({condition})")
        seen = spark.createDataFrame(some_tuples(local_files(frame) or [], schema.names), schema)
        kept = seen if condition is None else seen.where(condition)
        value = f"CAST(({expression}) AS DOUBLE) AS x"
        return [row.x for row in kept.selectExpr(value).collect()]
    except (pa.ArrowException, OSError, SqlglotError, ValueError, LookupError, StopIteration, *SPARK_FAULTS):
        return []


def _used(schema: StructType, condition: str) -> StructType:
    """The columns that a condition names, the first one where it names none."""
    columns = sqlglot.parse_one(condition, dialect="spark").find_all(exp.Column)
    names = {part.name.lower() for column in columns for part in column.parts}
    return StructType([f for f in schema.fields if f.name.lower() in names] or schema.fields[:1])


def some_tuples(paths: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """`PROBE` tuples, the first ones of row groups at equal distances; LookupError without such a column or file."""
    groups = [(path, n) for path in paths for n in range(pq.read_metadata(path).num_row_groups)]
    if not groups:
        raise LookupError("no tuples")
    chosen = groups[:: max(1, len(groups) // PLACES)][:PLACES]
    batches = []
    for path, number in chosen:
        with pq.ParquetFile(path) as file:
            if not set(columns) <= set(file.schema_arrow.names):
                raise LookupError(path)
            read = file.iter_batches(PROBE // len(chosen), row_groups=[number], columns=list(columns))
            batches.append(next(read))
    return pa.Table.from_batches(batches)
