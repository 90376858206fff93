"""Files of EXPORT and IMPORT: a path or URI as the user writes it, never one made of a name."""

from __future__ import annotations

from ...errors import DataError
from ..catalog import disk
from ..catalog.folder import Folder, LocalFolder, local_path, open_folder
from ..catalog.secrets import redacted


def write_new(path: str, data: bytes, sql: str, place: tuple[int, int]) -> None:
    """Write a file that must not be there yet, whole or not at all.

    On this machine nothing is looked at first: the file gets its name in one step that fails where the name is taken.

    Raises
    ------
    DataError
        ``SKIMQL_FILE_EXISTS``, or ``SKIMQL_NOT_EXPORTED`` where the store refuses.
    """
    try:
        folder, name = _split(path)
        if isinstance(folder, LocalFolder):
            disk.create(folder.path / name, data)
        elif folder.stamp(name) is not None:
            raise FileExistsError(path)
        else:
            folder.write(name, data)
    except FileExistsError as fault:
        raise DataError(
            f"there is a file {redacted(path)} already", "SKIMQL_FILE_EXISTS", sql, place, "another path"
        ) from fault
    except (OSError, ValueError, RuntimeError) as fault:
        raise DataError(
            f"{redacted(path)} cannot be written: {_said(fault)}", "SKIMQL_NOT_EXPORTED", sql, place
        ) from fault


def read_file(path: str, most: int, sql: str, place: tuple[int, int]) -> bytes:
    """The bytes of a regular file of up to `most` bytes.

    Raises
    ------
    DataError
        ``SKIMQL_NO_SUCH_FILE``, or ``SKIMQL_UNREADABLE_FILE`` for what is no file, too large or cannot be read.
    """
    try:
        folder, name = _split(path)
        return folder.read(name, most)
    except FileNotFoundError as fault:
        raise DataError(f"there is no file {redacted(path)}", "SKIMQL_NO_SUCH_FILE", sql, place) from fault
    except (OSError, ValueError, RuntimeError) as fault:
        raise DataError(
            f"{redacted(path)} cannot be read: {_said(fault)}", "SKIMQL_UNREADABLE_FILE", sql, place
        ) from fault


def _said(fault: Exception) -> str:
    return getattr(fault, "strerror", None) or (str(fault).splitlines() or [type(fault).__name__])[0]


def _split(path: str) -> tuple[Folder, str]:
    """Folder and name of a path or URI."""
    if "://" in path:
        place, mark, options = path.partition("?")
        parent, _, name = place.rpartition("/")
        return open_folder(parent + mark + options), name
    local = local_path(path)
    return open_folder(local.parent), local.name
