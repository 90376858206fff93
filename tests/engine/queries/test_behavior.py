"""What is done where the asked error is missed after the last attempt; in memory."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.behavior import missed_fault, runs_in_full
from skimql.errors import AccuracyNotReached
from skimql.parser.statement import parse_statement

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


@pytest.mark.parametrize(
    ("behavior", "grouped", "full"),
    [
        ("run_on_full_table", False, True),
        ("run_on_full_table", True, True),
        ("partial_run_on_base_table", False, True),
        ("partial_run_on_base_table", True, False),
        ("strict", False, False),
        ("do_nothing", True, False),
    ],
)
def test_what_runs_the_whole_query(behavior, grouped, full):
    sql = f"{ASK.replace('SUM', 'a.g, SUM')} GROUP BY a.g" if grouped else ASK
    assert runs_in_full(Settings(behavior=behavior), run_of(sql).query) is full


def test_a_refusal_says_how_far_it_was_and_what_helps():
    select = parse_statement(f"{ASK} ERROR WITHIN 1%")
    fault = missed_fault(select, ("x: asked for 0.01, ±0.3",), ran=False)
    assert (fault.message, fault.span) == ("x: asked for 0.01, ±0.3", (55, 70))
    assert "BEHAVIOR 'run_on_full_table'" in fault.hint
    exact = missed_fault(select, (), ran=True)
    assert "has not met" in exact.message
    assert "DECIMAL" in exact.hint
