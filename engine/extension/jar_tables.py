"""Spark's tables as an enabled session sees them, by few calls of the jar (`SourceFacts.java`).

What a DataFrame is read from takes one call, where `engine/sources/plan_facts.py` takes some forty. A temporary view
of files is looked up again only when it may mean something else.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..sources.plan_facts import FileRelation, Leaf, PlanFacts
from ..sources.spark_tables import TableReader

CLASS = "skimql.spark.SourceFacts"
MOST_VIEWS = 64
_WORD = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


@dataclass(slots=True)
class _View:
    """A temporary view as it was: what stood for it then, and what is known of it."""

    told: str
    frame: DataFrame
    facts: PlanFacts | None = None


class JarTables(TableReader):
    """Spark's tables for one of its sessions."""

    def __init__(self) -> None:
        self._java: Any = None
        self._views: OrderedDict[str, _View] = OrderedDict()

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """The table or view of a name.

        Raises
        ------
        KeyError
            If Spark knows none.
        """
        # Before the view is read: one that is replaced meanwhile is another the next time.
        told = str(self._called(spark).view(spark._jsparkSession, name)) if _WORD.match(name) else ""
        known = self._views.get(name)
        if told and known is not None and known.told == told:
            return known.frame
        frame = super().table(spark, name)
        if told:
            self._views[name] = _View(told, frame)
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        return frame

    def facts(self, frame: DataFrame) -> PlanFacts:
        """What the analysed plan of a classic DataFrame tells."""
        known = next((view for view in list(self._views.values()) if view.frame is frame), None)
        if known is None:
            return self._asked(frame)
        if known.facts is None:
            known.facts = self._asked(frame)
        return known.facts

    def _asked(self, frame: DataFrame) -> PlanFacts:
        told = json.loads(self._called(frame.sparkSession).of(frame._jdf))
        return PlanFacts(
            told["deterministic"],
            tuple(told["chain"]),
            told["in_catalog"],
            told["settled"],
            tuple(map(_leaf, told["leaves"])),
            partial(told.get, "cached"),
            partial(told.get, "canonical"),
        )

    def _called(self, spark: SparkSession) -> Any:
        if self._java is None:
            self._java = getattr(spark._jvm, CLASS)()
        return self._java


def _leaf(told: dict[str, Any]) -> Leaf:
    name = told["name"]
    if "files" not in told:
        return Leaf(name, told.get("node", name), told.get("version"), None)
    return Leaf(name, name, None, FileRelation(tuple(told["files"]), tuple(told["roots"]), told["format"]))
