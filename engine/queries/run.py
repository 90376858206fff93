"""One approximate SELECT, from its resolved text to the answer that a user sees."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from ...errors import DataError, SkimqlError, UnsupportedQuery
from ...optimizer.combinations import Asked, check
from ...optimizer.methods import METHODS
from ...optimizer.physical import MaterializedJoin, PhysicalPlan
from ...parser.expressions import is_estimate
from ...parser.join_graph import Query
from ...parser.sampled_select import SampledQuery
from ...parser.statement import ApproximateSelect
from ...sketches.intervals.interval import USELESS, Estimate, exact, rows_for
from ..context import Context
from ..results.answer import MET, Answer
from ..results.columns import arrow_type
from ..results.rows import with_count
from ..settings import Settings
from .adaptive import AdaptiveRun
from .planner import Planner
from .settings_of import places_of, settings_of

if TYPE_CHECKING:
    from ..observed import Meter
    from .backend import Backend

# What a BIGINT holds, as a double.
LARGEST_COUNT = float(1 << 63)


@runtime_checkable
class EstimateListener(Protocol):
    """A listener that is told the answers so far of a query that runs on until its error is met."""

    def estimated(self, answer: Answer) -> None:
        """An answer; its interval holds for whoever stops at it."""


@dataclass(frozen=True)
class SelectRun:
    """One SELECT of a session.

    Attributes
    ----------
    context : Context
    select : ApproximateSelect
    query : Query
        The resolved SELECT.
    typed_by : callable
        Finds the types of a query's keys and counted values.
    run_exactly : callable
        Gives the result of (statement, SELECT, query) as Spark runs it.
    counts_rows : bool
        Whether it is ESTIMATE ROWS: a join too large for BIGINT is still to be told, and never run.
    """

    context: Context
    select: ApproximateSelect
    query: Query
    typed_by: Callable[[Query], Query]
    run_exactly: Callable[[str, str, Query | None], Answer]
    counts_rows: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The session's settings, then OPTIONS, then the clauses; raises as `settings_of`."""
        return settings_of(self.context.settings, self.select)

    @cached_property
    def typed(self) -> Query:
        """The query with the types of all keys, and of the values that it counts, known."""
        return with_count(self.typed_by(self.query))

    def answer(self) -> Answer:
        """The answer, or what the query's behaviour puts in its place where the asked error is missed.

        Whatever gave it, its values are of the types that Spark gives the exact ones. Where Spark cannot compute
        a value, for a tuple that may join nothing, only the tuples that join are looked at.

        Raises
        ------
        DataError
            If an estimate does not fit the type of its column.
        """
        return self._presented(self._of_what_joins()[0])

    def answers(self) -> Iterator[Answer]:
        """Better and better answers, until the asked error is met; the confidence holds wherever one stops.

        Raises
        ------
        SkimqlError
            As `answer`; ``SKIMQL_CLAUSE`` where no error is asked for.
        """
        if self.settings.error is None:
            raise UnsupportedQuery(
                "answers are refined until an error is met, and none is asked for",
                "SKIMQL_CLAUSE",
                self.select.sql,
                hint="ERROR WITHIN 1%",
            )
        self.check()
        planner = replace(self._planner(self.typed), refines=True)
        run = AdaptiveRun(planner, self._backend, self.exact, refines=True)
        return map(self._presented, run.answers())

    def analyzed(self) -> tuple[PhysicalPlan, Answer]:
        """As `answer`, what each operator takes measured; and the plan as it was before anything ran."""
        from ..spark.meter import SparkMeter

        tables = self.context.tables
        names = {v.table for v in self.query.graph.vertices}

        def counts_bytes() -> bool:
            try:
                return all(map(tables.is_measured, names))
            except (SkimqlError, KeyError):
                return False

        with tables.measured(names, now=self.context.spark_runs):
            answer, plan = self._of_what_joins(SparkMeter(self.context.running, counts_bytes))
        return plan, self._presented(answer)

    def _presented(self, answer: Answer) -> Answer:
        aggregated = tuple(is_estimate(item.expression) for item in self.query.items)
        known = tuple(answer.exact and estimated for estimated in aggregated)
        kinds = answer.types or self._types(answer)
        uncertain = answer.uncertain
        if uncertain is None and self.query.leaves_rows_out:
            # The columns of a result are the same, whatever gave it.
            uncertain = (False,) * len(answer.rows)
        presented = replace(
            answer,
            rows=_shown(answer, kinds, known),
            columns=tuple(item.name for item in self.query.items),
            aggregated=aggregated,
            types=kinds,
            uncertain=uncertain,
            bounds=self.settings.bounds,
            notes=tuple(f"{n}: {self._way_to_tell(answer)}" if n == USELESS else n for n in answer.notes),
        )
        if answer.method == "exact_run":
            return presented
        try:
            # An estimate out of the range of its type is told here, not when it is read. What Spark gives fits.
            presented.result  # noqa: B018
        except DataError as fault:
            hint = "the sum of CAST(... AS DOUBLE), or SUM(1D) in place of COUNT(*)"
            raise DataError(fault.message, fault.code, self.select.sql, hint=hint) from fault
        return presented

    def empty(self) -> Answer:
        """An answer without rows, of the columns that the statement's has; nothing is run.

        Raises
        ------
        SkimqlError
            As `answer`, where that is known before anything runs.
        """
        self.check()
        bare = Answer(tuple(item.name for item in self.typed.items), (), target=MET)
        answer = replace(self._presented(bare), notes=())
        return answer if self.settings.error is not None else replace(answer, target="")

    def plan(self) -> PhysicalPlan:
        """How the query would be answered, by what is known without a job."""
        self.check()
        return self._planner(self.typed).plan(None)

    def exact(self) -> Answer:
        """The SELECT as Spark runs it, sums of doubles as far as they are known."""
        # A query of our own making, as that of ESTIMATE ROWS, is not the text that is run.
        own = self.query if self.query.select_sql == self.select.select_sql else None
        if isinstance(own, SampledQuery):
            # Its aggregates are not sums of products: what rounding does to them is not known.
            own = None
        return self.run_exactly(self.select.sql, self.exact_sql, own)

    @property
    def exact_sql(self) -> str:
        """The SELECT as Spark runs it exactly."""
        return self._planner(self.query).exact_sql

    def _planner(
        self, query: Query, settings: Settings | None = None, backend: Callable[[], Backend] | None = None
    ) -> Planner:
        return Planner(
            self.context,
            backend or self._backend,
            self.select,
            query,
            settings or self.settings,
            self.counts_rows,
        )

    def _backend(self) -> Backend:
        from .backend import SparkBackend

        context = self.context
        return SparkBackend(context.spark, context.tables, context.statistics, context.listener)

    def _way_to_tell(self, answer: Answer) -> str:
        """What helps where an interval is wider than its value."""
        planner = self._planner(self.query)
        # What is kept answers, whatever the session aims at, until the statement itself asks for an error.
        kept = bool(answer.attempts) and isinstance(answer.attempts[-1].attempt, MaterializedJoin)
        as_kept = kept and not planner.request.asks_more_than_materialized
        if as_kept and self.select.accuracy.relative_error is not None:
            return "ERROR WITHIN without BEHAVIOR would tell"
        if self.settings.error is not None and not planner.request.sized_by_hand and not as_kept:
            return "a smaller error in ERROR WITHIN would tell"
        if self.settings.size_bytes is not None:
            return "a larger SIZE would tell"
        if isinstance(self.query, SampledQuery):
            return "ERROR WITHIN 5% would tell"
        if self.select.method is None and not self.settings.by_hand and not self.query.counts_distinct:
            return "ERROR WITHIN 5% would tell"
        return "more buckets would tell: OPTIONS (buckets = ...)"

    def _types(self, answer: Answer) -> tuple[pa.DataType | None, ...]:
        """The Arrow types of the result's columns: by rule where all have one, else by Spark's analysis."""
        kinds = tuple(arrow_type(item.type) for item in self.query.items)
        if self.counts_rows and not abs(answer.value or 0) < LARGEST_COUNT:
            return (pa.float64(),)
        if None not in kinds or not self.context.spark_runs:
            return kinds
        from .exact import result_types

        return result_types(self.context.spark, self.exact_sql) or kinds

    def _of_what_joins(self, meter: Meter | None = None) -> tuple[Answer, PhysicalPlan]:
        """The answer, and the plan as it was before anything ran."""
        self.check()
        shown = self._shown if meter is None and isinstance(self.context.listener, EstimateListener) else None
        run = AdaptiveRun(self._planner(self.typed), self._backend, self.exact, meter=meter, shown=shown)
        try:
            return run.answer(), _planned(run)
        except Exception as fault:
            # A failing scan has imported pyspark already; without it no value can have failed.
            if not self._may_fail_apart(fault):
                raise
            return self._of_contributing(fault, meter)

    def _shown(self, answer: Answer) -> None:
        """Tell the listener an answer that one may stop at."""
        listener: object = self.context.listener
        assert isinstance(listener, EstimateListener), "only such a one is told"
        # An estimate that fits no type of its column is told when it is the answer.
        with contextlib.suppress(DataError):
            listener.estimated(self._presented(answer))

    def _may_fail_apart(self, fault: Exception) -> bool:
        """Whether a value could not be computed that the user's own query may never compute."""
        if "pyspark" not in sys.modules or not self.query.graph.edges or self.query.sets is not None:
            return False
        if self.select.method is not None and METHODS[self.select.method].statistics:
            return False
        from ..execution.contributing import is_of_a_value

        return is_of_a_value(fault) and getattr(fault, "code", "") != "SKIMQL_EXACT_FAILED"

    def _of_contributing(self, fault: Exception, meter: Meter | None) -> tuple[Answer, PhysicalPlan]:
        """The answer from the tuples that join, by sketches; `fault` again where that fails too."""
        from ..execution.contributing import contributing
        from ..spark.session import SPARK_FAULTS, first_line
        from .backend import SparkBackend

        # Sketches of their own size, which no statistics of other tables decide.
        settings = replace(
            self.settings,
            route="arrow" if self.settings.route == "auto" else self.settings.route,
            cache=False,
            rows=self.settings.rows or rows_for(self.settings.confidence),
        )
        try:
            query, frames = contributing(self.typed, self.context.tables)
            context = self.context

            def backend() -> Backend:
                return SparkBackend(context.spark, frames, context.statistics, context.listener)

            planner = self._planner(query, settings, backend)
            run = AdaptiveRun(planner, backend, self.exact, by_hand=True, meter=meter)
            answer = run.answer()
        except (SkimqlError, *SPARK_FAULTS):
            raise fault from None
        told = fault.__cause__ if isinstance(fault, SkimqlError) and fault.__cause__ else fault
        note = f"only the tuples that join were looked at, since others have values that fail: {first_line(told)}"
        return replace(answer, notes=(*answer.notes, note)), _planned(run)

    def check(self) -> None:
        """Refuse what is asked where nothing honours it; see `methods.check`."""
        settings = self.settings
        check(self.query, Asked(settings.by_hand, settings.cache, settings.route, places_of(self.select)))


def _planned(run: AdaptiveRun) -> PhysicalPlan:
    assert run.first is not None, "what has an answer was planned"
    return run.first


def _shown(
    answer: Answer, kinds: Sequence[pa.DataType | None], known: Sequence[bool]
) -> tuple[tuple[Any, ...], ...]:
    """The rows, each cell as `_presented`; of an exact answer only those of aggregates need be looked at."""
    if not answer.exact:
        return tuple(tuple(map(_presented, row, kinds, known)) for row in answer.rows)
    columns = [
        [_presented(cell, kind, True) for cell in column] if estimated else column
        for column, kind, estimated in zip(zip(*answer.rows, strict=True), kinds, known, strict=False)
    ]
    return tuple(zip(*columns, strict=True))


def _presented(cell: Any, kind: pa.DataType | None, known: bool) -> Any:
    """The cell: an estimate too where Spark has computed it, an exact ratio as the DOUBLE that it is in the result."""
    if known and (cell is None or (isinstance(cell, (int, Decimal)) and not isinstance(cell, bool))):
        return exact(math.nan if cell is None else cell if isinstance(cell, int) else Fraction(cell))
    if known and isinstance(cell, float) and math.isfinite(cell):
        return exact(cell)
    value: object = cell.value if isinstance(cell, Estimate) else None
    if isinstance(value, Fraction) and (kind is None or pa.types.is_float64(kind)):
        return replace(cell, value=float(value), low=float(value), high=float(value))
    return cell
