"""Arrow tables as DataFrames."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame


def frame_of(spark: Any, table: pa.Table) -> DataFrame:
    """A DataFrame of a table, in a Spark session: times without a zone stay so.

    Spark by itself takes them for times in the session's zone, and fails on those that the zone has not: the hour
    that is left out in spring, and the one that is there twice in autumn.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    found: DataFrame = spark.createDataFrame(
        table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    )
    return found
