"""Files by their paths or URIs: which lie under a source, and how large and old each is now."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlparse

from ...errors import SkimqlError
from ..catalog.form import LineageFile

_GLOB = "*?[{"

# Paths of which it is remembered what they are: those of a table's files are looked at in each statement.
MOST_PATHS = 1 << 14

# Files by path, size in bytes and time of change in nanoseconds.
FileStates = frozenset[tuple[str, int, int]]


def file_now(path: str) -> LineageFile:
    """A file as it is now; without size and time where it is gone or cannot be looked at."""
    local = local_path(path)
    if local is not None:
        try:
            state = os.stat(local)
        except OSError:
            return LineageFile(path, None, None)
        return LineageFile(path, state.st_size, state.st_mtime_ns // 1_000_000)
    from ..catalog.folder import resolve_uri

    try:
        file_system, inner = resolve_uri(path)
        found = file_system.get_file_info(inner)
    except (OSError, SkimqlError):
        return LineageFile(path, None, None)
    changed = None if found.mtime_ns is None else found.mtime_ns // 1_000_000
    return LineageFile(path, found.size, changed)


@lru_cache(MOST_PATHS)
def local_path(path: str) -> Path | None:
    """The local path of a path or ``file:`` URI, None of others."""
    if "://" not in path and not path.startswith("file:"):
        return Path(path)
    parsed = urlparse(path)
    return Path(unquote(parsed.path)) if parsed.scheme == "file" else None


def files_under(source: str | None) -> Iterator[str]:
    """The data files of a local source, as Spark lists them: names that start with ``_`` or ``.`` are left out."""
    path = None if source is None else local_path(source)
    if path is None:
        return
    roots = glob.glob(str(path)) if any(c in str(path) for c in _GLOB) else [str(path)]
    for root in roots:
        if os.path.isfile(root):
            yield root
            continue
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith(("_", ".")) or "=" in f]
            yield from (os.path.join(folder, n) for n in names if not n.startswith(("_", ".")))


def state_of_files(source: str) -> FileStates | None:
    """The data files of a local source with size and time of change; None where it is elsewhere."""
    if local_path(source) is None:
        return None
    found = set()
    for path in files_under(source):
        # One that is gone meanwhile is none of them.
        with contextlib.suppress(OSError):
            state = os.stat(path)
            found.add((path, state.st_size, state.st_mtime_ns))
    return frozenset(found)


def real_path(path: str) -> str:
    """Where a local file lies whatever links lead to it; anything else as it is."""
    local = local_path(path)
    return path if local is None else os.path.realpath(local)


@lru_cache(MOST_PATHS)
def path_or_uri(path: str) -> str:
    """A local file as its path, anything else as its URI."""
    local = local_path(path)
    return str(local) if local is not None else unquote(path)
