"""Where the files of a catalog lie: a local folder, any file system that pyarrow or fsspec knows, or memory.

Files with names of their own are written once and never overwritten. The one name that is written again, that of the
manifest, is replaced in one step where the store can do so. What may be deleted or replaced is for `changes` to say.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from ...errors import DataError
from . import disk
from .secrets import redacted

LOCK_SECONDS = 60.0
STAMP_SECONDS = 1.0
LOCK = "catalog.lock"
# Object stores, where writing a file in place is one step, and renaming is not.
_OBJECT_STORES = ("s3", "gcs", "abfs")
# Object stores tell times in seconds: what changes twice in one looks the same.
_SETTLED_SECONDS = 3.0


class Folder(Protocol):
    """A flat folder of files. Names are our own, never a user's."""

    @property
    def where(self) -> str:
        """The folder as a user would write it, for messages."""

    def read(self, name: str, most: int | None = None) -> bytes:
        """The bytes of a file; FileNotFoundError if there is none, OSError if it is none or has more than `most`."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file that is not there yet; FileExistsError where the store can tell that it is."""

    def replace(self, name: str, data: bytes, by: str) -> None:
        """Write a file or put it in the place of another, through the new name `by` where the store needs one."""

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""

    def names(self) -> list[str]:
        """Names of all that is there, files or not; none if there is no folder."""

    def stamp(self, name: str) -> object:
        """Something that changes when the file does; None if there is no file."""

    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """Keeps other writers out; readers do not look at it."""


def open_folder(location: str | Path) -> Folder:
    """The folder at a path or URI; it need not exist.

    Raises
    ------
    DataError
        ``SKIMQL_CATALOG_UNREADABLE`` for a scheme that neither pyarrow nor fsspec knows.
    """
    text = str(location)
    if "://" not in text:
        return LocalFolder(local_path(text))
    file_system, path = resolve_uri(text)
    from pyarrow.fs import LocalFileSystem

    if not path.strip("/"):
        raise DataError(f"{text} names no folder", "SKIMQL_BAD_PATH", hint=f"{text.rstrip('/')}/sketches")
    if isinstance(file_system, LocalFileSystem):
        return LocalFolder(Path(path))
    return RemoteFolder(file_system, path, redacted(text.partition("?")[0]))


def local_path(text: str) -> Path:
    """A path as the user writes it, ``~`` and all.

    Raises
    ------
    DataError
        ``SKIMQL_BAD_PATH`` if no file can have it, or it is in the home of a user who is not there.
    """
    if "\0" in text:
        raise DataError(f"{text!r} is no path: no name of a file has a NUL in it", "SKIMQL_BAD_PATH")
    try:
        return Path(text).expanduser()
    except RuntimeError as fault:
        user = text.partition("/")[0]
        raise DataError(f"{text}: there is no home of {user}", "SKIMQL_BAD_PATH", hint=f"./{text}") from fault


def resolve_uri(uri: str) -> tuple[Any, str]:
    """File system and path of a URI; DataError if nobody knows its scheme."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    faults = []
    for text in (uri, f"fsspec+{uri}"):
        try:
            file_system, path = FileSystem.from_uri(text)
        except (pa.ArrowException, OSError, ImportError, ValueError) as fault:
            faults.append(redacted((str(fault).splitlines() or [type(fault).__name__])[0]))
        else:
            return file_system, path
    raise DataError(f"{redacted(uri)}: {faults[0]}", "SKIMQL_CATALOG_UNREADABLE", hint="pip install fsspec")


class LocalFolder:
    """A folder on this machine. Files are flushed to the disk before their names appear."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def where(self) -> str:
        """See `Folder`."""
        return str(self.path)

    def read(self, name: str, most: int | None = None) -> bytes:
        """See `Folder`."""
        return disk.read(self.path / name, most)

    def write(self, name: str, data: bytes) -> None:
        """See `Folder`; on the disk when it returns."""
        disk.create(self.path / name, data, _mode(name))

    def replace(self, name: str, data: bytes, by: str) -> None:
        """See `Folder`; atomic, and on the disk when it returns."""
        disk.replace(self.path / name, data, self.path / by, _mode(name))

    def delete(self, name: str) -> None:
        """See `Folder`."""
        (self.path / name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """See `Folder`."""
        try:
            return sorted(os.listdir(self.path))
        except FileNotFoundError:
            return []

    def stamp(self, name: str) -> object:
        """See `Folder`."""
        try:
            state = os.stat(self.path / name)
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino

    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """See `Folder`."""
        self.path.mkdir(parents=True, exist_ok=True)
        return _file_lock(self.path / LOCK)


class RemoteFolder:
    """A folder on a pyarrow file system: object stores, HDFS, whatever fsspec knows.

    Parameters
    ----------
    file_system : pyarrow.fs.FileSystem
    path : str
        On that file system.
    where : str
        For messages.

    Notes
    -----
    Another writer's change may be seen a second late: looking costs a round trip. The lock holds for the writers of one
    machine. Writers on several machines must agree among themselves.
    """

    def __init__(self, file_system: Any, path: str, where: str = "") -> None:
        self.file_system = file_system
        self.path = path.rstrip("/")
        self._where = where or path
        self._stamps: dict[str, tuple[float, object]] = {}

    @property
    def where(self) -> str:
        """See `Folder`."""
        return self._where

    def read(self, name: str, most: int | None = None) -> bytes:
        """See `Folder`."""
        with self.file_system.open_input_stream(f"{self.path}/{name}") as source:
            data = bytes(source.read() if most is None else source.read(most + 1))
        if most is not None and len(data) > most:
            raise disk.too_large(len(data), most)
        return data

    def write(self, name: str, data: bytes) -> None:
        """See `Folder`."""
        self._stamps.pop(name, None)
        self.file_system.create_dir(self.path, recursive=True)
        with self.file_system.open_output_stream(f"{self.path}/{name}") as sink:
            sink.write(data)

    def replace(self, name: str, data: bytes, by: str) -> None:
        """See `Folder`; where the store refuses to rename, or need not, the file is written in place."""
        if self.file_system.type_name in _OBJECT_STORES:
            self.write(name, data)
            return
        self.write(by, data)
        try:
            self.file_system.move(f"{self.path}/{by}", f"{self.path}/{name}")
            self._stamps.pop(name, None)
        except (OSError, NotImplementedError):
            self.write(name, data)
            self.delete(by)

    def delete(self, name: str) -> None:
        """See `Folder`."""
        with contextlib.suppress(FileNotFoundError):
            self.file_system.delete_file(f"{self.path}/{name}")

    def names(self) -> list[str]:
        """See `Folder`."""
        from pyarrow.fs import FileSelector

        found = self.file_system.get_file_info(FileSelector(self.path, allow_not_found=True))
        return sorted(f.base_name for f in found)

    def stamp(self, name: str) -> object:
        """See `Folder`; asked for at most once in `STAMP_SECONDS`."""
        from pyarrow.fs import FileType

        at, known = self._stamps.get(name, (-STAMP_SECONDS, None))
        if time.monotonic() - at < STAMP_SECONDS:
            return known
        found = self.file_system.get_file_info(f"{self.path}/{name}")
        stamp: object = (found.mtime_ns, found.size)
        if found.type == FileType.NotFound:
            stamp = None
        elif found.mtime_ns is None or time.time() - found.mtime_ns / 1e9 < _SETTLED_SECONDS:
            stamp = object()  # nothing tells yet: it counts as changed
        self._stamps[name] = (time.monotonic(), stamp)
        return stamp

    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """See `Folder`."""
        import platformdirs

        locks = Path(platformdirs.user_cache_dir("skimql")) / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return _file_lock(locks / f"{hashlib.sha256(self.where.encode()).hexdigest()}.lock")


class MemoryFolder:
    """A folder that lives as long as the session."""

    where = "this session"

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, bytes]] = {}
        self._writes = 0

    def read(self, name: str, most: int | None = None) -> bytes:
        """See `Folder`."""
        if name not in self._files:
            raise FileNotFoundError(name)
        return self._files[name][1]

    def write(self, name: str, data: bytes) -> None:
        """See `Folder`."""
        if name in self._files:
            raise FileExistsError(name)
        self.replace(name, data, "")

    def replace(self, name: str, data: bytes, by: str) -> None:
        """See `Folder`."""
        self._writes += 1
        self._files[name] = (self._writes, data)

    def delete(self, name: str) -> None:
        """See `Folder`."""
        self._files.pop(name, None)

    def names(self) -> list[str]:
        """See `Folder`."""
        return list(self._files)

    def stamp(self, name: str) -> object:
        """See `Folder`."""
        return self._files[name][0] if name in self._files else None

    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """See `Folder`."""
        return contextlib.nullcontext()


def _mode(name: str) -> int:
    """Manifests hold options of readers; sketches do not. Either way the umask takes away more."""
    return disk.PRIVATE if name.endswith(".json") else disk.SHARED


@contextlib.contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    _refuse_other_lock(path)
    try:
        held = FileLock(path, timeout=LOCK_SECONDS)
        held.acquire()
    except Timeout as fault:
        raise DataError(
            f"{path} has been locked for {LOCK_SECONDS:g} s: another writer is at work",
            "SKIMQL_CATALOG_LOCKED",
            hint="wait for it; the lock goes with the process that holds it",
        ) from fault
    try:
        yield
    finally:
        held.release()


def _refuse_other_lock(path: Path) -> None:
    """A lock is an empty file; locking would empty any other."""
    try:
        state = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(state.st_mode) or state.st_size:
        raise DataError(
            f"{path} is not empty or no file, so it is no lock of SkimQL's",
            "SKIMQL_CATALOG_LOCKED",
            hint="move it away",
        )
