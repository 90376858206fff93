"""Expressions over aggregates, EXPLAIN, ESTIMATE ROWS, and conditions that exclude one another."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from support.exact import exact_answers
from support.memory import InMemory
from support.tables import CASES, register_cases

from skimql import UnsupportedQuery
from skimql.engine.results.answer import is_null, target_state

FROM = "FROM x JOIN y ON x.id = y.id"


ITEMS = {
    "SUM(m) / COUNT(*)": [100.5],
    "SUM(m) + 10 * COUNT(*)": [221],
    "-SUM(m)": [-201],
    "(SUM(m) - SUM(n)) / SUM(n)": [9.05],
    "SUM(m) * COUNT(*)": [402],
    "AVG(m) * 2 + 1": [202],
    "SUM(m + n), SUM(m * n), SUM(2 * m - n)": [221, 2010, 382],
    "COUNT(*) AS n, lower_bound(n), upper_bound(n), relative_error(n)": [2, 2, 2, 0],
}


@pytest.mark.parametrize("sparse", [True, False])
def test_expressions_over_aggregates_come_out_right(sparse):
    memory = InMemory(CASES, sparse=sparse)
    for items, right in ITEMS.items():
        answer = memory.sql(f"SELECT APPROXIMATE {items} {FROM}")
        assert [getattr(c, "value", c) for c in answer.rows[0]] == pytest.approx(right), items


def test_all_of_them_come_out_right_on_spark(session):
    register_cases(session)
    answer = session.sql(f"SELECT APPROXIMATE {', '.join(ITEMS)} {FROM}")
    right = [value for values in ITEMS.values() for value in values]
    assert [getattr(c, "value", c) for c in answer.rows[0]] == pytest.approx(right)


def test_the_interval_of_a_ratio_is_narrower_than_its_parts_allow():
    """SUM(v)/COUNT(*) on the same hashes: nearly constant v, so nearly all of the error cancels."""
    ids = np.arange(20_000)
    session = InMemory({"p": pa.table({"k": ids % 3000, "v": 100 + ids % 2})}, sparse=False, buckets=256)
    join = "FROM p a JOIN p b ON a.k = b.k"
    ratio, count = session.sql(f"SELECT APPROXIMATE SUM(a.v) / COUNT(*) AS r, COUNT(*) AS n {join}").rows[0]
    assert ratio.half_width / ratio.value < 0.2 * count.half_width / count.value
    assert ratio.low <= 100.5 <= ratio.high


@pytest.mark.parametrize("sparse", [True, False])
def test_totals_of_one_table_are_exact_with_and_without_maps(sparse):
    answer = InMemory(CASES, sparse=sparse).sql(
        "SELECT APPROXIMATE COUNT(*), SUM(m), AVG(m) FROM y WHERE m > 100"
    )
    assert [(c.value, c.exact) for c in answer.rows[0]] == [(2, True), (401, True), (200.5, True)]
    assert answer.notes == ()


@pytest.mark.parametrize("sparse", [True, False])
def test_a_bound_of_a_sum_of_nothing_is_null(sparse):
    session = InMemory(CASES, sparse=sparse)
    items = "lower_bound(SUM(m)) AS l, upper_bound(AVG(m)) AS u, lower_bound(SUM(m)) + 1 AS p"
    row = session.sql(f"SELECT APPROXIMATE {items} {FROM} WHERE m > 10000").rows[0]
    assert row[:2] == (None, None)
    assert math.isnan(row[2].value)


def test_an_expression_that_has_no_interval_is_refused():
    session = InMemory(CASES)
    with pytest.raises(UnsupportedQuery):
        session.sql(f"SELECT APPROXIMATE SUM(m) % COUNT(*) {FROM}")


def test_conditions_that_exclude_one_another_give_an_exact_nothing():
    session = InMemory(CASES)
    answer = session.sql(f"SELECT APPROXIMATE COUNT(*) AS n, SUM(m) AS s {FROM} WHERE m > 1 AND 1 = 2")
    count, total = answer.rows[0]
    assert (count.value, count.low, count.high) == (0, 0, 0)
    assert math.isnan(total.value)


def test_the_rows_of_a_join_can_be_asked_before_it_runs(session):
    register_cases(session)
    answer = session.sql("ESTIMATE ROWS FOR SELECT * FROM x JOIN y ON x.id = y.id")
    assert answer.columns == ("rows",)
    assert answer.value == 2


def test_explain_shows_graph_and_plan_and_builds_nothing(session):
    register_cases(session)
    text = session.sql(f"EXPLAIN SELECT APPROXIMATE COUNT(*) {FROM} WHERE m > 1").value
    assert "scan x" in text
    assert "hash 11 x 4,096" in text
    as_json = session.sql(f"EXPLAIN FORMAT JSON SELECT APPROXIMATE COUNT(*) {FROM}").value
    assert json.loads(as_json)["shape"] == "chain"
    assert "graph" in session.sql(f"EXPLAIN FORMAT MERMAID SELECT APPROXIMATE COUNT(*) {FROM}").value


def test_expressions_in_groups_of_several_tables_are_what_spark_says(session):
    """By exact maps on Spark, by counters in memory."""
    register_cases(session)
    select = f"n, m, COUNT(*) AS c, SUM(m) / COUNT(*) AS r, AVG(n) + 1 AS a {FROM} GROUP BY n, m"
    truth = exact_answers(session, (select,))[select]
    for asked in (session, InMemory(CASES, sparse=False)):
        answer = asked.sql(f"SELECT APPROXIMATE {select}")
        rows = sorted(tuple(getattr(cell, "value", cell) for cell in row) for row in answer.rows)
        assert len(truth) == len(rows) == 2
        for row, right in zip(rows, sorted(truth), strict=True):
            assert row == pytest.approx(right)


def test_rows_that_are_too_few_to_tell_do_not_make_a_sum_null():
    keys = np.arange(2000)
    tables = {"p": pa.table({"k": keys, "v": 1 + keys % 5}), "q": pa.table({"k": keys + 1500})}
    join = "FROM p JOIN q ON p.k = q.k USING convolution OPTIONS (rows = 1, buckets = 2)"
    found = [
        InMemory(tables, sparse=False, seed=seed).sql(f"SELECT APPROXIMATE COUNT(*), SUM(p.v) {join}")
        for seed in range(12)
    ]
    assert any(count.low == count.high == 0 for count, _ in (a.rows[0] for a in found)), "clipped"
    assert not any(is_null(total) for _, total in (a.rows[0] for a in found))
    assert {target_state(a, 0.05) for a in found} == {"unknown"}
