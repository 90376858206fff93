"""Queries with an error, a size or a sampling method: the planner's choice, carried out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.exact import exact_answers

from skimql import BudgetExceeded, UnsupportedQuery
from skimql.engine.queries.planner import Planner
from skimql.optimizer.candidates import first_sample
from skimql.optimizer.candidates.tuple_draws import TupleDraws
from skimql.sketches.samples.dual_frame import DualFrame

pytestmark = pytest.mark.spark

JOIN = "FROM big JOIN other ON big.k = other.k"


@pytest.fixture
def tables(session, tmp_path):
    """`big` (40,000 tuples, 5,000 keys, skewed) joins `other` (20,000 tuples), and `small` (50 tuples) on d."""
    rng = np.random.default_rng(7)
    zipf = (rng.zipf(1.4, 40_000) % 5_000).astype(np.int64)
    data = {
        "big": {"k": zipf, "d": rng.integers(0, 50, 40_000), "v": rng.integers(0, 100, 40_000)},
        "other": {"k": rng.integers(0, 6_000, 20_000), "u": rng.integers(0, 10, 20_000)},
        "small": {"d": np.arange(50), "name": [f"n{i}" for i in range(50)]},
    }
    for name, columns in data.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")
    return session


def exact(session, select):
    (row,) = exact_answers(session, (select,))[select]
    return [float(v) for v in row]


def holds(answer, values):
    return all(c.low <= v <= c.high for c, v in zip(answer.rows[0], values, strict=True))


def test_what_a_size_holds_as_a_whole_is_answered_exactly(tables):
    """By whichever is cheapest of an exact message and of a sample of all keys."""
    select = "COUNT(*), SUM(big.v), AVG(big.v) FROM big JOIN small ON big.d = small.d WHERE small.name < 'n3'"
    answer = tables.sql(f"SELECT APPROXIMATE {select} SIZE 16 KB")
    assert [c.value for c in answer.rows[0]] == pytest.approx(exact(tables, select))
    assert all(c.exact for c in answer.rows[0])
    assert 0 < answer.bytes_used <= 16 * 1024


def test_a_small_table_is_folded_whatever_is_asked(tables):
    select = f"COUNT(*) {JOIN} JOIN small ON big.d = small.d WHERE small.name < 'n3'"
    answer = tables.sql(f"SELECT APPROXIMATE {select} SIZE 24 KB")
    # Folded, small is no vertex of what is left, and errs by nothing.
    assert answer.plan.vertices == (0, 1)
    assert answer.bytes_used <= 24 * 1024
    assert holds(answer, exact(tables, select))


@pytest.mark.parametrize("method", ["key_sample", "two_level"])
def test_a_forced_method_within_a_size(tables, method):
    select = f"COUNT(*), SUM(big.v * other.u) {JOIN}"
    answer = tables.sql(f"SELECT APPROXIMATE {select} USING {method} SIZE 24 KB")
    assert answer.plan.sample is not None
    assert method.replace("_", " ") in answer.notes[0]
    assert 4096 < answer.bytes_used <= 24 * 1024
    if method == "two_level":
        assert len(answer.plan.sample.dense) > 0
        # One seed: three half-widths are 5.9 standard deviations, missed by chance less often than FALSE_FAIL.
        for cell, truth in zip(answer.rows[0], exact(tables, select), strict=True):
            assert abs(cell.value - truth) <= 3 * max(cell.high - cell.value, cell.value - cell.low)
    else:
        # A heavy key outside a plain sample is not seen; what is certified holds all the same.
        cells = zip(answer.rows[0], exact(tables, select), strict=True)
        assert all(c.low <= v <= c.high for c, v in cells if c.certified)


def test_a_size_that_holds_nothing_is_refused_with_reasons(tables):
    with pytest.raises(BudgetExceeded, match="10 bytes are too few: hash"):
        tables.sql(f"SELECT APPROXIMATE COUNT(*) {JOIN} SIZE 10 B")


def test_a_method_that_does_not_apply_is_refused(tables):
    with pytest.raises(UnsupportedQuery, match="two_level cannot answer this"):
        tables.sql(
            f"SELECT APPROXIMATE COUNT(*) {JOIN} JOIN small ON big.d = small.d USING two_level SIZE 16 KB"
        )


def test_an_asked_error_is_met_or_run_exactly(tables):
    answer = tables.sql(f"SELECT APPROXIMATE COUNT(*) {JOIN} ERROR WITHIN 5%")
    (value,) = exact(tables, f"COUNT(*) {JOIN}")
    assert answer.exact or abs(answer.value - value) <= 0.05 * value


def test_sizes_set_by_hand_are_sketches(tables):
    answer = tables.sql(f"SELECT APPROXIMATE COUNT(*) {JOIN} OPTIONS (buckets = 64) ERROR WITHIN 50%")
    assert {s.method for s in answer.plan.synopses} == {"hash"}


def test_explain_shows_every_candidate_and_starts_no_job(tables):
    text = tables.sql(f"EXPLAIN SELECT APPROXIMATE COUNT(*) {JOIN} SIZE 24 KB").value
    assert "choice: " in text
    for name in ("hash: ", "key sample on k", "two level on k", "sampled messages on k"):
        assert name in text
    assert "big - other on k" in text
    assert "statistics of big: row count, 40,000 tuples" in text


def test_large_tables_are_sampled_at_once(tables, monkeypatch):
    monkeypatch.setattr(first_sample, "LARGE", 1000.0)
    # Of tables as small as these starting jobs costs more than the exact run.
    monkeypatch.setattr(Planner, "_jobs_count", False)
    monkeypatch.setattr(first_sample, "NEEDED", 500.0)
    # Counts: of tables as small as these drawing tuples for their values costs what the exact run does.
    select = f"COUNT(*) {JOIN} WHERE other.u < 8"
    told = tables.sql(f"EXPLAIN SELECT APPROXIMATE {select} ERROR WITHIN 30%").value
    assert "answer: key sample, one in" in told
    assert "sample the keys k of large tables" in told
    answer = tables.sql(f"SELECT APPROXIMATE {select} ERROR WITHIN 30%")
    assert holds(answer, exact(tables, select))
    # What is explained is what runs: files are looked at either way, without a job.
    planned = tables.plan(f"SELECT APPROXIMATE {select} ERROR WITHIN 30%").attempt
    assert planned == answer.attempts[0].attempt
    assert "keys of k sampled" in answer.notes[0]
    assert [(a.attempt.method, a.outcome) for a in answer.attempts] == [("key_sample", "met")]
    # No sample is enough.
    precise = tables.sql(f"SELECT APPROXIMATE {select} ERROR WITHIN 0.1%")
    assert precise.exact
    assert "run exactly" in precise.notes[-1]
    assert [c.value for c in precise.rows[0]] == pytest.approx(tuple(exact(tables, select)))


def test_a_sample_that_misses_is_enlarged_until_the_error_is_met(tables, monkeypatch):
    monkeypatch.setattr(first_sample, "LARGE", 1000.0)
    # Of tables as small as these starting jobs costs more than the exact run.
    monkeypatch.setattr(Planner, "_jobs_count", False)
    monkeypatch.setattr(first_sample, "NEEDED", 5.0)
    # Chance alone makes the interval too wide: of tables as small as these unseen keys may add much.
    monkeypatch.setattr(DualFrame, "largest_product", lambda *_: 0.0)
    select = f"COUNT(*), SUM(big.v) {JOIN} WHERE other.u < 8"
    answer = tables.sql(f"SELECT APPROXIMATE {select} ERROR WITHIN 2.5%")
    assert holds(answer, exact(tables, select))
    *missed, last = answer.attempts
    assert {a.outcome for a in missed} == {"missed"}
    assert last.outcome == "met"
    rates = [a.attempt.plan.sample.rate for a in answer.attempts if a.attempt.method == "key_sample"]
    assert len(rates) >= 2
    assert rates == sorted(rates)
    assert rates[1] > 2 * rates[0]
    assert last.half_width <= 0.025 < missed[0].half_width
    assert "not enough" in answer.notes[0]


def test_a_sample_too_small_for_what_unseen_keys_may_add_is_followed_by_the_exact_run(tables, monkeypatch):
    monkeypatch.setattr(first_sample, "LARGE", 1000.0)
    monkeypatch.setattr(Planner, "_jobs_count", False)
    monkeypatch.setattr(first_sample, "tuple_draws", lambda *_: TupleDraws((0.2, 0.2), 20, 0.0, (0.0, 0.0)))
    answer = tables.sql(f"SELECT APPROXIMATE COUNT(*), SUM(big.v) {JOIN} ERROR WITHIN 10%")
    assert [(a.attempt.method, a.outcome) for a in answer.attempts] == [
        ("key_sample", "missed"),
        ("exact_run", "met"),
    ]
    assert (answer.exact, answer.target) == (True, "met")


def test_a_large_table_joined_with_an_empty_one_is_answered(session, tmp_path, monkeypatch):
    monkeypatch.setattr(first_sample, "LARGE", 1000.0)
    for name, tuples in (("many", 5000), ("none", 0)):
        path = str(tmp_path / name)
        session.spark.range(tuples).withColumnRenamed("id", "k").write.parquet(path)
        session.table(name, path)
    answer = session.sql("SELECT APPROXIMATE COUNT(*) FROM many JOIN none ON many.k = none.k ERROR WITHIN 5%")
    assert answer.exact
    assert answer.value == 0


def test_memory_is_bounded_before_anything_is_built(tables):
    with pytest.raises(BudgetExceeded, match="may take 176 MB, more than"):
        tables.sql(f"SELECT APPROXIMATE COUNT(*) {JOIN} OPTIONS (buckets = 1048576, max_bytes = '64 MB')")
