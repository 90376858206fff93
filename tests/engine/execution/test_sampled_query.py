"""What a sample of keys says of every group: values, intervals that cover, what is certain, and what is refused."""

import math

import numpy as np
import pyarrow as pa
import pytest
from support.sampled_queries import SCHEMA

from skimql.engine.execution.sampled_query import of_table, plan_of, sampled_text
from skimql.engine.queries.sampled_groups import evaluators_of
from skimql.engine.results.rows import Estimated, with_count
from skimql.errors import DataError
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

ITEMS = "COUNT(*) AS n, SUM(a.v) AS s, AVG(a.v) AS m, SUM(a.v) / COUNT(*) AS r"
GROUPED = f"SELECT APPROXIMATE b.v, {ITEMS} FROM a JOIN b ON a.k = b.k GROUP BY b.v"
PLAIN = f"SELECT APPROXIMATE {ITEMS} FROM a JOIN b ON a.k = b.k"


def read(text):
    return with_count(resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA))


def answered(query, table, rate, confidence=0.95):
    plan = plan_of(query, 1)
    found = of_table(query, table, rate)
    evaluators = evaluators_of(query, plan, found, confidence)
    return Estimated(query, evaluators, listed=False).answer()


def rows_of(query, keys, counts, sums, groups=None):
    """A table as Spark sends it: counts where the measure counts, else sums."""
    columns = {} if groups is None else {"__g0": pa.array(groups, pa.int64())}
    columns["__k"] = pa.array(keys, pa.int64())
    for n, sql in enumerate(query.measures):
        columns[f"__m{n}"] = pa.array(counts if sql.startswith("COUNT") else sums, pa.float64())
    return pa.table(columns)


def test_the_text_filters_every_table_by_the_hash_of_its_key_and_keeps_those_without():
    query = read(GROUPED)
    text = sampled_text(query, query.ways[0], 0.25, 7)
    assert text.count("IS NULL OR xxhash64('") == 2
    assert text.count(f"< {1 << 38}L") == 2
    assert "GROUP BY b.v, `a`.`k`" in text
    assert sampled_text(query, query.ways[0], 0.25, 8) != text


def test_dense_keys_are_certain_and_in_the_text():
    query = read(PLAIN)
    text = sampled_text(query, query.ways[0], 0.25, 7, (7, -2))
    assert text.count("OR CAST(CAST(`k` AS bigint) AS BIGINT) IN (7L, -2L)") == 2
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 6, 4000)
    counts[7] = 20_000
    missed = {(): 0, (7,): 0}
    for _ in range(100):
        kept = rng.random(4000) < 0.1
        for dense in missed:
            there = kept | np.isin(np.arange(4000), dense)
            table = rows_of(query, np.flatnonzero(there), counts[there], counts[there])
            found = of_table(query, table, 0.1, dense)
            ((cell, *_),) = (
                Estimated(query, evaluators_of(query, plan_of(query, 1), found, 0.95), listed=False)
                .answer()
                .rows
            )
            missed[dense] += not cell.low <= counts.sum() <= cell.high
    assert missed[()] > 50
    assert missed[7,] <= 12


def test_intervals_cover_as_they_promise():
    """500 seeds; within the binomial bound for 5 % of misses."""
    query, rate, keys = read(PLAIN), 0.1, 4000
    rng = np.random.default_rng(5)
    counts, sums = rng.integers(1, 6, keys), rng.gamma(2.0, 10.0, keys)
    truth = (counts.sum(), sums.sum(), sums.sum() / counts.sum(), sums.sum() / counts.sum())
    misses = np.zeros(4)
    for _ in range(500):
        kept = rng.random(keys) < rate
        table = rows_of(query, np.flatnonzero(kept), counts[kept], sums[kept])
        (row,) = answered(query, table, rate).rows
        misses += [not c.low <= t <= c.high for c, t in zip(row, truth, strict=True)]
        assert not any(c.certified for c in row)
    assert (misses < 40).all(), misses


def test_rows_without_a_key_are_certain_and_groups_are_apart():
    query = read(GROUPED)
    table = rows_of(query, [None, 1, 2, None], [3, 1, 2, 4], [30.0, 1.0, 2.0, 40.0], [7, 7, None, 8])
    rows = {row[0]: row for row in answered(query, table, 0.5).rows}
    assert [rows[g][1].value for g in (7, 8, None)] == [3 + 1 / 0.5, 4, 2 / 0.5]
    assert rows[7][2].value == 30 + 1 / 0.5
    assert rows[8][1].low == 4


def test_a_key_counts_once_where_it_is_counted_itself_and_that_is_certified():
    query = read("SELECT APPROXIMATE COUNT(DISTINCT a.k) AS d FROM a JOIN b ON a.k = b.k")
    table = pa.table({"__k": pa.array(range(200), pa.int64()), "__m0": pa.array([1.0] * 200)})
    ((cell,),) = answered(query, table, 0.1).rows
    assert cell.value == pytest.approx(2000)
    assert cell.certified


def test_sums_that_are_no_numbers_are_refused_and_sums_of_nothing_add_nothing():
    query = read(PLAIN)
    table = rows_of(query, [1, 2], [1, 1], [1.0, math.nan])
    with pytest.raises(DataError) as raised:
        of_table(query, table, 0.5)
    assert raised.value.code == "SKIMQL_NOT_FINITE"
    (row,) = answered(query, rows_of(query, [1, 2], [1, 1], [1.0, None]), 0.5).rows
    assert row[1].value == 2.0


def test_nothing_that_was_met_is_no_answer_with_a_width():
    query = read(PLAIN)
    (row,) = answered(query, rows_of(query, [], [], []), 0.5).rows
    assert row[0].high == math.inf
    assert not row[0].certified


@pytest.mark.parametrize("met", [[1], [1, None]])
def test_one_key_that_was_met_tells_of_no_other(met):
    query = read(PLAIN)
    (row,) = answered(query, rows_of(query, met, [1] * len(met), [1.0] * len(met)), 0.01).rows
    assert row[0].value == pytest.approx(100 + len(met) - 1)
    assert (row[0].high, row[0].certified) == (math.inf, False)
    assert row[0].low <= row[0].value
    (row,) = answered(
        query, rows_of(query, [*met, 2], [1] * (len(met) + 1), [1.0] * (len(met) + 1)), 0.01
    ).rows
    assert math.isfinite(row[0].high)
