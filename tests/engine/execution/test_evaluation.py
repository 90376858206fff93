"""Tuples that are drawn for their values: each by itself with its partners, whatever else the query has."""

import numpy as np
import pyarrow as pa
import pytest

from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.expressions import Evaluator
from skimql.engine.results.rows import Estimated
from skimql.optimizer.candidates.first_sample import ClassSample
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import ValueDraw

RNG = np.random.default_rng(3)
N, KEYS = 3000, 600
TABLES = {
    "r": {
        "k": pa.array(RNG.integers(0, KEYS, N), mask=RNG.random(N) < 0.05),
        "x": pa.array(RNG.integers(1, 1000, N), mask=RNG.random(N) < 0.1),
        "g": RNG.integers(0, 3, N),
        "l": RNG.integers(0, 50, N),
    },
    # Key 5 has so many tuples that those that are looked at find it surely, whatever r has of it.
    "s": {
        "k": np.r_[np.arange(KEYS), np.full(900, 5)],
        "y": RNG.integers(-99, 100, KEYS + 900),
        "h": RNG.integers(0, 2, KEYS + 900),
    },
    "c": {"l": np.r_[np.arange(40), np.arange(9)], "z": RNG.integers(1, 9, 49)},
}
MEMORY = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in TABLES.items()}))
TWO = "FROM r JOIN s ON r.k = s.k"
X, Y = ValueDraw(0, "`x`", 0.5, 1.0), ValueDraw(1, "`y`", 0.5, 1.0)

CASES = {
    "one table": (f"SUM(r.x) {TWO}", (X,)),
    "the other table": (f"SUM(s.y) {TWO}", (Y,)),
    "two tables": (f"SUM(r.x), SUM(s.y) {TWO}", (X, Y)),
    "two expressions": (f"SUM(r.x), SUM(-r.x) {TWO}", (X, ValueDraw(0, "-`x`", 0.5, 1.0))),
    "a filter": (f"SUM(r.x) {TWO} WHERE s.y > 0 AND r.l < 30", (X,)),
    "groups": (f"r.g, SUM(r.x) {TWO} GROUP BY r.g", (X,)),
    "groups of both": (f"r.g, s.h, SUM(r.x), SUM(s.y) {TWO} GROUP BY r.g, s.h", (X, Y)),
    "a table with itself": ("SUM(r.x) FROM r JOIN r t ON r.k = t.k", (X,)),
    "tables beyond": (f"SUM(r.x) {TWO} JOIN c ON r.l = c.l", (X,)),
    "three tables": (f"SUM(r.x), SUM(s.y) {TWO} JOIN r t ON s.k = t.k", (X, Y)),
}


def estimates(sql, draws, seed, rate=0.05):
    run = MemoryRun.of(f"SELECT APPROXIMATE {sql}", MEMORY)
    number = 3 if "r t ON s" in sql else 2
    rates = (0.1, 0.1, 0.1)[:number]
    sample = ClassSample(0, rate, row_rates=rates, hits=4, value_draws=draws)
    listed = MEMORY.groups(run.query, 100) if run.query.groups else None
    plan = choose(run.query, seed, 0, 0, sample=sample)
    found = MEMORY.sample(plan, 1 << 28, None, listed)
    values = {n: () if listed is None else listed.values(n) for n in found}
    evaluators = {n: Evaluator(plan, joined, 0.95, values[n]) for n, joined in found.items()}
    groups = len(run.query.groups)
    answer = Estimated(run.query, evaluators, listed=False).answer()
    return {row[:groups]: row[groups:] for row in answer.rows}, run


@pytest.mark.parametrize("case", CASES)
def test_a_sum_of_values_that_are_all_drawn_for_certain_is_there_whatever_keys_are_sampled(case):
    """But for keys that the tuples looked at find almost surely, which are weighed by that chance."""
    sql, draws = CASES[case]
    for seed in range(3):
        found, run = estimates(sql, draws, seed)
        truth = {row[: len(run.query.groups)]: row[len(run.query.groups) :] for row in run.exact().rows}
        assert {repr(g) for g in found} == {repr(g) for g in truth}
        by_group = {repr(g): cells for g, cells in truth.items()}
        for group, cells in found.items():
            values = [float(c.value) for c in cells]
            assert values == pytest.approx([float(c.value) for c in by_group[repr(group)]], rel=1e-6)


def test_what_is_drawn_by_chance_has_no_bias():
    """60 seeds; the mean within 5 standard errors of the truth. COUNT is not touched by draws of values."""
    sql = f"COUNT(*), SUM(r.x), SUM(s.y * s.y) {TWO} WHERE s.k <> 5"
    draws = ValueDraw(0, "`x`", 300.0, 20_000.0), ValueDraw(1, "`y` * `y`", 50.0, 50_000.0)
    seen = []
    for seed in range(60):
        found, run = estimates(sql, draws, seed, 0.2)
        ((cells),) = found.values()
        seen.append([float(c.value) for c in cells])
    truth = np.array([float(c.value) for c in run.exact().rows[0]])
    errors = np.array(seen) - truth
    assert (np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / np.sqrt(len(seen))).all()
    without = [float(estimates(sql, (), seed, 0.2)[0][()][0].value) for seed in range(5)]
    assert [row[0] for row in seen[:5]] == pytest.approx(without)
