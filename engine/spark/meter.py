"""What Spark's jobs of ours take: CPU and bytes read, whatever else runs beside them.

Of tasks it is what Spark counts for the stages of our jobs. What planning, compiling, shipping and collecting
take beside them Spark does not count: it is all else that the JVM's process took meanwhile, if no other job ran in it;
else only what our own threads in the JVM took. Python workers say themselves what they took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..observed import Measured, Observation
from .java_faults import Py4JError
from .jobs import tagged_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NANO = 1e-9

# What Spark may answer where it does not tell, or is gone.
_UNTOLD = (Py4JError, OSError, TypeError, AttributeError)

# How long events of jobs that are over may take to be told, in milliseconds.
MOST_WAIT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Mark:
    """CPU seconds so far: of the calling thread, of its one in the JVM, of the JVM; jobs started, and jobs that run."""

    thread: float
    jvm_thread: float | None = None
    jvm: float | None = None
    started: int = 0
    running: int = 0


@dataclass(frozen=True)
class SparkMeter:
    """Measures operators on Spark, and those that need none.

    Attributes
    ----------
    running : callable
        Gives the Spark session, if there is one already.
    counts_bytes : callable
        Whether Spark counts what it reads of the query's tables; asked where a job has run.
    """

    running: Callable[[], SparkSession | None]
    counts_bytes: Callable[[], bool]

    def mark(self) -> Mark:
        """CPU seconds so far."""
        spark = self._spark()
        thread = time.thread_time()
        if spark is None:
            return Mark(thread)
        try:
            # The scheduler itself: what is told of jobs comes later.
            scheduler = spark.sparkContext._jsc.sc().dagScheduler()
            started, running = int(scheduler.nextJobId()), int(scheduler.activeJobs().size())
            return Mark(thread, thread_cpu(spark), _process_cpu(spark), started, running)
        except _UNTOLD:
            return Mark(thread)

    def since(self, mark: object, own: Observation) -> Measured:
        """See `Meter.since`."""
        assert isinstance(mark, Mark), "a mark of this meter"
        spark, thread = self._spark(), time.thread_time() - mark.thread
        if spark is None and self.running() is not None:
            # Nothing tells what a server of Spark Connect has spent.
            return Measured()
        tags = list(_tags(own))
        cpu = thread + sum(o.worker_seconds + o.thread_seconds for o in _all(own))
        if spark is None:
            return Measured(cpu)
        now = self.mark()
        tasks = [tasks_of(spark, tag) for tag in tags]
        if any(t is None for t in tasks):
            return Measured(None, None, False)
        ran = [t for t in tasks if t is not None]
        in_tasks = sum(t.cpu_seconds for t in ran)
        ours = sum(len(t.jobs) for t in ran)
        alone = not mark.running and not now.running and now.started - mark.started == ours
        whole = alone and mark.jvm is not None and now.jvm is not None
        if alone and mark.jvm is not None and now.jvm is not None:
            local = str(spark.sparkContext.master).startswith("local")
            spent = now.jvm - mark.jvm
            # The clock of a process ticks less often than that of a task.
            cpu += max(spent, in_tasks) if local else spent + in_tasks
        else:
            planned = (now.jvm_thread or 0.0) - mark.jvm_thread if mark.jvm_thread else 0.0
            cpu += in_tasks + planned + sum(o.jvm_thread_seconds for o in _all(own))
        read = [t for t in ran if t.tag in own.jobs]
        told = any(t.bytes_read or t.rows_read for t in read) and self.counts_bytes()
        return Measured(cpu, sum(t.bytes_read for t in read) if told else None, whole)

    def _spark(self) -> SparkSession | None:
        spark = self.running()
        return spark if spark is not None and hasattr(spark, "_jsc") else None


@dataclass(frozen=True, slots=True)
class Tasks:
    """What the tasks of the jobs with a tag took."""

    tag: str
    jobs: tuple[int, ...]
    cpu_seconds: float
    bytes_read: float
    rows_read: float


def tasks_of(spark: SparkSession, tag: str) -> Tasks | None:
    """What the tasks of the jobs with a tag took, once all events are told; None where Spark does not tell."""
    context = spark.sparkContext
    try:
        context._jsc.sc().listenerBus().waitUntilEmpty(MOST_WAIT_MS)
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        jobs = tagged_jobs(spark, tag)
        infos = [tracker.getJobInfo(job) for job in jobs]
        stages = {stage for info in infos if info is not None for stage in info.stageIds}
        cpu = nbytes = rows = 0.0
        for stage in stages:
            data = store.lastStageAttempt(stage)
            cpu += NANO * (int(data.executorCpuTime()) + int(data.executorDeserializeCpuTime()))
            nbytes += int(data.inputBytes())
            rows += int(data.inputRecords())
    except _UNTOLD:
        return None
    return Tasks(tag, jobs, cpu, nbytes, rows)


def thread_cpu(spark: SparkSession) -> float | None:
    """CPU seconds of the JVM's thread that serves the calling thread; None where it does not tell."""
    try:
        assert spark._jvm is not None, "a classic session has one"
        beans = spark._jvm.java.lang.management.ManagementFactory
        return NANO * int(beans.getThreadMXBean().getCurrentThreadCpuTime())
    except _UNTOLD:
        return None


def _process_cpu(spark: SparkSession) -> float:
    assert spark._jvm is not None, "a classic session has one"
    process = spark._jvm.java.lang.ProcessHandle.current()
    return NANO * int(process.info().totalCpuDuration().get().toNanos())


def _all(own: Observation) -> list[Observation]:
    return [own, *(o for inner in own.inputs for o in _all(inner))]


def _tags(own: Observation) -> list[str]:
    return [group for o in _all(own) for group in o.jobs]
