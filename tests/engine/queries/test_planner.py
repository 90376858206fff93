"""Which attempt comes first, by what is asked; in memory."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import BudgetExceeded, Settings, UnsupportedQuery
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.optimizer.candidates import tuple_draws

RNG = np.random.default_rng(2)
BACKEND = MemoryBackend(
    MemoryTables(
        {
            n: pa.table(
                {
                    "k": RNG.integers(0, 900, 3000),
                    "g": RNG.integers(0, 4, 3000),
                    "v": np.arange(3000),
                    "far": np.r_[np.zeros(2990), np.full(10, 9)],
                }
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
        (f"{COUNT} LIMIT 0 USING key_sample SIZE 1 KB", {}, "nothing"),
        (f"SELECT APPROXIMATE a.v, COUNT(*) {JOIN} GROUP BY a.v HAVING COUNT(*) > 1 LIMIT 0", {}, "nothing"),
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


@pytest.mark.parametrize(
    ("what", "times"), [("COUNT(*)", 1.0), ("SUM(a.v)", 2.0), ("SUM(a.v * b.v)", 4.0), ("SUM(a.far)", 1.0)]
)
def test_of_what_a_key_may_add_the_largest_value_over_the_mean_is_left_to_draws_of_tuples(
    what, times, monkeypatch
):
    """Where it is far from the mean tuples are drawn for their values."""
    parts, draws = [], tuple_draws.tuple_draws

    def drawn(*arguments):
        parts.append(arguments[5])
        return draws(*arguments)

    monkeypatch.setattr(tuple_draws, "tuple_draws", drawn)
    plan_of(f"SELECT APPROXIMATE {what} {JOIN} USING key_sample ERROR WITHIN 40%")
    # Once more for each larger sample.
    assert parts
    assert parts == [pytest.approx(tuple_draws.PART / times, rel=0.02)] * len(parts)


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
        (f"SELECT APPROXIMATE a.g, COUNT(DISTINCT a.v) {JOIN} GROUP BY a.g", "exact_run"),
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
        (f"{COUNT} JOIN a c ON b.g = c.v USING convolution ERROR WITHIN 0.1%", 0.05, "several join keys"),
    ],
)
def test_without_workers_what_needs_them_is_refused(sql, error, reason):
    with pytest.raises(UnsupportedQuery, match=reason) as refused:
        MemoryRun.of(sql, BACKEND, Settings(route="jvm", error=error)).answer()
    assert refused.value.code == "SKIMQL_ROUTE"


def test_distinct_counts_in_groups_are_planned_for_the_error_of_each_group():
    values = {"g": RNG.integers(0, 3, 30_000), "v": RNG.integers(0, 40_000, 30_000)}
    backend = MemoryBackend(MemoryTables({"t": pa.table(values)}))
    sql = "SELECT APPROXIMATE g, COUNT(DISTINCT v) AS d FROM t GROUP BY g"
    run = MemoryRun.of(f"{sql} USING distinct ERROR WITHIN 20%", backend, Settings(seed=5))
    predicted, answer = run.plan().attempt.predicted, run.answer()
    assert 0.1 < predicted.half_width <= 0.2
    assert answer.bytes_used == pytest.approx(predicted.nbytes, rel=0.1)
    exact = {row[0]: row[1].value for row in run.exact().rows}
    for group, cell in answer.rows:
        assert max(cell.high / cell.value, cell.value / cell.low) - 1 == pytest.approx(
            predicted.half_width, rel=0.2
        )
        assert cell.low <= exact[group] <= cell.high
    assert MemoryRun.of(sql, backend, Settings()).plan().method == "exact_run"


def test_groups_that_count_distinct_values_take_the_method_that_counts_nothing_else():
    """Whether a group is there is asked beside it, and is no aggregate of the user's."""
    grouped = f"SELECT APPROXIMATE a.g, COUNT(DISTINCT a.v) AS d {JOIN} GROUP BY a.g"
    found = MemoryRun.of(f"{grouped} USING distinct", BACKEND).answer()
    exact = MemoryRun.of(grouped, BACKEND).exact()
    assert found.method == "distinct"
    assert [(g, c.value) for g, c in found.rows] == [(g, c.value) for g, c in exact.rows]
    with pytest.raises(UnsupportedQuery, match=r"does not estimate count\(1\)"):
        MemoryRun.of(f"{grouped.replace(' AS d', ', COUNT(*)')} USING distinct", BACKEND).answer()


def test_values_that_no_synopsis_counts_are_run_exactly_where_an_error_alone_is_asked():
    three = "SELECT APPROXIMATE COUNT(DISTINCT a.v, c.v) FROM a JOIN b ON a.k = b.k JOIN a c ON b.g = c.g WHERE c.v < 40"
    plan = plan_of(three)
    assert plan.method == "exact_run"
    assert "with b between or beside them" in plan.notes[0]
    for clause, settings in (("SIZE 64 KB", {}), ("USING join_distinct", {}), ("", {"error": None})):
        with pytest.raises(UnsupportedQuery, match="with b between or beside them"):
            plan_of(f"{three} {clause}", **settings)


def test_distinct_values_of_groups_whose_synopses_take_too_many_bytes_are_counted_exactly(monkeypatch):
    monkeypatch.setattr(
        "skimql.optimizer.prediction.cost.PROBE_NS", 1e6
    )  # so that synopses are chosen at all
    r = pa.table({"k": np.arange(40_000), "g": np.arange(40_000) % 40})
    sql = "SELECT APPROXIMATE r.g, COUNT(DISTINCT r.k) FROM r JOIN r t ON r.k = t.k GROUP BY r.g ERROR WITHIN 5%"
    backend = MemoryBackend(MemoryTables({"r": r}))
    methods = [
        MemoryRun.of(sql, backend, Settings(max_bytes=most)).plan().attempt.method
        for most in (256 << 20, 80 << 20, 2 << 20)
    ]
    assert methods == ["distinct", "exact_run", "exact_run"]
    with pytest.raises(BudgetExceeded, match="may take"):
        MemoryRun.of(
            f"{sql} BEHAVIOR 'partial_run_on_base_table'", backend, Settings(max_bytes=80 << 20)
        ).plan()


def test_the_exact_run_is_taken_where_the_sketches_beside_distinct_values_would_miss(monkeypatch):
    """A SUM needs twice the buckets of a COUNT here, for which there are no bytes."""
    monkeypatch.setattr("skimql.optimizer.prediction.cost.PROBE_NS", 1e6)
    values = np.random.default_rng(3).lognormal(0, 1, 40_000)
    backend = MemoryBackend(MemoryTables({"r": pa.table({"k": np.arange(40_000), "x": values})}))
    text = "SELECT APPROXIMATE COUNT(DISTINCT r.k), {} FROM r JOIN r t ON r.k = t.k ERROR WITHIN 5%"
    planned = {
        (value, most): MemoryRun.of(text.format(value), backend, Settings(max_bytes=most << 20)).plan()
        for value in ("COUNT(*)", "SUM(r.x)")
        for most in (2, 4)
    }
    methods = {asked: plan.method for asked, plan in planned.items()}
    assert methods.pop(("SUM(r.x)", 2)) == planned["SUM(r.x)", 2].choice.taken.method == "exact_run"
    assert set(methods.values()) == {"distinct"}


@pytest.mark.parametrize("value", ["COUNT(*)", "COUNT(DISTINCT t.k, u.g)"])
def test_groups_are_not_listed_where_the_exact_run_is_cheaper_than_all_else_of_one(value):
    t = pa.table({"k": np.arange(3_000), "g": np.arange(3_000) % 7})
    backend = MemoryBackend(MemoryTables({"t": t, "u": t}))

    def listed():
        raise AssertionError("nobody asks for the groups")

    text = f"SELECT APPROXIMATE t.g, {value} FROM t JOIN u ON t.k = u.k GROUP BY t.g"
    assert MemoryRun.of(text, backend).planner.plan(listed).method == "exact_run"
    with pytest.raises(AssertionError, match="nobody asks"):
        MemoryRun.of(f"{text} SIZE 9 MB", backend).planner.plan(listed)
