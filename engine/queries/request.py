"""What is asked of a query, by its statement and its settings: an error, a size, a method, and what may not be done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...optimizer.methods import CHOSEN, METHODS, STORED
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ...sketches.intervals.interval import rows_for
from ..materialized.answer import LINEAR
from ..results.selection import confidence_of_chosen
from ..settings import Settings

if TYPE_CHECKING:
    from ...optimizer.objective import Objective


@dataclass(frozen=True)
class Request:
    """A query with what is asked of it.

    Attributes
    ----------
    select : ApproximateSelect
        The statement.
    query : Query
    settings : Settings
        The session's, then OPTIONS, then the clauses.
    counts_rows : bool
        Whether it is ESTIMATE ROWS: the join is never run.
    """

    select: ApproximateSelect
    query: Query
    settings: Settings
    counts_rows: bool = False

    @property
    def may_run(self) -> bool:
        """Whether the query may be run exactly at all.

        ESTIMATE ROWS is not, nor what is to be kept.
        """
        return not self.counts_rows and not self.settings.cache

    @property
    def sized_by_hand(self) -> bool:
        """Whether sketches of the session's size are wanted, whatever is predicted of them."""
        settings, method = self.settings, self.select.method
        if self.keeps_keys:
            return False
        if settings.by_hand:
            return True
        if method is not None and not METHODS[method].statistics:
            # Sketches that were named are planned for an error or a size that the statement asks for.
            asked = self.select.accuracy.relative_error is not None and bool(METHODS[method].error)
            return not asked
        if method == "skimmed":
            return self.select.accuracy.relative_error is None
        return method is None and settings.error is None and settings.size_bytes is None

    @property
    def keeps_keys(self) -> bool:
        """Whether a method is asked for that keeps keys, and has no rows and buckets to be set."""
        method = self.select.method
        return method is not None and METHODS[method].statistics and not METHODS[method].linear

    @property
    def aims_freely(self) -> bool:
        """Whether an error alone is asked, and all that misses it may be run exactly at once."""
        partly = self.settings.behavior == "partial_run_on_base_table" and bool(self.query.groups)
        return self.may_run and not self.sized_by_hand and self.aims_at_error_alone and not partly

    @property
    def aims_at_error_alone(self) -> bool:
        """Whether an error is asked, and neither a method, a size nor that what is built be kept."""
        alone = self.select.method is None and self.settings.size_bytes is None and not self.settings.cache
        return alone and self.target is not None

    @property
    def asks_more_than_materialized(self) -> bool:
        """Whether the statement itself asks for an error, and not what to do where it is missed."""
        asked = self.select.accuracy
        return asked.relative_error is not None and asked.behavior is None

    @property
    def target(self) -> float | None:
        """The error that is planned for: with USING the one that the statement asks for."""
        if self.select.method is not None:
            return self.select.accuracy.relative_error
        return self.settings.error

    @property
    def forced(self) -> str | None:
        """The method that USING asks for, as candidates name it.

        Of two tables a convolution is a hash sketch; of several classes a sample of keys has exact messages behind it.
        """
        method = self.select.method
        if method == "convolution" and len(self.query.graph.vertices) == 2:
            return "hash"
        if method == "key_sample" and not self.settings.cache:
            from ...optimizer.messages import tree_of

            return method if len(tree_of(self.query.graph).classes) == 1 else "sampled_messages"
        return method

    def objective(self, fold_bytes: int, groups: Mapping[int, int]) -> Objective:
        """What candidates are to reach and may take, of a query with so many groups of each grouped vertex."""
        from ...optimizer.objective import Objective

        number = math.prod(groups.values())
        rows = self.settings.rows or rows_for(
            confidence_of_chosen(self.query, self.settings.confidence, number)
        )
        size, error = self.settings.size_bytes, self.target
        if size is None and error is None and self.select.method == "exact":
            error = self.settings.error or Settings().error  # what is exact meets any, whatever it takes
        if size is None and error is None:
            # Nothing is asked: as many bytes as sketches of the session's size take.
            size = 8 * rows * self.settings.buckets * len(self.query.graph.vertices)
        aggregates = {a.function for a in self.query.aggregates}
        apart = self.settings.cache or self.select.method == "sample_sketch"
        methods = CHOSEN if self.select.method is None else (*CHOSEN, self.select.method)
        if not self.may_run:
            methods = tuple(m for m in methods if m != "exact_run")
        if self.settings.cache:
            # Only what the catalog keeps, of each table by itself.
            known = LINEAR if self.settings.route == "jvm" else STORED
            methods = tuple(m for m in (*methods, "sample_sketch") if m in known)
        return Objective(
            # The tuples of a group are a part of all: what is known of it is known so much worse.
            relative_error=None if error is None else error / math.sqrt(number),
            confidence=self.settings.confidence,
            size_bytes=size,
            max_bytes=self.settings.max_bytes,
            fold_bytes=fold_bytes,
            max_exact_seconds=self.settings.max_exact_seconds,
            method=self.forced,
            methods=methods,
            rows=rows,
            columns=1 if aggregates <= {"count"} else 2,
            groups=tuple(groups.items()),
            sparse=self.settings.sparse,
            route=self.settings.route,
            ordered=not apart,
            # The scans of a sample look at its keys alone; one that is made of a table by itself has its totals.
            regressed=apart,
        )
