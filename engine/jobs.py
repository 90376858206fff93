"""Running one Spark job: its progress to a listener, and Ctrl-C that cancels it and nothing else."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.1

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: finished and known tasks; `share` is None while their number is unknown."""

    description: str
    tasks_done: int
    tasks: int

    @property
    def share(self) -> float | None:
        """Finished share in [0, 1]."""
        return self.tasks_done / self.tasks if self.tasks else None


class ProgressListener(Protocol):
    """Is told now and then how far a job is, and once when it ends (also when it fails)."""

    def update(self, progress: Progress) -> None:
        """At most ten times a second while the job runs."""

    def done(self) -> None:
        """The job is over."""


def run_job(
    spark: SparkSession,
    description: str,
    action: Callable[[], Result],
    listener: ProgressListener | None = None,
) -> Result:
    """Run `action`, which starts Spark jobs, in a job group of its own.

    KeyboardInterrupt in the calling thread cancels the group, waits for it to end, and is raised again.
    """
    if not hasattr(spark, "_jsc"):
        # Spark Connect has neither job groups nor a status tracker.
        return action()
    from pyspark.util import inheritable_thread_target

    group = f"skimql-{uuid.uuid4()}"
    context = spark.sparkContext
    outcome: list[Result] = []
    faults: list[BaseException] = []

    def work() -> None:
        context.setJobGroup(group, description, interruptOnCancel=True)
        try:
            outcome.append(action())
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=inheritable_thread_target(spark)(work), name=group, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            if listener is not None and thread.is_alive():
                listener.update(_progress(spark, group, description))
    except KeyboardInterrupt:
        context.cancelJobGroup(group)
        thread.join()
        raise
    finally:
        if listener is not None:
            listener.done()
    if faults:
        raise faults[0]
    return outcome[0]


def _progress(spark: SparkSession, group: str, description: str) -> Progress:
    tracker = spark.sparkContext.statusTracker()
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            stage_info = tracker.getStageInfo(stage)
            if stage_info:
                done += stage_info.numCompletedTasks
                tasks += stage_info.numTasks
    return Progress(description, done, tasks)
