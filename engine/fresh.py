"""Whether the files that a kept sketch has read are still those of its table. Looks at local files only."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

from .catalog.form import Head
from .catalog.secrets import redacted
from .eaten import file_now, local_path
from .tables import Tables

_GLOB = "*?[{"


def stale_note(head: Head, tables: Tables) -> str:
    """What has changed since the sketch was made, as a sentence; the empty text if nothing, or nobody can tell."""
    taken = {f.path: f for e in head.eaten for f in e.files}
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
    new = sum(1 for path in _files_of(source) if path not in taken)
    parts = [f"{n} {word}" for n, word in ((new, "new"), (changed, "changed"), (gone, "gone")) if n]
    if not parts:
        return ""
    files = "file" if new + changed + gone == 1 else "files"
    return (
        f"sketch {head.name} is of {head.table} as of {head.updated}; since then {', '.join(parts)} {files}:"
        f" REFRESH SKETCH {head.name}"
    )


def other_source(head: Head, tables: Tables) -> bool:
    """Whether the name of its table now stands for another path than the one that the sketch was made from."""
    first = next((e for e in head.eaten if e.is_table), None)
    source = tables.known(head.table).source
    return first is not None and source is not None and first.source != redacted(source)


def _is_of(path: str, source: str | None) -> bool:
    """Whether a file lies where the user has said that the table is."""
    return source is not None and (path == source or path.startswith(source.rstrip("/") + "/"))


def _files_of(source: str | None) -> Iterator[str]:
    """The data files of a local source, as Spark lists them: names that start with ``_`` or ``.`` are left out."""
    path = None if source is None else local_path(source)
    if path is None:
        return
    roots = glob.glob(str(path)) if any(c in str(path) for c in _GLOB) else [str(path)]
    for root in roots:
        if os.path.isfile(root):
            yield root
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith(("_", ".")) or "=" in f]
            yield from (os.path.join(folder, n) for n in names if not n.startswith(("_", ".")))
