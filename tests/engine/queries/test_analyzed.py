"""Every operator of a run is told: rows and bytes as they are, predictions beside; in memory."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.optimizer.describe.physical import describe_attempts, draw_physical, physical_dict
from skimql.parser.diagram import Diagram

RNG = np.random.default_rng(5)


def table(tuples, keys):
    return pa.table(
        {
            "k": RNG.integers(0, keys, tuples),
            "g": RNG.integers(0, 3, tuples),
            "j": RNG.integers(0, 40, tuples),
            "v": RNG.integers(0, 100, tuples),
        }
    )


A, B, C = table(4000, 400), table(3000, 400), table(100, 40)
BACKEND = MemoryBackend(MemoryTables({"a": A, "b": B, "c": C}))
ASK = "SELECT APPROXIMATE COUNT(*), SUM(a.v) FROM a JOIN b ON a.k = b.k"
KEYS = len(np.unique(B["k"]))


def analyzed(sql, **settings):
    return MemoryRun.of(sql, BACKEND, Settings(**settings)).answer()


def flat(operators):
    return [o for own in operators for o in (own, *flat(own.inputs))]


def by_name(attempt):
    return {o.name: o for o in flat(attempt.operators)}


def rows_of(attempt):
    return {name: o.actual.rows for name, o in by_name(attempt).items() if o.kind != "planning"}


FILTERED = int(np.sum(A["g"].to_numpy() == 1))
SHAPES = [
    (ASK, {"error": None}, {"estimate": 1, "scan a": 4000, "scan b": 3000}),
    (f"{ASK} WHERE a.g = 1", {"error": None}, {"estimate": 1, "scan a": FILTERED, "scan b": 3000}),
    (
        "SELECT APPROXIMATE COUNT(*) FROM a JOIN a AS d ON a.k = d.k WHERE a.g = 1",
        {"error": None},
        {"estimate": 1, "scan a": None, "relation a": 4000, "relation a where `g` = 1": FILTERED},
    ),
    (
        "SELECT APPROXIMATE a.g, b.g AS h, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY a.g, b.g",
        {"error": None},
        {"estimate": 9, "scan a": 4000, "scan b": 3000, "groups a": 3, "groups b": 3},
    ),
    (
        "SELECT APPROXIMATE COUNT(DISTINCT a.v) FROM a JOIN b ON a.k = b.k",
        {"error": None},
        {"estimate": 1, "scan a": 4000, "message b": KEYS},
    ),
    (
        "SELECT APPROXIMATE COUNT(DISTINCT k) FROM (SELECT k FROM a INTERSECT SELECT k FROM b)",
        {"error": None},
        {"estimate": 1, "scan a": 4000, "scan b": 3000},
    ),
    (f"{ASK} ERROR WITHIN 5%", {}, {"exact run": 1, "pilot a": 400, "pilot b": 400}),
]


@pytest.mark.parametrize(("sql", "settings", "rows"), SHAPES)
def test_every_operator_tells_how_many_rows_it_gave(sql, settings, rows):
    (attempt,) = analyzed(sql, **settings).attempts
    assert rows_of(attempt) == rows
    assert all(
        o.actual.cpu_seconds is not None and o.whole_cpu
        for o in flat(attempt.operators)
        if o.kind != "relation"
    )


def test_bytes_of_synopses_and_messages_are_those_of_the_answer_and_within_what_was_planned():
    answer = analyzed(f"{ASK} OPTIONS (sparse = false)", error=None)
    (attempt,) = answer.attempts
    scans = [o for o in flat(attempt.operators) if o.kind == "scan"]
    assert sum(o.actual.bytes_held for o in scans) == answer.bytes_used == attempt.nbytes
    assert all(o.actual.bytes_held == o.predicted.bytes_held for o in scans)
    exact = analyzed("SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j SIZE 100 KB")
    told = by_name(exact.attempts[0])
    assert told["message c"].actual.bytes_held == 16 * len(np.unique(C["j"]))
    assert told["message b"] in told["scan a"].inputs
    assert told["message c"] in told["message b"].inputs
    assert abs(told["message b"].predicted.rows - told["message b"].actual.rows) <= 0.1 * KEYS


def test_bytes_of_samples_beside_sketches_are_predicted_as_they_are_kept():
    sql = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j USING sample_sketch SIZE 4 KB"
    (attempt,) = analyzed(sql).attempts
    scans = [o for o in flat(attempt.operators) if o.kind == "scan"]
    planned, held = ([getattr(o, kind).bytes_held for o in scans] for kind in ("predicted", "actual"))
    assert sum(planned) / 2 < sum(held)
    assert 3_500 < sum(planned) <= 4 << 10
    assert all(h <= p for h, p in zip(held, planned, strict=True))


@pytest.mark.parametrize(
    "clause",
    ["SIZE 100 KB", "USING hash ERROR WITHIN 10%", "USING key_sample SIZE 3 KB", "USING two_level SIZE 3 KB"],
)
def test_predicted_cpu_of_the_operators_adds_up_to_that_of_the_attempt(clause):
    (attempt, *_) = analyzed(f"SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k {clause}").attempts
    known = [o.predicted.cpu_seconds for o in flat(attempt.operators)]
    assert sum(c for c in known if c is not None) == pytest.approx(attempt.attempt.predicted.seconds)


def test_two_attempts_and_an_exact_run_are_all_shown():
    sql = f"{ASK} USING key_sample SIZE 2 KB BEHAVIOR 'run_on_full_table'"
    answer = analyzed(sql, error=1e-4)
    first, second = answer.attempts
    assert [o.name for o in first.operators] == ["planning", "estimate"]
    assert [i.kind for i in first.operators[1].inputs] == ["sample", "sample"]
    assert first.operators[1].actual.half_width == first.half_width > 1e-4
    assert [o.name for o in second.operators] == ["exact run"]
    assert second.seconds > 0
    text = "\n".join(describe_attempts(answer.attempts))
    assert text.count("in all") == 2
    assert "sample a" in text
    assert "exact run" in text
    plan = MemoryRun.of(sql, BACKEND, Settings()).plan()
    runs = physical_dict(plan, answer.attempts)["run"]
    assert [r["operators"][-1]["operator"] for r in runs] == ["estimate", "exact run"]
    drawn = Diagram()
    draw_physical(plan, answer.attempts, drawn)
    assert drawn.mermaid().count("sample b") == 1


def test_groups_that_are_run_exactly_by_themselves_are_an_operator_of_the_attempt():
    sql = (
        "SELECT APPROXIMATE a.g, SUM(a.v) FROM a JOIN b ON a.k = b.k GROUP BY a.g USING key_sample SIZE 2 KB"
    )
    answer = analyzed(sql, error=1e-4, behavior="partial_run_on_base_table")
    assert rows_of(answer.attempts[0])["exact groups"] == 3
