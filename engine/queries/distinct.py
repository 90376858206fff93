"""Queries that count distinct values, planned by statistics: by synopses of the least size, or exactly."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...optimizer.candidates.candidate import Candidate, Choice, NoMethod
from ...optimizer.candidates.distinct import choose_distinct, counting_synopses, seen_key
from ...optimizer.describe.choice import describe_choice
from ...optimizer.describe.plan import describe
from ...optimizer.objective import Objective
from ...optimizer.plan import Plan, Synopsis
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import rows_for
from ..settings import Settings
from ..sources.tables import Tables
from ..spark.jobs import ProgressListener
from ..statistics.gather import KeptStatistics, gather_relations
from ..statistics.pilot_counts import VirtualRelation, relations_of
from .sizing import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of what is kept where the asked error is out of reach.
BEST_EFFORT_BYTES = 64 << 20


class RunExactly(Exception):
    """The exact run is the planner's choice; `choice` says why."""

    def __init__(self, choice: Choice) -> None:
        super().__init__("run exactly")
        self.choice = choice


@dataclass(frozen=True)
class DistinctRun:
    """One query with COUNT(DISTINCT)s and no groups, of which an error or a size is asked.

    Attributes
    ----------
    spark, tables, settings, listener
        The session's.
    query : Query
        With every type known.
    kept : KeptStatistics
        The session's; what is found is added.
    """

    spark: SparkSession
    tables: Tables
    query: Query
    settings: Settings
    kept: KeptStatistics
    listener: ProgressListener | None = None

    def plan(self, too_large: Collection[int] = ()) -> tuple[Plan, str]:
        """The plan of the chosen size, and a note that says what was predicted.

        Raises
        ------
        RunExactly
            If that is the planner's choice.
        BudgetExceeded
            If the asked size is too small.
        """
        choice, _ = self.choice(too_large)
        if choice.taken.method == "exact_run":
            raise RunExactly(choice)
        width = choice.taken.half_width(self.settings.confidence)
        note = f"by {choice.taken.name}"
        if width > 0:
            note += f"; ±{width:.2g} of the value was predicted"
        return self._plan(choice.taken, too_large), note

    def explained(self) -> str:
        """The choice as text, by what is known without a job."""
        choice, known = self.choice(pilot=False)
        text = describe_choice(choice, self.query.graph, known, time.time())
        if choice.taken.method == "exact_run":
            return text
        return f"{text}\n{describe(self._plan(choice.taken))}"

    def choice(
        self, too_large: Collection[int] = (), *, pilot: bool = True
    ) -> tuple[Choice, tuple[RelationStatistics, ...]]:
        """The planner's choice, and what is known of each vertex."""
        counted = counting_synopses(self.query, too_large)
        vertices = self._vertices()
        relations = [*vertices, *map(_relation, counted)]
        found = gather_relations(self.spark, self.tables, relations, self.kept, self.listener, pilot=pilot)
        known = tuple(found[v] for v in vertices)
        seen = {seen_key(s): found[_relation(s)] for s in counted}

        def chosen_for(objective: Objective) -> Choice:
            return choose_distinct(self.query, known, seen, objective, self.settings.sparse, too_large)

        objective = self._objective()
        try:
            return chosen_for(objective), known
        except NoMethod as fault:
            if objective.size_bytes is not None:
                # Raises, and says which size would do.
                self._plan(fault.candidates[0], too_large)
            size = min(self.settings.max_bytes, BEST_EFFORT_BYTES)
            best = chosen_for(replace(objective, relative_error=None, size_bytes=size))
            return replace(best, candidates=(*best.candidates, *fault.candidates[1:])), known

    def _vertices(self) -> tuple[VirtualRelation, ...]:
        if self.query.sets is None:
            return relations_of(self.query.graph)
        return tuple(VirtualRelation(v.table.lower(), v.filter, ()) for v in self.query.graph.vertices)

    def _plan(self, taken: Candidate, too_large: Collection[int] = ()) -> Plan:
        return chosen(self.query, self.settings, too_large, taken.buckets)

    def _objective(self) -> Objective:
        settings = self.settings
        functions = {a.function for a in self.query.aggregates}
        return Objective(
            relative_error=settings.error,
            confidence=settings.confidence,
            size_bytes=settings.size_bytes,
            max_bytes=settings.max_bytes,
            fold_bytes=settings.fold_bytes,
            method=self.query.method,
            rows=settings.rows or rows_for(settings.confidence),
            columns=1 if functions <= {"count", "count_distinct"} else 2,
        )


def _relation(synopsis: Synopsis) -> VirtualRelation:
    """What a synopsis sees of its table, before any message."""
    attributes = tuple(replace(a, class_name="") for a in synopsis.attributes)
    return VirtualRelation(synopsis.table.lower(), synopsis.filter, attributes)
