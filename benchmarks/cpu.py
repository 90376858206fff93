"""CPU seconds of a process and all its descendants: driver, JVM and Spark's Python workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Spent:
    """What something took: CPU seconds of all processes, and seconds on the clock."""

    cpu_s: float
    wall_s: float


def measured(action: Callable[[], object]) -> Spent:
    """Run `action` and say what it took."""
    cpu, wall = tree_seconds(), time.perf_counter()
    action()
    return Spent(tree_seconds() - cpu, time.perf_counter() - wall)


def tree_seconds() -> float:
    """User and system time of this process and its descendants, the finished and waited-for ones included.

    Notes
    -----
    From Linux's ``/proc/<pid>/stat`` [proc(5)], in ticks of usually 10 ms. Threads are counted with their process.
    """
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command, which may contain anything, ends with the last parenthesis.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        ticks[int(entry.name)] = sum(int(x) for x in fields[11:15])
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    total, waiting = 0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += ticks.get(process, 0)
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")
