"""Where a stream lies in its catalog's folder: checkpoint, lock, bad rows; and whether some process runs it."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from ...errors import StreamError
from ..catalog.catalog import Catalog
from ..catalog.disk import remove_made
from ..catalog.folder import LocalFolder
from ..catalog.streams import StoredStream
from ..materialized.definition import now

FOLDER = "streams"  # of the catalog's; in it a folder of each stream, by its id

# Files of ours there, and of Spark's: its checkpoint, its state stores, and the rows that it has written apart.
_SPARKS = "|".join(
    (
        r"\d+|metadata|_metadata|schema|__tmp_path_dir|_SUCCESS",
        r"\d+(\.\d+)*\.(delta|snapshot|zip|changelog|compact|json)",
        r"\d+_[\w.-]+\.(zip|changelog)",
        r"part-[\w.-]+\.json|rows\.json",
    )
)
_HIDDEN = rf"\.({_SPARKS})(\.[\w-]+\.tmp)?(\.crc)?"
_MADE = re.compile(rf"lock|holder|(checkpoint|quarantine)/(.*/)?(({_SPARKS})|{_HIDDEN})")


def stream_folder(catalog: Catalog, stream: StoredStream) -> Path:
    """The folder of a stream.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_CATALOG`` if the catalog is no local folder.
    """
    if not isinstance(catalog.folder, LocalFolder):
        where = f"in {catalog.where}" if catalog.lasting else "in memory"
        raise StreamError(
            f"streams need a catalog in a local folder, and this session has one {where}",
            "SKIMQL_STREAM_CATALOG",
            hint="skimql.Session(catalog='folder')",
        )
    return Path(catalog.folder.path) / FOLDER / stream.id


def forget_folder(catalog: Catalog, stream: StoredStream) -> None:
    """Delete what SkimQL and Spark have made in the folder of a stream that the catalog does not have any more."""
    remove_made(stream_folder(catalog, stream), lambda path: _MADE.fullmatch(path) is not None)


def lock_of(catalog: Catalog, stream: StoredStream) -> FileLock:
    """The lock that who runs the stream holds."""
    return FileLock(stream_folder(catalog, stream) / "lock", timeout=0, thread_local=False)


def say_holder(catalog: Catalog, stream: StoredStream) -> None:
    """Leave word beside the lock of who holds it: this process."""
    word = f"process {os.getpid()} on {socket.gethostname()}, since {now()}"
    with contextlib.suppress(OSError):
        (stream_folder(catalog, stream) / "holder").write_text(word)


def held_by(catalog: Catalog, stream: StoredStream) -> str:
    """Who holds the lock of a stream, in brackets, as far as it has left word."""
    try:
        return f" ({(stream_folder(catalog, stream) / 'holder').read_text()[:200]})"
    except (OSError, UnicodeDecodeError):
        return ""


def is_running(catalog: Catalog, stream: StoredStream) -> bool:
    """Whether some process runs a stream."""
    if not (stream_folder(catalog, stream) / "lock").exists():
        return False
    lock = lock_of(catalog, stream)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False
