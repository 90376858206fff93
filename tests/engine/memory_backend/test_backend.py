"""The memory backend held equal to Spark: the same types, counters, samples, statistics, groups and answers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from support.plans import together

from skimql.engine.catalog.form import Groups
from skimql.engine.catalog.kinds.registry import KINDS
from skimql.engine.execution.build import build
from skimql.engine.execution.grouping import listed
from skimql.engine.execution.sample_join import run_sample
from skimql.engine.materialized.building import families_of
from skimql.engine.materialized.definition import blank
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.backend import SparkBackend
from skimql.engine.queries.sizing import chosen
from skimql.engine.results.columns import typed
from skimql.engine.settings import Settings
from skimql.engine.statistics.gather import gather
from skimql.optimizer.choose import ClassSample, choose
from skimql.optimizer.domain_partition import DomainPartition
from skimql.optimizer.groups import per_group
from skimql.optimizer.plan import Attribute, Weight
from skimql.optimizer.route import routed

SEED = 5


def _tables():
    draw = np.random.default_rng(3)

    def ints(low, high, count, kind, nulls=0.05):
        return pa.array(draw.integers(low, high, count), kind, mask=draw.random(count) < nulls)

    def texts(count):
        letters = np.array(
            ["", "a", "B", "é", "a longer text that takes more than 32 bytes", None, "z "], object
        )
        return pa.array(draw.choice(letters, count))

    def decimals(count, digits, places, apart=1):
        units = draw.integers(-400, 400, count)
        return pa.array(
            [Decimal(f"{int(u) * apart}E-{places}") for u in units], pa.decimal128(digits, places)
        )

    def days(count):
        return pa.array(draw.integers(-40, 40, count), pa.int32()).cast(pa.date32())

    def doubles(count):
        return pa.array(draw.choice(np.array([0.0, -0.0, 1.5, math.nan, -2.25, 1e300]), count))

    a = {
        "k": ints(0, 90, 400, pa.int32()),
        "s": texts(400),
        "d": decimals(400, 6, 2),
        "day": days(400),
        "v": ints(-5, 40, 400, pa.int32()),
        "x": pa.array(draw.random(400)),
        "h": doubles(400),
        "ok": pa.array(draw.random(400) < 0.5, mask=draw.random(400) < 0.1),
        "t": pa.array(draw.integers(0, 20, 400) * 3_600_000_000, pa.timestamp("us", "UTC")),
    }
    b = {
        "k": ints(0, 90, 300, pa.int64()),
        "s": texts(300),
        "d": decimals(300, 8, 3),
        "e": decimals(300, 38, 2, 10**30 + 7),
        "l": ints(0, 25, 300, pa.int32()),
        "ktext": pa.array([str(n) for n in draw.integers(0, 90, 300)]),
        "y": ints(0, 60, 300, pa.int16()),
        "t": pa.array(draw.integers(0, 20, 300) * 3_600_000_000, pa.timestamp("us", "UTC")),
    }
    c = {
        "l": ints(0, 25, 60, pa.int32()),
        "day": days(60),
        "z": doubles(60).filter(pa.array(np.ones(60, bool))),
        "n": ints(1, 9, 60, pa.int8()),
        "e": decimals(60, 38, 2, 10**30 + 7),
    }
    return {"a": pa.table(a), "b": pa.table(b), "c": pa.table(c)}


QUERIES = (
    "COUNT(*) FROM a",
    "SUM(v), COUNT(v), AVG(d) FROM a WHERE v > 3",
    "COUNT(*), SUM(v), AVG(v) FROM a JOIN b ON a.k = b.k",
    "SUM(b.d), SUM(a.v * b.d) FROM a JOIN b ON a.s = b.s",
    "COUNT(*) FROM a JOIN b ON a.d = b.d WHERE (a.s LIKE 'a%' OR a.v > 30) AND b.y IN (1, 2, 3, 40)",
    "SUM(x) FROM a JOIN b ON a.k = b.k AND a.s = b.s",
    "COUNT(*), SUM(c.n * a.v) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l",
    "COUNT(*) FROM a JOIN b ON a.k + 1 = b.k WHERE a.ok",
    "COUNT(*), SUM(2 * v - 1) FROM a JOIN c ON a.day = c.day WHERE year(a.day) = 1970",
    "COUNT(*), SUM(p.v) FROM a p JOIN a q ON p.k = q.k WHERE q.v < 20",
    "COUNT(*) FROM a JOIN c ON a.h = c.z",
    "COUNT(*) FROM a JOIN b ON a.k = b.ktext",
    "COUNT(*) FROM a JOIN b ON a.t = b.t",
    "COUNT(*) FROM b JOIN c ON b.e = c.e",
    "SUM(b.e), COUNT(b.e) FROM a JOIN b ON a.k = b.k WHERE a.d BETWEEN -1.5 AND 2",
    "SUM(CASE WHEN v > 10 THEN v WHEN ok THEN 1 END) FROM a JOIN b ON a.k = b.k",
    "COUNT(*) FILTER (WHERE v > 1), SUM(n) FILTER (WHERE n > 3) FROM a JOIN c ON a.k = c.l",
    "SUM(v2) FROM (SELECT k, v * 2 AS v2 FROM a WHERE v IS NOT NULL) q JOIN b ON q.k = b.k",
    "COUNT(DISTINCT v) FROM a",
    "COUNT(DISTINCT s) FROM a JOIN b USING (s)",
    "COUNT(DISTINCT a.k, a.v) FROM a WHERE v > 0",
    "COUNT(DISTINCT y) FROM a JOIN b ON a.k = b.k",
    "COUNT(DISTINCT k) FROM (SELECT k FROM a INTERSECT SELECT k FROM b)",
    "COUNT(DISTINCT k) FROM (SELECT k FROM a EXCEPT SELECT k FROM b)",
    "SUM(length(s)), SUM(CAST(ktext AS INT)) FROM b JOIN c ON b.l = c.l",
    "SUM(coalesce(d, 0) * (1 - 0.05)) FROM b JOIN c ON b.l = c.l WHERE NOT y = 3",
    "COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON a.v = c.l WHERE upper(coalesce(c.n, 1)) <> '3'",
    "SUM(abs(v) + 1) FROM a JOIN b ON a.k = b.k WHERE CAST(a.day AS STRING) < '1970-01-09'",
    "COUNT(*), AVG(x) FROM a, c WHERE a.k = c.l AND a.x < 0.5 AND c.n <> 2",
    "COUNT(*) FROM a LEFT JOIN b ON a.k = b.k WHERE b.l > 3",
)
SQL = [f"SELECT APPROXIMATE {q}" for q in QUERIES]
PAIRS = "SELECT APPROXIMATE COUNT(DISTINCT a.v, b.y) FROM a JOIN b ON a.k = b.k"
# With filters of their own: sketches of other sizes are of other relations.
METHODS = (
    "SELECT APPROXIMATE COUNT(*), SUM(v) FROM a JOIN b ON a.k = b.k WHERE a.v > 1 AND b.l > 1 USING agms",
    "SELECT APPROXIMATE COUNT(*), SUM(n) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l WHERE a.v > -4 AND b.y > 0 AND c.n > 0 SIZE 2 KB",
    "SELECT APPROXIMATE SUM(c.n * a.v) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l WHERE a.v > -3 AND b.y > 1 AND c.n < 9 SIZE 3 KB",
)
TABLES = _tables()
BACKEND = MemoryBackend(MemoryTables(TABLES))


@pytest.fixture
def on_spark(spark, session):
    """The session with the same tables, each one partition."""
    for name, table in TABLES.items():
        session.table(name, spark.createDataFrame(table).coalesce(1))
    return session


def _with_cells(plan):
    """The same with the counts by `a.k` in two cells, too."""
    one = next(
        s for s in plan.synopses if s.table == "a" and s.method == "hash" and s.attributes[0].keys == ("`k`",)
    )
    cells = tuple(replace(one, filter="`v` > 7", cell=(part,)) for part in (0, 1))
    domains = ((one.attributes[0].class_name, DomainPartition((0, 30, 60), (0, 1, 0))),)
    return replace(together([replace(plan, synopses=(*plan.synopses, *cells))]), partitions=domains)


def _plans(statements, **settings):
    """The sketches of each statement at the settings' size, or those that the planner makes of a SIZE."""
    runs = [MemoryRun.of(sql, BACKEND, Settings(seed=SEED, route="arrow", **settings)) for sql in statements]
    return [chosen(r.query, r.settings) if r.settings.size_bytes is None else r.plan().build for r in runs]


def _check_equal(own, theirs, plan):
    for synopsis, one, other in zip(plan.synopses, own, theirs, strict=True):
        mine, state = one.sketch.state(), other.sketch.state()
        assert set(mine) == set(state), synopsis
        for name, array in mine.items():
            if array.dtype == np.float64:
                assert np.allclose(array, state[name], rtol=1e-12, atol=0, equal_nan=True), (synopsis, name)
            else:
                assert np.array_equal(array, state[name]), (synopsis, name)
        assert (one.tally.tuples, one.tally.negative) == (other.tally.tuples, other.tally.negative), synopsis
        assert one.tally.mass == pytest.approx(other.tally.mass, rel=1e-12), synopsis
        assert one.scale == other.scale or synopsis.distinct, synopsis


@pytest.mark.parametrize("buckets", [4, 4096])
def test_sketches_of_all_queries_have_the_counters_that_spark_makes(spark, on_spark, buckets):
    plans = _plans([*SQL, *METHODS], buckets=buckets, rows=3)
    pairs = MemoryRun.of(PAIRS, BACKEND, Settings(seed=SEED, route="arrow", buckets=buckets))
    plan = _with_cells(together([*plans, chosen(pairs.query, pairs.settings)]))
    assert {s.method for s in plan.synopses} >= {"hash", "convolution", "level", "pairs", "agms"}
    assert any(s.messages for s in plan.synopses)
    _check_equal(BACKEND.build(plan), build(spark, plan, on_spark.tables), plan)


JVM = {"countmin": [SQL[0], SQL[4], SQL[7], SQL[12]], "folded": [SQL[1], SQL[2], SQL[6], SQL[16]]}


@pytest.mark.parametrize(("family", "buckets"), [("countmin", 16), ("folded", 16), ("folded", 512)])
@pytest.mark.usefixtures("as_users_have_it")
def test_sketches_of_the_jvm_are_the_same(spark, on_spark, family, buckets):
    statements = JVM[family][2:] if family == "countmin" else JVM[family]
    plan = routed(together(_plans(statements, buckets=buckets, rows=3)), "jvm")
    assert plan.family == family
    own = BACKEND.build(plan)
    assert any(b.linear.exact is None for b in own) == (buckets == 16)
    _check_equal(own, build(spark, plan, on_spark.tables), plan)


def test_groups_are_those_of_spark_and_so_are_their_sketches(spark, on_spark):
    sql = "SELECT APPROXIMATE h, coalesce(a.s, 'none'), COUNT(*), SUM(v) FROM a JOIN b ON a.k = b.k WHERE v > 30 GROUP BY h, coalesce(a.s, 'none')"
    run = MemoryRun.of(sql, BACKEND, Settings(seed=SEED, route="arrow", buckets=8))
    groups, theirs = BACKEND.groups(run.query, 100), listed(spark, on_spark.tables, run.query, 100)
    own, spark_has = groups.parts[0].values, theirs.parts[0].values
    assert [tuple(map(repr, v)) for v in own] == [tuple(map(repr, v)) for v in spark_has]
    plan = per_group(chosen(run.query, run.settings, groups=groups.counts), groups.counts)[0]
    _check_equal(BACKEND.build(plan, groups=groups), build(spark, plan, theirs), plan)


@pytest.mark.parametrize("rows", [0.0, 0.3])
@pytest.mark.usefixtures("as_users_have_it")
def test_samples_have_the_keys_and_weights_that_spark_sends(spark, on_spark, rows):
    sql = "SELECT APPROXIMATE COUNT(*), SUM(c.n * a.v), SUM(x) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l WHERE a.v <> 3"
    query = MemoryRun.of(sql, BACKEND).query
    sample = ClassSample(0, 0.4, row_rates=(rows, rows)) if rows else ClassSample(0, 0.4, (7, 11))
    plan = choose(query, SEED, 0, 0, sample=sample)
    expected = dict.fromkeys(range(3), 1000.0)
    own = BACKEND.sample(plan, 1 << 28)[()]
    theirs = run_sample(spark, plan, on_spark.tables, expected=expected)[()]
    assert own.terms == theirs.terms
    mine, sent = own.contributions.unseen, theirs.contributions.unseen
    # Of the columns of DataFrames no footer tells what they lie between.
    known = np.isfinite(sent)
    assert np.allclose(mine[known], sent[known], rtol=1e-12)
    assert known[[0, 2, 4]].all() == bool(rows)
    for name in ("keys", "terms", "probabilities"):
        mine, sent = getattr(own.contributions, name), getattr(theirs.contributions, name)
        assert np.allclose(mine, sent, rtol=1e-12, equal_nan=True), name


def test_statistics_are_those_of_a_pilot_that_counts_all(spark, on_spark):
    sql = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k AND a.s = b.s JOIN c ON b.l = c.l WHERE a.v > 3"
    query = MemoryRun.of(sql, BACKEND).query
    for own, theirs in zip(BACKEND.statistics(query), gather(spark, on_spark.tables, query), strict=True):
        assert (own.tuples, own.scanned, own.source) == (theirs.tuples, theirs.scanned, theirs.source)
        assert own.joint_self_join_size == theirs.joint_self_join_size
        for mine, found in zip(own.attributes, theirs.attributes, strict=True):
            assert (mine.distinct, mine.self_join_size) == (found.distinct, found.self_join_size)
            assert np.array_equal(mine.heavy.keys, found.heavy.keys)
            assert np.array_equal(mine.histogram.counts, found.histogram.counts)


def test_exact_aggregates_are_those_of_spark(spark, on_spark):
    runs = [MemoryRun.of(s, BACKEND) for s in SQL[::2]]
    with on_spark.tables.statement(" ".join(TABLES)):
        # One job: the rows of all queries as structs of text.
        texts = [
            f"(SELECT to_json(struct(*), map('ignoreNullFields', 'false')) FROM ({r.query.select_sql}))"
            for r in runs
        ]
        found = on_spark.tables.place().spark.sql(
            "SELECT " + ", ".join(f"{t} AS r{n}" for n, t in enumerate(texts))
        )
        rows = [column[0].as_py() for column in found.toArrow().columns]
    for run, row in zip(runs, rows, strict=True):
        answer = run.exact()
        own = [typed(cell, answer.type_of(n)) for n, cell in enumerate(answer.rows[0])]
        theirs = json.loads(row, parse_float=Decimal).values()
        for value, truth in zip(own, theirs, strict=True):
            assert value == (pytest.approx(float(truth), rel=1e-12) if isinstance(value, float) else truth), (
                run.query.sql
            )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT APPROXIMATE s, COUNT(*), SUM(n) FROM a JOIN c ON a.v = c.l GROUP BY s SEED 4",
        "SELECT APPROXIMATE COUNT(*), SUM(n) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l SIZE 2 KB SEED 3",
        "SELECT APPROXIMATE AVG(v) FROM a JOIN b ON a.k = b.k OPTIONS (buckets = 8) SEED 6",
        "SELECT APPROXIMATE COUNT(*), AVG(v), SUM(n) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l USING sample_sketch SIZE 5 KB",
    ],
)
def test_answers_are_the_same(on_spark, sql):
    """What is asked for, and by the same choice what the default target makes of it."""
    for error in (None, 0.05):
        own = MemoryRun.of(sql, BACKEND, Settings(error=error)).answer()
        on_spark.settings = replace(on_spark.settings, error=error)
        theirs = on_spark.sql(sql)
        assert (own.columns, own.method) == (theirs.columns, theirs.method)
        # Groups of an exact run come in any order.
        mine, spark_has = (
            sorted(a.arrow().to_pylist(), key=lambda r: repr(r.get("s"))) for a in (own, theirs)
        )
        assert mine == [
            {k: v if not isinstance(v, float) else pytest.approx(v, rel=1e-9) for k, v in r.items()}
            for r in spark_has
        ]


KEYS = {1: ("k",), 2: ("k", "l")}
FORMS = {
    "hash": (1, {}),
    "convolution": (2, {}),
    "total": (0, {}),
    "agms": (1, {}),
    "skimmed": (1, {"parameters": (("domain_bits", 20), ("level_buckets", 8), ("level_rows", 3))}),
    "key_sample": (1, {}),
    "two_level": (1, {"parameters": (("dense", 2),)}),
    "sample_sketch": (2, {"parameters": (("dense", 2), ("sampled", 0))}),
    "distinct": (1, {}),
    "join_distinct": (2, {}),
}


def test_synopses_as_the_catalog_keeps_them_are_the_same(on_spark):
    """Every kind, b by itself; hash sketches for each group, too."""
    spark = SparkBackend(on_spark.spark, on_spark.tables, on_spark.statistics)
    sums = (Weight(), Weight("`y`"), Weight("`y`", presence=True))
    for method, (number, changes) in [
        *FORMS.items(),
        ("hash", (1, {"groups": Groups(("`l`",), (), (), ())})),
    ]:
        classes = KEYS.get(number, ())
        attributes = tuple(Attribute((f"`{c}`",), ("bigint",), c) for c in classes)
        weights = sums if KINDS[method].weighted else sums[:1]
        head = blank(
            "s", "b", "`y` > 3", attributes, weights,
            method=method, seed=SEED, rows=3, buckets=20, sparse=False, families=families_of(SEED, classes), **changes,
        )  # fmt: skip
        dense = np.array([5, 7], np.int64) if dict(head.parameters).get("dense") else None
        (mine, own), (theirs, others) = (b.apart(head, dense, 100, "") for b in (BACKEND, spark))
        assert (mine, len(own)) == (theirs, len(others)), method
        for one, other in zip(own, others, strict=True):
            state, wanted = (KINDS[method].arrays(b.sketch) for b in (one, other))
            assert state.keys() == wanted.keys(), method
            assert all(np.array_equal(state[n], wanted[n]) for n in state), method
            assert (one.tally, one.scale) == (other.tally, other.scale), method


def test_queries_resolve_to_the_same_vertices_keys_and_types(on_spark):
    for sql in SQL:
        own = MemoryRun.of(sql, BACKEND).query
        statement = on_spark._read(sql)
        with on_spark.tables.statement(sql):
            assert own == on_spark.typed(on_spark._resolved(statement)), sql
