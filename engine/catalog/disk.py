"""Files on this machine: made whole or not at all and never in the place of another, read only where they are files.

The process's umask is never changed: the kernel applies it to the mode that a file is made with.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

SHARED, PRIVATE = 0o666, 0o600


def create(path: Path, data: bytes, mode: int = SHARED) -> None:
    """Make a file with these bytes, on the disk when this returns.

    Raises
    ------
    FileExistsError
        If anything has that name; it stays as it is.
    OSError
        If the file system refuses; nothing has appeared then.

    Notes
    -----
    Where the system can, the file gets its name only when it is whole: whoever is killed before leaves nothing.
    Elsewhere the name is taken first, and what was killed is a file cut short under just the name that was asked for.
    """
    try:
        handle = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
    except (AttributeError, OSError) as fault:
        if isinstance(fault, OSError) and fault.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise
        _create_in_place(path, data, mode)
        return
    try:
        _fill(handle, data)
        # A link at /proc is followed only where linkat is told to.
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)
    finally:
        os.close(handle)
    sync_folder(path.parent)


def replace(path: Path, data: bytes, by: Path, mode: int = SHARED) -> None:
    """Put a file in the place of another in one step, through the new name `by`; it keeps the mode of the other."""
    create(by, data, mode)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(by, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(by, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(by)
        raise
    sync_folder(path.parent)


def remove_made(folder: Path, made: Callable[[str], bool]) -> None:
    """Remove the files below a folder that are known by their names, and folders that are empty then.

    Parameters
    ----------
    folder : Path
        A link is not followed; nothing is removed where there is none.
    made : callable
        Whether a file is ours, by its path from `folder`, with slashes. Whatever is not stays, with its folders.
    """
    for place, folders, files in os.walk(folder, topdown=False):
        here = Path(place)
        for name in files:
            if made((here / name).relative_to(folder).as_posix()):
                with contextlib.suppress(OSError):
                    os.unlink(here / name)
        for name in folders:
            with contextlib.suppress(OSError):
                os.rmdir(here / name)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def read(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file.

    Raises
    ------
    FileNotFoundError
        If there is none.
    OSError
        If it is a pipe, a device or anything else than a file, or has more than `most` bytes.
    """
    # A pipe without a writer would hold an open for ever; of a file the flag changes nothing.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as source:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if most is not None and state.st_size > most:
            raise too_large(state.st_size, most)
        data = source.read() if most is None else source.read(min(most, state.st_size) + 1)
    if most is not None and len(data) > most:
        raise too_large(len(data), most)
    return data


def too_large(size: int, most: int) -> OSError:
    """The fault of a file that has more bytes than its reader takes."""
    return OSError(errno.EFBIG, f"it has {size:,} bytes, and {most:,} are the most that are read")


def sync_folder(folder: Path) -> None:
    """Make new names durable; some file systems cannot sync a folder."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _create_in_place(path: Path, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    try:
        _fill(handle, data)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(handle)
    sync_folder(path.parent)


def _fill(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)
