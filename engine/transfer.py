"""Files of EXPORT and IMPORT: a path or URI as the user writes it, never one made of a name."""

from __future__ import annotations

from ..errors import DataError
from .catalog.folder import Folder, LocalFolder, local_path, open_folder


def write_new(path: str, data: bytes, sql: str, place: tuple[int, int]) -> None:
    """Write a file that must not be there yet, whole or not at all.

    Raises
    ------
    DataError
        ``SKIMQL_FILE_EXISTS``, or ``SKIMQL_NOT_EXPORTED`` where the store refuses.
    """
    folder, name = _split(path)
    try:
        if folder.stamp(name) is not None:
            raise DataError(
                f"there is a file {path} already", "SKIMQL_FILE_EXISTS", sql, place, "another path"
            )
        if isinstance(folder, LocalFolder) and not folder.path.is_dir():
            raise FileNotFoundError(2, "no such folder", str(folder.path))
        folder.write(name, data)
    except OSError as fault:
        raise DataError(
            f"{path} cannot be written: {fault.strerror or fault}", "SKIMQL_NOT_EXPORTED", sql, place
        ) from fault


def read_file(path: str, sql: str, place: tuple[int, int]) -> bytes:
    """The bytes of a file; DataError ``SKIMQL_NO_SUCH_FILE`` or ``SKIMQL_UNREADABLE_FILE`` if there are none."""
    folder, name = _split(path)
    try:
        return folder.read(name)
    except FileNotFoundError as fault:
        raise DataError(f"there is no file {path}", "SKIMQL_NO_SUCH_FILE", sql, place) from fault
    except OSError as fault:
        raise DataError(
            f"{path} cannot be read: {fault.strerror or fault}", "SKIMQL_UNREADABLE_FILE", sql, place
        ) from fault


def _split(path: str) -> tuple[Folder, str]:
    """Folder and name of a path or URI."""
    if "://" in path:
        parent, _, name = path.rpartition("/")
        return open_folder(parent), name
    local = local_path(path)
    return open_folder(local.parent), local.name
