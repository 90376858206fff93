"""What follows an attempt that is not enough, and what is told of it; in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.planner import Planner
from skimql.errors import BudgetExceeded

RNG = np.random.default_rng(5)
KEYS, LINES = 400, 4000
BACKEND = MemoryBackend(
    MemoryTables(
        {
            name: pa.table(
                {
                    "k": RNG.integers(0, KEYS, LINES),
                    "g": RNG.integers(0, 3, LINES),
                    "v": np.rint(RNG.pareto(0.8, LINES) * 10).astype(np.int64),
                }
            )
            for name in "ab"
        }
    )
)
ASK = "SELECT APPROXIMATE SUM(a.v) FROM a JOIN b ON a.k = b.k"


def run_of(sql, **settings):
    return MemoryRun.of(sql, BACKEND, Settings(**settings))


def free(monkeypatch, method, cost, messages=False):
    """The planner takes a method of itself, and the exact run costs so many times as much; messages, if at all, less."""
    chosen = Planner._choice

    def choice(planner, statistics, fold_bytes, groups):
        found = chosen(replace(planner, select=replace(planner.select, method=method)), statistics, 0, groups)
        taken = replace(found.taken, sample=replace(found.taken.sample, probability=0.1))
        candidates = chosen(planner, statistics, fold_bytes, groups).candidates
        exact = next(c for c in candidates if c.method == "exact_run")
        exact = replace(exact, cost=replace(exact.cost, seconds=cost * taken.cost.seconds))
        ways = [c for c in candidates if c.method == "exact"] if messages else []
        ways = [replace(c, cost=taken.cost) for c in ways]
        return replace(found, taken=taken, candidates=(taken, *ways, exact))

    monkeypatch.setattr(Planner, "_choice", choice)
    # Of keys alone: with tuples drawn for their values the sample would have all that matter.
    monkeypatch.setattr(Planner, "_with_draws", lambda planner, plan, *_: plan)


def test_a_miss_is_followed_by_the_exact_run_where_that_costs_little_more(monkeypatch):
    free(monkeypatch, "key_sample", cost=10)
    answer = run_of(ASK, error=0.001).answer()
    assert [a.outcome for a in answer.attempts] == ["unknown", "met"]
    assert (answer.method, answer.value) == ("exact_run", run_of(ASK).exact().value)
    assert any("costs little more" in n for n in answer.notes)


def test_a_miss_is_told_where_the_exact_run_costs_as_much(monkeypatch):
    free(monkeypatch, "key_sample", cost=2)
    answer = run_of(ASK, error=0.001).answer()
    assert [(a.attempt.method, a.outcome) for a in answer.attempts] == [("key_sample", "unknown")]
    assert any("within the asked 0.001" in n for n in answer.notes)


def test_a_miss_is_followed_by_exact_messages_where_the_exact_run_is_dear(monkeypatch):
    free(monkeypatch, "key_sample", cost=10, messages=True)
    answer = run_of(ASK, error=0.001).answer()
    assert [(a.attempt.method, a.outcome) for a in answer.attempts] == [
        ("key_sample", "unknown"),
        ("exact", "met"),
    ]
    assert answer.value == run_of(ASK).exact().value
    assert "by key sample: the asked error was missed" in answer.notes
    assert any("by exact messages" in n for n in answer.notes)


@pytest.mark.parametrize("clause", ["SIZE 2 KB", "USING key_sample", "OPTIONS (sparse = false)"])
def test_what_says_by_what_it_is_answered_is_not_measured_by_the_error_of_the_session(clause):
    said = run_of(f"{ASK} {clause}", error=1e-6).answer()
    assert not any("asked for" in n for n in said.notes)
    assert run_of(f"{ASK} {clause}", error=1e-6, behavior="strict").settings.error == 1e-6


def test_every_answer_says_by_which_method_it_came():
    for clause, method in (("", "exact_run"), ("USING hash", "hash"), ("USING two_level", "two_level")):
        assert run_of(f"{ASK} {clause}", error=0.05).answer().method == method


def test_more_groups_than_can_have_synopses_are_run_exactly_or_refused():
    sql = ASK.replace("SUM", "a.v % 300 AS r, SUM") + " GROUP BY a.v % 300"
    answer = run_of(sql, error=0.05, max_groups=10).answer()
    assert answer.method == "exact_run"
    assert len(answer.rows) == len(run_of(sql).exact().rows) > 10
    with pytest.raises(BudgetExceeded, match="more than 10 groups"):
        run_of(sql, error=None, max_groups=10).answer()


def test_groups_that_a_sample_has_not_met_are_told():
    sql = ASK.replace("SUM(a.v)", "a.v % 40 AS r, COUNT(*)") + " GROUP BY a.v % 40 USING key_sample SIZE 3 KB"
    answer, every = run_of(sql, error=None).answer(), len(run_of(sql).exact().rows)
    assert len(answer.rows) < every
    assert (
        f"{every - len(answer.rows)} groups that the sample has not met may belong to the answer"
        in answer.notes
    )
