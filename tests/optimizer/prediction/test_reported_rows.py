"""Predicted half-widths of sketches beside those that the same sketches then report, on the memory backend."""

from statistics import median

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.adaptive import _widest as widest
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import SketchJoin
from skimql.engine.results.skimmed import SkimmedJoin
from skimql.engine.statistics.gather import heaviest_keys
from skimql.optimizer.candidates.enumerate import choose_method
from skimql.optimizer.choose import choose
from skimql.optimizer.messages import tree_of, whole
from skimql.optimizer.objective import Objective
from skimql.optimizer.prediction.made_up_keys import Values
from skimql.optimizer.prediction.reported_rows import Rows

N, SEEDS = 2000, 15
RNG = np.random.default_rng(22)
ZIPF = np.searchsorted(
    np.cumsum(np.arange(1, 801) ** -1.0) / (np.arange(1, 801) ** -1.0).sum(), RNG.random(N)
)
CENTRED = RNG.normal(0.0, 100.0, N)
TABLES = {
    "r": {"k": RNG.integers(0, N // 2, N), "x": RNG.lognormal(3.0, 1.0, N)},
    "s": {"k": RNG.permutation(N // 2), "l": np.arange(N // 2) % 500},
    "t": {"l": np.arange(500)},
    "z": {"k": ZIPF, "x": RNG.normal(100.0, 15.0, N).round().astype(int)},
    # As much in one tuple as in all others, and values whose sum is nothing.
    "o": {"k": RNG.integers(0, N // 2, N), "x": np.r_[np.ones(N - 1), N - 1.0]},
    "c": {"k": RNG.integers(0, N // 2, N), "x": CENTRED - CENTRED.mean()},
}
TABLES["s"]["y"] = np.random.default_rng(1).normal(50.0, 5.0, N // 2)
TABLES["d"] = {"k": RNG.integers(0, N // 2, N), "x": RNG.permutation(np.tile(TABLES["s"]["y"], 2))}
BACKEND = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in TABLES.items()}))
R, Z = "FROM r JOIN s ON r.k = s.k", "FROM z JOIN s ON z.k = s.k"
CASES = {
    "count": (f"COUNT(*) {R}", "hash"),
    "sum": (f"SUM(r.x) {R}", "hash"),
    "average": (f"AVG(r.x) {R}", "hash"),
    "skewed": (f"COUNT(*) {Z}", "hash"),
    "skimmed": (f"COUNT(*) {Z}", "skimmed"),
    "skimmed sum": (f"SUM(z.x) {Z}", "skimmed"),
    "chain": (f"SUM(r.x) {R} JOIN t ON s.l = t.l", "convolution"),
    "agms": (f"COUNT(*) {R}", "agms"),
    "outlier": ("SUM(o.x) FROM o JOIN s ON o.k = s.k", "hash"),
}
CANCELS = ("SUM(c.x) FROM c JOIN s ON c.k = s.k", "hash")
ROWS, BUCKETS = 11, 256


# Both sides have next to the same.
DIFFERENCE = ("SUM(d.x - s.y) FROM d JOIN s ON d.k = s.k", "hash")


def predicted_and_reported(case, seeds=SEEDS, looked_at=N, more=0.0, buckets=BUCKETS):
    """The predicted half-width, and the median of the reported ones; sketches are counters from the first tuple on.

    `more`: by so much the values of the first table that are looked at are too large.
    """
    select, method = CASES.get(case, DIFFERENCE if case == "equal sides" else CANCELS)
    run = MemoryRun.of(f"SELECT APPROXIMATE {select} USING {method}", BACKEND, Settings())
    query, tree = run.query, tree_of(run.query.graph)
    statistics = BACKEND.statistics(query)
    figures = choose_method(tree, statistics, Objective(relative_error=0.05)).figures
    values = {
        (s.vertex, s.expression): Values(
            s.values[:looked_at] + (more if not s.vertex else 0.0), s.low, s.high
        )
        for s in BACKEND.summed(query)
    }
    sketches = Rows(figures, whole(tree), method, ROWS, buckets, {}, values)
    seen = []
    for seed in range(seeds):
        plan = choose(query, seed, ROWS, buckets, sparse=False)
        built = BACKEND.build(plan)
        joined = (
            SkimmedJoin(plan, built, heaviest_keys(statistics))
            if method == "skimmed"
            else SketchJoin(plan, built)
        )
        seen.append(widest(answer_plan(plan, joined, 0.95)))
    return sketches.widths(query, 0.95)[0], median(seen)


@pytest.mark.parametrize("case", CASES)
def test_the_predicted_half_width_is_that_of_the_order_statistics(case):
    """To a factor of 1.5 in the median of the seeds."""
    planned, seen = predicted_and_reported(case)
    assert 0.67 < planned / seen < 1.5


def test_the_largest_value_of_a_column_is_there_though_it_was_not_looked_at():
    planned, seen = predicted_and_reported("outlier", looked_at=100)
    assert 0.67 < planned / seen < 1.5


def test_the_largest_value_of_an_expression_or_behind_a_filter_is_not_known_to_be_there():
    for select in (CASES["outlier"][0].replace("o.x", "o.x + 1"), CASES["outlier"][0] + " WHERE o.k < 500"):
        query = MemoryRun.of(f"SELECT APPROXIMATE {select}", BACKEND, Settings()).query
        statistics, tree = BACKEND.statistics(query), tree_of(query.graph)
        figures = choose_method(tree, statistics, Objective(relative_error=0.05)).figures
        values = {(s.vertex, s.expression): Values(np.ones(100), 0.0, N) for s in BACKEND.summed(query)}
        assert np.isnan(Rows(figures, whole(tree), "hash", ROWS, BUCKETS, {}, values).widths(query, 0.95)[0])


def test_a_sum_that_is_not_told_from_nothing_is_predicted_to_be_wider_than_itself():
    for case in ("cancels", "equal sides"):
        planned, seen = predicted_and_reported(case, seeds=3)
        assert min(planned, seen) > 1.0, case
    # By chance the means of those looked at are apart: by less than they may be off.
    planned, _ = predicted_and_reported("equal sides", seeds=1, looked_at=10, more=8.0, buckets=256 * BUCKETS)
    assert not planned < 1.0


def test_two_standard_errors_of_the_median_are_too_few(monkeypatch):
    """The bug that was: an interval of eleven rows is nearly twice as wide."""

    def narrow(self, moments, confidence):
        return 1.96 * float(np.median(self._of_two(moments), axis=1).std())

    monkeypatch.setattr(Rows, "_reach", narrow)
    planned, seen = predicted_and_reported("sum")
    assert planned < 0.67 * seen


def test_sketches_that_stay_exact_maps_are_predicted_to_be_exact():
    text = f"SELECT APPROXIMATE SUM(r.x) {R} ERROR WITHIN 1% USING hash"
    run = MemoryRun.of(text, BACKEND, Settings(fold_bytes=0))
    planned = run.plan().attempt.predicted
    assert (planned.half_width, planned.half_widths) == (0.0, (0.0,))
    assert run.answer().attempts[0].half_width < 1e-9


def test_what_a_query_does_not_tell_has_no_prediction():
    run = MemoryRun.of(f"SELECT APPROXIMATE SUM(r.x) {R}", BACKEND, Settings())
    figures = choose_method(
        tree_of(run.query.graph), BACKEND.statistics(run.query), Objective(relative_error=0.05)
    ).figures
    nothing = Rows(figures, whole(figures.tree), "hash", ROWS, BUCKETS, {}, {})
    assert np.isnan(nothing.widths(run.query, 0.95)).all()
