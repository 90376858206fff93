"""An asked error on joins that put out more than can be awaited."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import DataError
from skimql.optimizer.candidates.enumerate import choose_method
from skimql.optimizer.messages import JoinClass, JoinTree
from skimql.optimizer.objective import Objective
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics

WAYS = ("exact", "exact_run", "hash", "convolution", "key_sample", "two_level", "sampled_messages")


@pytest.fixture
def tables(session, tmp_path, as_users_have_it):
    rows = {"h": np.zeros(2_000, np.int64), "g": np.zeros(100_000, np.int64), "m": np.arange(1_000_000) % 3}
    for name, keys in rows.items():
        pq.write_table(pa.table({"k": keys}), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")
    return session


@pytest.mark.parametrize(
    ("tables_of", "truth"),
    [("h h h", 2_000.0**3), ("m m", 333_334.0**2 + 2 * 333_333.0**2)],
)
def test_a_join_of_few_keys_is_not_run_exactly_whatever_it_puts_out(tables, tables_of, truth):
    names = tables_of.split()
    joined = " ".join(f"JOIN {t} t{i} ON t0.k = t{i}.k" for i, t in enumerate(names) if i)
    answer = tables.sql(f"SELECT APPROXIMATE COUNT(*) FROM {names[0]} t0 {joined} ERROR WITHIN 5%")
    assert answer.value == pytest.approx(truth, rel=0.05)


def test_a_count_that_no_bigint_holds_is_told_at_once(tables):
    joined = "FROM g " + " ".join(f"JOIN g t{i} ON g.k = t{i}.k" for i in range(4))
    with pytest.raises(DataError, match=r"1e\+25 does not fit BIGINT") as caught:
        tables.sql(f"SELECT APPROXIMATE COUNT(*) {joined} ERROR WITHIN 5%")
    assert "SUM(1D)" in caught.value.hint
    assert tables.sql(f"SELECT APPROXIMATE SUM(1D) {joined} ERROR WITHIN 5%").value == pytest.approx(1e25)


def _tree(keys, tuples):
    known = RelationStatistics(tuples, (AttributeStatistics(distinct=keys),), source="exact")
    return JoinTree(2, (JoinClass("k", (0, 1)),)), [known, known]


def test_the_cost_of_an_exact_join_counts_what_it_puts_out():
    few, many = (
        next(
            c.cost.seconds
            for c in choose_method(*_tree(keys, 1e5), Objective(0.05, methods=WAYS)).candidates
            if c.method == "exact_run"
        )
        for keys in (3.0, 1e5)
    )
    assert few > 20 * many


def test_an_exact_run_that_would_not_end_is_refused():
    choice = choose_method(*_tree(3.0, 1e7), Objective(0.05, methods=WAYS))
    assert choice.taken.method != "exact_run"
    (exact,) = (c for c in choice.candidates if c.method == "exact_run")
    assert "would put out" in exact.refused
