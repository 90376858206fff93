"""Queries that count distinct values, planned by statistics: by synopses of the least size, or exactly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ...errors import BudgetExceeded
from ...optimizer.candidates.candidate import Choice, NoMethod
from ...optimizer.candidates.distinct import choose_distinct, counting_synopses, seen_key
from ...optimizer.combinations import route_fault, worker_reason
from ...optimizer.methods import CANDIDATES
from ...optimizer.objective import Objective
from ...optimizer.plan import Synopsis
from ...optimizer.prediction.pilot_counts import VirtualRelation, relations_of
from ...optimizer.prediction.relation import RelationStatistics
from ...parser.join_graph import Query
from ...sketches.intervals.interval import rows_for
from ..settings import Settings
from .sizing import chosen

# Of what is kept where the asked error is out of reach.
BEST_EFFORT_BYTES = 64 << 20


class Gather(Protocol):
    """Finds what is known of virtual relations, by a pilot where jobs may run."""

    def __call__(
        self, relations: Sequence[VirtualRelation], *, jobs: bool
    ) -> Mapping[VirtualRelation, RelationStatistics]: ...


@dataclass(frozen=True)
class DistinctPlan:
    """Plans one query with COUNT(DISTINCT)s, of which an error or a size is asked.

    Attributes
    ----------
    query : Query
        With every type known.
    settings : Settings
        Of the statement, its route settled.
    gather : callable
        Of the backend.
    may_run : bool
        Whether the exact run is a candidate.
    groups : mapping of int to int
        How many groups each grouped vertex has.
    """

    query: Query
    settings: Settings
    gather: Gather
    may_run: bool
    groups: Mapping[int, int] = field(default_factory=dict)

    def choice(
        self, too_large: Collection[int] = (), *, jobs: bool = True
    ) -> tuple[Choice, tuple[RelationStatistics, ...]]:
        """The planner's choice, and what is known of each vertex.

        Raises
        ------
        BudgetExceeded
            If the asked size is too small.
        """
        counted = counting_synopses(self.query, too_large)
        vertices = self._vertices()
        found = self.gather([*vertices, *map(_relation, counted)], jobs=jobs)
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
                chosen(self.query, self.settings, too_large, self.groups, fault.candidates[0].buckets)
                raise BudgetExceeded(
                    f"{objective.size_bytes:,} bytes are too few", sql=self.query.sql, hint="a larger SIZE"
                ) from fault
            if objective.route == "jvm":
                raise route_fault(self.query.sql, worker_reason("distinct", grouped=False)) from fault
            size = min(self.settings.max_bytes, BEST_EFFORT_BYTES)
            best = chosen_for(replace(objective, relative_error=None, size_bytes=size))
            return replace(best, candidates=(*best.candidates, *fault.candidates[1:])), known

    def _vertices(self) -> tuple[VirtualRelation, ...]:
        if self.query.sets is None:
            return relations_of(self.query.graph)
        return tuple(VirtualRelation(v.table.lower(), v.filter, ()) for v in self.query.graph.vertices)

    def _objective(self) -> Objective:
        settings = self.settings
        functions = {a.function for a in self.query.aggregates}
        methods = CANDIDATES if self.may_run else tuple(m for m in CANDIDATES if m != "exact_run")
        return Objective(
            relative_error=settings.error,
            confidence=settings.confidence,
            size_bytes=settings.size_bytes,
            max_bytes=settings.max_bytes,
            fold_bytes=settings.fold_bytes,
            max_exact_seconds=settings.max_exact_seconds,
            method=self.query.method,
            methods=methods,
            rows=settings.rows or rows_for(settings.confidence),
            columns=1 if functions <= {"count", "count_distinct"} else 2,
            groups=tuple(self.groups.items()),
            route=settings.route,
        )


def _relation(synopsis: Synopsis) -> VirtualRelation:
    """What a synopsis sees of its table, before any message."""
    attributes = tuple(replace(a, class_name="") for a in synopsis.attributes)
    return VirtualRelation(synopsis.table.lower(), synopsis.filter, attributes)
