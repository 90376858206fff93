"""Statements that Spark runs: in the user's session, or in one of ours where they name tables of ours."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession

from ...parser.script import without_comments
from ..sources.tables import Tables
from ..spark.isolation import forget_file_lists, moved, quoted, user_frame
from ..spark.session import SPARK_FAULTS

_NAME = r"(?P<name>`(?:[^`]|``)+`|\w+)"
# Statements that make something of a SELECT; a view among them belongs to the user's session.
_MADE = re.compile(
    r"(?:(?:CREATE|REPLACE)\s+(?:\w+\s+){0,4}?(?:TABLE|VIEW)|CACHE)\b.*?\bAS\b(?P<select>.*)",
    re.IGNORECASE | re.DOTALL,
)
_VIEW = re.compile(
    r"(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?P<everywhere>GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"|CACHE\s+(?:LAZY\s+)?TABLE\s+){_NAME}",
    re.IGNORECASE,
)
# Statements that change the user's session or what a name stands for, whatever they name.
_THEIRS = re.compile(
    r"(?:SET|RESET|USE|DECLARE|DROP|ALTER|TRUNCATE|ADD|LIST|MSCK|COMMENT|GRANT|REVOKE|CREATE|REPLACE)\b",
    re.IGNORECASE,
)
_READS = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES|FROM|TABLE|EXPLAIN|DESC|DESCRIBE|SHOW)\b", re.IGNORECASE)
_LISTS = re.compile(r"SHOW\s+(?:TABLES|VIEWS)\b", re.IGNORECASE)


def run_by_spark(tables: Tables, spark: SparkSession, text: str) -> DataFrame:
    """Run a statement; the result is of the user's session `spark`, and so is all that it changes.

    Raises
    ------
    PySparkException, Py4JJavaError
        As Spark.
    DataError
        If Spark misses a table that the catalog remembers, and that cannot be read any more.
    """
    visible = without_comments(text)[0].strip()
    made = _MADE.match(visible)
    named = tables.named_in(made["select"] if made else visible)
    if _LISTS.match(visible):
        named = tables.registered()
    if not named or (made is None and _THEIRS.match(visible)):
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
    if place.spark is spark or _READS.match(visible):
        return user_frame(found)
    view = _VIEW.match(visible)
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
