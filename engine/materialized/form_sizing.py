"""How large a kept sketch is made: by its size, by its error, or as is predicted best for its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BudgetExceeded, UnsupportedQuery
from ...parser.join_graph import Edge, JoinGraph, Query, Span, Vertex
from ...parser.syntax import CreateSketch
from ..catalog.form import Head
from ..catalog.kinds.kind import Size
from ..catalog.kinds.registry import KINDS
from ..settings import Settings
from .answer import SAMPLED_TABLES
from .building import Source, families_of, weights_of
from .sampled_answers import sampled_attribute

if TYPE_CHECKING:
    from ...optimizer.candidates.candidate import Candidate
    from ...optimizer.prediction.relation import RelationStatistics
    from ..context import Context

Ints = NDArray[np.int64]

# What is chosen from where nothing is said; skimmed and AGMS sketches are kept where they are asked for.
CHOSEN = ("hash", "key_sample", "two_level")
# Least buckets of the coarser levels of a skimmed sketch.
LEAST_LEVEL_BUCKETS = 64


@dataclass(frozen=True, slots=True)
class Form:
    """What is built: a kind and its size, the keys that are counted exactly, and what there is to say about it."""

    method: str
    seed: int
    rows: int
    buckets: int
    sparse: bool
    parameters: tuple[tuple[str, int], ...] = ()
    dense: Ints | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FormSizing:
    """Sizes what a CREATE SKETCH builds."""

    context: Context
    statement: CreateSketch

    def sized(self, draft: Head, settings: Settings, method: str) -> Form:
        """The form of a method that the size or error asked for gives."""
        kind, error = KINDS[method], self.statement.accuracy.relative_error
        rows, buckets = usual_size(settings)
        form = Form(
            method, settings.seed, rows, buckets, settings.sparse, tuple(sorted(kind.defaults().items()))
        )
        if error is not None and method in ("hash", "convolution", "agms", "skimmed"):
            from ...sketches.joins.sizing import predicted_size

            # Of a join with itself, whatever the data: a row's variance is (3^k - 1) F2^2 / buckets at most.
            variance = float(3 ** len(draft.attributes) - 1)
            confidence = self.statement.accuracy.confidence or settings.confidence
            size = predicted_size(variance, 1.0, error, confidence)
            return replace(form, rows=size.rows, buckets=max(2, size.columns))
        if method == "sample_sketch":
            form = replace(form, rows=1, parameters=self.sampled_key(draft))
            if error is not None:
                raise UnsupportedQuery(
                    "what a sampled table errs by depends on the tables that it is joined with",
                    "SKIMQL_CLAUSE",
                    self.statement.sql,
                    hint="SIZE ... in the place of ERROR",
                )
        if error is not None and not kind.weighted:
            return self._sized_for_values(form, error, settings)
        if method == "two_level" or (error is not None and kind.joint):
            return self._predicted(draft, settings, method)
        asked = self.statement.size_bytes if self.statement.size_bytes is not None else settings.size_bytes
        weights = len(draft.measures)
        if method in ("key_sample", "sample_sketch"):
            size_bytes = asked if asked is not None else 8 * rows * buckets * weights
            return replace(form, rows=1, buckets=self.within(form, draft, size_bytes, 1, 1))
        if method == "distinct":
            from ...optimizer.distinct import level_buckets
            from ...optimizer.distinct_count import LEVELS

            least = 16
            form = replace(form, rows=LEVELS, buckets=level_buckets(buckets))
            return (
                form
                if asked is None
                else replace(form, buckets=self.within(form, draft, asked, LEVELS, least))
            )
        if method == "join_distinct":
            from ...optimizer.distinct import sample_size

            values, pairs = sample_size(buckets)
            form = replace(form, rows=values, buckets=pairs)
            if asked is not None:
                pairs = self.within(form, draft, asked, 2, 1)
                form = replace(form, rows=max(2, pairs // 64), buckets=pairs)
            return form
        if asked is None:
            return form
        if method == "skimmed":
            form = replace(form, parameters=_levels_within(dict(form.parameters), asked // 2 // weights))
        return replace(form, buckets=self.within(form, draft, asked, rows, 2))

    def chosen(self, draft: Head, settings: Settings) -> Form:
        """What is predicted to be best for a join of the table with itself on its key."""
        from ..spark.session import SPARK_FAULTS

        try:
            source = Source(draft.table, self.context.tables.frame(draft.table), draft.filter)
            weights = weights_of(source, draft.weights, self.statement.sql)
            if any(w.dtype != "int64" for w in weights):
                return self.sized(draft, settings, "hash")
            form = self._predicted(draft, settings, None)
        except (*SPARK_FAULTS, BudgetExceeded):
            return self.sized(draft, settings, "hash")
        return form

    def sampled_key(self, draft: Head) -> tuple[tuple[str, int], ...]:
        """The sizes of a sampled table: which key is sampled, that of a class which others sample or else the first."""
        classes = [a.class_name for a in draft.attributes]
        sampled = [
            h.attributes[sampled_attribute(h)].class_name
            for h in sorted(self.context.catalog.heads(), key=lambda h: (h.created, h.name))
            if h.method in SAMPLED_TABLES
            and h.made_by == "statement"
            and h.name.lower() != draft.name.lower()
        ]
        at = next((classes.index(c) for c in sampled if c in classes), 0)
        return (("dense", 0), ("sampled", at))

    def _sized_for_values(self, form: Form, error: float, settings: Settings) -> Form:
        confidence = self.statement.accuracy.confidence or settings.confidence
        if form.method == "distinct":
            from ...optimizer.distinct_count import LEVELS
            from ...sketches.distinct.level import LevelSpec

            return replace(form, rows=LEVELS, buckets=LevelSpec.for_error(error, confidence).buckets)
        from ...sketches.distinct.pair_sample import PairSampleSpec

        spec = PairSampleSpec.for_error(error, confidence)
        return replace(form, rows=spec.size, buckets=spec.capacity)

    def within(self, form: Form, draft: Head, size_bytes: int, rows: int, least: int) -> int:
        """The most buckets with which all weights take `size_bytes` together.

        Raises
        ------
        BudgetExceeded
            If that is less than `least`; the message says how many bytes would do.
        """
        if self.bytes_of(form, draft, rows, least) > size_bytes:
            weights = len(draft.measures)
            raise BudgetExceeded(
                f"{size_bytes:,} bytes are too few for a {form.method} sketch with {weights} weights",
                sql=self.statement.sql,
                hint=f"SIZE {self.bytes_of(form, draft, rows, least)} or more; kilobytes before the interval says much",
            )
        fits, exceeds = least, 1 << 24
        while exceeds - fits > 1:
            middle = (fits + exceeds) // 2
            enough = self.bytes_of(form, draft, rows, middle) <= size_bytes
            fits, exceeds = (middle, exceeds) if enough else (fits, middle)
        return fits

    def statistics(self, draft: Head) -> tuple[RelationStatistics, ...]:
        """What is known of the virtual relation by its one key, twice: of the two sides of a join with itself."""
        from ..statistics.gather import gather

        context, query = self.context, _with_itself(self.statement.sql, draft)
        return gather(context.spark, context.tables, query, context.statistics, context.listener)

    @staticmethod
    def bytes_of(form: Form, draft: Head, rows: int, buckets: int) -> int:
        """The most bytes that all weights of a sketch take together."""
        kind, families = KINDS[form.method], families_of(form.seed, (a.class_name for a in draft.attributes))
        columns = len(draft.measures) if kind.joint else 1
        each = 1 if kind.joint else len(draft.measures)
        size = Size(families, rows, buckets, "int64", columns, 0, form.parameters)
        return each * kind.most_bytes(size)

    def _predicted(self, draft: Head, settings: Settings, method: str | None) -> Form:
        """The size, and without a method the method, that the planner finds for such a self-join."""
        taken = self._candidate(draft, settings, method)
        note: tuple[str, ...] = ()
        if method is None:
            width = taken.half_width(self.statement.accuracy.confidence or settings.confidence)
            note = (
                f"{taken.method}: predicted to be best, ±{width:.2g} of a join of {draft.table} with itself",
            )
        form = Form(taken.method, settings.seed, *usual_size(settings), settings.sparse, notes=note)
        if taken.sample is None:
            return replace(form, rows=taken.rows, buckets=taken.buckets)
        dense, capacity = np.asarray(taken.sample.dense_keys[0], np.int64), taken.sample.capacities[0]
        form = replace(form, rows=1, buckets=max(capacity, 1))
        if taken.method == "two_level":
            dense = np.unique(dense)
            form = replace(form, parameters=(("dense", int(dense.size)),), dense=dense)
        size = self.statement.size_bytes
        # The planner counts the keys; totals and bounds take some words beside.
        return form if size is None else replace(form, buckets=self.within(form, draft, size, 1, 1))

    def _candidate(self, draft: Head, settings: Settings, method: str | None) -> Candidate:
        from ...optimizer.candidates.candidate import NoMethod
        from ...optimizer.candidates.enumerate import choose_method
        from ...optimizer.messages import tree_of
        from ...optimizer.objective import Objective

        asked = self.statement.accuracy
        size = self.statement.size_bytes if self.statement.size_bytes is not None else settings.size_bytes
        rows, buckets = usual_size(settings)
        if size is None and asked.relative_error is None:
            size = 8 * rows * buckets * len(draft.measures)
        query = _with_itself(self.statement.sql, draft)
        objective = Objective(
            relative_error=asked.relative_error,
            confidence=asked.confidence or settings.confidence,
            size_bytes=None if size is None else 2 * size,
            max_bytes=2 * settings.max_bytes,
            fold_bytes=0,
            ordered=False,
            method=method,
            methods=CHOSEN if method is None else (method,),
            rows=rows,
            columns=len(draft.measures),
        )
        known = self.statistics(draft)
        try:
            return choose_method(tree_of(query.graph), known, objective).taken
        except NoMethod as fault:
            raise BudgetExceeded(
                f"no kept sketch of {draft.table} is predicted to do: {fault}",
                sql=self.statement.sql,
                hint="a larger SIZE, or ERROR, or USING hash",
            ) from fault


def usual_size(settings: Settings) -> tuple[int, int]:
    from ...sketches.intervals.interval import rows_for

    return settings.rows or rows_for(settings.confidence), settings.buckets


def _levels_within(parameters: dict[str, int], size_bytes: int) -> tuple[tuple[str, int], ...]:
    """The levels of a skimmed sketch that take no more than some bytes, if that leaves them enough buckets."""
    levels = max((parameters["domain_bits"] - 9) // 3, 1)
    buckets = size_bytes // (8 * parameters["level_rows"] * levels)
    buckets = min(parameters["level_buckets"], max(buckets, LEAST_LEVEL_BUCKETS))
    return tuple(sorted((parameters | {"level_buckets": buckets}).items()))


def _with_itself(sql: str, draft: Head) -> Query:
    """The join of a virtual relation with itself on its key."""
    (attribute,), span = draft.attributes, Span(0, len(sql))
    sides: Sequence[Vertex] = [Vertex(draft.table, name, draft.filter, span) for name in ("a", "b")]
    keys = attribute.keys
    edge = Edge(0, 1, keys, keys, attribute.key_types, attribute.class_name, span, tuple(range(len(keys))))
    return Query(sql, "", (), JoinGraph(tuple(sides), (edge,)))
