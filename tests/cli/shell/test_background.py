"""The thread of the statements."""

from __future__ import annotations

import pytest

from skimql import JobProgress
from skimql.cli.shell.background import Worker


def test_statements_run_one_after_the_other_and_faults_stay_theirs():
    worker, seen = Worker(), []
    tasks = [worker.submit(lambda n=n: seen.append(n) or n) for n in range(5)]
    failed = worker.submit(lambda: 1 / 0)
    last = worker.submit(lambda: "on")
    assert last.done.wait(10)
    assert seen == list(range(5))
    assert [t.result for t in tasks] == seen
    assert isinstance(failed.fault, ZeroDivisionError)
    assert last.result == "on"
    assert not worker.is_busy


def test_a_cancelled_task_has_its_job_cancelled_and_does_not_run_if_it_waits():
    worker = Worker()
    told = []

    def job():
        task.cancelled.set()
        try:
            worker.update(JobProgress("one pass", 0, 0))
        except KeyboardInterrupt:
            told.append("cancelled")
            raise

    task = worker.submit(job)
    task.done.wait(10)
    assert told == ["cancelled"]
    assert isinstance(task.fault, KeyboardInterrupt)
    never = worker.submit(lambda: pytest.fail("it was cancelled"))
    never.cancelled.set()
    never.done.wait(10)


def test_progress_is_that_of_the_running_job():
    worker = Worker()
    progress = JobProgress("one pass", 1, 2)
    seen = []

    def job():
        worker.update(progress)
        seen.append(worker.progress)
        worker.done()
        seen.append(worker.progress)

    worker.submit(job).done.wait(10)
    assert seen == [progress, None]
