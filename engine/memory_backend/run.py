"""A query from its text to its answer on Arrow tables, without Spark: the same planner and executor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ...errors import UnsupportedQuery
from ...optimizer.combinations import Asked, check
from ...optimizer.physical import PhysicalPlan
from ...optimizer.plan import Plan
from ...parser.join_graph import FEATURES, Query
from ...parser.resolve import resolve
from ...parser.statement import ApproximateSelect, parse_statement
from ..observed import ProcessMeter
from ..queries.adaptive import AdaptiveRun
from ..queries.planner import Planner
from ..queries.settings_of import places_of, settings_of
from ..results.answer import Answer
from ..results.columns import arrow_type
from ..results.expressions import Evaluator
from ..results.rows import Estimated, with_count
from ..settings import Settings
from .backend import MemoryBackend
from .values import NOT_IN_MEMORY

# What an answer in memory may use beyond aggregates over one join tree.
KNOWN = tuple(f for f in FEATURES if f not in ("cyclic join", "cross product"))


@dataclass(frozen=True)
class MemoryRun:
    """One SELECT APPROXIMATE on a backend.

    Attributes
    ----------
    backend : MemoryBackend
    select : ApproximateSelect
    query : Query
        Types known; of a grouped query with a COUNT(*).
    settings : Settings
        With the clauses of the statement in them.
    """

    backend: MemoryBackend
    select: ApproximateSelect
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
        return cls(backend, statement, with_count(query), settings_of(settings or Settings(), statement))

    @cached_property
    def planner(self) -> Planner:
        """The planner of the statement; there is no catalog in memory."""
        return Planner(None, lambda: self.backend, self.select, self.query, self.settings)

    def answer(self) -> Answer:
        """The answer, as `Session.sql` gives it."""
        settings = self.settings
        check(self.query, Asked(settings.by_hand, settings.cache, settings.route, places_of(self.select)))
        run = AdaptiveRun(self.planner, lambda: self.backend, self.exact, meter=ProcessMeter())
        return self._typed(run.answer())

    def exact(self) -> Answer:
        """The exact answer: every group that joins anything."""
        plan = Plan(self.query, 0, (), (), (), (), ())
        evaluators: dict[tuple[int, ...], Evaluator] = {
            (number,): Evaluator(plan, None, 1.0, group.values, known=group.aggregates)
            for number, group in enumerate(self.backend.exact(self.query))
        }
        return self._typed(replace(Estimated(self.query, evaluators).answer(), exact=True))

    def plan(self) -> PhysicalPlan:
        """How the query is answered."""
        return self.planner.plan(lambda: self.backend.groups(self.query, self.settings.max_groups))

    def _typed(self, answer: Answer) -> Answer:
        return replace(answer, types=tuple(arrow_type(item.type) for item in self.query.items))
