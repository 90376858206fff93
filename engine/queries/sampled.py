"""Queries with an asked error on large tables: a sample of keys, enlarged until its interval is narrow enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...optimizer.candidates.first_sample import (
    MOST_RATE,
    ClassSample,
    Size,
    enlarged,
    first_sample,
    is_large,
    sampled_class,
)
from ...optimizer.choose import choose
from ...optimizer.messages import JoinClass, tree_of
from ...optimizer.plan import Plan
from ...optimizer.prediction.cost import Input, exact_join
from ...parser.join_graph import Query
from ...sketches.intervals.interval import Estimate
from ..execution.sample_join import run_sample
from ..results.answer import Answer, answer_plan, half_width
from ..settings import Settings
from ..sources.files import files_of, values_between
from ..sources.selectivity import kept_share
from ..sources.tables import Tables
from ..spark.jobs import ProgressListener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Samples of one query, the first among them.
MOST_TRIES = 3

# How many times more than with keys of equal weights a join may put out, where nothing is known of them.
SKEWED = 10.0


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

    def applies(self) -> bool:
        """Whether the tables are large, by what is known of them without a job."""
        return is_large(self._tuples)

    def first(self) -> ClassSample | None:
        """The sample to begin with, or None where the exact run looks cheaper."""
        return first_sample(self.query.graph, self._sizes, self._target, self._values)

    @cached_property
    def _tuples(self) -> list[float | None]:
        """Tuples of the table of each vertex, where files tell."""
        return [
            files_of(self.tables, v.table, self.tables.frame(v.table), count=True).tuples
            for v in self.query.graph.vertices
        ]

    @cached_property
    def _sizes(self) -> list[Size]:
        """Tuples of each vertex, and what its filter keeps of some of them."""
        sizes = []
        for vertex, tuples in zip(self.query.graph.vertices, self._tuples, strict=True):
            frame = self.tables.frame(vertex.table)
            share = 1.0 if vertex.filter is None else kept_share(self.spark, frame, vertex.filter)
            sizes.append(Size(tuples or 0.0, share))
        return sizes

    @cached_property
    def _values(self) -> float:
        """Most distinct keys that the sampled class can have, as far as files tell."""
        graph = self.query.graph
        return self._distinct(tree_of(graph).classes[sampled_class(graph, [t or 0.0 for t in self._tuples])])

    def _distinct(self, joined: JoinClass) -> float:
        """Most distinct keys that a class can have, as far as files tell; infinite where they do not."""
        edges = [self.query.graph.edges[e] for e in joined.edges]
        keys = {(e.left, e.left_keys) for e in edges} | {(e.right, e.right_keys) for e in edges}
        return min(
            math.prod(values_between(self._frame(vertex), key.strip("`")) for key in own)
            for vertex, own in keys
        )

    def may_run_exactly(self) -> bool:
        """Whether the exact run ends within `max_exact_seconds` of CPU, by what is known without a job."""
        tree = tree_of(self.query.graph)
        distinct = [self._distinct(joined) for joined in tree.classes]
        if not all(map(math.isfinite, distinct)):
            return False
        order, sizes = tree.joined_order(), []
        for number in range(2, len(order) + 1):
            size = SKEWED * math.prod(max(self._tuples[v] or 0.0, 1.0) for v in order[:number])
            for joined, keys in zip(tree.classes, distinct, strict=True):
                here = len(set(order[:number]).intersection(joined.vertices))
                size /= max(keys, 1.0) ** max(here - 1, 0)
            sizes.append(size)
        tables = [Input(self._tuples[v] or 0.0, self._tuples[v] or 0.0) for v in order]
        return exact_join(tables, sizes).seconds <= self.settings.max_exact_seconds

    def _frame(self, vertex: int) -> DataFrame:
        return self.tables.frame(self.query.graph.vertices[vertex].table)

    @property
    def _target(self) -> float:
        assert self.settings.error is not None, "a sample is taken for an asked error"
        return self.settings.error

    def explained(self) -> str | None:
        """What would be tried, as text, without a job; None where that is for statistics to say."""
        sizes = [Size(t or 0.0) for t in self._tuples]
        sample = first_sample(self.query.graph, sizes, self._target, self._values)
        if sample is None and not self.may_run_exactly():
            return None
        if sample is None:
            return "choice: run exactly, which looks cheaper than a sample"
        kept = self.plan(sample).sample
        assert kept is not None, "the plan has the sample that it was made of"
        lines = [
            f"choice: sample the keys {kept.class_name} of large tables, one in {1 / kept.rate:,.0f} at first",
            "  more where a filter keeps little, which a glance at it tells when the query runs, and where the",
            f"  interval misses the asked error; run exactly where one key in {1 / MOST_RATE:.0f} is not enough",
        ]
        for vertex, size in zip(self.query.graph.vertices, sizes, strict=True):
            lines.append(f"  {vertex.alias}: {size.tuples:,.0f} tuples by its files")
        return "\n".join(lines)

    def plan(self, sample: ClassSample) -> Plan:
        """The plan that a sample makes."""
        return choose(self.query, self.settings.seed, 0, 0, sample=sample)

    def answer(self) -> Answer | None:
        """The answer within the asked error: from a sample, or exact where that is cheaper.

        None where no sample is enough and the exact run might not end.
        """
        started = time.perf_counter()
        notes: tuple[str, ...] = ()
        sample = self.first()
        rate = None if sample is None else sample.rate
        expected = {v: size.kept for v, size in enumerate(self._sizes)}
        for _ in range(MOST_TRIES):
            if sample is None or rate is None:
                break
            sample = replace(sample, rate=min(rate, 1.0))
            plan = self.plan(sample)
            joined = run_sample(
                self.spark, plan, self.tables, self.listener, self.settings.max_bytes, expected
            )
            answer = answer_plan(plan, joined, self.settings.confidence)
            excess = self._excess(answer)
            said = f"one in {1 / sample.rate:,.0f} keys of {plan.sample.class_name if plan.sample else ''} sampled"
            if excess <= 1.0 or sample.rate == 1.0:
                seconds = {"build": time.perf_counter() - started}
                return replace(answer, notes=(*notes, said, *answer.notes), seconds=seconds)
            notes = (*notes, f"{said}: not enough")
            rate = enlarged(sample.rate, excess)
        if not self.may_run_exactly():
            return None
        exact = self.exact()
        return replace(exact, notes=(*notes, "run exactly: cheaper than a sample that meets the asked error"))

    def _excess(self, answer: Answer) -> float:
        """How many times wider than asked the widest interval is; infinite where a value is not known at all."""
        wide = [0.0]
        for cell in answer.rows[0]:
            if isinstance(cell, Estimate) and not cell.exact:
                known = cell.value and math.isfinite(cell.value)
                wide.append(half_width(cell) / (self._target * abs(cell.value)) if known else math.inf)
        return max(wide)
