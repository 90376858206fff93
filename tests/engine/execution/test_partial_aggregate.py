"""PARTITION INTO: tuples are routed to the sketch of their part in the same pass, and the parts add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.standing_seeds import StandingSeeds, planned
from support.theory import most_misses

from skimql.engine.execution import build as maintain
from skimql.engine.results.estimator import SketchJoin

pytestmark = pytest.mark.spark

CREATE = "CREATE OR REPLACE SKETCHES w FOR QUERIES ({}) SIZE 800 KB MINIMIZE AVERAGE ERROR{}"
SEEDS = range(1, 21)


def permuted(rng, domain, tuples, z=1.0):
    """Zipf frequencies of `domain` keys, the ranks permuted: exact shares, no sampling noise."""
    shares = 1 / np.arange(1, domain + 1) ** z
    counts = np.maximum(np.round(tuples * shares / shares.sum()), 1).astype(int)
    return np.repeat(rng.permutation(domain), counts)


@pytest.fixture(scope="module")
def relations():
    """Every column with its own permutation of the ranks; those of s independent, some keys NULL, with a weight."""
    rng = np.random.default_rng(5)
    r, u = (permuted(rng, 300, 2_000) for _ in range(2))
    a, b = permuted(rng, 300, 2_000), permuted(rng, 300, 2_000)
    n = min(len(a), len(b))
    a, b = rng.permutation(a)[:n], rng.permutation(b)[:n]
    weight = rng.integers(0, 5, n)
    return {
        "r": pa.table({"a": r}),
        "s": pa.table({"a": pa.array(a, mask=rng.random(n) < 0.05), "b": b, "w": weight}),
        "t": pa.table({"b": permuted(rng, 300, 2_000)}),
        "u": pa.table({"a": u}),
    }


QUERIES = (
    "SELECT COUNT(*) FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b",
    "SELECT COUNT(*) FROM r JOIN u ON r.a = u.a",
    "SELECT SUM(s.w) FROM s JOIN t ON s.b = t.b WHERE s.w > 1",
)


@pytest.fixture
def permuted_tables(session, relations):
    for name, table in relations.items():
        session.table(name, session.spark.createDataFrame(table))
    session.sql("SET skimql.sparse = false")
    return session


def planned_for(session, parts=1):
    into = f" PARTITION INTO {parts}" if parts > 1 else ""
    return planned(session, CREATE.format("; ".join(QUERIES), into))


@pytest.fixture(scope="module")
def parted():
    """What the tests of this module share: the estimates of every seed over four parts."""
    return []


def over_parts(session, parted):
    if not parted:
        seeds = StandingSeeds(session, planned_for(session, 4))
        parted += [seeds.estimates(seed) for seed in SEEDS]
    return parted


def truths(relations):
    """The three answers by numpy, NULL keys and the filter as SQL has them."""

    def counts(values, weights=None):
        return np.bincount(values, weights, 300)

    s = relations["s"].to_pandas().dropna(subset=["a"])
    r, t, u = (counts(relations[n].to_pandas().iloc[:, 0]) for n in "rtu")
    whole = relations["s"].to_pandas().query("w > 1")
    return [
        float(np.sum(r[s.a.astype(int)] * t[s.b])),
        float(r @ u),
        float(counts(whole.b, whole.w) @ t),
    ]


def test_partitions_lower_the_error_of_every_query_and_leave_it_unbiased(permuted_tables, relations, parted):
    # 20 seeds; a mean is within 5 standard errors of the truth with probability above 1 - 1e-4 each (t with 19
    # degrees of freedom; fixed seeds). Tuples sent to a wrong part, a part left out of the sum or counted twice
    # shift the mean by a part's share of the answer.
    truth = np.array(truths(relations))
    errors = []
    for parts in (1, 4):
        standing = planned_for(permuted_tables, parts)
        assert bool(standing.plans[0].partitions) == (parts > 1)
        if parts > 1:
            found = over_parts(permuted_tables, parted)
            values = np.array([[e.value for e in estimates] for estimates in found]) / truth
        else:
            values = StandingSeeds(permuted_tables, standing).values(SEEDS) / truth
        standard = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.all(standard < (0.1 if parts > 1 else 0.25)), standard
        assert np.all(np.abs(values.mean(axis=0) - 1) < 5 * standard), (parts, values.mean(axis=0), standard)
        errors.append(np.sqrt(np.mean((values - 1) ** 2, axis=0)))
    gain = errors[0] / errors[1]
    assert np.exp(np.mean(np.log(gain))) > 1.3, gain


def test_intervals_of_sums_over_parts_cover_the_truth(permuted_tables, relations, parted):
    truth = truths(relations)
    missed = 0
    for estimates in over_parts(permuted_tables, parted):
        missed += sum(not e.low <= x <= e.high for e, x in zip(estimates, truth, strict=True))
    # Queries of one seed are dependent: at most every query of a seed that misses.
    assert missed <= 3 * most_misses(20, 0.05)


def test_exact_maps_of_parts_add_up_exactly(permuted_tables, relations):
    standing = planned_for(permuted_tables, 4)
    assert standing.plans[0].partitions
    permuted_tables.sql("SET skimql.sparse = true")
    small = {
        "r": "SELECT id % 300 AS a FROM range(30)",
        "s": "SELECT id % 300 AS a, id * 7 % 300 AS b, id % 5 AS w FROM range(40)",
        "t": "SELECT id * 3 % 300 AS b FROM range(200)",
        "u": "SELECT id * 2 % 300 AS a FROM range(50)",
    }
    for name, sql in small.items():
        permuted_tables.table(name, permuted_tables.spark.sql(sql))
    # The parts planned on the large tables, fed with the small ones: every map stays exact.
    plan = standing.plans[0]
    sparse = replace(plan, synopses=tuple(replace(s, sparse=True) for s in plan.synopses))
    built = maintain.build(permuted_tables.spark, sparse, permuted_tables.tables)
    for own, sql in zip(standing.plans, QUERIES, strict=True):
        known = SketchJoin(own, built).known(own.aggregates[0].total)
        assert known == (permuted_tables.sql(sql).collect()[0][0] or 0)
