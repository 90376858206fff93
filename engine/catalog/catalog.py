"""A catalog: sketches and tables by name, in a folder, for many readers and one writer at a time.

A change writes new files first and the manifest last, so that a reader sees the state before or the state after;
`changes` does so.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import CorruptSketch, DataError, IncompatibleSketches, UnknownName, UnsupportedQuery
from ..observed import reads
from .changes import Change, begin, refuse_foreign
from .file import MOST_BYTES, StoredSketch, decode, digest, encode, metadata_digest
from .folder import Folder, MemoryFolder, RemoteFolder, open_folder
from .form import Head
from .manifest import (
    MANIFEST,
    Entry,
    KnownTable,
    Manifest,
    StoredWorkload,
    entry,
    read_manifest,
    without_secrets,
)
from .metadata import FORMAT_VERSION
from .planned import made_of
from .streams import Continuous, StoredState

_RETRIES = 3
_CREDENTIALS = (
    "whether it exists, and credentials for it (of S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
)


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
        self._loaded: dict[tuple[str, str], StoredSketch] = {}

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
        with self._reading():
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

    def members(self, workload: StoredWorkload) -> tuple[Head, ...]:
        """The sketches of a workload, if they are those that its plans were made for.

        Raises
        ------
        CorruptSketch
            If one of them is another by now. (Of a workload that an older SkimQL kept their names and groups tell.)
        IncompatibleSketches
            If a newer SkimQL wrote one.
        """
        entries = [self.manifest.sketches.get(name.lower()) for name in workload.sketches]
        found = [e for e in entries if e is not None]
        heads = tuple(e.head or self.load(e.name).head for e in found)
        whole = len(found) == len(entries) > 0 and len({h.seed for h in heads}) == 1
        same = workload.made_of in (None, made_of(e.sha256 for e in found))
        if (
            not whole
            or not same
            or any(h.group.lower() != workload.name.lower() or len(h.measures) != 1 for h in heads)
        ):
            raise self.unlike_planned(workload)
        return heads

    def unlike_planned(self, workload: StoredWorkload) -> CorruptSketch:
        """The error for a workload whose sketches and plans do not belong together."""
        return CorruptSketch(
            f"the sketches {workload.name} in {self.where} are not those that they were planned as",
            hint=f"CREATE OR REPLACE SKETCHES {workload.name} ...",
        )

    def load(self, name: str, most_bytes: int = MOST_BYTES) -> StoredSketch:
        """A sketch with its arrays, verified.

        Raises
        ------
        UnknownName
            If there is none of that name.
        CorruptSketch
            If a checksum does not hold; the message names file and checksum.
        IncompatibleSketches
            If a newer SkimQL wrote it.
        BudgetExceeded
            ``SKIMQL_MAX_BYTES`` if it takes more than `most_bytes`.
        """
        for _ in range(_RETRIES):
            found = self.entry(name)
            if found is None:
                raise UnknownName(f"there is no sketch {name}")
            key = (found.file, found.sha256)
            if key in self._loaded:
                return self._loaded[key]
            where = f"{self.where}/{found.file}"
            try:
                with self._reading():
                    data = _read(self.folder, found, where)
            except FileNotFoundError as fault:
                # A writer may have replaced it since the manifest was read.
                self._seen = None
                if self.entry(name) == found:
                    raise CorruptSketch(f"{where}, the file of sketch {found.name}, is gone") from fault
                continue
            reads(len(data))
            self._loaded[key] = _verified(found, data, where, most_bytes)
            return self._loaded[key]
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

        def change(state: Manifest, files: Change) -> Mapping[str, Any]:
            _refuse_changed(state, based_on or {}, self.where)
            gone = {f.lower() for f in forget}
            gone |= {s.lower() for n in gone if n in state.workloads for s in state.workloads[n].sketches}
            entries = {n: e for n, e in state.sketches.items() if n not in gone}
            workloads = {n: w for n, w in state.workloads.items() if n not in gone}
            _refuse_members(workloads, [*gone, *(s.head.name.lower() for s in sketches)], self.where)
            if workload is not None:
                _refuse_overwritten(entries, sketches, self.where)
            for sketch in sketches:
                data = encode(sketch)
                entries[sketch.head.name.lower()] = entry(files.keep(data), data, sketch.head)
            if workload is not None:
                checksums = [entries[n.lower()].sha256 for n in workload.sketches]
                workloads[workload.name.lower()] = replace(workload, made_of=made_of(checksums))
            return {"sketches": entries, "workloads": workloads}

        self._change(change)

    def change_streams(
        self, change: Callable[[Continuous, Callable[[bytes], StoredState]], Continuous]
    ) -> None:
        """Put other streams and views in the place of the present ones, in one step.

        Parameters
        ----------
        change : callable
            Takes what is there now, and what writes the file of a state; what it raises changes nothing.

        Raises
        ------
        DataError
            ``SKIMQL_CATALOG_NOT_WRITTEN`` if the store refuses.
        """

        def changed(state: Manifest, files: Change) -> Mapping[str, Any]:
            def keep(data: bytes) -> StoredState:
                return StoredState(files.keep(data, ".state"), digest(data), len(data), None)

            return {"continuous": change(state.continuous, keep)}

        self._change(changed)

    def read_state(self, state: StoredState) -> bytes:
        """The bytes of a state, which are those that were written.

        Raises
        ------
        CorruptSketch
            If they are others, or gone.
        """
        where = f"{self.where}/{state.file}"
        try:
            with self._reading():
                data = self.folder.read(state.file, state.size)
        except FileNotFoundError as fault:
            raise CorruptSketch(f"{where}, the state of a stream, is gone") from fault
        if digest(data) != state.sha256:
            raise CorruptSketch(
                f"{where}, the state of a stream, is damaged: its SHA-256 is not {state.sha256[:16]}…"
            )
        return data

    def remember(
        self,
        tables: Mapping[str, KnownTable],
        ansi: bool | None = None,
        time_zone: str | None = None,
        others: tuple[tuple[str, str], ...] | None = None,
    ) -> None:
        """Keep what tables are, and the settings of the Spark session that saw them; nothing is written if known."""
        state = self.manifest
        new = {name.lower(): without_secrets(t) for name, t in tables.items()}
        known = {**state.tables, **new}
        settings = {
            "ansi": state.ansi if ansi is None else ansi,
            "time_zone": state.time_zone if time_zone is None else time_zone,
            "settings": state.settings if others is None else others,
        }
        if known == state.tables and all(getattr(state, name) == value for name, value in settings.items()):
            return
        self._change(lambda now, _: {"tables": {**now.tables, **new}, **settings})

    def table(self, name: str) -> KnownTable | None:
        """What is known of a table, or None."""
        return self.manifest.tables.get(name.lower())

    def _refuse_foreign(self) -> None:
        """As `refuse_foreign`, unless another writer has begun the catalog since it was looked for."""
        try:
            refuse_foreign(self.folder)
        except DataError:
            self._seen = None
            if not self.manifest.digest:
                raise

    def _change(self, change: Callable[[Manifest, Change], Mapping[str, Any]]) -> None:
        try:
            if not self.manifest.digest:
                self._refuse_foreign()  # before a lock appears there
            with self.folder.lock():
                self._seen = None
                if not self.manifest.digest:
                    begin(self.folder)
                    self._seen = None
                state = self.manifest
                files = Change(self.folder, state)
                try:
                    files.publish(state.next(**change(state, files)))
                except BaseException:
                    files.undo()
                    raise
                finally:
                    self._seen = None
                named = {(e.file, e.sha256) for e in self.manifest.sketches.values()}
                self._loaded = {key: s for key, s in self._loaded.items() if key in named}
        except OSError as fault:
            raise DataError(
                f"{self.where} cannot be written: {_strerror(fault)}; nothing has changed",
                "SKIMQL_CATALOG_NOT_WRITTEN",
                hint=_CREDENTIALS
                if isinstance(self.folder, RemoteFolder)
                else "a folder with space where you may write",
            ) from fault

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as fault:
            raise DataError(
                f"{self.where} cannot be read: {_strerror(fault)}",
                "SKIMQL_CATALOG_UNREADABLE",
                hint=_CREDENTIALS if isinstance(self.folder, RemoteFolder) else "",
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


def _read(folder: Folder, found: Entry, where: str) -> bytes:
    try:
        return folder.read(found.file, found.size)
    except OSError as fault:
        if fault.errno == errno.EFBIG:
            raise _damaged(found, where) from fault
        raise


def _damaged(found: Entry, where: str) -> CorruptSketch:
    return CorruptSketch(
        f"{where}, the file of sketch {found.name}, is damaged: its SHA-256 is not {found.sha256[:16]}…",
        hint=f"CREATE OR REPLACE SKETCH {found.name} ..., or a copy of the file",
    )


def _refuse_members(workloads: Mapping[str, StoredWorkload], names: Iterable[str], where: str) -> None:
    """Refuse to change one of the sketches that were planned together, unless all of them go."""
    members = {s.lower(): w.name for w in workloads.values() for s in w.sketches}
    for name in names:
        if name in members or name in workloads:
            whole = members.get(name, name)
            raise UnsupportedQuery(
                f"sketch {name} in {where} is one of the sketches {whole}, which are kept together",
                "SKIMQL_SKETCH_OF_GROUP",
                hint=f"CREATE OR REPLACE SKETCHES {whole} ..., DROP SKETCH {whole}",
            )


def _refuse_overwritten(entries: Mapping[str, Entry], sketches: Iterable[StoredSketch], where: str) -> None:
    """Refuse sketches planned together under the name of one that was not planned with them."""
    for sketch in sketches:
        if sketch.head.name.lower() in entries:
            raise UnsupportedQuery(
                f"there is a sketch {sketch.head.name} in {where} already",
                "SKIMQL_SKETCHES_EXIST",
                hint=f"DROP SKETCH `{sketch.head.name}`, or another name for the new ones",
            )


def _verified(found: Entry, data: bytes, where: str, most_bytes: int) -> StoredSketch:
    """The sketch in the bytes of its file, if they are those that the manifest names."""
    if found.head is None:
        version = found.metadata["format_version"]
        raise IncompatibleSketches(
            f"{where} has format version {version}; this SkimQL reads versions up to {FORMAT_VERSION}",
            "SKIMQL_NEWER_FORMAT",
            hint="a newer SkimQL",
        )
    if digest(data) != found.sha256:
        raise _damaged(found, where)
    sketch = decode(data, where, most_bytes)
    if metadata_digest(sketch.head) != metadata_digest(found.head):
        raise CorruptSketch(f"{where} is not the file of sketch {found.name}: its metadata are others")
    return sketch


def _strerror(fault: OSError) -> str:
    return fault.strerror or (str(fault).splitlines() or [type(fault).__name__])[0]
