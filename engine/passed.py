"""Statements that Spark runs: in the user's session, or in one of ours where they name tables of ours."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession

from .isolation import forget_file_lists, moved, quoted, user_frame
from .spark import SPARK_FAULTS
from .tables import Tables

_NAME = r"(?P<name>`(?:[^`]|``)+`|\w+)"
# Statements that make something of a SELECT; a view among them belongs to the user's session.
_MADE = re.compile(r"\s*(?:CREATE|REPLACE|CACHE)\b.*?\bAS\b(?P<select>.*)", re.IGNORECASE | re.DOTALL)
_VIEW = re.compile(
    r"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?P<everywhere>GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"|CACHE\s+(?:LAZY\s+)?TABLE\s+){_NAME}",
    re.IGNORECASE,
)
# Statements that change the user's session or what a name stands for, whatever they name.
_THEIRS = re.compile(
    r"\s*(?:SET|RESET|USE|DECLARE|DROP|ALTER|TRUNCATE|ADD|LIST|MSCK|COMMENT|GRANT|REVOKE|CREATE|REPLACE)\b",
    re.IGNORECASE,
)
_READS = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES|FROM|TABLE|EXPLAIN|DESC|DESCRIBE|SHOW)\b", re.IGNORECASE)
_LISTS = re.compile(r"\s*SHOW\s+(?:TABLES|VIEWS)\b", re.IGNORECASE)


def run_by_spark(tables: Tables, spark: SparkSession, text: str) -> DataFrame:
    """Run a statement; the result is of the user's session `spark`, and so is all that it changes.

    Raises
    ------
    PySparkException, Py4JJavaError
        As Spark.
    DataError
        If Spark misses a table that the catalog remembers, and that cannot be read any more.
    """
    made = _MADE.match(text)
    named = tables.named_in(made["select"] if made else text)
    if _LISTS.match(text):
        named = tables.declared()
    if not named or (made is None and _THEIRS.match(text)):
        return spark.sql(text)
    place = tables.place()
    tables.show(place, " ".join([text, *map(quoted, named)]))
    try:
        found = place.spark.sql(text)
    except SPARK_FAULTS as fault:
        lost = tables.lost(named) if "TABLE_OR_VIEW_NOT_FOUND" in str(fault) else None
        if lost is None:
            raise
        raise lost from fault
    if place.spark is spark or _READS.match(text):
        return user_frame(found)
    view = _VIEW.match(text)
    if view is not None:
        _hand_over(place.spark, spark, view)
    forget_file_lists(spark)
    tables.forget_place()
    return user_frame(found)


def _hand_over(ours: SparkSession, theirs: SparkSession, view: re.Match[str]) -> None:
    """Make a temporary view that was made in our session one of the user's, as it is now."""
    name = view["name"]
    if view["everywhere"]:
        moved(ours.table(f"global_temp.{name}"), theirs).createOrReplaceGlobalTempView(name)
    else:
        moved(ours.table(name), theirs).createOrReplaceTempView(name)
