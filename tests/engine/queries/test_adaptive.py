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
from skimql.errors import AccuracyNotReached, BudgetExceeded

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


def test_a_miss_is_followed_by_the_exact_run_where_that_costs_little_more(monkeypatch):
    free(monkeypatch, "key_sample", cost=10)
    answer = run_of(ASK, error=0.001).answer()
    assert [a.outcome for a in answer.attempts] == ["missed", "met"]
    assert (answer.method, answer.value) == ("exact_run", run_of(ASK).exact().value)
    assert any("costs little more" in n for n in answer.notes)


def test_a_miss_is_told_where_the_exact_run_costs_as_much(monkeypatch):
    free(monkeypatch, "key_sample", cost=2)
    answer = run_of(ASK, error=0.001).answer()
    assert [(a.attempt.method, a.outcome) for a in answer.attempts] == [("key_sample", "missed")]
    assert any("asked for 0.001" in n for n in answer.notes)


def test_a_miss_is_followed_by_exact_messages_where_the_exact_run_is_dear(monkeypatch):
    free(monkeypatch, "key_sample", cost=10, messages=True)
    answer = run_of(ASK, error=0.001).answer()
    assert [(a.attempt.method, a.outcome) for a in answer.attempts] == [
        ("key_sample", "missed"),
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


@pytest.mark.parametrize(
    ("behavior", "method"), [("run_on_full_table", "exact_run"), ("do_nothing", "key_sample")]
)
def test_behaviours_of_an_asked_error(behavior, method):
    answer = run_of(f"{ASK} USING key_sample SIZE 2 KB", error=0.001, behavior=behavior).answer()
    assert answer.method == method


def test_strict_refuses_what_is_too_wide():
    with pytest.raises(AccuracyNotReached):
        run_of(f"{ASK} USING key_sample SIZE 2 KB", error=0.001, behavior="strict").answer()


def test_groups_that_miss_are_run_exactly_by_themselves():
    sql = (
        ASK.replace("SUM", "a.g, b.g AS o, SUM")
        + " GROUP BY a.g, b.g ORDER BY 1, 2 USING key_sample SIZE 2 KB"
    )
    partly = run_of(sql, error=0.001, behavior="partial_run_on_base_table").answer()
    exact = run_of(sql).exact()
    assert [[getattr(c, "value", c) for c in row] for row in partly.rows] == [
        [getattr(c, "value", c) for c in row] for row in exact.rows
    ]
    assert any("9 groups run exactly" in n for n in partly.notes)


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
