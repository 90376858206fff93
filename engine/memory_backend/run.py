"""A query from its text to its answer on Arrow tables, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...errors import UnsupportedQuery
from ...optimizer.candidates.candidate import NoMethod
from ...optimizer.candidates.enumerate import choose_method
from ...optimizer.choose import PLANNED, plan_of
from ...optimizer.messages import tree_of
from ...optimizer.objective import Objective
from ...optimizer.plan import Plan
from ...parser.join_graph import FEATURES, Query
from ...parser.resolve import resolve
from ...parser.statement import ApproximateSelect, parse_statement
from ...sketches.intervals.interval import Estimate, rows_for
from ..queries.run import settings_of
from ..queries.sizing import chosen, chosen_groups
from ..results.answer import Answer, answer_plan, nothing_joins
from ..results.columns import arrow_type
from ..results.distinct import built_within
from ..results.estimator import SketchJoin
from ..results.expressions import Evaluator
from ..settings import PLANNED_METHODS, Settings
from .backend import MemoryBackend
from .values import NOT_IN_MEMORY

# What an answer in memory may use beyond aggregates over one join tree.
KNOWN = tuple(f for f in FEATURES if f not in ("cyclic join", "cross product"))
METHODS = (*PLANNED, "exact_run")
# Below it a sample holds nothing but its dense keys.
LEAST_RATE = 1e-9


@dataclass(frozen=True)
class MemoryRun:
    """One SELECT APPROXIMATE on a backend.

    Attributes
    ----------
    backend : MemoryBackend
    query : Query
        Types known.
    settings : Settings
        With the clauses of the statement in them.
    """

    backend: MemoryBackend
    query: Query
    settings: Settings

    @classmethod
    def of(cls, sql: str, backend: MemoryBackend, settings: Settings | None = None) -> MemoryRun:
        """The run of a statement.

        Raises
        ------
        SkimqlError
            If the text is no SELECT APPROXIMATE, or cannot be estimated or evaluated in memory.
        """
        statement = parse_statement(sql)
        if not isinstance(statement, ApproximateSelect):
            raise UnsupportedQuery("only SELECT APPROXIMATE runs in memory", NOT_IN_MEMORY, sql)
        query = backend.tables.typed(resolve(statement, backend.tables, known=KNOWN))
        # In memory no route saves a process.
        asked = settings_of(settings or Settings(), statement)
        return cls(backend, query, replace(asked, route="arrow") if asked.route == "auto" else asked)

    def answer(self) -> Answer:
        """The answer; of a grouped query a row for each group that may join anything, HAVING and LIMIT left out."""
        if self.query.groups:
            return self._typed(self._grouped())
        if self.query.empty:
            return self._typed(nothing_joins(self.query))
        return self._typed(self._planned() if self._is_planned else self._sketched())

    def exact(self) -> Answer:
        """The exact answer."""
        plan = Plan(self.query, 0, (), (), (), (), ())
        rows = [
            self._row(Evaluator(plan, None, 1.0, group.values, known=group.aggregates))
            for group in self.backend.exact(self.query)
        ]
        names = tuple(item.name for item in self.query.items)
        return self._typed(Answer(names, tuple(rows)))

    def plan(self) -> Plan:
        """What is built or sampled."""
        return self._choice()[0] if self._is_planned else chosen(self.query, self.settings)

    @property
    def _is_planned(self) -> bool:
        if self.query.counts_distinct or not self.query.graph.edges:
            return False
        if self.query.method is not None:
            return self.query.method in PLANNED_METHODS
        asked = self.settings.error is not None or self.settings.size_bytes is not None
        return asked and not self.settings.by_hand

    def _planned(self) -> Answer:
        plan, method = self._choice()
        if method == "exact_run":
            return replace(self.exact(), notes=("run exactly",))
        if plan.sample is None:
            sketches = SketchJoin(plan, self.backend.build(plan, self.settings.fold_bytes or None))
            return answer_plan(plan, sketches, self.settings.confidence)
        joined = self.backend.sample(plan, self.settings.max_bytes)
        size = self.settings.size_bytes
        while size is not None and joined.nbytes > size and plan.sample and plan.sample.rate > LEAST_RATE:
            # Taken again, smaller.
            smaller = replace(plan.sample, rate=0.9 * plan.sample.rate * size / joined.nbytes)
            plan = replace(plan, sample=smaller)
            joined = self.backend.sample(plan, self.settings.max_bytes)
        return answer_plan(plan, joined, self.settings.confidence)

    def _choice(self) -> tuple[Plan, str]:
        """The plan of the planner's choice, empty for an exact run, and the method."""
        statistics = self.backend.statistics(self.query)
        try:
            choice = choose_method(tree_of(self.query.graph), statistics, self._objective())
        except NoMethod as fault:
            raise UnsupportedQuery(str(fault), "SKIMQL_UNKNOWN_METHOD", self.query.sql) from fault
        if choice.taken.method == "exact_run":
            return Plan(self.query, 0, (), (), (), (), ()), "exact_run"
        return plan_of(self.query, choice, self.settings.seed, self.settings.sparse), choice.taken.method

    def _objective(self) -> Objective:
        rows = self.settings.rows or rows_for(self.settings.confidence)
        size = self.settings.size_bytes
        if size is None and self.settings.error is None:
            size = 8 * rows * self.settings.buckets * len(self.query.graph.vertices)
        counts = all(a.function == "count" for a in self.query.aggregates)
        return Objective(
            relative_error=self.settings.error,
            confidence=self.settings.confidence,
            size_bytes=size,
            max_bytes=self.settings.max_bytes,
            fold_bytes=self.settings.fold_bytes,
            method=self.query.method,
            methods=METHODS,
            rows=rows,
            columns=1 if counts else 2,
        )

    def _sketched(self) -> Answer:
        plan, built, notes = built_within(
            self.query,
            lambda too_large: chosen(self.query, self.settings, too_large),
            self.backend.build,
        )
        answer = answer_plan(plan, SketchJoin(plan, built), self.settings.confidence)
        return replace(answer, notes=(*notes, *answer.notes))

    def _grouped(self) -> Answer:
        names = tuple(item.name for item in self.query.items)
        groups = self.backend.group_values(self.query, self.settings.max_groups)
        if self.query.empty or not groups.values:
            return Answer(names, ())
        plans, built, notes = built_within(
            self.query,
            lambda too_large: chosen_groups(self.query, len(groups.values), self.settings, too_large),
            lambda plans, most: self.backend.build(plans[0], most, groups),
        )
        rows = []
        for plan, values in zip(plans, groups.values, strict=True):
            row = self._row(Evaluator(plan, SketchJoin(plan, built), self.settings.confidence, values))
            known = [c for c in row if isinstance(c, Estimate)]
            if not known or not all(c.exact and (not c.value or c.value != c.value) for c in known):
                rows.append(row)
        return Answer(names, tuple(rows), plan=plans[0], notes=notes)

    def _row(self, evaluator: Evaluator) -> tuple[Any, ...]:
        return tuple(evaluator.cell(item.expression) for item in self.query.items)

    def _typed(self, answer: Answer) -> Answer:
        return replace(answer, types=tuple(arrow_type(item.type) for item in self.query.items))
