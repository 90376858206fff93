"""A catalog: sketches and tables by name, in a folder, for many readers and one writer at a time.

A change writes new files first and the manifest last, so that a reader sees the state before or the state after.
A file that the manifest no longer names is deleted one change later: until then a reader may be on its way to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import CorruptSketch, DataError, IncompatibleSketches, SkimqlError, UnknownName
from .file import StoredSketch, decode, digest, encode, metadata_digest
from .folder import Folder, MemoryFolder, open_folder
from .form import FORMAT_VERSION, Head
from .manifest import (
    MANIFEST,
    Entry,
    KnownTable,
    Manifest,
    StoredWorkload,
    entry,
    numbered,
    read_manifest,
    write_manifest,
)

SUFFIX = ".parquet"
_RETRIES = 3


class Catalog:
    """Sketches and tables by name.

    Parameters
    ----------
    folder : Folder, str, Path or None
        A folder, its path or URI; None keeps everything in memory.
    """

    def __init__(self, folder: Folder | str | Path | None = None) -> None:
        if folder is None:
            self.folder: Folder = MemoryFolder()
        elif isinstance(folder, (str, Path)):
            self.folder = open_folder(folder)
        else:
            self.folder = folder
        self._seen: tuple[object, Manifest] | None = None
        self._loaded: dict[str, StoredSketch] = {}

    @property
    def where(self) -> str:
        """The folder, for messages."""
        return self.folder.where

    @property
    def lasting(self) -> bool:
        """Whether it outlives the session."""
        return not isinstance(self.folder, MemoryFolder)

    @property
    def manifest(self) -> Manifest:
        """The present state; read again only when its file has changed.

        Raises
        ------
        CorruptSketch, IncompatibleSketches, DataError
            If it cannot be read.
        """
        stamp = self.folder.stamp(MANIFEST)
        if self._seen is None or stamp is None or stamp != self._seen[0]:
            with self._reading():
                self._seen = (stamp, read_manifest(self.folder))
        return self._seen[1]

    def heads(self) -> tuple[Head, ...]:
        """What every readable sketch says of itself, in order of their names."""
        entries = sorted(self.manifest.sketches.items())
        return tuple(e.head for _, e in entries if e.head is not None)

    def entry(self, name: str) -> Entry | None:
        """The entry of a name, or None."""
        return self.manifest.sketches.get(name.lower())

    def workload(self, name: str) -> StoredWorkload | None:
        """The workload of a name, or None."""
        return self.manifest.workloads.get(name.lower())

    def load(self, name: str) -> StoredSketch:
        """A sketch with its arrays, verified.

        Raises
        ------
        UnknownName
            If there is none of that name.
        CorruptSketch
            If a checksum does not hold; the message names file and checksum.
        IncompatibleSketches
            If a newer SkimQL wrote it.
        """
        for _ in range(_RETRIES):
            found = self.entry(name)
            if found is None:
                raise UnknownName(f"there is no sketch {name}")
            if found.file in self._loaded:
                return self._loaded[found.file]
            where = f"{self.where}/{found.file}"
            try:
                with self._reading():
                    data = self.folder.read(found.file)
            except FileNotFoundError as fault:
                # A writer may have replaced it since the manifest was read.
                before, self._seen = self.manifest.generation, None
                if self.manifest.generation == before:
                    raise CorruptSketch(f"{where}, the file of sketch {found.name}, is gone") from fault
                continue
            self._loaded[found.file] = _verified(found, data, where)
            return self._loaded[found.file]
        raise CorruptSketch(f"sketch {name} changes faster than it can be read")

    def put(
        self,
        *sketches: StoredSketch,
        forget: Iterable[str] = (),
        workload: StoredWorkload | None = None,
        based_on: Mapping[str, str | None] | None = None,
    ) -> None:
        """Keep sketches under their names, in place of what had them, in one step; `forget` other names.

        Parameters
        ----------
        *sketches : StoredSketch
        forget : names
            That of a workload stands for all its sketches.
        workload : StoredWorkload, optional
            What the sketches were planned for.
        based_on : mapping of str to (str or None), optional
            The file that a name stood for when the work began, None for a name that was free: a change by somebody
            else in the meantime is not overwritten.

        Raises
        ------
        DataError
            ``SKIMQL_CATALOG_NOT_WRITTEN`` if the store refuses, ``SKIMQL_SKETCH_CHANGED`` if a name stands for
            something else than it did. Nothing has changed then.
        """

        def change(state: Manifest) -> Mapping[str, Any]:
            _refuse_changed(state, based_on or {}, self.where)
            gone = {f.lower() for f in forget}
            gone |= {s.lower() for n in gone if n in state.workloads for s in state.workloads[n].sketches}
            entries = {n: e for n, e in state.sketches.items() if n not in gone}
            workloads = {n: w for n, w in state.workloads.items() if n not in gone}
            if workload is not None:
                workloads[workload.name.lower()] = workload
            for sketch in sketches:
                data = encode(sketch)
                file = os.urandom(16).hex() + SUFFIX
                self.folder.write(file, data)
                entries[sketch.head.name.lower()] = entry(file, data, sketch.head)
            return {"sketches": entries, "workloads": workloads}

        self._change(change)

    def remember(
        self,
        tables: Mapping[str, KnownTable],
        ansi: bool | None = None,
        time_zone: str | None = None,
        others: tuple[tuple[str, str], ...] | None = None,
    ) -> None:
        """Keep what tables are, and the settings of the Spark session that saw them; nothing is written if known."""
        state = self.manifest
        known = {**state.tables, **{name.lower(): t for name, t in tables.items()}}
        settings = {
            "ansi": state.ansi if ansi is None else ansi,
            "time_zone": state.time_zone if time_zone is None else time_zone,
            "settings": state.settings if others is None else others,
        }
        if known == state.tables and all(getattr(state, name) == value for name, value in settings.items()):
            return
        self._change(
            lambda now: {"tables": {**now.tables, **{n.lower(): t for n, t in tables.items()}}, **settings}
        )

    def table(self, name: str) -> KnownTable | None:
        """What is known of a table, or None."""
        return self.manifest.tables.get(name.lower())

    def _change(self, change: Callable[[Manifest], Mapping[str, Any]]) -> None:
        before = set(self.folder.names()) if self.lasting else set()
        try:
            with self.folder.lock():
                self._seen = None
                state = self.manifest
                try:
                    after = state.next(**change(state))
                    write_manifest(self.folder, after)
                except BaseException:
                    self._discard(before, state)
                    raise
                self._seen = None
                self._collect(state, after)
        except OSError as fault:
            raise DataError(
                f"{self.where} cannot be written: {_strerror(fault)}; nothing has changed",
                "SKIMQL_CATALOG_NOT_WRITTEN",
                hint="a folder with space where you may write",
            ) from fault

    def _collect(self, before: Manifest, after: Manifest) -> None:
        """Delete files that neither this state nor the one before names."""
        named = {e.file for state in (before, after) for e in state.sketches.values()}
        self._loaded = {f: s for f, s in self._loaded.items() if f in named}
        for name in self.folder.names():
            if name.endswith((SUFFIX, ".partial")) and name not in named:
                self._delete(name)

    def _discard(self, before: set[str], state: Manifest) -> None:
        """Delete what a change that failed has left behind, if the store lets us and the state is the old one."""
        named = {e.file for e in state.sketches.values()}
        try:
            now = self.folder.names()
            if read_manifest(self.folder).generation != state.generation:
                return
        except (OSError, SkimqlError):
            return
        self._delete(numbered(state.generation + 1))
        for name in now:
            if name.endswith(SUFFIX) and name not in before and name not in named:
                self._delete(name)

    def _delete(self, name: str) -> None:
        try:
            self.folder.delete(name)
        except OSError:
            return

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as fault:
            raise DataError(
                f"{self.where} cannot be read: {_strerror(fault)}", "SKIMQL_CATALOG_UNREADABLE"
            ) from fault


def _refuse_changed(state: Manifest, based_on: Mapping[str, str | None], where: str) -> None:
    for name, file in based_on.items():
        found = state.sketches.get(name.lower())
        if (found.file if found else None) != file or (file is None and name.lower() in state.workloads):
            raise DataError(
                f"another writer has changed sketch {name} in {where} meanwhile; nothing was overwritten",
                "SKIMQL_SKETCH_CHANGED",
                hint="SHOW SKETCHES, then the statement again",
            )


def _verified(found: Entry, data: bytes, where: str) -> StoredSketch:
    """The sketch in the bytes of its file, if they are those that the manifest names."""
    if found.head is None:
        version = found.metadata["format_version"]
        raise IncompatibleSketches(
            f"{where} has format version {version}; this SkimQL reads versions up to {FORMAT_VERSION}",
            "SKIMQL_NEWER_FORMAT",
            hint="a newer SkimQL",
        )
    if digest(data) != found.sha256:
        raise CorruptSketch(
            f"{where}, the file of sketch {found.name}, is damaged: its SHA-256 is not {found.sha256[:16]}…",
            hint=f"CREATE OR REPLACE SKETCH {found.name} ..., or a copy of the file",
        )
    sketch = decode(data, where)
    if metadata_digest(sketch.head) != metadata_digest(found.head):
        raise CorruptSketch(f"{where} is not the file of sketch {found.name}: its metadata are others")
    return sketch


def _strerror(fault: OSError) -> str:
    return fault.strerror or (str(fault).splitlines() or [type(fault).__name__])[0]
