"""Folders of this process alone, removed when it ends: at its exit, and where a signal ends it."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

# Signals that end a process at once unless somebody handles them.
_DEADLY = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_folders: dict[Path, int] = {}
_before: list[tuple[int, Callable[[], None]]] = []


def scratch_folder(prefix: str) -> Path:
    """A new empty folder for this process, which is removed with all that is in it when the process ends.

    Not for a process that is killed outright, nor for the children that it forks.
    """
    if not _folders:
        atexit.register(_remove)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _folders[folder] = os.getpid()
    watch()
    return folder


def end_first(stop: Callable[[], None]) -> None:
    """Call `stop` before the folders go where a signal ends the process: it ends who still writes there."""
    _before.append((os.getpid(), stop))


def _remove() -> None:
    for folder, owner in list(_folders.items()):
        if owner == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
            del _folders[folder]


def watch() -> None:
    """Handle the deadly signals that nobody handles yet; only the main thread may.

    Who makes folders in other threads calls it before.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _DEADLY:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    """Tidy up, then end as the signal would have ended the process."""
    signal.signal(number, signal.SIG_DFL)
    for owner, stop in _before:
        if owner == os.getpid():
            with contextlib.suppress(Exception):
                stop()
    _remove()
    os.kill(os.getpid(), number)
