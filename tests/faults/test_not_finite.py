"""NaN and infinities in sums: Spark's own answer where it may be asked, else an error of ours, never a bound."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.errors import DataError
from skimql.optimizer.choose import ClassSample, choose

JOIN = "FROM r JOIN s ON r.k = s.k"
KEYS = np.arange(3000)


@pytest.fixture
def strange(session, tmp_path):
    """A table with one NaN, which its footer does not tell."""
    values = np.ones(len(KEYS))
    values[1234] = math.nan
    for name, columns in {"r": {"k": KEYS}, "s": {"k": KEYS, "x": values, "z": np.ones(len(KEYS))}}.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        session.table(name, str(tmp_path / f"{name}.parquet"))
    return session


def test_a_sum_is_what_spark_says_or_refused(strange):
    answer = strange.sql(f"SELECT APPROXIMATE SUM(x) AS s, COUNT(*) AS n {JOIN} ERROR WITHIN 1%")
    assert math.isnan(answer.rows[0][0])
    assert answer.rows[0][1].value == len(KEYS)
    with pytest.raises(DataError) as caught:
        strange.sql(f"SELECT APPROXIMATE SUM(x) {JOIN} USING hash")
    assert caught.value.code == "SKIMQL_NOT_FINITE"
    assert caught.value.hint.startswith("EXACT SELECT")
    assert math.isnan(strange.sql(f"EXACT SELECT SUM(x) {JOIN}").rows[0][0])


def test_a_sample_that_has_not_met_a_nan_certifies_no_sum(strange):
    from skimql.engine.queries.backend import SparkBackend
    from skimql.engine.results.expressions import Evaluator
    from skimql.engine.results.rows import Estimated
    from skimql.parser.statement import parse_statement

    select = parse_statement(f"SELECT APPROXIMATE SUM(x), SUM(z) {JOIN}")
    query = strange.typed(strange._resolved(select))
    backend, told = SparkBackend(strange.spark, strange.tables, strange.context.statistics, None), []
    for seed in (1, 2):
        plan = choose(query, seed, 0, 0, sample=ClassSample(0, 0.1, row_rates=(0.2, 0.2), hits=5))
        try:
            joined = backend.sample(plan, 1 << 28, dict.fromkeys(range(2), 3000.0), None)
        except DataError:
            continue
        evaluators = {n: Evaluator(plan, one, 0.95) for n, one in joined.items()}
        told += Estimated(query, evaluators).answer().rows
    assert told, "one of the seeds has not met it"
    assert all((s.certified, z.certified) == (False, True) for s, z in told)
