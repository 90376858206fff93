"""Whether what a kept sketch has read is still what its table has.

Files are looked at by this machine; what Spark knows by name is compared as it is now, where Spark runs already.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import SkimqlError
from ..catalog.form import Head, Lineage, SourceState
from ..catalog.secrets import redacted
from ..sources.listing import file_now, files_under, local_path
from ..sources.tables import Tables


def stale_note(head: Head, tables: Tables, runs: bool) -> str:
    """What has changed since the sketch was made, or why nobody can tell, as a sentence; the empty text if nothing has.

    Parameters
    ----------
    head : Head
    tables : Tables
    runs : bool
        Whether Spark runs: it is not started for this.
    """
    taken = {f.path: f for e in head.lineage for f in e.files}
    source = tables.known(head.table).source
    changed = gone = 0
    for path, before in taken.items():
        if local_path(path) is None or before.size is None:
            continue
        if head.imported_from and not _is_of(path, source):
            continue  # a path that somebody else has written
        state = file_now(path)
        gone += state.size is None
        changed += state.size is not None and (state.size, state.modified) != (before.size, before.modified)
    first = next((e for e in head.lineage if e.is_table), None)
    if source is not None or first is None or _is_path(first, head):
        present: Iterable[str] | None = files_under(source)
        unknown = ""
    else:
        present, unknown = _named(head, first.state, tables, runs)
    added = [path for path in present or () if path not in taken]
    new = len(added)
    parts = [f"{n} {word}" for n, word in ((new, "new"), (changed, "changed"), (gone, "gone")) if n]
    if not parts:
        return unknown
    files = "file" if new + changed + gone == 1 else "files"
    way_out = f"REFRESH SKETCH {head.name}"
    if source is not None and added and not changed + gone:
        path = added[0].replace("'", "''")
        what = f"'{path}'" if new == 1 else f"{head.table} WHERE ... (what is new)"
        way_out = f"APPEND SKETCH {head.name} FROM {what}, or {way_out}"
    if head.group:
        way_out = f"CREATE OR REPLACE SKETCHES {head.group} ..."
    return (
        f"sketch {head.name} is of {head.table} as of {head.updated}; since then {', '.join(parts)} {files}:"
        f" {way_out}"
    )


def other_source(head: Head, tables: Tables, runs: bool) -> bool:
    """Whether the name of its table now stands for another path, or another table of Spark's, than it was made from.

    Parameters are those of `stale_note`.
    """
    first = next((e for e in head.lineage if e.is_table), None)
    if first is None:
        return False
    source = tables.known(head.table).source
    if source is not None:
        return first.source != redacted(source)
    if not runs or head.imported_from or first.state is None or not _is_table(first.state):
        return False
    try:
        now = tables.sources(head.table).state
    except (KeyError, SkimqlError):
        return False
    # Of the same name in another database, say. Two tables never share a folder.
    return _is_table(now) and now.roots != first.state.roots


def _is_table(state: SourceState) -> bool:
    """Whether this is a table of Spark's catalog of which it is known where it lies."""
    return state.kind == "table" and bool(state.roots)


def _is_of(path: str, source: str | None) -> bool:
    """Whether a file lies where the user has said that the table is."""
    return source is not None and (path == source or path.startswith(source.rstrip("/") + "/"))


def _is_path(reading: Lineage, head: Head) -> bool:
    """Whether a helping came from a path: of an imported sketch, or one of a table that is not registered any more."""
    return reading.state is None and reading.source.lower() != head.table.lower()


def _named(
    head: Head, before: SourceState | None, tables: Tables, runs: bool
) -> tuple[Iterable[str] | None, str]:
    """The files that a table known to Spark by name has now, and why the sketch may be out of date all the same."""
    told = f"sketch {head.name} is of {head.table} as of {head.updated}; whether it has changed since "
    if before is None:
        return None, told + f"was not recorded: REFRESH SKETCH {head.name}"
    if not before.complete:
        return None, told + "cannot be told: it is not of files or tables alone"
    # Also where Spark runs: it lists the files of a table once, and others may have written some since.
    there = {path for root in before.roots or () for path in files_under(root)}
    if not runs:
        if head.imported_from:
            return None, told + "is not checked: it was imported, and Spark does not run"
        if before.kind == "table" and before.roots is not None:
            return there, ""
        return None, told + "is not checked, as Spark does not run"
    try:
        now = tables.sources(head.table)
    except (KeyError, SkimqlError):
        return None, told + f"cannot be told: there is no table {head.table} here"
    if not now.state.complete or (now.state.kind, now.state.plan) != (before.kind, before.plan):
        return there.union(now.files), (
            f"{head.table} is another table or view than sketch {head.name} was made of, at {head.updated}:"
            f" REFRESH SKETCH {head.name}"
        )
    return there.union(now.files), ""
