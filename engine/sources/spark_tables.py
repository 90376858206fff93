"""Tables that Spark knows itself: how their names are spelled, and what their DataFrames say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .plan_facts import KnownPlans, PlanFacts


def spark_table(spark: SparkSession, name: str) -> DataFrame:
    """The table or view of a name.

    Raises
    ------
    KeyError
        If Spark knows none.
    """
    from pyspark.errors import AnalysisException

    from ..spark.isolation import is_classic
    from ..spark.session import SPARK_FAULTS

    classic = is_classic(spark)
    for spelled in _spellings(name):
        with contextlib.suppress(*(SPARK_FAULTS if classic else (AnalysisException,))):
            found = spark.table(spelled)
            if not classic:
                # A client of Spark Connect asks its server only now.
                _ = found.schema
            return found
    raise KeyError(name)


class TableReader:
    """How Spark's tables are looked up and their plans asked. The extension has one of fewer calls."""

    _known: KnownPlans | None = None

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """As `spark_table`."""
        return spark_table(spark, name)

    def facts(self, frame: DataFrame) -> PlanFacts:
        """As `plan_facts`."""
        from .plan_facts import KnownPlans

        if self._known is None:
            self._known = KnownPlans()
        return self._known.facts(frame)


def refresh_table(spark: SparkSession, name: str) -> None:
    """Make Spark forget what it has cached of a table: lists of files, data."""
    from ..spark.session import SPARK_FAULTS

    for spelled in _spellings(name):
        with contextlib.suppress(*SPARK_FAULTS):
            spark.catalog.refreshTable(spelled)
            return


def is_cached(frame: DataFrame) -> bool:
    """Whether Spark has the tuples of a frame cached."""
    level = frame.storageLevel
    return level.useMemory or level.useDisk or level.useOffHeap


def is_frame(source: object) -> TypeGuard[DataFrame]:
    """Whether a source is a DataFrame, of Spark or of Spark Connect."""
    # Spark Connect has a DataFrame class of its own; both have a schema and can be selected from.
    return hasattr(source, "selectExpr") and hasattr(source, "schema")


def _spellings(name: str) -> Iterator[str]:
    """How a name may be meant: as it stands, as one identifier, or a database (or a format) with what is in it."""
    yield name
    yield _quoted(name)
    first, dot, rest = name.partition(".")
    if dot and first and rest:
        yield f"{_quoted(first)}.{_quoted(rest)}"
        yield ".".join(map(_quoted, name.split(".")))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
