"""CPU seconds of a process and all its descendants: driver, JVM and Spark's Python workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Spent:
    """What something took: CPU seconds of all processes, and seconds on the clock."""

    cpu_s: float
    wall_s: float


def measured(action: Callable[[], object]) -> Spent:
    """Run `action` and say what it took."""
    meter = _Meter()
    wall = time.perf_counter()
    with meter:
        action()
    return Spent(meter.seconds, time.perf_counter() - wall)


class _Meter:
    """CPU time of a process tree while it is open, that of processes that end meanwhile up to the last look.

    From Linux's ``/proc/<pid>/stat`` [proc(5)], in ticks of usually 10 ms. Times of children that a process has waited
    for are left out: whether a Python worker's are handed on depends on who ends it.
    """

    def __init__(self) -> None:
        self._before = _ticks()
        self._last = dict(self._before)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._last |= _ticks()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._last |= _ticks()

    @property
    def seconds(self) -> float:
        """CPU seconds spent."""
        spent = sum(t - self._before.get(process, 0) for process, t in self._last.items())
        return spent / os.sysconf("SC_CLK_TCK")


def _ticks() -> dict[tuple[int, int], int]:
    """User and system time of this process and its descendants, by number and start time."""
    own: dict[int, tuple[int, int]] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command, which may contain anything, ends with the last parenthesis.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        own[int(entry.name)] = int(fields[19]), int(fields[11]) + int(fields[12])
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = {}, [os.getpid()]
    while waiting:
        process = waiting.pop()
        if process in own:
            found[process, own[process][0]] = own[process][1]
        waiting += children.get(process, [])
    return found
