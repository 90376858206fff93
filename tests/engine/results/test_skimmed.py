"""USING agms and USING skimmed: the papers' sketches, by SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.exact import exact_answers

from skimql import UnsupportedQuery
from skimql.engine.results.answer import half_width

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_users_have_it")]

SELECT = "COUNT(*) AS n, AVG(a.v) AS v FROM a JOIN b ON a.k = b.k"


@pytest.fixture
def skewed(session):
    """Two Zipf tables whose heaviest keys meet light ones: few buckets err by the heavy keys' collisions."""
    rng = np.random.default_rng(5)
    left = rng.zipf(1.3, 30_000) % 20_000
    right = (rng.zipf(1.3, 30_000) + 30) % 20_000
    for name, keys in (("a", left), ("b", right)):
        table = pa.table({"k": keys.astype(np.int64), "v": np.arange(len(keys)) % 100})
        session.table(name, session.spark.createDataFrame(table))
    (truth,) = exact_answers(session, (SELECT,))[SELECT]
    return session, [float(v) for v in truth]


def asked(session, method):
    size = "OPTIONS (buckets = 400, sparse = false)"
    return session.sql(f"SELECT APPROXIMATE {SELECT} USING {method} {size}")


def test_skimmed_is_narrower_than_hash_and_holds(skewed):
    session, truth = skewed
    plain, skimmed = asked(session, "hash"), asked(session, "skimmed")
    for cell, value in zip(skimmed.rows[0], truth, strict=True):
        assert cell.low <= value <= cell.high
    assert half_width(skimmed.rows[0][0]) < 0.5 * half_width(plain.rows[0][0])
    assert {s.method for s in skimmed.plan.synopses} == {"hash"}


def test_agms_sketches_are_built_and_hold(skewed):
    session, truth = skewed
    answer = session.sql(
        f"SELECT APPROXIMATE {SELECT} USING agms OPTIONS (rows = 11, buckets = 64, sparse = false)"
    )
    assert {s.method for s in answer.plan.synopses} == {"agms"}
    assert answer.rows[0][0].low <= truth[0] <= answer.rows[0][0].high
    exact = session.sql(
        "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE a.v < 1 AND b.v < 1 USING agms"
    )
    (value,) = session.sql("EXACT SELECT COUNT(*) FROM a JOIN b ON a.k = b.k WHERE a.v < 1 AND b.v < 1").rows[
        0
    ]
    assert exact.low <= value <= exact.high


def test_groups_are_not_skimmed(skewed):
    session, _ = skewed
    with pytest.raises(UnsupportedQuery, match="not by skimmed"):
        session.sql("SELECT APPROXIMATE a.v, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY a.v USING skimmed")
