"""One attempt of a plan, run in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.attempt_run import AttemptRun, GroupList
from skimql.optimizer.candidates.spending import SPENT

RNG = np.random.default_rng(8)
BACKEND = MemoryBackend(
    MemoryTables(
        {n: pa.table({"k": RNG.integers(0, 700, 2000), "g": RNG.integers(0, 4, 2000)}) for n in ("a", "b")}
    )
)
JOIN = "FROM a JOIN b ON a.k = b.k"


def run_of(sql, samples=0, **settings):
    planner = MemoryRun.of(sql, BACKEND, Settings(**settings)).planner
    groups = GroupList(planner, lambda: BACKEND)
    return AttemptRun(planner, lambda: BACKEND, groups, None, samples), planner.plan(groups).attempt


def test_groups_are_listed_once_and_not_before():
    run, _ = run_of(f"SELECT APPROXIMATE COUNT(*) {JOIN} USING hash")
    assert run.groups.known is None
    grouped, attempt = run_of(f"SELECT APPROXIMATE a.g, COUNT(*) {JOIN} GROUP BY a.g USING hash")
    assert grouped.groups() is grouped.groups.known
    found, _, stale = grouped.estimated(attempt)
    assert (sorted(e.group[0] for e in found.evaluators.values()), stale) == ([0, 1, 2, 3], False)


def test_a_sample_that_takes_more_than_the_asked_size_is_taken_again_smaller():
    run, attempt = run_of(f"SELECT APPROXIMATE COUNT(*) {JOIN} USING key_sample SIZE 4 KB")
    whole = replace(attempt, plan=replace(attempt.plan, sample=attempt.plan.sample.smaller(1.0)))
    found, *_ = run.estimated(whole)
    assert 0 < found.evaluators[()].joined.nbytes <= 4096


def test_the_chance_to_fail_is_shared_among_the_samples_of_a_query():
    assert sum(SPENT) == pytest.approx(1.0)
    for number, spent in enumerate(SPENT):
        run, attempt = run_of(f"SELECT APPROXIMATE COUNT(*) {JOIN} USING key_sample SIZE 4 KB", number)
        found, *_ = run.estimated(replace(attempt, enlarges=True))
        assert found.evaluators[()].confidence == pytest.approx(1.0 - 0.05 * spent)


def test_what_no_tuple_can_meet_counts_none():
    run, attempt = run_of(f"SELECT APPROXIMATE COUNT(*), AVG(a.g) {JOIN} WHERE a.g > 9 AND a.g < 9")
    count, average = run.estimated(attempt)[0].answer().rows[0]
    assert (count.value, count.exact) == (0, True)
    assert np.isnan(average.value)
