"""Running one Spark job: its progress to a listener, and Ctrl-C that cancels it and nothing else."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from ...errors import EnvironmentFault
from ..observed import metered
from .quiet import quiet_gateway

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.1

# What Spark says where the process behind a task is gone, and what the JVM's side of the connection says.
_WORKER_DIED = ("Python worker exited unexpectedly", "Python worker failed to connect back")
_CONNECTION_LOST = ("Connection reset", "Broken pipe", "EOFException")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is.

    Attributes
    ----------
    description : str
        What runs.
    tasks_done, tasks : int
        Finished and known tasks.
    rows : int
        Rows read from the sources so far, as Spark reports them: at the end of each task, and every ten seconds.
    seconds : float
        Wall time since the start.
    bytes : int
        Read from files so far, as Spark reports them.
    """

    description: str
    tasks_done: int
    tasks: int
    rows: int = 0
    seconds: float = 0.0
    bytes: int = 0

    @property
    def share(self) -> float | None:
        """Finished share in [0, 1]; None while the number of tasks is unknown."""
        return self.tasks_done / self.tasks if self.tasks else None

    @property
    def rows_per_second(self) -> float | None:
        """Rows read a second; None before any is reported."""
        return self.rows / self.seconds if self.rows and self.seconds else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace so far; None before a task has ended."""
        return self.seconds * (1 / self.share - 1) if self.share else None


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
    """Run `action`, which starts Spark jobs that only read, under a job tag of its own.

    KeyboardInterrupt in the calling thread cancels them, waits for their end, and is raised again. They stay in the
    job group of the caller, where it has one, and are cancelled with it: by who has asked a Thrift server. Where a
    Python worker dies and Spark gives up (a local one does not repeat tasks), all is done once more.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_WORKER_DIED``, if a worker dies again; ``SKIMQL_SPARK_FAILED`` where memory or disk is lacking.
    """
    with quiet_gateway():
        return _run_twice(spark, description, action, listener)


def _run_twice(
    spark: SparkSession,
    description: str,
    action: Callable[[], Result],
    listener: ProgressListener | None,
) -> Result:
    try:
        return twice_if_worker_dies(description, lambda: _run(spark, description, action, listener))
    except EnvironmentFault:
        raise
    except Exception as fault:
        _raise_if_out_of_room(fault)
        raise


def twice_if_worker_dies(
    description: str,
    action: Callable[[], Result],
    way_out: str = "SET skimql.route = jvm, which needs no Python workers",
) -> Result:
    """What `action` gives, which is called once more where a Python worker of Spark has died.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_WORKER_DIED``, if a worker dies again.
    """
    try:
        return action()
    except Exception as fault:
        if not _is_dead_worker(fault):
            raise
    try:
        return action()
    except Exception as fault:
        if not _is_dead_worker(fault):
            raise
        raise EnvironmentFault(
            f"{description}: a Python worker of Spark died, and again when all was repeated; the system may have"
            " ended it for want of memory",
            "SKIMQL_WORKER_DIED",
            hint=f"{way_out}, or fewer tasks at once (spark.master)",
        ) from fault


def _raise_if_out_of_room(fault: Exception) -> None:
    """No statement of a query's says what would help where memory or disk is lacking."""
    from .session import out_of_room  # with pyspark, which tables in memory do without

    lacking = out_of_room(fault)
    if lacking is not None:
        raise lacking from fault


def _is_dead_worker(fault: Exception) -> bool:
    text = str(fault)
    lost = ".api.python." in text and any(said in text for said in _CONNECTION_LOST)
    return lost or any(said in text for said in _WORKER_DIED)


def _run(
    spark: SparkSession,
    description: str,
    action: Callable[[], Result],
    listener: ProgressListener | None,
) -> Result:
    if not hasattr(spark, "_jsc"):
        # Spark Connect has no status tracker.
        return action()
    from pyspark.util import inheritable_thread_target

    tag = f"skimql-{uuid.uuid4()}"
    context = spark.sparkContext
    outcome: list[Result] = []
    faults: list[BaseException] = []
    seen = metered()

    def work() -> None:
        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        context.setJobDescription(description)
        before = None if seen is None else _thread_cpu(spark)
        try:
            outcome.append(action())
        except BaseException as fault:
            faults.append(fault)
        if seen is not None and before is not None:
            here, in_jvm = (b - a for a, b in zip(before, _thread_cpu(spark), strict=True))
            seen.thread_seconds += here
            seen.jvm_thread_seconds += in_jvm

    if seen is not None:
        seen.jobs.append(tag)
    started = time.monotonic()
    thread = threading.Thread(target=inheritable_thread_target(spark)(work), name=tag, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            if listener is not None and thread.is_alive():
                listener.update(_progress(spark, tag, description, started))
    except KeyboardInterrupt:
        # A job that begins only now has the tag too: Spark cancels none that has not begun.
        while thread.is_alive():
            context.cancelJobsWithTag(tag)
            thread.join(POLL_SECONDS)
        raise
    finally:
        if listener is not None:
            listener.done()
    if faults:
        raise faults[0]
    return outcome[0]


def _thread_cpu(spark: SparkSession) -> tuple[float, float]:
    """CPU seconds of this thread, and of the one that serves it in the JVM."""
    from .meter import thread_cpu

    return time.thread_time(), thread_cpu(spark) or 0.0


def tagged_jobs(spark: SparkSession, tag: str) -> tuple[int, ...]:
    """The numbers of the jobs that have a tag, those that have ended too."""
    return tuple(spark.sparkContext._jsc.sc().statusTracker().getJobIdsForTag(tag))


def _progress(spark: SparkSession, tag: str, description: str, started: float) -> Progress:
    tracker = spark.sparkContext.statusTracker()
    stages = {stage for job in tagged_jobs(spark, tag) for stage in _stages_of(tracker, job)}
    done, tasks, rows, nbytes = (
        sum(figure) for figure in zip((0, 0, 0, 0), *map(partial(_figures, spark), stages), strict=True)
    )
    return Progress(description, done, tasks, rows, time.monotonic() - started, nbytes)


def _stages_of(tracker: StatusTracker, job: int) -> list[int]:
    info = tracker.getJobInfo(job)
    return list(info.stageIds) if info else []


def _figures(spark: SparkSession, stage: int) -> tuple[int, int, int, int]:
    """Finished tasks, tasks, rows and bytes read of a stage; zeros where Spark does not tell, or skips it."""
    from .java_faults import Py4JError

    try:
        # PySpark's status tracker counts neither rows nor skipped stages; the store behind it does.
        data = spark.sparkContext._jsc.sc().statusStore().lastStageAttempt(stage)
        if str(data.status()) == "SKIPPED":
            return 0, 0, 0, 0
        read = int(data.inputRecords()), int(data.inputBytes())
        return int(data.numCompleteTasks()), int(data.numTasks()), *read
    except (Py4JError, AttributeError, TypeError):
        return 0, 0, 0, 0
