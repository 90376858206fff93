"""Ctrl-C, noted where it comes and looked at where somebody waits: raised, it would end anything in its middle."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator


class Interrupts:
    """The signal of Ctrl-C in this process."""

    def __init__(self) -> None:
        self._came: float | None = None
        self._raises = False

    def install(self) -> None:
        """Note the signal from now on."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: object) -> None:
        self._came = time.monotonic()
        if self._raises:
            raise KeyboardInterrupt

    def take(self, within: float = float("inf")) -> bool:
        """Whether it came since it was last asked for, at most so many seconds ago; it is forgotten then."""
        came, self._came = self._came, None
        return came is not None and time.monotonic() - came <= within

    def put_back(self) -> None:
        """What was taken is for somebody else."""
        self._came = time.monotonic()

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Within, the signal is a KeyboardInterrupt at once: for a read that waits for a key."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False
            self._came = None


INTERRUPTS = Interrupts()
