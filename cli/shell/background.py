"""What runs beside the prompt: the one thread of the statements, in which Spark starts too.

They run in a thread of their own so that Ctrl-C, which Python raises in the main one, interrupts no call to the JVM.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ... import Answer, JobProgress


class Task:
    """A piece of work in the thread of the statements.

    Attributes
    ----------
    estimate : Answer or None
        What it has found so far, where it goes on to a better answer.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.done = threading.Event()
        self.cancelled = threading.Event()
        self.result: Any = None
        self.estimate: Answer | None = None
        self.fault: BaseException | None = None

    def run(self) -> None:
        """Do the work, unless it was cancelled before."""
        try:
            if self.cancelled.is_set():
                raise KeyboardInterrupt
            self.result = self._work()
        except BaseException as fault:
            self.fault = fault
        finally:
            self.done.set()


class Worker:
    """The thread of the statements: one after the other; also the listener of their jobs.

    Attributes
    ----------
    progress : JobProgress or None
        Of the job that runs.
    """

    def __init__(self) -> None:
        self._tasks: queue.Queue[Task] = queue.Queue()
        self._task: Task | None = None
        self.progress: JobProgress | None = None
        threading.Thread(target=self._run, name="skimql statements", daemon=True).start()

    def submit(self, work: Callable[[], Any]) -> Task:
        """Have some work done after all that was submitted before."""
        task = Task(work)
        self._tasks.put(task)
        return task

    @property
    def is_busy(self) -> bool:
        """Whether something runs."""
        task = self._task
        return task is not None and not task.done.is_set()

    def _run(self) -> None:
        while True:
            self._task = self._tasks.get()
            self.progress = None
            self._task.run()
            self.progress = None

    def update(self, progress: JobProgress) -> None:
        """How far the running job is; a task that was cancelled has its job cancelled here."""
        self.progress = progress
        if self._task is not None and self._task.cancelled.is_set():
            raise KeyboardInterrupt

    def done(self) -> None:
        """The job is over, the statement may have more of them."""
        self.progress = None

    def estimated(self, answer: Answer) -> None:
        """A statement that goes on to a better answer has this one; one that was cancelled does not go on."""
        if self._task is not None:
            self._task.estimate = answer
            if self._task.cancelled.is_set():
                raise KeyboardInterrupt
