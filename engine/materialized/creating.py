"""CREATE SKETCH: what is built, as the statement asks, or as the sketches of its class are, or as is predicted best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BudgetExceeded, UnsupportedQuery
from ...optimizer.plan import Attribute
from ...parser.join_graph import Edge, JoinGraph, Query, Span, Vertex
from ...parser.sketch import SketchDefinition, resolve_sketch
from ...parser.syntax import CreateSketch
from ..catalog.form import Groups, Head
from ..catalog.kinds.kind import Size
from ..catalog.kinds.registry import KINDS
from ..settings import BadSetting, Settings
from .answer import SAMPLED_TABLES
from .building import Source, families_of, weights_of
from .definition import blank, refuse_unstable, typed, weights_for
from .following import note_of_unlike, share_layout
from .sampled_answers import sampled_attribute

if TYPE_CHECKING:
    from ...optimizer.candidates.candidate import Candidate
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
class Creation:
    """One CREATE SKETCH of a session."""

    context: Context
    statement: CreateSketch

    def drafted(self) -> tuple[Head, Form]:
        """The head of the sketch, with nothing in it yet, and its form.

        Raises
        ------
        UnsupportedQuery
            If the method does not exist, or cannot keep what is asked.
        BudgetExceeded
            If the size is too small for it, or larger than ``skimql.max_bytes``.
        """
        context, sql = self.context, self.statement.sql
        definition = resolve_sketch(self.statement, context.tables)
        expressions = (definition.filter, definition.weight, *definition.keys, *definition.groups)
        refuse_unstable(sql, expressions, context.environment.own_functions)
        settings = self._settings()
        self._check_method(definition)
        empty = blank(
            self.statement.name.text,
            definition.table,
            definition.filter,
            tuple(Attribute((k,), (), c) for k, c in zip(definition.keys, definition.classes, strict=True)),
            weights_for(definition.weight),
            method="hash",
            seed=settings.seed,
            rows=1,
            buckets=2,
            sparse=settings.sparse,
            groups=Groups(definition.groups, (), (), ()) if definition.groups else None,
        )
        draft = typed(empty, context.tables, context.environment.circumstances(), sql)
        form = self._form(draft, settings)
        head = replace(
            draft,
            families=families_of(form.seed, definition.classes),
            method=form.method,
            seed=form.seed,
            rows=form.rows,
            buckets=form.buckets,
            parameters=form.parameters,
        )
        refuse_large(replace(head, groups=None), context.settings.max_bytes, sql)
        return head, form

    def _settings(self) -> Settings:
        """The session's settings, with those of OPTIONS over them."""
        sql = self.statement.sql
        try:
            return self.context.settings.with_text(self.statement.options)
        except BadSetting as fault:
            raise BadSetting(fault.message, fault.code, sql, None, fault.hint) from fault

    def _check_method(self, definition: SketchDefinition) -> None:
        method, keys = self.statement.method, len(definition.keys)
        if method is None:
            return
        kind = KINDS.get(method)
        if kind is None or method == "total":
            known = ", ".join(m for m in KINDS if m != "total")
            raise self._refusal(
                f"there is no method {method} for kept sketches in this version", f"one of {known}"
            )
        least, most = kind.attributes
        if not max(least, 1) <= keys <= most:
            raise self._refusal(
                f"a {method} sketch has {_attributes(least)}, and {keys} {'are' if keys > 1 else 'is'} given",
                f"USING {'convolution' if keys > 1 else 'hash'}",
            )
        if definition.weight is not None and not kind.weighted:
            raise self._refusal(
                f"a {method} sketch counts distinct values: it keeps no sum", "FOR SUM(...) left out"
            )

    def _refusal(self, message: str, hint: str) -> UnsupportedQuery:
        span = self.statement.method_span
        place = None if span is None else (span.start, span.end)
        return UnsupportedQuery(message, "SKIMQL_UNKNOWN_METHOD", self.statement.sql, place, hint)

    def _form(self, draft: Head, settings: Settings) -> Form:
        """As the statement says; where it does not, as the first sketch of the class; else what is predicted best."""
        statement, made = self.statement, self._made_of_class(draft)
        first = min(made, key=lambda h: (h.created, h.name), default=None)
        sized = statement.size_bytes is not None or statement.accuracy.relative_error is not None
        sized = sized or bool({"rows", "buckets", "size_bytes"} & set(statement.options))
        notes: tuple[str, ...] = ()
        method = statement.method
        if first is not None:
            if "seed" not in statement.options:
                settings = replace(settings, seed=first.seed)
            like = self._method_like(first, draft)
            if like is not None and method in (None, like):
                form = self._like(draft, first, like, settings)
                if sized:
                    own = self._sized(draft, settings, like)
                    if not self._leaves_room(own, first, draft, settings.size_bytes):
                        note = f"of the method and seed of sketch {first.name}, the first of its class"
                        form = replace(own, notes=(note, *own.notes))
                return self._told_apart(form, made)
            notes = (f"of the seed of sketch {first.name}, the first of its class; it is by another method",)
        if method is None and len(draft.attributes) > 1:
            method = "convolution"
        if method is None and (not sized or statement.options):
            method = "hash"
        form = self._chosen(draft, settings) if method is None else self._sized(draft, settings, method)
        return self._told_apart(replace(form, notes=(*notes, *form.notes)), made)

    def _made_of_class(self, draft: Head) -> list[Head]:
        """The sketches that somebody made of those with a class of this one."""
        classes, method = {a.class_name for a in draft.attributes}, self.statement.method
        counts_values = method is not None and not KINDS[method].weighted
        return [
            h
            for h in self.context.catalog.heads()
            if h.made_by == "statement" and not h.group and h.name.lower() != draft.name.lower()
            if classes & {a.class_name for a in h.attributes} and h.kind.weighted != counts_values
        ]

    def _leaves_room(self, form: Form, first: Head, draft: Head, size_bytes: int | None) -> bool:
        """Whether the layout of the first sketch of a class is within what is asked: as small, or as accurate.

        What keeps keys is joined whatever its size.
        """
        statement = self.statement
        if first.kind.joint or not share_layout(form.method, first.method) or "seed" in statement.options:
            return False
        if {"rows", "buckets"} & set(statement.options):
            return False
        if statement.accuracy.relative_error is not None:
            return form.rows <= first.rows and form.buckets <= first.buckets
        asked = statement.size_bytes if statement.size_bytes is not None else size_bytes
        like = replace(form, parameters=first.parameters)
        return asked is not None and self._bytes(like, draft, first.rows, first.buckets) <= asked

    @staticmethod
    def _told_apart(form: Form, made: Sequence[Head]) -> Form:
        """The form, with a note on the sketches of its class with which it is not joined."""
        note = note_of_unlike(form.method, form.seed, form.rows, form.buckets, made)
        return replace(form, notes=(*form.notes, note)) if note else form

    def _like(self, draft: Head, first: Head, method: str, settings: Settings) -> Form:
        """The method, seed, size and dense keys of another sketch."""
        dense = None
        if method != first.method and (method == "sample_sketch" or first.method == "sample_sketch"):
            # A sketch of a table beyond: only the hashes are to be others' of its class.
            form = self._sized(draft, settings, method)
            return replace(form, notes=(f"of the seed of sketch {first.name}, the first of its class",))
        if first.method == "two_level":
            loaded = self.context.catalog.load(first.name, self.context.settings.max_bytes)
            dense = loaded.built[0].sketch.dense_keys if loaded.built else None  # type: ignore[union-attr]
        usual = (method in ("hash", "convolution"), first.seed) == (True, self.context.settings.seed)
        usual = usual and (first.rows, first.buckets) == _usual(settings)
        note = f"as sketch {first.name}, the first of its class: {method}, seed {settings.seed}"
        sparse = first.limit_bytes > 0 if "sparse" not in self.statement.options else settings.sparse
        parameters = self._sampled_key(draft) if method == "sample_sketch" else first.parameters
        return Form(
            method,
            settings.seed,
            first.rows,
            first.buckets,
            sparse,
            parameters,
            dense,
            () if usual else (note,),
        )

    def _sized(self, draft: Head, settings: Settings, method: str) -> Form:
        """The form of a method that the size or error asked for gives."""
        kind, error = KINDS[method], self.statement.accuracy.relative_error
        rows, buckets = _usual(settings)
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
            form = replace(form, rows=1, parameters=self._sampled_key(draft))
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
            return replace(form, rows=1, buckets=self._within(form, draft, size_bytes, 1, 1))
        if method == "distinct":
            from ...optimizer.distinct import level_buckets
            from ...optimizer.distinct_count import LEVELS

            least = 16
            form = replace(form, rows=LEVELS, buckets=level_buckets(buckets))
            return (
                form
                if asked is None
                else replace(form, buckets=self._within(form, draft, asked, LEVELS, least))
            )
        if method == "join_distinct":
            from ...optimizer.distinct import sample_size

            values, pairs = sample_size(buckets)
            form = replace(form, rows=values, buckets=pairs)
            if asked is not None:
                pairs = self._within(form, draft, asked, 2, 1)
                form = replace(form, rows=max(2, pairs // 64), buckets=pairs)
            return form
        if asked is None:
            return form
        if method == "skimmed":
            form = replace(form, parameters=_levels_within(dict(form.parameters), asked // 2 // weights))
        return replace(form, buckets=self._within(form, draft, asked, rows, 2))

    def _sampled_key(self, draft: Head) -> tuple[tuple[str, int], ...]:
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

    def _method_like(self, first: Head, draft: Head) -> str | None:
        """The method by which a sketch can be joined with another, or None if it cannot be by that method."""
        several, classes = len(draft.attributes) > 1, {a.class_name for a in draft.attributes}
        if first.method == "sample_sketch":
            if first.attributes[sampled_attribute(first)].class_name in classes:
                return "sample_sketch"
            return None if several else "hash"
        if first.method in ("hash", "convolution"):
            return "convolution" if several else "hash"
        least, most = first.kind.attributes
        return first.method if least <= len(draft.attributes) <= most else None

    def _sized_for_values(self, form: Form, error: float, settings: Settings) -> Form:
        confidence = self.statement.accuracy.confidence or settings.confidence
        if form.method == "distinct":
            from ...optimizer.distinct_count import LEVELS
            from ...sketches.distinct.level import LevelSpec

            return replace(form, rows=LEVELS, buckets=LevelSpec.for_error(error, confidence).buckets)
        from ...sketches.distinct.pair_sample import PairSampleSpec

        spec = PairSampleSpec.for_error(error, confidence)
        return replace(form, rows=spec.size, buckets=spec.capacity)

    def _within(self, form: Form, draft: Head, size_bytes: int, rows: int, least: int) -> int:
        """The most buckets with which all weights take `size_bytes` together.

        Raises
        ------
        BudgetExceeded
            If that is less than `least`; the message says how many bytes would do.
        """
        if self._bytes(form, draft, rows, least) > size_bytes:
            weights = len(draft.measures)
            raise BudgetExceeded(
                f"{size_bytes:,} bytes are too few for a {form.method} sketch with {weights} weights",
                sql=self.statement.sql,
                hint=f"SIZE {self._bytes(form, draft, rows, least)} or more; kilobytes before the interval says much",
            )
        fits, exceeds = least, 1 << 24
        while exceeds - fits > 1:
            middle = (fits + exceeds) // 2
            enough = self._bytes(form, draft, rows, middle) <= size_bytes
            fits, exceeds = (middle, exceeds) if enough else (fits, middle)
        return fits

    @staticmethod
    def _bytes(form: Form, draft: Head, rows: int, buckets: int) -> int:
        """The most bytes that all weights of a sketch take together."""
        kind, families = KINDS[form.method], families_of(form.seed, (a.class_name for a in draft.attributes))
        columns = len(draft.measures) if kind.joint else 1
        each = 1 if kind.joint else len(draft.measures)
        size = Size(families, rows, buckets, "int64", columns, 0, form.parameters)
        return each * kind.most_bytes(size)

    def _chosen(self, draft: Head, settings: Settings) -> Form:
        """What is predicted to be best for a join of the table with itself on its key."""
        from ..spark.session import SPARK_FAULTS

        try:
            source = Source(draft.table, self.context.tables.frame(draft.table), draft.filter)
            weights = weights_of(source, draft.weights, self.statement.sql)
            if any(w.dtype != "int64" for w in weights):
                return self._sized(draft, settings, "hash")
            form = self._predicted(draft, settings, None)
        except (*SPARK_FAULTS, BudgetExceeded):
            return self._sized(draft, settings, "hash")
        return form

    def _predicted(self, draft: Head, settings: Settings, method: str | None) -> Form:
        """The size, and without a method the method, that the planner finds for such a self-join."""
        taken = self._candidate(draft, settings, method)
        note: tuple[str, ...] = ()
        if method is None:
            width = taken.half_width(self.statement.accuracy.confidence or settings.confidence)
            note = (
                f"{taken.method}: predicted to be best, ±{width:.2g} of a join of {draft.table} with itself",
            )
        form = Form(taken.method, settings.seed, *_usual(settings), settings.sparse, notes=note)
        if taken.sample is None:
            return replace(form, rows=taken.rows, buckets=taken.buckets)
        dense, capacity = np.asarray(taken.sample.dense_keys[0], np.int64), taken.sample.capacities[0]
        form = replace(form, rows=1, buckets=max(capacity, 1))
        if taken.method == "two_level":
            dense = np.unique(dense)
            form = replace(form, parameters=(("dense", int(dense.size)),), dense=dense)
        size = self.statement.size_bytes
        # The planner counts the keys; totals and bounds take some words beside.
        return form if size is None else replace(form, buckets=self._within(form, draft, size, 1, 1))

    def _candidate(self, draft: Head, settings: Settings, method: str | None) -> Candidate:
        from ...optimizer.candidates.candidate import NoMethod
        from ...optimizer.candidates.enumerate import choose_method
        from ...optimizer.messages import tree_of
        from ...optimizer.objective import Objective
        from ..statistics.gather import gather

        context, asked = self.context, self.statement.accuracy
        size = self.statement.size_bytes if self.statement.size_bytes is not None else settings.size_bytes
        rows, buckets = _usual(settings)
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
        known = gather(context.spark, context.tables, query, context.statistics, context.listener)
        try:
            return choose_method(tree_of(query.graph), known, objective).taken
        except NoMethod as fault:
            raise BudgetExceeded(
                f"no kept sketch of {draft.table} is predicted to do: {fault}",
                sql=self.statement.sql,
                hint="a larger SIZE, or ERROR, or USING hash",
            ) from fault


def refuse_large(head: Head, most_bytes: int, sql: str) -> None:
    """Refuse to make what could not be loaded again."""
    if head.most_bytes > most_bytes:
        groups = "" if head.groups is None else f" with its {len(head.groups.values):,} groups"
        raise BudgetExceeded(
            f"sketch {head.name}{groups} may take {head.most_bytes:,} bytes, and skimql.max_bytes = {most_bytes:,}"
            " are allowed",
            "SKIMQL_MAX_BYTES",
            sql,
            hint="fewer buckets or rows, SIZE, or a larger skimql.max_bytes",
        )


def _usual(settings: Settings) -> tuple[int, int]:
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


def _attributes(number: int) -> str:
    return "one join attribute" if number == 1 else f"{number} attributes"
