"""What Spark itself knows of a table: `ANALYZE TABLE … COMPUTE STATISTICS FOR COLUMNS`, no job."""

from __future__ import annotations

import re

import numpy as np
from pyspark.sql import SparkSession

from ...optimizer.prediction.histograms import from_bins
from ...optimizer.prediction.pilot_counts import VirtualRelation
from ...optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from ..sources.keys import INTEGER_TYPES
from ..sources.tables import Tables
from ..spark.session import SPARK_FAULTS

_NAME = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_TUPLES = re.compile(r"([\d,]+) rows")
_BIN = re.compile(r"lower_bound: (\S+), upper_bound: (\S+), distinct_count: (\d+)")


def column_statistics(
    spark: SparkSession, tables: Tables, relation: VirtualRelation
) -> RelationStatistics | None:
    """Spark's column statistics, where they tell all that is asked: no filter, and histograms of integer columns.

    Parameters
    ----------
    spark : SparkSession
    tables : Tables
    relation : VirtualRelation

    Returns
    -------
    RelationStatistics or None
        Without a time: Spark does not keep it, and does not notice files changed behind its back either. None
        where a filter, an expression, another type or a missing figure leaves something to be found out.
    """
    kind, name = tables.origin(relation.table)
    if kind != "catalog" or relation.filter is not None or not relation.attributes:
        return None
    try:
        tuples = _tuples(spark, name)
        if tuples is None:
            return None
        attributes = []
        for attribute in relation.attributes:
            column = _NAME.fullmatch(attribute.keys[0])
            if len(attribute.keys) != 1 or column is None:
                return None
            found = _column(spark, name, column[1] or column[2], tuples)
            if found is None:
                return None
            attributes.append(found)
    except SPARK_FAULTS:
        return None  # a temporary view, or a source that keeps no statistics
    known = [a.histogram.tuples for a in attributes if a.histogram is not None]
    # With several keys no figure tells how many tuples have all of them; the fewest of one is a bound.
    return RelationStatistics(
        tuples=min(known), attributes=tuple(attributes), scanned=tuples, source="spark column statistics"
    )


def _quoted(name: str) -> str:
    """A table's name, in parts, so that none of it is read as anything else than a name."""
    parts = ["".join(found) for found in _PART.findall(name)]
    return ".".join("`" + part.replace("``", "`").replace("`", "``") + "`" for part in parts)


def _tuples(spark: SparkSession, name: str) -> float | None:
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {_quoted(name)}").collect()
    said = [_TUPLES.search(row["data_type"] or "") for row in described if row["col_name"] == "Statistics"]
    return float(said[0][1].replace(",", "")) if said and said[0] else None


def _column(spark: SparkSession, table: str, column: str, tuples: float) -> AttributeStatistics | None:
    """A column's statistics; None without an equi-height histogram of integers."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {_quoted(table)} `{column.replace('`', '``')}`").collect()
    told = {row["info_name"]: row["info_value"] for row in rows}
    if told.get("data_type") not in INTEGER_TYPES:
        return None
    heights = re.search(r"height: ([\d.eE+-]+)", told.get("histogram") or "")
    bins = [found for row in rows if (found := _BIN.search(row["info_value"] or ""))]
    nulls, distinct = told.get("num_nulls"), told.get("distinct_count")
    if heights is None or not bins or not str(nulls).isdigit() or not str(distinct).isdigit():
        return None
    # Bins have equal heights; Spark's height counts the tuples of the time of ANALYZE.
    known = max(tuples - float(nulls or 0), 0.0)
    counts = np.full(len(bins), known / len(bins))
    lows, highs = ([int(float(b[n])) for b in bins] for n in (1, 2))
    histogram = from_bins(lows, highs, counts, [float(b[3]) for b in bins])
    return AttributeStatistics(distinct=float(distinct or 0), histogram=histogram)
