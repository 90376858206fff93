"""The progress line of the command, on stderr: as the shell draws it, beside the statement that runs."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from .shell.waiting import PERIOD, WaitingLine
from .streams import is_unicode

if TYPE_CHECKING:
    from .. import Answer, JobProgress

PLANNING = "planning"


class ProgressLine:
    """What runs, how far it is and how long it may take: while jobs run, and between them.

    Attributes
    ----------
    progress : JobProgress or None
        Of the job that runs.
    """

    def __init__(self, sink: TextIO | None = None) -> None:
        self._sink = sys.stderr if sink is None else sink
        self.progress: JobProgress | None = None

    def update(self, progress: JobProgress) -> None:
        """How far the running job is."""
        self.progress = progress

    def done(self) -> None:
        """The job is over, there may be more of them."""
        self.progress = None

    @contextlib.contextmanager
    def shown(self, phase: Callable[[], str] = lambda: PLANNING) -> Iterator[None]:
        """Within, the line is drawn, by a thread beside; `phase` tells what goes on while no job runs."""
        ended = threading.Event()
        line = WaitingLine(self._sink)

        def draw() -> None:
            # A terminal that is gone takes no line.
            with contextlib.suppress(OSError, ValueError):
                while not ended.wait(PERIOD):
                    line.tick(phase(), self.progress, self.above())
                line.close()

        drawing = threading.Thread(target=draw, name="skimql progress", daemon=True)
        drawing.start()
        try:
            yield
        finally:
            ended.set()
            drawing.join()

    def above(self) -> str:
        """What stands above the line."""
        return ""


class RefinedLine(ProgressLine):
    """With the estimate so far above it, refined in place.

    Attributes
    ----------
    estimate : Answer or None
        Of the statement that runs.
    """

    def __init__(self, sink: TextIO | None = None) -> None:
        super().__init__(sink)
        self.estimate: Answer | None = None
        self._drawn: tuple[Answer, str] | None = None

    def estimated(self, answer: Answer) -> None:
        """A statement that goes on to a better answer has this one."""
        self.estimate = answer

    def above(self) -> str:
        """The estimate as it fits the terminal."""
        answer = self.estimate
        if answer is None:
            return ""
        if self._drawn is None or self._drawn[0] is not answer:
            from .shell.refined import so_far
            from .shell.results import Screen

            size = shutil.get_terminal_size()
            self._drawn = answer, so_far(answer, Screen(size.columns, is_unicode(self._sink)), size.lines)
        return self._drawn[1]
