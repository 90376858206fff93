"""APPEND SKETCH and REFRESH SKETCH: what is added, deleted, merged in, or built anew."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError, SkimqlError, UnknownName, UnsupportedQuery
from ...parser.join_graph import TableSchema
from ...parser.sketch import Appended, resolve_append
from ...parser.syntax import AppendSketch, Part, RefreshSketch
from ..catalog.file import StoredSketch
from ..catalog.form import Groups, Head, Lineage
from ..execution.explanation import explained
from ..results.answer import Answer
from ..sources.environment import Circumstances
from ..sources.schemas import schema_of
from ..sources.settings_followed import ANSI, TIME_ZONE
from ..synopses import Built
from .building import Source, aligned, built_on, merged
from .creating import refuse_large
from .definition import both, changes, columns_read, now, refuse_unstable, stored, typed
from .describe import told
from .lineage import (
    appended_elsewhere,
    counted_otherwise,
    lineage_of,
    refuse_same,
    refuse_twice,
    table_lineage,
)
from .names import find_head, place_of, refuse_member, refuse_untrusted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..context import Context

# How APPEND FROM 'path' names its source to the parser.
APPENDED = "appended"


@dataclass(frozen=True)
class Appending:
    """Runs APPEND and REFRESH for a session."""

    context: Context

    def append(self, statement: AppendSketch) -> Answer:
        """Add what a table, a path or another sketch has; tuples count as often as DELETES WHEN or WEIGHT says."""
        sql, catalog = statement.sql, self.context.catalog
        head = find_head(catalog, sql, statement.name)
        refuse_member(catalog, sql, statement.name)
        refuse_untrusted(head, sql, statement.name)
        started, before = time.perf_counter(), self._file_of(head.name)
        notes: tuple[str, ...]
        old = self._loaded(head.name)
        if statement.other is not None:
            sketch = self._with(old, statement.other, sql)
            notes = (
                f"{sketch.head.tuples - old.head.tuples:,} tuples of sketch {statement.other.text} added",
            )
        else:
            sketch = self._appended(old, statement)
            notes = (_changed(old.head, sketch.head), *counted_otherwise(sketch.head))
        refuse_large(sketch.head, self.context.settings.max_bytes, sql)
        catalog.put(sketch, based_on={head.name: before})
        return told(sketch.head, time.perf_counter() - started, *notes)

    def refresh(self, statement: RefreshSketch) -> Answer:
        """Build a sketch anew on its whole table, and on what was appended from elsewhere."""
        sql, catalog = statement.sql, self.context.catalog
        head = find_head(catalog, sql, statement.name)
        refuse_member(catalog, sql, statement.name)
        refuse_untrusted(head, sql, statement.name)
        started, before = time.perf_counter(), self._file_of(head.name)
        frame = self.context.environment.reread(head.table)
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
                place_of(statement.name),
                f"CREATE OR REPLACE SKETCH {head.name} ON {head.table} (...)",
            ) from fault
        self.context.environment.remember(head.table)
        catalog.put(sketch, based_on={head.name: before})
        return told(
            sketch.head, time.perf_counter() - started, *(f"{head.table} has changed: {s}" for s in said)
        )

    def _appended(self, old: StoredSketch, statement: AppendSketch) -> StoredSketch:
        head, sql = old.head, statement.sql
        refuse_other_circumstances(
            head, self.context.environment.circumstances(), sql, place_of(statement.name)
        )
        read, frame = self._read(statement)
        refuse_unstable(sql, (read.filter, read.times), self.context.environment.own_functions)
        place = place_of(statement.path or statement.table[-1])
        _refuse_other_types(head, schema_of(read.table, frame), sql, place)
        if statement.path is None:
            reading = table_lineage(self.context.tables, read.table, frame, read.filter)
        else:
            reading = lineage_of(statement.path.text, False, read.filter, frame)
        reading = replace(reading, times=read.times)
        refuse_twice(head, reading, frame, sql, place)
        source = Source(read.table, frame, both(head.filter, read.filter), read.times)
        sketch = self._added(old, source, sql)
        lineage_now = (*head.lineage, reading)
        return replace(sketch, head=replace(sketch.head, lineage=lineage_now, updated=now()))

    def _with(self, old: StoredSketch, other: Part, sql: str) -> StoredSketch:
        """Two sketches of one definition as one."""
        head = old.head
        theirs = find_head(self.context.catalog, sql, other)
        unlike = differences(head, theirs)
        if unlike:
            raise UnsupportedQuery(
                f"sketches {head.name} and {theirs.name} are not of one definition: {'; '.join(unlike)}",
                "SKIMQL_OTHER_DEFINITION",
                sql,
                place_of(other),
                f"CREATE OR REPLACE SKETCH {theirs.name} ... as {head.name} is defined",
            )
        refuse_same(head, theirs, sql, place_of(other))
        new = self._loaded(theirs.name)
        mine, added = (
            getattr(s.built[0].sketch, "dense_keys", None) if s.built else None for s in (old, new)
        )
        if mine is not None and added is not None and not np.array_equal(mine, added):
            raise UnsupportedQuery(
                f"sketches {head.name} and {theirs.name} are not of one definition: they count other dense keys",
                "SKIMQL_OTHER_DEFINITION",
                sql,
                place_of(other),
                f"CREATE OR REPLACE SKETCH {theirs.name} ...: it takes the dense keys of the first of its class",
            )
        sketch = self._merged(old, new.head.groups, new.built, sql)
        return replace(
            sketch,
            head=replace(
                sketch.head,
                lineage=(*head.lineage, *theirs.lineage),
                updated=now(),
                imported_from=head.imported_from or theirs.imported_from,
            ),
        )

    def _added(self, old: StoredSketch, source: Source, sql: str) -> StoredSketch:
        """A sketch and the tuples of a source together."""
        dense: Any = getattr(old.built[0].sketch, "dense_keys", None) if old.built else None
        groups, new = built_on(
            self.context.spark,
            sql,
            old.head,
            source,
            self.context.settings.max_groups,
            self.context.listener,
            dense,
        )
        return self._merged(old, groups, new, sql)

    def _merged(
        self, old: StoredSketch, groups: Groups | None, new: tuple[Built, ...], sql: str
    ) -> StoredSketch:
        head = old.head
        if head.groups is None or groups is None:
            with explained(sql, head.table, head.attributes):
                return stored(head, merged(old.built, new, head, sql))
        if head.groups.types != groups.types and groups.values and head.groups.values:
            raise DataError(
                f"the groups are of types {', '.join(groups.types)}, and were {', '.join(head.groups.types)} in"
                f" sketch {head.name}",
                "SKIMQL_OTHER_TYPE",
                sql,
                hint="a view that casts them",
            )
        values = tuple(dict.fromkeys((*head.groups.values, *groups.values)))
        types = head.groups.types if head.groups.values else groups.types
        both_groups = replace(head.groups, values=values, types=types, parts=())
        mine = aligned(head.groups, old.built, values, head)
        theirs = aligned(groups, new, values, head)
        with explained(sql, head.table, head.attributes):
            return stored(replace(head, groups=both_groups), merged(mine, theirs, head, sql))

    def _rebuilt(self, head: Head, frame: DataFrame, sql: str) -> StoredSketch:
        fresh = typed(head, self.context.tables, self.context.environment.circumstances(), sql)
        readings = [table_lineage(self.context.tables, head.table, frame)]
        dense: Any = None
        if dict(head.parameters).get("dense"):
            old = self._loaded(head.name)
            dense = getattr(old.built[0].sketch, "dense_keys", None) if old.built else None
        whole = Source(head.table, frame, fresh.filter)
        groups, built = built_on(
            self.context.spark,
            sql,
            fresh,
            whole,
            self.context.settings.max_groups,
            self.context.listener,
            dense,
        )
        with explained(sql, head.table, head.attributes):
            sketch = stored(replace(fresh, groups=groups), built)
        for earlier in appended_elsewhere(head, readings[0]):
            source = self._frame_at(earlier)
            reading = lineage_of(earlier.source, earlier.is_table, earlier.condition, source)
            readings.append(replace(reading, times=earlier.times))
            condition = both(fresh.filter, earlier.condition)
            sketch = self._added(sketch, Source(APPENDED, source, condition, earlier.times), sql)
        return replace(sketch, head=replace(sketch.head, lineage=tuple(readings), updated=now()))

    def _read(self, statement: AppendSketch) -> tuple[Appended, DataFrame]:
        """What APPEND reads: a name for it with the condition on it, and its DataFrame."""
        tables = self.context.tables
        if statement.path is None:
            read = resolve_append(statement, tables)
            # Spark lists a table's files once: what has come since would be missed.
            return read, self.context.environment.reread(read.table)
        frame = tables.read(APPENDED, statement.path.text, {})
        named = replace(statement, table=(Part(APPENDED, statement.path.span),))
        schema: dict[str, TableSchema] = {APPENDED: schema_of(APPENDED, frame)}
        return resolve_append(named, schema), frame

    def _frame_at(self, earlier: Lineage) -> DataFrame:
        """What was read from elsewhere as it is now: a table that is known by name, or a path."""
        tables = self.context.tables
        if earlier.is_table:
            for name in tables.registered():
                if tables.known(name).source == earlier.source:
                    return tables.frame(name)
            if earlier.state is not None:
                return tables.frame(earlier.source)
        return tables.read(APPENDED, earlier.source, {})

    def _loaded(self, name: str) -> StoredSketch:
        return self.context.catalog.load(name, self.context.settings.max_bytes)

    def _file_of(self, name: str) -> str | None:
        entry = self.context.catalog.entry(name)
        return None if entry is None else entry.file


def differences(one: Head, other: Head) -> list[str]:
    """What keeps the synopses of two sketches from adding up, one sentence each; names of tables do not count."""
    found = []
    compared: list[tuple[str, Any, Any]] = [
        ("method", one.method, other.method),
        ("filter", one.filter, other.filter),
        (
            "keys",
            [(a.keys, a.key_types) for a in one.attributes],
            [(a.keys, a.key_types) for a in other.attributes],
        ),
        ("classes", [a.class_name for a in one.attributes], [a.class_name for a in other.attributes]),
        ("seed", one.seed, other.seed),
        ("hash families", one.families, other.families),
        ("rows", one.rows, other.rows),
        ("buckets", one.buckets, other.buckets),
        ("sizes", one.parameters, other.parameters),
        ("weights", _weights(one), _weights(other)),
        ("groups", one.groups and one.groups.expressions, other.groups and other.groups.expressions),
        ("ANSI mode", one.ansi, other.ansi),
        ("settings", one.settings, other.settings),
        ("types of columns", _types_read(one, other), _types_read(other, one)),
    ]
    if one.zoned or other.zoned:
        compared.append(("time zone", one.time_zone, other.time_zone))
    for what, mine, theirs in compared:
        if mine != theirs:
            plain = isinstance(mine, (int, str)) and isinstance(theirs, (int, str))
            found.append(f"{what} {mine} and {theirs}" if plain else f"other {what}")
    return found


def _weights(head: Head) -> list[tuple[Any, ...]]:
    """The weights with the forms of their sums; those of a sketch without tuples have any form."""
    return [(m.weight, m.dtype, m.scale) for m in head.measures]


def _types_read(head: Head, other: Head) -> dict[str, str]:
    """The types of the columns that a sketch reads, of those that the table of another has too."""
    theirs = {c.name.lower() for c in other.columns}
    read = columns_read(head) & theirs
    return {c.name.lower(): c.type for c in head.columns if c.name.lower() in read}


def refuse_other_circumstances(head: Head, now: Circumstances, sql: str, place: tuple[int, int]) -> None:
    """Refuse to append under settings by which the expressions of a sketch have other values than they had.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_OTHER_DEFINITION``; the message names the settings.
    """
    if now.fit(head):
        return
    found = []
    if head.ansi != now.ansi:
        found.append(f"{ANSI} is {_word(now.ansi)} and was {_word(head.ansi)}")
    if head.zoned and head.time_zone != now.time_zone:
        found.append(f"{TIME_ZONE} is {now.time_zone} and was {head.time_zone}")
    before, present = dict(head.settings), dict(now.settings)
    for name in sorted({*before, *present}):
        if before.get(name) != present.get(name):
            is_now, was = (s.get(name, "its default") for s in (present, before))
            found.append(f"{name} is {is_now} and was {was}")
    raise UnsupportedQuery(
        f"what sketch {head.name} reads has other values now: {'; '.join(found)}",
        "SKIMQL_OTHER_DEFINITION",
        sql,
        place,
        f"the settings as they were, or REFRESH SKETCH {head.name}",
    )


def _word(value: bool) -> str:
    return "true" if value else "false"


def _changed(before: Head, after: Head) -> str:
    tuples = after.tuples - before.tuples
    return f"{abs(tuples):,} tuples {'added' if tuples >= 0 else 'deleted'}"


def _refuse_other_types(head: Head, schema: TableSchema, sql: str, place: tuple[int, int]) -> None:
    """Refuse to append from columns of other types: equal values could have unequal keys, or be filtered apart."""
    read = columns_read(head)
    mine = {c.name.lower(): c for c in head.columns if c.name.lower() in read}
    theirs = {c.name.lower(): c for c in schema.columns}
    for name, column in mine.items():
        if name not in theirs:
            raise UnknownName(
                f"{schema.name} has no column {column.name}, which sketch {head.name} reads",
                "SKIMQL_UNKNOWN_COLUMN",
                sql,
                place,
                ", ".join(c.name for c in schema.columns),
            )
        if theirs[name].type != column.type:
            raise DataError(
                f"column {theirs[name].name} is {theirs[name].type}, and was {column.type} in what sketch"
                f" {head.name} has",
                "SKIMQL_OTHER_TYPE",
                sql,
                place,
                "a view that casts it",
            )
