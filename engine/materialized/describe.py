"""SHOW SKETCHES and DESCRIBE SKETCH: what is kept, as rows."""

from __future__ import annotations

import re
from typing import Any

from ...errors import printable
from ...optimizer.plan import Weight
from ..catalog.catalog import Catalog
from ..catalog.form import Head
from ..results.answer import Answer
from ..results.columns import told_types

COLUMNS = (
    "sketch",
    "table",
    "keys",
    "weight",
    "filter",
    "method",
    "rows",
    "buckets",
    "seed",
    "tuples",
    "bytes",
    "state",
    "updated",
)

NUMBERS = ("rows", "buckets", "seed", "tuples", "bytes")

# What a terminal shows of them; DESCRIBE SKETCH tells the rest.
BRIEF = ("sketch", "table", "keys", "bytes", "updated")


def show_rows(catalog: Catalog, pattern: str | None = None) -> Answer:
    """Every sketch in order of its name; `bytes` are those in memory, `state` tells exact key maps from counters.

    A pattern is one of SHOW TABLES: ``*`` is anything, ``|`` separates alternatives, case is ignored.
    """
    rows = []
    for _, entry in sorted(catalog.manifest.sketches.items()):
        if pattern is not None and not _matches(entry.name, pattern):
            continue
        if entry.head is not None:
            rows.append(_row(entry.head))
        else:
            version = f"format version {entry.metadata['format_version']}, newer than this SkimQL"
            rows.append((entry.name, version, *(None for _ in COLUMNS[2:])))
    types = told_types(COLUMNS, NUMBERS, rows)
    return Answer(COLUMNS, tuple(map(_safe, rows)), exact=True, brief=BRIEF, types=types)


def _matches(name: str, pattern: str) -> bool:
    return any(
        re.fullmatch(re.escape(part.strip()).replace(r"\*", ".*"), name, re.IGNORECASE | re.DOTALL)
        for part in pattern.split("|")
    )


def told(head: Head, seconds: float, *notes: str) -> Answer:
    """One sketch as SHOW SKETCHES shows it, with what a statement has done to it."""
    return Answer(
        COLUMNS,
        (_safe(_row(head)),),
        exact=True,
        brief=BRIEF,
        types=told_types(COLUMNS, NUMBERS, (head,)),
        bytes_used=head.nbytes,
        seconds={"build": seconds},
        notes=tuple(map(printable, notes)),
    )


def describe_rows(catalog: Catalog, head: Head, extended: bool) -> Answer:
    """What a sketch says of itself, a property a row; `extended` verifies its file and lists what it has read."""
    rows: list[tuple[str, Any]] = [
        (column, value) for column, value in zip(COLUMNS, _row(head), strict=True) if value is not None
    ]
    for attribute, own in zip(head.attributes, head.key_types, strict=True):
        compared = "" if own == attribute.key_types else f" compared as {', '.join(attribute.key_types)}"
        rows.append(
            (f"class {attribute.class_name}", f"{_simple(attribute.keys)} {', '.join(own)}{compared}")
        )
    rows += [("created", head.created), ("time zone", head.time_zone), ("ANSI mode", head.ansi)]
    if head.groups is not None:
        rows.append(("GROUP BY", f"{_simple(head.groups.expressions)}, {len(head.groups.values):,} groups"))
    rows += [(name.replace("_", " "), value) for name, value in head.parameters]
    if head.group:
        rows.append(("belongs to", head.group))
    if head.cell:
        rows.append(("part of each class", ", ".join(map(str, head.cell))))
    rows += [
        (
            "has read",
            f"{'table' if e.is_table else 'path'} {e.source}"
            + (f" where {e.condition}" if e.condition else "")
            + (f" weighing {e.times}" if e.times else "")
            + (f", {len(e.files)} file{'s' if len(e.files) != 1 else ''}" if e.files else "")
            + f", {e.at}",
        )
        for e in head.lineage
    ]
    if extended:
        rows += _extended(catalog, head)
    return Answer(("property", "value"), tuple(_safe((p, str(v))) for p, v in rows), exact=True)


def _extended(catalog: Catalog, head: Head) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = [
        (f"family of {a.class_name}", str(f)) for a, f in zip(head.attributes, head.families, strict=True)
    ]
    for measure in head.measures:
        state = f"{head.kind.states[0 if measure.exact else 1]}, {measure.nbytes:,} bytes, {measure.dtype}"
        tally = f"{measure.tally.tuples:,} tuples, mass {measure.tally.mass:,.15g}, {measure.tally.negative:,} negative"
        rows.append((f"sketch of {_measured(measure.weight)}", f"{state}; {tally}"))
    rows += [("column", f"{c.name} {c.type}") for c in head.columns]
    rows += [("file read", f"{f.path}, {f.size} bytes") for e in head.lineage for f in e.files]
    entry = catalog.entry(head.name)
    if entry is not None:
        catalog.load(head.name)
        rows += [("file", f"{catalog.where}/{entry.file}"), ("SHA-256", f"{entry.sha256}, verified")]
    rows.append(("written by", head.program))
    return rows


def _safe(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row to be shown: what a file says acts on no terminal."""
    return tuple(printable(v) if isinstance(v, str) else v for v in row)


def _row(head: Head) -> tuple[Any, ...]:
    keys = ", ".join(
        f"{_simple(a.keys)} CLASS {a.class_name}"
        if _simple(a.keys).lower() != a.class_name
        else _simple(a.keys)
        for a in head.attributes
    )
    summed = next((w.expression for w in head.weights if w.expression is not None and not w.presence), None)
    return (
        head.name,
        head.table,
        keys,
        None if summed is None else f"SUM({_unquoted(summed)})",
        None if head.filter is None else _unquoted(head.filter),
        head.method,
        head.rows,
        head.buckets,
        head.seed,
        head.tuples,
        head.nbytes,
        head.kind.states[0 if head.exact else 1],
        head.updated,
    )


def _measured(weight: Weight) -> str:
    if weight.expression is None:
        return "tuples"
    return f"{_unquoted(weight.expression)}{' not NULL' if weight.presence else ''}"


def _simple(keys: tuple[str, ...]) -> str:
    return ", ".join(_unquoted(k) for k in keys)


def _unquoted(text: str) -> str:
    """Back-quoted plain words without their quotes, to read."""
    parts = text.split("`")
    return "".join(p if i % 2 == 0 or p.isidentifier() else f"`{p}`" for i, p in enumerate(parts))
