"""Samples in memory, whatever is heavy: by a tuple's value, by keys in both tables, by what hangs behind."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.answer import is_null, target_state
from skimql.engine.results.expressions import Evaluator
from skimql.engine.results.rows import Estimated
from skimql.errors import DataError
from skimql.optimizer.candidates.first_sample import ClassSample
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import ValueDraw

N = 5_000
KEYS = np.arange(N)
TWO = "FROM r JOIN s ON r.k = s.k"


def one_value():
    values = np.ones(N)
    values[7] = N
    return TWO, {"r": {"k": KEYS}, "s": {"k": KEYS[::-1], "x": values}}


def both_tables():
    keys = np.r_[KEYS, np.repeat(KEYS[:20], 60)]
    return TWO, {"r": {"k": keys}, "s": {"k": keys, "x": np.ones(len(keys))}}


def behind():
    """One tuple of s leads to as many of t as all the others."""
    far = np.r_[KEYS, np.full(N, 11)]
    text = f"{TWO} JOIN t ON s.j = t.j"
    return text, {"r": {"k": KEYS}, "s": {"k": KEYS, "j": KEYS}, "t": {"j": far, "x": np.ones(len(far))}}


@pytest.mark.parametrize("data", [one_value, both_tables, behind])
def test_what_is_heavy_is_in_the_interval_of_every_seed_and_certified(data):
    joined, tables = data()
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    run = MemoryRun.of(f"SELECT APPROXIMATE COUNT(*), SUM(x), AVG(x) {joined}", memory)
    truth = [c.value for c in run.exact().rows[0]]
    sample = ClassSample(0, 0.05, row_rates=(0.2, 0.2), hits=5)
    for seed in range(6):
        plan = choose(run.query, seed, 0, 0, sample=sample)
        estimators = memory.sample(plan, 1 << 28, None, None)
        evaluators = {n: Evaluator(plan, joined, 0.999) for n, joined in estimators.items()}
        count, total, average = Estimated(run.query, evaluators).answer().rows[0]
        assert count.certified
        assert total.certified
        for cell, value in zip((count, total, average), truth, strict=True):
            assert cell.low <= value <= cell.high, (seed, cell, value)


def test_what_an_unseen_key_can_add_to_a_sum_is_what_it_can_to_a_count_times_the_largest_value():
    joined, tables = one_value()
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    run = MemoryRun.of(f"SELECT APPROXIMATE COUNT(*), SUM(x), SUM(-x) {joined}", memory)
    plan = choose(run.query, 1, 0, 0, sample=ClassSample(0, 0.05, row_rates=(0.2, 0.2), hits=5))
    (found,) = memory.sample(plan, 1 << 28, None, None).values()
    bounds = {
        a.name: found.contributions.unseen[found.terms.index(a.total[0].synopses)] for a in plan.aggregates
    }
    (_, most), (low, high), (least, none) = bounds.values()
    assert np.isfinite(most)
    assert most > 1
    assert (low, high) == (0.0, pytest.approx(N * most, rel=1e-5))
    assert (least, none) == (pytest.approx(-N * most, rel=1e-5), 0.0)


def test_the_largest_values_are_in_every_sample_and_bound_what_is_unseen():
    rng = np.random.default_rng(8)
    values = 1 + rng.pareto(1.1, 2 * N)
    values[3] = values.sum()
    tables = {"r": {"k": rng.integers(0, N, 2 * N), "x": values}, "s": {"k": np.r_[KEYS, KEYS[:9]]}}
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    run = MemoryRun.of(f"SELECT APPROXIMATE SUM(x), AVG(x), SUM(-x) {TWO}", memory)
    truth = [c.value for c in run.exact().rows[0]]
    mass = values.sum()
    draws = tuple(ValueDraw(0, e, mass / 40_000, mass / 2000) for e in ("`x`", "-`x`"))
    widths = []
    for seed in range(12):
        sample = ClassSample(0, 0.2, row_rates=(0.3, 1.0), hits=5, value_draws=draws)
        (joined,) = memory.sample(choose(run.query, seed, 0, 0, sample=sample), 1 << 28, None, None).values()
        assert tables["r"]["k"][3] in joined.contributions.keys
        plan = choose(run.query, seed, 0, 0, sample=sample)
        cells = Estimated(run.query, {(): Evaluator(plan, joined, 0.999)}).answer().rows[0]
        for cell, value in zip(cells, truth, strict=True):
            assert cell.certified
            assert cell.low <= value <= cell.high, (seed, cell, value)
            widths.append((cell.high - cell.low) / abs(value))
    assert max(widths) < 0.5


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_met_or_leaves_nothing_certified(strange):
    """The sum is NaN or infinite: no sample that has not met it may bound it, and one that has says so."""
    joined, tables = one_value()
    tables["s"]["x"][4321] = strange
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    run = MemoryRun.of(f"SELECT APPROXIMATE COUNT(*), SUM(x), SUM(-x), SUM(abs(x)) {joined}", memory)
    met = 0
    for seed in range(12):
        plan = choose(run.query, seed, 0, 0, sample=ClassSample(0, 0.2, row_rates=(0.2, 0.2), hits=5))
        try:
            estimators = memory.sample(plan, 1 << 28, None, None)
        except DataError as fault:
            met += fault.code == "SKIMQL_NOT_FINITE"
            continue
        evaluators = {n: Evaluator(plan, joined, 0.95) for n, joined in estimators.items()}
        count, *sums = Estimated(run.query, evaluators).answer().rows[0]
        assert count.certified
        assert not any(s.certified for s in sums)
    assert 0 < met < 12


def test_a_nan_that_the_filter_leaves_out_leaves_a_sum_its_bound():
    joined, tables = one_value()
    tables["s"]["x"][4321] = np.nan
    tables["s"]["kept"] = np.arange(len(tables["s"]["x"])) != 4321
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    for condition, bounded in (("s.kept", True), ("NOT s.kept OR s.kept", False)):
        run = MemoryRun.of(f"SELECT APPROXIMATE SUM(x) {joined} WHERE {condition}", memory)
        plan = choose(run.query, 1, 0, 0, sample=ClassSample(0, 0.02, row_rates=(0.02, 0.02), hits=5))
        (found,) = memory.sample(plan, 1 << 28, None, None).values()
        assert np.isfinite(found.contributions.unseen[0]).all() == bounded


def test_sums_of_what_nothing_bounds_are_certified():
    rng = np.random.default_rng(5)
    tables = {"r": {"k": rng.integers(0, N, 8 * N), "x": rng.lognormal(0, 2, 8 * N)}, "s": {"k": KEYS}}
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    sql = f"SELECT APPROXIMATE SUM(sqrt(x)) {TWO} ERROR WITHIN 20% USING key_sample"
    run = MemoryRun.of(sql, memory, Settings(fold_bytes=0))
    truth = run.exact().rows[0][0].value
    answer = run.answer()
    (total,) = answer.rows[0]
    assert answer.method == "key_sample"
    assert not total.exact
    assert total.certified
    assert total.low <= truth <= total.high


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_a_sum_is_known_as_well_whatever_the_unit_of_its_values(scale):
    """Neither squares of values nor a number of hashes for each unit of them need be DOUBLEs."""
    rng = np.random.default_rng(8)
    values = scale * rng.lognormal(0, 1, 2 * N)
    tables = {"r": {"k": rng.integers(0, N, 2 * N), "x": values}, "s": {"k": KEYS}}
    memory = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in tables.items()}))
    run = MemoryRun.of(f"SELECT APPROXIMATE SUM(x), AVG(x) {TWO}", memory)
    truth = [c.value for c in run.exact().rows[0]]
    mass = values.sum()
    draws = (ValueDraw(0, "`x`", mass / 40_000, mass / 2000),)
    for seed in range(6):
        sample = ClassSample(0, 0.2, row_rates=(0.3, 1.0), hits=5, value_draws=draws)
        plan = choose(run.query, seed, 0, 0, sample=sample)
        (joined,) = memory.sample(plan, 1 << 28, None, None).values()
        cells = Estimated(run.query, {(): Evaluator(plan, joined, 0.999)}).answer().rows[0]
        for cell, value in zip(cells, truth, strict=True):
            assert cell.low <= value <= cell.high, (seed, cell, value)
            assert 0.01 < (cell.high - cell.low) / value < 0.5


def test_the_average_of_nothing_is_known_to_be_null():
    memory = MemoryBackend(
        MemoryTables({"r": pa.table({"k": KEYS[:0], "x": KEYS[:0]}), "s": pa.table({"k": KEYS})})
    )
    items = "COUNT(*), SUM(x), AVG(x), AVG(x) + 1"
    answer = MemoryRun.of(
        f"SELECT APPROXIMATE {items} {TWO} USING key_sample ERROR WITHIN 5%", memory
    ).answer()
    assert answer.rows[0][0].value == 0
    assert all(map(is_null, answer.rows[0][1:]))
    assert answer.target == "met"


@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0)])
def test_a_sum_that_leaves_the_doubles_is_not_known(signs):
    """Neither infinite nor NULL, whatever the parts of both signs come to."""
    values = 1e305 * np.resize(signs, N)
    memory = MemoryBackend(
        MemoryTables({"r": pa.table({"k": KEYS}), "s": pa.table({"k": KEYS, "x": values})})
    )
    run = MemoryRun.of(f"SELECT APPROXIMATE COUNT(*), SUM(x), AVG(x) {TWO}", memory)
    plan = choose(run.query, 1, 0, 0, sample=ClassSample(0, 0.2, row_rates=(0.2, 0.2), hits=5))
    (joined,) = memory.sample(plan, 1 << 28, None, None).values()
    answer = Estimated(run.query, {(): Evaluator(plan, joined, 0.95)}).answer()
    count, *others = answer.rows[0]
    assert count.low <= N <= count.high
    for cell in others:
        assert np.isnan(cell.value)
        assert (cell.low, cell.high, cell.certified) == (-np.inf, np.inf, False)
    assert target_state(answer, 0.9) == "missed"
