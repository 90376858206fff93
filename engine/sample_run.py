"""Queries with an asked error on large tables: a sample of keys, enlarged until its interval is narrow enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..optimizer.choose import ClassSample, choose
from ..optimizer.first_sample import enlarged, first_sample
from ..optimizer.plan import Plan
from ..parser.join_graph import Query
from ..sketches.interval import Estimate
from .answer import Answer, answer_plan, half_width
from .column_statistics import files_of
from .jobs import ProgressListener
from .sampled import run_sample
from .settings import Settings
from .tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Samples of one query, the first among them.
MOST_TRIES = 3


@dataclass(frozen=True)
class SampleRun:
    """One query on large tables, with an asked error.

    Attributes
    ----------
    spark, tables, settings, listener
        The session's.
    query : Query
        With every key type known.
    exact : callable
        Runs the query exactly.
    """

    spark: SparkSession
    tables: Tables
    query: Query
    settings: Settings
    exact: Callable[[], Answer]
    listener: ProgressListener | None = None

    def first(self) -> ClassSample | None:
        """The sample to begin with, or None where the tables are not large, or of unknown size."""
        scanned = []
        for vertex in self.query.graph.vertices:
            frame = self.tables.frame(vertex.table)
            scanned.append(files_of(self.tables, vertex.table, frame, count=True).tuples)
        return first_sample(self.query.graph, scanned)

    def plan(self, sample: ClassSample) -> Plan:
        """The plan that a sample makes."""
        return choose(self.query, self.settings.seed, 0, 0, sample=sample)

    def answer(self, sample: ClassSample) -> Answer:
        """The answer within the asked error: from a sample, or exact where that is cheaper."""
        started = time.perf_counter()
        notes: tuple[str, ...] = ()
        rate: float | None = sample.rate
        for _ in range(MOST_TRIES):
            if rate is None:
                break
            sample = replace(sample, rate=min(rate, 1.0))
            plan = self.plan(sample)
            joined = run_sample(self.spark, plan, self.tables, self.listener)
            answer = answer_plan(plan, joined, self.settings.confidence)
            excess = self._excess(answer)
            said = f"one in {1 / sample.rate:,.0f} keys of {plan.sample.class_name if plan.sample else ''} sampled"
            if excess <= 1.0 or sample.rate == 1.0:
                seconds = {"build": time.perf_counter() - started}
                return replace(answer, notes=(*notes, said, *answer.notes), seconds=seconds)
            notes = (*notes, f"{said}: not enough")
            rate = enlarged(sample.rate, excess)
        exact = self.exact()
        return replace(exact, notes=(*notes, "run exactly: cheaper than a sample that meets the asked error"))

    def _excess(self, answer: Answer) -> float:
        """How many times wider than asked the widest interval is; infinite where a value is not known at all."""
        target = self.settings.error
        assert target is not None, "a sample is taken for an asked error"
        wide = [0.0]
        for cell in answer.rows[0]:
            if isinstance(cell, Estimate) and not cell.exact:
                known = cell.value and math.isfinite(cell.value)
                wide.append(half_width(cell) / (target * abs(cell.value)) if known else math.inf)
        return max(wide)
