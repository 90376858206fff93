"""Every file that a change of a catalog makes, replaces or deletes; nothing else deletes or replaces there.

The names of what a change makes begin with the checksum of the state that it starts from, so that the next change from
that state knows what a killed one has left. A file is deleted only if the present manifest lists it as `garbage`: what
the state before it named, and what was left. That is one change after it was given up, for readers on their way.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable
from dataclasses import replace

from ...errors import DataError, SkimqlError
from .folder import LOCK, Folder
from .manifest import MANIFEST, MOST_BYTES, Manifest, decode, encode, numbered, numbered_in, read_manifest

_PREFIX = 16  # digits of the checksum that a name begins with; as many random ones follow
_MADE = re.compile(r"[0-9a-f]{32}\.(parquet|state|partial)")


class Change:
    """A change of a catalog, under its lock.

    Parameters
    ----------
    folder : Folder
    before : Manifest
        The present state, read from `folder`.
    """

    def __init__(self, folder: Folder, before: Manifest) -> None:
        self.folder = folder
        self.before = before
        self._made: list[str] = []

    def keep(self, data: bytes, suffix: str = ".parquet") -> str:
        """Write a data file; its name."""
        name = self._new_name(suffix)
        self._write(name, data)
        return name

    def publish(self, after: Manifest) -> None:
        """Make `after` the present state, once it is known which files of others are garbage now."""
        kept = after.files
        given_up = self.before.files - kept
        garbage = [*self._sweep(), *self._left(), *given_up, *self._own_number()]
        after = replace(after, garbage=tuple(sorted(set(garbage) - kept)))
        while self._is_taken(numbered(after.generation), after.generation):
            after = replace(after, generation=after.generation + 1)
        data = encode(after)
        if len(data) > MOST_BYTES:
            raise OSError(errno.EFBIG, f"its manifest would have more than {MOST_BYTES:,} bytes")
        decode(data, self.folder.where)  # what no reader takes is not written
        self._write(numbered(after.generation), data)
        by = self._new_name(".partial")
        self._made.append(by)
        self.folder.replace(MANIFEST, data, by)

    def undo(self) -> None:
        """Delete what the change has made, unless it has happened; what the store keeps, the next change finds."""
        try:
            if read_manifest(self.folder).digest != self.before.digest:
                return
        except (OSError, SkimqlError):
            return
        for name in reversed(self._made):
            self._delete(name)

    def _new_name(self, suffix: str) -> str:
        return self.before.digest[:_PREFIX] + os.urandom(_PREFIX // 2).hex() + suffix

    def _write(self, name: str, data: bytes) -> None:
        self._made.append(name)
        try:
            self.folder.write(name, data)
        except FileExistsError:
            self._made.remove(name)
            raise

    def _sweep(self) -> list[str]:
        """Delete the garbage of the state before; what could not be deleted."""
        garbage = self.before.garbage
        return [
            n
            for n in (_of_old(self.folder, self.before) if garbage is None else garbage)
            if not self._delete(n)
        ]

    def _left(self) -> Iterable[str]:
        """What changes from this state have left that were killed."""
        prefix = self.before.digest[:_PREFIX]
        names = (n for n in self.folder.names() if n.startswith(prefix) and _MADE.fullmatch(n))
        return (n for n in names if n not in self._made)

    def _own_number(self) -> list[str]:
        """The numbered manifest of the state before, where it is that."""
        name = numbered(self.before.generation)
        with contextlib.suppress(OSError, SkimqlError):
            if decode(self.folder.read(name, MOST_BYTES), name).digest == self.before.digest:
                return [name]
        return []

    def _is_taken(self, name: str, generation: int) -> bool:
        """Whether something that is not ours has the name; a manifest that a killed change left is deleted."""
        try:
            found = decode(self.folder.read(name, MOST_BYTES), name)
        except FileNotFoundError:
            return False
        except (OSError, SkimqlError):
            return True
        return found.generation != generation or found.id != self.before.id or not self._delete(name)

    def _delete(self, name: str) -> bool:
        try:
            self.folder.delete(name)
        except OSError:
            return False
        return True


def begin(folder: Folder) -> None:
    """Make an empty catalog where there is none; under its lock.

    Raises
    ------
    DataError
        As `refuse_foreign`.
    """
    refuse_foreign(folder)
    folder.write(MANIFEST, encode(Manifest(id=os.urandom(16).hex())))


def refuse_foreign(folder: Folder) -> None:
    """Refuse to begin a catalog in a folder that holds what SkimQL did not make; hidden files do not count.

    Raises
    ------
    DataError
        ``SKIMQL_NOT_A_CATALOG``.
    """
    found = [n for n in folder.names() if n != LOCK and not n.startswith(".")]
    if found:
        rest = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        raise DataError(
            f"{folder.where} is no catalog, and not empty: it holds {found[0]}{rest}; nothing has changed",
            "SKIMQL_NOT_A_CATALOG",
            hint=f"a folder of its own for the catalog, such as {folder.where.rstrip('/')}/{_free(found)}",
        )


def _of_old(folder: Folder, state: Manifest) -> list[str]:
    """The garbage of a state that was written before manifests listed it: what older manifests beside it name."""
    garbage = []
    named = state.files
    for name in numbered_in(folder):
        with contextlib.suppress(OSError, SkimqlError):
            older = decode(folder.read(name, MOST_BYTES), name)
            if older.generation < state.generation and name == numbered(older.generation):
                garbage += [name, *(e.file for e in older.sketches.values())]
    return [n for n in garbage if n not in named]


def _free(names: Iterable[str]) -> str:
    name, number = "sketches", 2
    while name in names:
        name, number = f"sketches{number}", number + 1
    return name
