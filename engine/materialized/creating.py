"""CREATE SKETCH: what is built, as the statement asks, or as the sketches of its class are, or as is predicted best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BudgetExceeded, UnsupportedQuery
from ...optimizer.methods import METHODS
from ...optimizer.plan import Attribute
from ...parser.sketch import SketchDefinition, resolve_sketch
from ...parser.syntax import CreateSketch
from ..catalog.form import Groups, Head
from ..catalog.kinds.registry import KINDS
from ..settings import BadSetting, Settings
from .building import families_of
from .definition import blank, refuse_unstable, typed, weights_for
from .dense_keys import DenseKeys, settings_in
from .following import note_of_unlike, share_layout
from .form_sizing import Form, FormSizing, usual_size
from .sampled_answers import sampled_attribute

if TYPE_CHECKING:
    from ..context import Context

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Creation:
    """One CREATE SKETCH of a session."""

    context: Context
    statement: CreateSketch

    @property
    def _sizing(self) -> FormSizing:
        return FormSizing(self.context, self.statement)

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
            return self.context.settings.with_text(settings_in(self.statement.options))
        except BadSetting as fault:
            raise BadSetting(fault.message, fault.code, sql, None, fault.hint) from fault

    def _check_method(self, definition: SketchDefinition) -> None:
        method, keys = self.statement.method, len(definition.keys)
        if method is None:
            return
        if not METHODS[method].stored:
            raise self._refusal(
                f"{method} keeps nothing: it is {METHODS[method].what}", "another method, or no USING"
            )
        kind = KINDS[method]
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
        first = self._first(made, draft)
        sized = statement.size_bytes is not None or statement.accuracy.relative_error is not None
        sized = sized or bool({"rows", "buckets", "size_bytes"} & set(statement.options))
        notes: tuple[str, ...] = ()
        method, dense = statement.method, DenseKeys(self._sizing)
        if first is not None:
            if "seed" not in statement.options:
                settings = replace(settings, seed=first.seed)
            like = self._method_like(first, draft)
            if like is not None and method in (None, like):
                form = self._like(draft, first, like, settings)
                if sized:
                    own = self._sizing.sized(draft, settings, like)
                    if not self._leaves_room(own, first, draft, settings.size_bytes):
                        note = f"of the method and seed of sketch {first.name}, the first of its class"
                        form = replace(own, notes=(note, *own.notes))
                return self._told_apart(dense.beside(form, draft, settings), made)
            notes = (f"of the seed of sketch {first.name}, the first of its class; it is by another method",)
        if method is None and len(draft.attributes) > 1:
            method = "convolution"
        if method is None and (not sized or statement.options):
            method = "hash"
        form = (
            self._sizing.chosen(draft, settings)
            if method is None
            else self._sizing.sized(draft, settings, method)
        )
        form = dense.beside(replace(form, notes=(*notes, *form.notes)), draft, settings)
        return self._told_apart(form, made)

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

    def _first(self, made: Sequence[Head], draft: Head) -> Head | None:
        """The sketch that a new one follows: the first of its class; beyond a sampled table the first hash sketch."""
        ordered = sorted(made, key=lambda h: (h.created, h.name))
        if (
            ordered
            and ordered[0].method == "sample_sketch"
            and self._method_like(ordered[0], draft) == "hash"
        ):
            ordered.sort(key=lambda h: h.method != "hash")
        return ordered[0] if ordered else None

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
        return asked is not None and self._sizing.bytes_of(like, draft, first.rows, first.buckets) <= asked

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
            form = self._sizing.sized(draft, settings, method)
            return replace(form, notes=(f"of the seed of sketch {first.name}, the first of its class",))
        if method == first.method and dict(first.parameters).get("dense"):
            loaded = self.context.catalog.load(first.name, self.context.settings.max_bytes)
            dense = loaded.built[0].sketch.dense_keys if loaded.built else None  # type: ignore[union-attr]
        usual = (method in ("hash", "convolution"), first.seed) == (True, self.context.settings.seed)
        usual = usual and (first.rows, first.buckets) == usual_size(settings)
        note = f"as sketch {first.name}, the first of its class: {method}, seed {settings.seed}"
        sparse = first.limit_bytes > 0 if "sparse" not in self.statement.options else settings.sparse
        parameters = first.parameters if method == first.method else ()
        if method == "sample_sketch":
            parameters = self._sizing.sampled_key(draft)
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


def _attributes(number: int) -> str:
    return "one join attribute" if number == 1 else f"{number} attributes"
