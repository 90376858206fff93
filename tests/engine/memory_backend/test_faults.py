"""What cannot be computed, or takes too much, is told by the code that Spark's scans have for it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from skimql.engine.execution.message_limit import MessageTooLarge
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.sizing import chosen
from skimql.engine.settings import Settings
from skimql.errors import BudgetExceeded, DataError, UnsupportedQuery
from skimql.optimizer.choose import ClassSample, choose

LARGE = 1 << 62
BACKEND = MemoryBackend(
    MemoryTables(
        {
            "t": pa.table(
                {
                    "k": [1, 2, 2, 3],
                    "g": ["a", "b", None, "a"],
                    "large": [LARGE, LARGE, LARGE, 1],
                    "x": [1.0, float("inf"), 2.0, 3.0],
                    "text": ["1", "2", "x", "4"],
                    "flag": [True, False, True, None],
                }
            ),
            "u": pa.table(
                {"k": [2, 2, 3], "l": [1, 2, 3], "large": [LARGE, 4, 4], "e": [Decimal("9" * 30)] * 3}
            ),
            "w": pa.table({"l": [1, 2, 2], "n": [0, 0, 1]}),
        }
    )
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SUM(t.large) FROM t JOIN u ON t.k = u.k", "SKIMQL_OVERFLOW"),
        ("SUM(x) FROM t JOIN u ON t.k = u.k", "SKIMQL_NOT_FINITE"),
        ("SUM(CAST(text AS INT)) FROM t JOIN u ON t.k = u.k", "SKIMQL_SCAN_FAILED"),
        ("COUNT(*) FROM t JOIN u ON t.text = u.k", "SKIMQL_SCAN_FAILED"),
        ("COUNT(*) FROM t JOIN u ON t.k = u.k WHERE exp(t.x) < 0.5", "SKIMQL_NOT_IN_MEMORY"),
        ("SUM(flag) FROM t JOIN u ON t.k = u.k", "SKIMQL_BAD_ARGUMENT"),
    ],
)
def test_faults_have_codes(text, code):
    with pytest.raises((DataError, UnsupportedQuery)) as fault:
        MemoryRun.of(f"SELECT APPROXIMATE {text}", BACKEND, Settings(sparse=False)).answer()
    assert fault.value.code == code


def test_a_value_that_fails_behind_a_filter_is_not_computed():
    run = MemoryRun.of(
        "SELECT APPROXIMATE SUM(CAST(text AS INT)) FROM t JOIN u ON t.k = u.k WHERE text <> 'x'", BACKEND
    )
    assert run.answer().value == run.exact().value == 8


def test_sums_beyond_64_bits_are_exact_in_an_exact_run():
    run = MemoryRun.of(
        "SELECT APPROXIMATE SUM(u.e), SUM(CAST(t.large AS DECIMAL(20,0))) FROM t JOIN u ON t.k = u.k", BACKEND
    )
    ((nines, large),) = run.exact().rows
    assert (nines.value, large.value) == (5 * int("9" * 30), 4 * LARGE + 1)


def test_a_message_or_a_sample_that_takes_too_much_is_told():
    sql = "SELECT APPROXIMATE COUNT(*) FROM t JOIN u ON t.k = u.k JOIN w ON u.l = w.l"
    query = MemoryRun.of(sql, BACKEND).query
    counted = MemoryRun.of("SELECT APPROXIMATE COUNT(DISTINCT l) FROM t JOIN u ON t.k = u.k", BACKEND).query
    plan = chosen(counted, Settings())
    assert plan.messages
    with pytest.raises(MessageTooLarge):
        BACKEND.build(plan, message_bytes=8)
    sampled = choose(query, 0, 0, 0, sample=ClassSample(0, 1.0))
    with pytest.raises(BudgetExceeded):
        BACKEND.sample(sampled, 16)


def test_too_many_groups_are_told():
    query = MemoryRun.of(
        "SELECT APPROXIMATE g, COUNT(*) FROM t JOIN u ON t.k = u.k GROUP BY g", BACKEND
    ).query
    assert BACKEND.groups(query, 3).parts[0].values == ((None,), ("a",), ("b",))
    with pytest.raises(BudgetExceeded) as fault:
        BACKEND.groups(query, 2)
    assert fault.value.code == "SKIMQL_TOO_MANY_GROUPS"


def test_groups_of_several_tables_have_exact_aggregates():
    sql = "SELECT APPROXIMATE g, l, COUNT(*) FROM t JOIN u ON t.k = u.k GROUP BY g, l"
    groups = BACKEND.exact(MemoryRun.of(sql, BACKEND).query)
    assert [(*g.values, g.aggregates[0].value) for g in groups] == [
        (None, 1, 1), (None, 2, 1), ("a", 3, 1), ("b", 1, 1), ("b", 2, 1)
    ]  # fmt: skip


def test_a_sample_and_an_exact_run_tell_the_groups_of_several_tables_apart():
    sql = (
        "SELECT APPROXIMATE g, l, COUNT(*), SUM(u.l) FROM t JOIN u ON t.k = u.k WHERE t.x < 100 GROUP BY g, l"
    )
    query = MemoryRun.of(sql, BACKEND).query
    groups = BACKEND.groups(query, 10)
    plan = choose(query, 0, 0, 0, sample=ClassSample(0, 1.0))
    sampled = BACKEND.sample(plan, 1 << 20, groups=groups)
    exact = BACKEND.exact_groups(query, groups, list(groups.combinations()))
    assert {groups.values(n) for n in sampled} == {(None, 1), (None, 2), ("a", 3)}
    for numbers in groups.combinations():
        counted = [a.value for a in exact[numbers]]
        if numbers in sampled:
            assert [sampled[numbers].known(a.total) for a in plan.aggregates] == counted
        else:
            assert counted[0] == 0


@pytest.mark.parametrize("group", ["", "g", "n", "g, n"])
def test_a_sample_of_all_keys_is_exact_beyond_the_sampled_class(group):
    sql = f"COUNT(*), SUM(u.l) FROM t JOIN u ON t.k = u.k JOIN w ON u.l = w.l GROUP BY {group}"
    text = sql.removesuffix(" GROUP BY ")
    query = MemoryRun.of(f"SELECT APPROXIMATE {group}{', ' * bool(group)}{text}", BACKEND).query
    plan = choose(query, 0, 0, 0, sample=ClassSample(0, 1.0))
    groups = BACKEND.groups(query, 10) if group else None
    sampled = BACKEND.sample(plan, 1 << 20, groups=groups)
    exact = {repr(g.values): g.aggregates for g in BACKEND.exact(query)}
    assert len(sampled) == len(exact)
    for numbers, found in sampled.items():
        truth = exact[repr(groups.values(numbers) if groups else ())]
        assert [found.known(a.total) for a in plan.aggregates] == [e.value for e in truth]


def test_a_pilot_of_some_tuples_tells_about_what_all_do():
    table = pa.table({"k": [n % 500 for n in range(20_000)]})
    tables = MemoryTables({"t": table, "u": table})
    query = MemoryRun.of(
        "SELECT APPROXIMATE COUNT(*) FROM t JOIN u ON t.k = u.k", MemoryBackend(tables)
    ).query
    known = MemoryBackend(tables).statistics(query)[0]
    seen = MemoryBackend(tables, pilot_tuples=4_000).statistics(query)[0]
    assert (known.source, seen.source) == ("exact", "pilot")
    assert seen.tuples == pytest.approx(known.tuples, rel=0.1)
    assert seen.attributes[0].distinct == pytest.approx(500, rel=0.2)
    assert MemoryBackend(tables).statistics(query, jobs=False)[0].source == "row count"
