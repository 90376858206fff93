"""Statements about kept sketches: CREATE, APPEND, REFRESH, SHOW, DESCRIBE, DROP, EXPORT and IMPORT."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...parser.syntax import (
    AppendSketch,
    Command,
    CreateSketch,
    DescribeSketch,
    DropSketch,
    ExportSketch,
    ImportSketch,
    RefreshSketch,
    ShowSketches,
)
from ..catalog.catalog import Catalog
from ..catalog.file import StoredSketch, decode, encode
from ..catalog.form import Head
from ..catalog.secrets import redacted
from ..results.answer import Answer
from ..results.columns import told_types
from .definition import (
    refuse_unstable,
    stored,
)
from .describe import describe_rows, show_rows, told
from .export import read_file, write_new
from .lineage import table_lineage
from .names import find_head, is_taken, place_of, refuse_member, taken_name

if TYPE_CHECKING:
    from ..context import Context

# Bytes that a file may have beside its arrays.
MOST_HEAD = 64 << 20


@dataclass
class SketchStatements:
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
            case AppendSketch() | RefreshSketch():
                # Late, as what builds is below: SHOW and DESCRIBE load neither Spark nor sketches.
                from .appending import Appending

                appending = Appending(self.context)
                if isinstance(statement, AppendSketch):
                    return appending.append(statement)
                return appending.refresh(statement)
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
        from ..execution.explanation import explained
        from .building import Source, built_on
        from .creating import Creation, refuse_large

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
        context, sql, started = self.context, statement.sql, time.perf_counter()
        head, form = Creation(context, statement).drafted()
        frame = context.tables.frame(head.table)
        reading = table_lineage(context.tables, head.table, frame)
        source = Source(head.table, frame, head.filter)
        most = context.settings.max_groups
        groups, built = built_on(context.spark, sql, head, source, most, context.listener, form.dense)
        zoned = head.zoned or (groups is not None and "timestamp" in groups.types)
        with explained(sql, head.table, head.attributes):
            sketch = stored(replace(head, lineage=(reading,), groups=groups, zoned=zoned), built)
        refuse_large(sketch.head, context.settings.max_bytes, sql)
        context.environment.remember(head.table)
        if statement.or_replace:
            self.catalog.put(sketch, forget=(name,))
        else:
            self.catalog.put(sketch, based_on={name: None})
        return told(sketch.head, time.perf_counter() - started, *form.notes)

    def _drop(self, statement: DropSketch) -> Answer:
        name = statement.name.text
        if statement.if_exists and not is_taken(self.catalog, name):
            told = (f"there is no sketch {name}",)
            return Answer(("sketch",), (), exact=True, notes=told, types=told_types(("sketch",), (), ()))
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
        write_new(statement.path.text, data, statement.sql, place_of(statement.path))
        return Answer(("sketch", "path", "bytes"), ((head.name, statement.path.text, len(data)),), exact=True)

    def _import(self, statement: ImportSketch) -> Answer:
        name, started = statement.name.text, time.perf_counter()
        if is_taken(self.catalog, name):
            raise taken_name(statement.sql, statement.name, f"DROP SKETCH {name}, or another name")
        path, place = statement.path.text, place_of(statement.path)
        most = self.context.settings.max_bytes
        sketch = decode(read_file(path, most + MOST_HEAD, statement.sql, place), redacted(path), most)
        _refuse_foreign_expressions(sketch.head, path, statement.sql, place)
        untrusted = "" if statement.trusted else redacted(path)
        sketch = replace(sketch, head=replace(sketch.head, name=name, group="", imported_from=untrusted))
        self.context.environment.remember_imported(sketch.head)
        self.catalog.put(sketch, based_on={name: None})
        return told(sketch.head, time.perf_counter() - started, *_named_sources(sketch.head))

    def _loaded(self, name: str) -> StoredSketch:
        return self.catalog.load(name, self.context.settings.max_bytes)


def _refuse_foreign_expressions(head: Head, path: str, sql: str, place: tuple[int, int]) -> None:
    """Refuse a sketch whose expressions do more than compute."""
    from ...parser.foreign import refuse_foreign, refuse_foreign_type

    expressions = [
        head.filter,
        *(k for a in head.attributes for k in a.keys),
        *(w.expression for w in head.weights),
        *(text for e in head.lineage for text in (e.condition, e.times)),
        *(() if head.groups is None else head.groups.expressions),
    ]
    try:
        for text in dict.fromkeys(expressions):
            if text is not None:
                refuse_foreign(text)
        types = [t for a in head.attributes for t in a.key_types]
        for name in dict.fromkeys([*types, *(() if head.groups is None else head.groups.types)]):
            refuse_foreign_type(name)
        refuse_unstable("", expressions, frozenset)
    except UnsupportedQuery as fault:
        raise UnsupportedQuery(
            f"{path}: {fault.message}", fault.code, sql, place, "a sketch made here"
        ) from fault


def _named_sources(head: Head) -> tuple[str, ...]:
    """What an imported sketch says that it has read, as a note."""
    sources = [f"{'table' if e.is_table else 'path'} {e.source}" for e in head.lineage]
    if not sources:
        return ()
    read = "" if not head.imported_from else "; none of it is read before IMPORT ... TRUSTED"
    return (f"it says that it is made of {', '.join(dict.fromkeys(sources))}{read}",)
