"""The choice among all candidates, and what is told where nothing is good enough; in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skimql import AccuracyNotReached, BudgetExceeded, Settings, UnsupportedQuery
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.choice import choose_candidate
from skimql.engine.queries.request import Request

RNG = np.random.default_rng(2)
BACKEND = MemoryBackend(
    MemoryTables(
        {n: pa.table({"k": RNG.integers(0, 900, 3000), "v": RNG.integers(0, 3000, 3000)}) for n in ("a", "b")}
    )
)
JOIN = "FROM a JOIN b ON a.k = b.k"
COUNT = f"SELECT APPROXIMATE COUNT(*) {JOIN}"
THREE = f"{COUNT} JOIN a c ON b.v = c.v"


def plan_of(sql, **settings):
    return MemoryRun.of(sql, BACKEND, Settings(**settings)).plan()


def test_a_method_that_cannot_answer_says_what_it_is_and_one_that_is_too_small_its_size():
    with pytest.raises(UnsupportedQuery, match="skimmed cannot answer this: it is hash sketches with"):
        plan_of(f"{THREE} USING skimmed ERROR WITHIN 5%")
    with pytest.raises(BudgetExceeded, match="10 bytes are too few: key sample") as told:
        plan_of(f"{COUNT} USING key_sample SIZE 10")
    assert told.value.hint == "a larger SIZE"


def test_where_no_error_can_be_reached_and_nothing_run_the_best_of_few_bytes_is_taken():
    """A join that may not be run: what is kept of it has the least error that so many bytes give."""
    run = MemoryRun.of(f"{COUNT} ERROR WITHIN 0.0001%", BACKEND, Settings(cache=True, max_bytes=4000))
    request = Request(run.select, run.query, run.settings)
    choice = choose_candidate(request, BACKEND.statistics(run.query, jobs=True), 0, {})
    assert choice.objective.relative_error is None
    assert 0 < choice.taken.nbytes <= choice.objective.size_bytes == 4000
    forced = replace(request, select=replace(run.select, method="key_sample"))
    with pytest.raises(AccuracyNotReached, match="no method is predicted"):
        choose_candidate(forced, BACKEND.statistics(run.query, jobs=True), 0, {})


def test_sketches_that_no_jvm_makes_are_none_of_the_candidates():
    plan = plan_of(f"{COUNT} ERROR WITHIN 0.1%", route="jvm")
    assert plan.method == "exact_run"
    with pytest.raises(UnsupportedQuery) as refused:
        plan_of(f"{COUNT} JOIN a c ON b.v = c.v USING convolution ERROR WITHIN 0.1%", route="jvm")
    assert refused.value.code == "SKIMQL_ROUTE"


def test_exact_messages_alone_are_refused_where_they_are_too_large_and_name_their_setting():
    assert MemoryRun.of(f"{THREE} USING exact", BACKEND).answer().method == "exact"
    with pytest.raises(
        UnsupportedQuery, match=r"exact messages alone do not do: .*above skimql.fold_bytes"
    ) as told:
        plan_of(f"{THREE} USING exact", fold_bytes=100)
    assert told.value.hint == "a larger skimql.fold_bytes, or EXACT SELECT ..."
    with pytest.raises(BudgetExceeded, match="100 bytes are too few: exact: message of table"):
        plan_of(f"{THREE} USING exact SIZE 100")


@pytest.mark.parametrize("method", ["key_sample", "sampled_messages"])
def test_a_sample_of_the_keys_of_one_class_answers_over_several_classes(method):
    answer = MemoryRun.of(f"{THREE} USING {method} SIZE 30 KB", BACKEND).answer()
    exact = MemoryRun.of(THREE, BACKEND).exact().value
    (cell,) = answer.rows[0]
    assert answer.method == method
    assert not cell.exact
    assert cell.low <= exact <= cell.high


@pytest.mark.parametrize("method", ["key_sample", "two_level", "sampled_messages"])
def test_a_key_has_no_more_groups_than_tuples_so_that_a_size_is_used(method):
    rng = np.random.default_rng(4)
    a = pa.table({"k": rng.integers(0, 4000, 12_000), "g": rng.integers(0, 90, 12_000)})
    backend = MemoryBackend(MemoryTables({"a": a, "b": pa.table({"k": np.arange(4000)})}))
    text = f"SELECT APPROXIMATE a.g, COUNT(*) {JOIN} GROUP BY a.g USING {method} SIZE 40 KB"
    answer = MemoryRun.of(text, backend).answer()
    assert 20_000 < answer.bytes_used <= 40 << 10
    assert len(answer.rows) > 80


@pytest.mark.parametrize("method", ["two_level", "sampled_messages"])
def test_dense_keys_that_have_tuples_of_every_group_stay_within_a_size(method):
    rng = np.random.default_rng(4)
    keys = np.r_[np.repeat(np.arange(20), 3_000), rng.integers(20, 60_000, 60_000)]
    a = pa.table({"k": keys, "g": rng.integers(0, 90, keys.size)})
    backend = MemoryBackend(MemoryTables({"a": a, "b": pa.table({"k": np.arange(60_000)})}))
    text = f"SELECT APPROXIMATE a.g, COUNT(*) {JOIN} GROUP BY a.g USING {method} SIZE 20 KB"
    assert MemoryRun.of(text, backend).answer().bytes_used <= 20 << 10
