"""What a study of faults counts."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skimql.errors import SkimqlError

SLOW_SECONDS = 10.0
LARGE_MB = 1024.0


@dataclass
class Tally:
    """Tries and faults of one study.

    Attributes
    ----------
    study : str
    tries : int
    ours : int
        Tries that ended in an error of SkimQL's own, as wanted of bad input.
    wrong, lost, foreign, crashes, slow, large : list of str
        What was tried, of each try that gave a wrong value without a warning; lost what was kept; touched a file
        that SkimQL did not make; ended in an exception that is not SkimQL's; took above `SLOW_SECONDS`; grew the
        process by more than `LARGE_MB`.
    """

    study: str
    tries: int = 0
    ours: int = 0
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)
    slowest_seconds: float = 0.0

    @contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """Count one try, which may end in an error of SkimQL's and in no other; `what` tells how to repeat it."""
        started, before = time.perf_counter(), _peak_mb()
        try:
            yield
        except SkimqlError:
            self.ours += 1
        except Exception as fault:
            self.crashes.append(f"{what}: {type(fault).__name__}: {str(fault)[:120]}")
        seconds = time.perf_counter() - started
        self.tries += 1
        self.slowest_seconds = max(self.slowest_seconds, seconds)
        if seconds > SLOW_SECONDS:
            self.slow.append(f"{what}: {seconds:.1f} s")
        if _peak_mb() - before > LARGE_MB:
            self.large.append(f"{what}: {_peak_mb() - before:.0f} MB")

    @property
    def faults(self) -> int:
        """All faults of all kinds."""
        kinds = (self.wrong, self.lost, self.foreign, self.crashes, self.slow, self.large)
        return sum(map(len, kinds))


# A study: (tries, seed, an empty folder of its own) -> what happened.
Study = Callable[[int, int, Path], Tally]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
