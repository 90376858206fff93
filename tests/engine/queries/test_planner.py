"""Which attempt comes first, by what is asked; in memory."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import BudgetExceeded, Settings, UnsupportedQuery
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables

RNG = np.random.default_rng(2)
BACKEND = MemoryBackend(
    MemoryTables(
        {
            n: pa.table(
                {"k": RNG.integers(0, 900, 3000), "g": RNG.integers(0, 4, 3000), "v": np.arange(3000)}
            )
            for n in "ab"
        }
    )
)
JOIN = "FROM a JOIN b ON a.k = b.k"
COUNT = f"SELECT APPROXIMATE COUNT(*) {JOIN}"


def plan_of(sql, **settings):
    return MemoryRun.of(sql, BACKEND, Settings(**settings)).plan()


@pytest.mark.parametrize(
    ("sql", "settings", "method"),
    [
        (COUNT, {}, "exact_run"),
        (COUNT, {"error": None}, "hash"),
        (COUNT, {"buckets": 64}, "hash"),
        (f"{COUNT} OPTIONS (buckets = 64)", {}, "hash"),
        (f"{COUNT} USING agms", {}, "agms"),
        (f"{COUNT} USING convolution ERROR WITHIN 50%", {}, "convolution"),
        (f"{COUNT} USING two_level SIZE 4 KB", {}, "two_level"),
        ("SELECT APPROXIMATE COUNT(*) FROM a", {}, "exact_run"),
        ("SELECT APPROXIMATE COUNT(*) FROM a", {"error": None}, "total"),
        (f"{COUNT} WHERE a.v < 1 AND a.v > 1", {}, "nothing"),
        (f"SELECT APPROXIMATE COUNT(DISTINCT a.v) {JOIN}", {"error": None}, "distinct"),
    ],
)
def test_the_first_attempt(sql, settings, method):
    assert plan_of(sql, **settings).method == method


def test_a_size_is_kept_to_with_groups_too():
    grouped = f"SELECT APPROXIMATE a.g, COUNT(*) {JOIN} GROUP BY a.g"
    for size in (8, 64):
        plan = plan_of(f"{grouped} SIZE {size} KB")
        assert plan.attempt.predicted.nbytes <= size * 1024
        assert plan.choice.taken.nbytes <= size * 1024
    with pytest.raises(BudgetExceeded):
        plan_of(f"{grouped} USING hash SIZE 500")


def test_the_error_of_groups_is_planned_tighter_than_that_of_all():
    alone = plan_of(f"{COUNT} USING key_sample ERROR WITHIN 20%").choice
    grouped = plan_of(
        f"SELECT APPROXIMATE a.g, b.g, COUNT(*) {JOIN} GROUP BY a.g, b.g USING key_sample ERROR WITHIN 20%"
    ).choice
    assert grouped.objective.relative_error == pytest.approx(0.2 / 4)
    assert grouped.taken.sample.probability > alone.taken.sample.probability


def test_what_no_method_within_the_bytes_reaches_is_told():
    plan = plan_of(f"{COUNT} ERROR WITHIN 0.1%", max_exact_seconds=1)
    assert plan.method == "exact_run"


def test_a_method_that_cannot_answer_says_what_it_is_and_one_that_is_too_small_its_size():
    three = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k JOIN a c ON b.v = c.v USING key_sample"
    with pytest.raises(
        UnsupportedQuery, match="it is the join exactly on a sample of the keys of one join class"
    ):
        plan_of(three)
    with pytest.raises(BudgetExceeded, match="10 bytes are too few: key sample") as told:
        plan_of(f"{COUNT} USING key_sample SIZE 10")
    assert told.value.hint == "a larger SIZE"


GROUPED = f"SELECT APPROXIMATE a.g, COUNT(*) {JOIN} GROUP BY a.g"
DISTINCT = f"SELECT APPROXIMATE COUNT(DISTINCT a.v) {JOIN}"


@pytest.mark.parametrize(
    ("sql", "method"),
    [
        (GROUPED, "exact_run"),
        (f"{GROUPED} SIZE 64 KB", "sampled_messages"),
        (f"{GROUPED} USING two_level", "two_level"),
        (f"{GROUPED} USING key_sample ERROR WITHIN 20%", "key_sample"),
        (DISTINCT, "exact_run"),
        (f"{COUNT} SIZE 8 MB", "key_sample"),
    ],
)
def test_without_workers_what_needs_none_is_taken(sql, method):
    assert MemoryRun.of(sql, BACKEND, Settings(route="jvm")).answer().method == method


@pytest.mark.parametrize(
    ("sql", "error", "reason"),
    [
        (GROUPED, None, "each group has sketches"),
        (f"{GROUPED} USING hash", 0.05, "each group has sketches"),
        (DISTINCT, None, "distinct values are counted"),
        (f"{DISTINCT} SIZE 64 KB", 0.05, "distinct values are counted"),
        (f"{DISTINCT} USING distinct", 0.05, "distinct values are counted"),
        (f"{COUNT} USING agms", 0.05, "agms is asked for"),
        (f"{COUNT} USING hash ERROR WITHIN 0.1%", 0.05, "buckets in a row are more than"),
    ],
)
def test_without_workers_what_needs_them_is_refused(sql, error, reason):
    with pytest.raises(UnsupportedQuery, match=reason) as refused:
        MemoryRun.of(sql, BACKEND, Settings(route="jvm", error=error)).answer()
    assert refused.value.code == "SKIMQL_ROUTE"
