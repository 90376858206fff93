"""The progress line on stderr while a scan or an exact run is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from .. import JobProgress


class ProgressLine:
    """Shows the running job: finished tasks, rows read, elapsed and remaining time; gone when it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def update(self, progress: JobProgress) -> None:
        """Redraw; the line appears with the first call."""
        if self._shown is None or self._task is None:
            self._shown = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} tasks{task.fields[rows]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )
            self._shown.start()
            self._task = self._shown.add_task(progress.description, total=None, rows="", left="")
        self._shown.update(
            self._task,
            description=progress.description,
            completed=progress.tasks_done,
            total=progress.tasks or None,
            rows=_rows(progress),
            left=_left(progress),
        )

    def done(self) -> None:
        """Take the line away."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def _rows(progress: JobProgress) -> str:
    pace = progress.rows_per_second
    return "" if pace is None else f", {progress.rows:,} rows, {pace:,.0f} rows/s"


def _left(progress: JobProgress) -> str:
    left = progress.seconds_left
    return "" if left is None else f"{left:,.0f} s left"
