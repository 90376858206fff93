"""Statements about kept sketches: CREATE, APPEND, REFRESH, SHOW, DESCRIBE, DROP, EXPORT and IMPORT."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import BudgetExceeded, DataError, SkimqlError, UnknownName, UnsupportedQuery
from ...optimizer.plan import Attribute
from ...parser.join_graph import Span, TableSchema
from ...parser.sketch import resolve_append, resolve_sketch
from ...parser.syntax import (
    AppendSketch,
    Command,
    CreateSketch,
    DescribeSketch,
    DropSketch,
    ExportSketch,
    ImportSketch,
    Part,
    RefreshSketch,
    ShowSketches,
)
from ..catalog.catalog import Catalog
from ..catalog.file import StoredSketch, decode, encode
from ..catalog.form import Eaten, Head, Measure
from ..catalog.secrets import redacted
from ..results.answer import Answer
from ..settings import BadSetting, Settings
from ..sources.tables import schema_of
from ..synopses import Built, Tally
from .definition import (
    OneFrame,
    both,
    build_synopses,
    changes,
    now,
    refuse_unstable,
    stored,
    synopses_of,
    typed,
    weights_for,
)
from .describe import describe_rows, show_rows, told
from .export import read_file, write_new
from .lineage import appended_elsewhere, eaten, eaten_table, refuse_twice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..context import Context

# Bytes that a file may have beside its arrays.
MOST_HEAD = 64 << 20

# Sketches of any tables that two statements make can be multiplied.
METHODS = ("hash", "convolution")

# How APPEND FROM 'path' names its source to the parser.
_APPENDED = "appended"


@dataclass
class Keeper:
    """Runs the statements about kept sketches for a session."""

    context: Context

    @property
    def catalog(self) -> Catalog:
        """Where the session keeps its sketches."""
        return self.context.catalog

    def run(self, statement: Command) -> Answer:
        """Run one of the statements of this module.

        Raises
        ------
        SkimqlError
            With the place in the statement; whatever fails, the catalog is as it was.
        """
        match statement:
            case CreateSketch():
                return self._create(statement)
            case AppendSketch():
                return self._append(statement)
            case RefreshSketch():
                return self._refresh(statement)
            case ShowSketches():
                return show_rows(self.catalog, statement.pattern)
            case DescribeSketch():
                head = find_head(self.catalog, statement.sql, statement.name)
                return describe_rows(self.catalog, head, statement.extended)
            case DropSketch():
                return self._drop(statement)
            case ExportSketch():
                return self._export(statement)
            case ImportSketch():
                return self._import(statement)
        raise UnsupportedQuery(
            f"{type(statement).__name__} statements are not supported in this version",
            "SKIMQL_UNSUPPORTED_STATEMENT",
            statement.sql,
        )

    def _create(self, statement: CreateSketch) -> Answer:
        name = statement.name.text
        refuse_member(self.catalog, statement.sql, statement.name)
        if statement.or_replace and self.catalog.workload(name) is not None:
            raise taken_name(statement.sql, statement.name, f"DROP SKETCH {name}, or another name")
        if is_taken(self.catalog, name):
            if statement.if_not_exists:
                return Answer(
                    ("sketch",), ((name,),), exact=True, notes=(f"there is a sketch {name} already",)
                )
            if not statement.or_replace:
                raise taken_name(statement.sql, statement.name, f"CREATE OR REPLACE SKETCH {name} ...")
        definition = resolve_sketch(statement, self.context.tables)
        settings = _settings(statement, self.context.settings)
        expressions = (definition.filter, definition.weight, *definition.keys)
        refuse_unstable(statement.sql, expressions, self.context.memory.own_functions)
        assert settings.rows is not None, "sized"
        made = now()
        draft = Head(
            name=name,
            table=definition.table,
            filter=definition.filter,
            attributes=tuple(
                Attribute((k,), (), c) for k, c in zip(definition.keys, definition.classes, strict=True)
            ),
            key_types=(),
            families=(),
            method="hash" if len(definition.keys) == 1 else "convolution",
            seed=settings.seed,
            rows=settings.rows,
            buckets=settings.buckets,
            limit_bytes=int(settings.sparse),
            measures=tuple(
                Measure(w, "int64", 1.0, Tally(), True, 0) for w in weights_for(definition.weight)
            ),
            columns=(),
            ansi=True,
            time_zone="",
            zoned=False,
            eaten=(),
            created=made,
            updated=made,
        )
        _refuse_large(draft, self.context.settings.max_bytes, statement.sql)
        frame = self.context.tables.frame(draft.table)
        head = typed(draft, self.context.tables, self.context.memory.circumstances(), statement.sql)
        helping = eaten_table(self.context.tables, draft.table, frame)
        started = time.perf_counter()
        built = self._built(statement.sql, head, head.table, head.filter, frame)
        sketch = stored(replace(head, eaten=(helping,)), built)
        self.context.memory.remember(head.table)
        if statement.or_replace:
            self.catalog.put(sketch, forget=(name,))
        else:
            self.catalog.put(sketch, based_on={name: None})
        return told(sketch.head, time.perf_counter() - started)

    def _append(self, statement: AppendSketch) -> Answer:
        head = find_head(self.catalog, statement.sql, statement.name)
        refuse_member(self.catalog, statement.sql, statement.name)
        _refuse_untrusted(head, statement.sql, statement.name)
        old, before = self._loaded(head.name), self._file_of(head.name)
        head = old.head
        table, frame, condition = self._appended(statement)
        refuse_unstable(statement.sql, (condition,), self.context.memory.own_functions)
        place = _place(statement.path or statement.table[-1])
        _refuse_other_types(head, schema_of(table, frame), statement.sql, place)
        if statement.path is None:
            helping = eaten_table(self.context.tables, table, frame, condition)
        else:
            helping = eaten(statement.path.text, False, condition, frame)
        refuse_twice(head, helping, frame, statement.sql, place)
        started = time.perf_counter()
        new = self._built(statement.sql, head, table, both(head.filter, condition), frame)
        merged = _merged(old.built, new, head.name, statement.sql)
        sketch = stored(replace(head, eaten=(*head.eaten, helping), updated=now()), merged)
        self.catalog.put(sketch, based_on={head.name: before})
        added = f"{new[0].tally.tuples:,} tuples added"
        return told(sketch.head, time.perf_counter() - started, added)

    def _refresh(self, statement: RefreshSketch) -> Answer:
        head = find_head(self.catalog, statement.sql, statement.name)
        refuse_member(self.catalog, statement.sql, statement.name)
        _refuse_untrusted(head, statement.sql, statement.name)
        sql, started, before = statement.sql, time.perf_counter(), self._file_of(head.name)
        frame = self.context.memory.reread(head.table)
        said = changes(head.columns, self.context.tables[head.table].columns)
        try:
            sketch = self._rebuilt(head, frame, sql)
        except SkimqlError as fault:
            if not said:
                raise
            raise DataError(
                f"sketch {head.name} cannot be built on {head.table} as it is now: {'; '.join(said)}",
                "SKIMQL_SCHEMA_CHANGED",
                sql,
                _place(statement.name),
                f"CREATE OR REPLACE SKETCH {head.name} ON {head.table} (...)",
            ) from fault
        self.context.memory.remember(head.table)
        self.catalog.put(sketch, based_on={head.name: before})
        return told(
            sketch.head, time.perf_counter() - started, *(f"{head.table} has changed: {s}" for s in said)
        )

    def _rebuilt(self, head: Head, frame: DataFrame, sql: str) -> StoredSketch:
        """The sketch built anew on its whole table, and on what was appended from elsewhere."""
        fresh = typed(head, self.context.tables, self.context.memory.circumstances(), sql)
        helpings = [eaten_table(self.context.tables, head.table, frame)]
        built = self._built(sql, fresh, head.table, fresh.filter, frame)
        for earlier in appended_elsewhere(head, helpings[0]):
            source = self._frame_at(earlier)
            helpings.append(eaten(earlier.source, earlier.is_table, earlier.condition, source))
            more = self._built(sql, fresh, _APPENDED, both(fresh.filter, earlier.condition), source)
            built = _merged(built, more, head.name, sql)
        return stored(replace(fresh, eaten=tuple(helpings), updated=now()), built)

    def _drop(self, statement: DropSketch) -> Answer:
        name = statement.name.text
        if statement.if_exists and not is_taken(self.catalog, name):
            return Answer(("sketch",), (), exact=True, notes=(f"there is no sketch {name}",))
        if self.catalog.workload(name) is None:
            find_head(self.catalog, statement.sql, statement.name)
            refuse_member(self.catalog, statement.sql, statement.name)
        self.catalog.put(forget=(name,))
        return Answer(("sketch",), ((name,),), exact=True, notes=("dropped",))

    def _export(self, statement: ExportSketch) -> Answer:
        head = find_head(self.catalog, statement.sql, statement.name)
        if head.cell:
            refuse_member(self.catalog, statement.sql, statement.name)
        data = encode(self._loaded(head.name))
        write_new(statement.path.text, data, statement.sql, _place(statement.path))
        return Answer(("sketch", "path", "bytes"), ((head.name, statement.path.text, len(data)),), exact=True)

    def _import(self, statement: ImportSketch) -> Answer:
        name, started = statement.name.text, time.perf_counter()
        if is_taken(self.catalog, name):
            raise taken_name(statement.sql, statement.name, f"DROP SKETCH {name}, or another name")
        path, place = statement.path.text, _place(statement.path)
        most = self.context.settings.max_bytes
        sketch = decode(read_file(path, most + MOST_HEAD, statement.sql, place), redacted(path), most)
        _refuse_foreign_expressions(sketch.head, path, statement.sql, place)
        untrusted = "" if statement.trusted else redacted(path)
        sketch = replace(sketch, head=replace(sketch.head, name=name, group="", imported_from=untrusted))
        self.context.memory.remember_imported(sketch.head)
        self.catalog.put(sketch, based_on={name: None})
        return told(sketch.head, time.perf_counter() - started, *_named_sources(sketch.head))

    def _loaded(self, name: str) -> StoredSketch:
        return self.catalog.load(name, self.context.settings.max_bytes)

    def _file_of(self, name: str) -> str | None:
        entry = self.catalog.entry(name)
        return None if entry is None else entry.file

    def _built(
        self, sql: str, head: Head, table: str, condition: str | None, frame: DataFrame
    ) -> tuple[Built, ...]:
        synopses = synopses_of(head, table, condition)
        frames = OneFrame(table, frame)
        return build_synopses(self.context.spark, sql, head.seed, synopses, frames, self.context.listener)

    def _appended(self, statement: AppendSketch) -> tuple[str, DataFrame, str | None]:
        """What APPEND reads: a name for it, its DataFrame, and the condition on it."""
        tables = self.context.tables
        if statement.path is None:
            table, condition = resolve_append(statement, tables)
            # Spark lists a table's files once: what has come since would be missed.
            return table, self.context.memory.reread(table), condition
        frame = tables.read(_APPENDED, statement.path.text, {})
        named = replace(statement, table=(Part(_APPENDED, statement.path.span),))
        schema: dict[str, TableSchema] = {_APPENDED: schema_of(_APPENDED, frame)}
        return _APPENDED, frame, resolve_append(named, schema)[1]

    def _frame_at(self, earlier: Eaten) -> DataFrame:
        if earlier.is_table:
            return self.context.tables.frame(earlier.source)
        return self.context.tables.read(_APPENDED, earlier.source, {})


def find_head(catalog: Catalog, sql: str, name: Part) -> Head:
    """The head of a sketch that a statement names; UnknownName with the near names otherwise."""
    entry = catalog.entry(name.text)
    if entry is None:
        import difflib

        known = sorted(e.name for e in catalog.manifest.sketches.values())
        near = difflib.get_close_matches(name.text, known, 3) or known[:10]
        hint = ", ".join(near) or "CREATE SKETCH ..."
        raise UnknownName(f"there is no sketch {name.text}", sql=sql, span=_place(name), hint=hint)
    return entry.head or catalog.load(name.text).head


def is_taken(catalog: Catalog, name: str) -> bool:
    """Whether a sketch or a set of sketches has the name."""
    return catalog.entry(name) is not None or catalog.workload(name) is not None


def taken_name(sql: str, name: Part, hint: str) -> UnsupportedQuery:
    """The error for a name that is taken."""
    return UnsupportedQuery(
        f"there are sketches {name.text} already", "SKIMQL_SKETCHES_EXIST", sql, _place(name), hint
    )


def refuse_member(catalog: Catalog, sql: str, name: Part) -> None:
    """Refuse to change one of the sketches that were planned and built together."""
    low = name.text.lower()
    entry = catalog.entry(low)
    groups = [w.name for w in catalog.manifest.workloads.values() if low in {s.lower() for s in w.sketches}]
    if entry is not None and entry.head is not None and entry.head.group:
        groups.append(entry.head.group)
    if groups:
        raise UnsupportedQuery(
            f"sketch {name.text} is one of the sketches {groups[0]}, which are kept together",
            "SKIMQL_SKETCH_OF_GROUP",
            sql,
            _place(name),
            f"CREATE OR REPLACE SKETCHES {_quoted(groups[0])} ..., DROP SKETCH {_quoted(groups[0])}",
        )


def _refuse_large(head: Head, most_bytes: int, sql: str) -> None:
    """Refuse to make what could not be loaded again."""
    needed = 8 * head.rows * head.buckets * len(head.measures)
    if needed > most_bytes:
        raise BudgetExceeded(
            f"sketch {head.name} may take {needed:,} bytes, and skimql.max_bytes = {most_bytes:,} are allowed",
            "SKIMQL_MAX_BYTES",
            sql,
            hint="fewer buckets or rows, SIZE, or a larger skimql.max_bytes",
        )


def _refuse_untrusted(head: Head, sql: str, name: Part) -> None:
    """Refuse to read what somebody else's file names, or to compute what it says, before the user has said so."""
    if head.imported_from:
        read = ", ".join(dict.fromkeys(e.source for e in head.eaten)) or head.table
        quoted = head.imported_from.replace("'", "''")
        raise UnsupportedQuery(
            f"sketch {head.name} was imported from {head.imported_from} without TRUSTED; it says that it is made of"
            f" {read}",
            "SKIMQL_NOT_TRUSTED",
            sql,
            _place(name),
            f"DROP SKETCH {_quoted(name.text)}; IMPORT SKETCH {_quoted(name.text)} FROM '{quoted}' TRUSTED",
        )


def _refuse_foreign_expressions(head: Head, path: str, sql: str, place: tuple[int, int]) -> None:
    """Refuse a sketch whose expressions do more than compute."""
    from ...parser.foreign import refuse_foreign, refuse_foreign_type

    expressions = [
        head.filter,
        *(k for a in head.attributes for k in a.keys),
        *(w.expression for w in head.weights),
        *(e.condition for e in head.eaten),
    ]
    try:
        for text in dict.fromkeys(expressions):
            if text is not None:
                refuse_foreign(text)
        for name in dict.fromkeys(t for a in head.attributes for t in a.key_types):
            refuse_foreign_type(name)
        refuse_unstable("", expressions, frozenset)
    except UnsupportedQuery as fault:
        raise UnsupportedQuery(
            f"{path}: {fault.message}", fault.code, sql, place, "a sketch made here"
        ) from fault


def _named_sources(head: Head) -> tuple[str, ...]:
    """What an imported sketch says that it has read, as a note."""
    sources = [f"{'table' if e.is_table else 'path'} {e.source}" for e in head.eaten]
    if not sources:
        return ()
    read = "" if not head.imported_from else "; none of it is read before IMPORT ... TRUSTED"
    return (f"it says that it is made of {', '.join(dict.fromkeys(sources))}{read}",)


def _settings(statement: CreateSketch, session: Settings) -> Settings:
    """The session's settings, then OPTIONS and the clauses; rows known, and buckets those of each sketch of the set."""
    several = len(statement.keys) > 1
    if statement.method is not None and (
        statement.method not in METHODS or (statement.method == "hash" and several)
    ):
        raise UnsupportedQuery(
            "a hash sketch has one join attribute"
            if statement.method == "hash"
            else f"there is no method {statement.method} for kept sketches in this version",
            "SKIMQL_UNKNOWN_METHOD",
            statement.sql,
            hint="USING convolution" if several else "one of " + ", ".join(METHODS),
        )
    try:
        settings = session.with_text(statement.options)
        sized = _sized(statement, settings)
    except BadSetting as fault:
        raise BadSetting(fault.message, fault.code, statement.sql, None, fault.hint) from fault
    assert sized.rows is not None, "sized"
    nbytes = 8 * sized.rows * sized.buckets * len(weights_for("x" if statement.weight else None))
    if nbytes > settings.max_bytes:
        raise BudgetExceeded(
            f"the sketch may take {nbytes / (1 << 20):,.0f} MB, more than skimql.max_bytes = "
            f"{settings.max_bytes / (1 << 20):,.0f} MB",
            "SKIMQL_MAX_BYTES",
            statement.sql,
            hint="fewer buckets, SIZE, or a larger skimql.max_bytes",
        )
    return sized


def _sized(statement: CreateSketch, settings: Settings) -> Settings:
    from ...optimizer.choose import buckets_within
    from ...sketches.intervals.interval import rows_for

    asked = statement.accuracy
    if asked.relative_error is not None:
        from ...sketches.joins.sizing import predicted_size

        # Of a join of the sketch with itself, whatever the data: a row's variance is (3^k - 1) F2^2 / buckets at most.
        variance = float(3 ** len(statement.keys) - 1)
        size = predicted_size(variance, 1.0, asked.relative_error, asked.confidence or settings.confidence)
        return replace(settings, rows=size.rows, buckets=max(2, size.columns))
    rows = settings.rows or rows_for(settings.confidence)
    size_bytes = statement.size_bytes if statement.size_bytes is not None else settings.size_bytes
    if size_bytes is None:
        return replace(settings, rows=rows)
    sketches = len(weights_for("x" if statement.weight else None))
    return replace(settings, rows=rows, buckets=buckets_within(sketches, rows, size_bytes, statement.sql))


def _merged(old: Sequence[Built], new: Sequence[Built], name: str, sql: str) -> tuple[Built, ...]:
    """The sketches of both together, as new values."""
    merged = tuple(replace(b, sketch=b.linear.copy(), tally=replace(b.tally)) for b in old)
    for mine, theirs in zip(merged, new, strict=True):
        if (mine.scale, mine.linear.spec) != (theirs.scale, theirs.linear.spec):
            raise DataError(
                f"the summed values are not of the type of those in sketch {name}",
                "SKIMQL_OTHER_TYPE",
                sql,
                hint="a view that casts them",
            )
        try:
            mine.linear.merge(theirs.linear)
        except OverflowError as fault:
            raise DataError(f"a sum in sketch {name} leaves 64 bits", "SKIMQL_OVERFLOW", sql) from fault
        mine.tally.add(theirs.tally)
    return merged


def _refuse_other_types(head: Head, schema: TableSchema, sql: str, place: tuple[int, int]) -> None:
    """Refuse to append from columns of other types: their equal values could have unequal keys."""
    mine = {c.name.lower(): c.type for c in head.columns}
    used = " ".join(
        [*(k for a in head.attributes for k in a.keys), *(w.expression or "" for w in head.weights)]
    )
    for column in schema.columns:
        name = column.name.lower()
        if f"`{name}`" in used.lower() and mine.get(name) not in (None, column.type):
            raise DataError(
                f"column {column.name} is {column.type}, and was {mine[name]} in what sketch {head.name} has",
                "SKIMQL_OTHER_TYPE",
                sql,
                place,
                "a view that casts it",
            )
    missing = [
        c.name
        for c in head.columns
        if f"`{c.name.lower()}`" in used.lower()
        and c.name.lower() not in {s.name.lower() for s in schema.columns}
    ]
    if missing:
        raise UnknownName(
            f"{schema.name} has no column {missing[0]}, which sketch {head.name} reads",
            "SKIMQL_UNKNOWN_COLUMN",
            sql,
            place,
            ", ".join(c.name for c in schema.columns),
        )


def _quoted(name: str) -> str:
    """A name as a statement has it: in backticks where it is no plain word."""
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def _place(part: Part) -> tuple[int, int]:
    span: Span = part.span
    return span.start, span.end
