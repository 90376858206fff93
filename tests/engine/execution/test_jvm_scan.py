"""The all-JVM route: the counters of its numpy twin, bit for bit, whatever the keys, weights, masks and hot keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skimql import Session
from skimql.engine.execution.build import add_up, build
from skimql.engine.execution.messages import Messages
from skimql.engine.execution.partial_aggregate import task
from skimql.engine.execution.scan import prepare
from skimql.engine.queries import sizing as choice
from skimql.errors import DataError, UnsupportedQuery
from skimql.sketches.joins.folding import FIELD_END

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_users_have_it")]

TUPLES = 4000


@pytest.fixture(scope="module")
def frame(spark):
    rng = np.random.default_rng(4)
    k = rng.zipf(1.3, TUPLES) % 1000
    table = {
        "k": pa.array(k, mask=rng.random(TUPLES) < 0.1),
        "t": pa.array([f"t{x}" for x in rng.integers(0, 300, TUPLES)], mask=rng.random(TUPLES) < 0.05),
        "v": pa.array(rng.integers(-(10**12), 10**12, TUPLES), mask=rng.random(TUPLES) < 0.1),
        "p": pa.array([f"{x}.{x % 100:02}" for x in range(TUPLES)]).cast(pa.decimal128(9, 2)),
        "x": pa.array(rng.normal(size=TUPLES)),
    }
    return spark.createDataFrame(pa.table(table)).cache()


def twin(spark, plan, tables):
    """The same sketches by numpy, from the columns that would travel to Python workers."""
    out, messages = {}, Messages(spark, plan, tables)
    for scan in plan.scans:
        prepared = prepare(plan, scan, tables.frame(scan.table), messages)
        batches = prepared.columns.toArrow().combine_chunks().to_batches()
        sent = task(prepared.sketches, prepared.feeds)(iter(batches))
        out |= add_up(prepared, [row for batch in sent for row in batch.to_pylist()])
    return [out[i] for i in range(len(out))]


def compare(session, frame, sql, family, **settings):
    own = Session(session.spark, replace(session.settings, route="jvm", **settings))
    own.table("d", frame)
    plan = own.plan(sql).build
    assert plan.family == family
    found = build(session.spark, plan, own.tables)
    expected = twin(session.spark, plan, own.tables)
    for a, b in zip(found, expected, strict=True):
        counters, wanted = a.sketch.dense().counters, b.sketch.dense().counters
        if a.sketch.spec.dtype == "int64":
            assert counters.tobytes() == wanted.tobytes(), sql
        else:
            assert np.allclose(counters, wanted, rtol=0, atol=1e-9), sql
        assert (a.tally.tuples, a.tally.negative, a.scale) == (b.tally.tuples, b.tally.negative, b.scale)
        assert a.tally.mass == pytest.approx(b.tally.mass, rel=1e-12)
    # Maps are made where every sketch of the plan can be one.
    if all(b.sketch.exact for b in expected):
        for a, b in zip(found, expected, strict=True):
            assert (a.sketch.exact.keys == b.sketch.exact.keys).all()
            assert a.sketch.exact.weights == pytest.approx(b.sketch.exact.weights, rel=1e-12)
    else:
        assert not any(a.sketch.exact for a in found if a.sketch.spec.families)
    return found


COUNTS = "SELECT APPROXIMATE COUNT(*), COUNT(a.v) FROM d a JOIN d b ON a.k = b.k WHERE b.v > 0"
SUMS = "SELECT APPROXIMATE SUM(a.v), AVG(a.p), SUM(b.x) FROM d a JOIN d b ON a.k = b.k WHERE b.v > 0"
CHAIN = "SELECT APPROXIMATE COUNT(*), SUM(b.p) FROM d a JOIN d b ON a.k = b.k JOIN d c ON b.t = c.t"
TOTALS = "SELECT APPROXIMATE COUNT(*), COUNT(v), SUM(v), SUM(p), SUM(x) FROM d WHERE k > 2"


@pytest.mark.parametrize(
    ("sql", "family"),
    [(COUNTS, "countmin"), (SUMS, "folded"), (CHAIN, "folded"), (TOTALS, "folded")],
    ids=["counts", "sums", "chain", "totals"],
)
def test_the_jvm_makes_the_counters_of_the_twin(session, frame, sql, family):
    found = compare(session, frame, sql, family, buckets=256, rows=5)
    assert all(b.tally.tuples for b in found)


@pytest.mark.parametrize(("sql", "family"), [(COUNTS, "countmin"), (SUMS, "folded")], ids=["counts", "sums"])
def test_few_keys_come_out_as_exact_maps(session, frame, sql, family):
    found = compare(session, frame, sql, family, buckets=1024, rows=11)
    assert all(b.sketch.exact for b in found)


# A hot key: more tuples than a packed field counts. Planted bug: no second pass.
def test_fields_that_overflow_are_counted_again(session, spark):
    tuples = FIELD_END + 5
    hot = spark.range(tuples + 1000).selectExpr(f"if(id < {tuples}, 7, id) AS k", "id % 3 AS t", "1 AS v")
    chain = "SELECT APPROXIMATE COUNT(*) FROM d a JOIN d b ON a.k = b.k JOIN d c ON b.t = c.t"
    own = Session(spark, replace(session.settings, route="jvm", sparse=False, buckets=16, rows=4))
    own.table("d", hot)
    plan = own.plan(chain).build
    assert plan.family == "folded"
    found = build(spark, plan, own.tables)
    by_pair = hot.groupBy("k", "t").count().toArrow()
    for synopsis, one in zip(plan.synopses, found, strict=True):
        expected = one.sketch.spec.empty()
        columns = [by_pair[a.keys[0].strip("`")].to_numpy().astype(np.int64) for a in synopsis.attributes]
        expected.update(columns, by_pair["count"].to_numpy())
        assert one.sketch.dense().counters.tobytes() == expected.counters.tobytes()
        assert one.tally.tuples == tuples + 1000


def test_a_sum_that_leaves_64_bits_is_refused(session, spark):
    session.sql("SET skimql.route = jvm")
    session.table("d", spark.createDataFrame(pa.table({"k": [1, 1], "v": [2**62, 2**62]})))
    with pytest.raises(DataError, match="leaves 64 bits"):
        session.sql("SELECT APPROXIMATE SUM(a.v) FROM d a JOIN d b ON a.k = b.k")


def test_a_weight_that_is_no_number_is_refused(session, spark):
    session.sql("SET skimql.route = jvm")
    session.table("d", spark.createDataFrame(pa.table({"k": [1, 2], "v": [1.0, float("nan")]})))
    with pytest.raises(DataError, match="not finite"):
        session.sql("SELECT APPROXIMATE SUM(a.v) FROM d a JOIN d b ON a.k = b.k")


def test_a_table_that_changes_between_the_passes_is_refused(session, spark):
    """The chance that it has the same number of tuples at both times is 1 in 100,000."""
    session.table(
        "d", spark.range(100_000).selectExpr("id % 7 AS k", "id > unix_micros(now()) % 100000 AS here")
    )
    session.sql("SET skimql.route = jvm")
    with pytest.raises(DataError, match="changes while it is read"):
        session.sql("SELECT APPROXIMATE COUNT(*) FROM d a JOIN d b ON a.k = b.k WHERE a.here AND b.here")


def test_a_route_that_is_asked_for_is_gone_or_refused(session, frame):
    session.table("d", frame)
    grouped = "SELECT APPROXIMATE a.v > 0 AS up, COUNT(*) FROM d a JOIN d b ON a.k = b.k GROUP BY a.v > 0"
    uneven = CHAIN + " OPTIONS (buckets = 1000)"
    assert session.plan(COUNTS).build.family == "tabulation", "small tables go over Arrow"
    session.sql("SET skimql.route = jvm")
    with pytest.raises(UnsupportedQuery, match="no power of two"):
        session.plan(uneven)
    with pytest.raises(UnsupportedQuery, match="each group"):
        session.sql(grouped + " LIMIT 3")
    session.sql("SET skimql.route = arrow")
    assert session.plan(COUNTS).build.family == "tabulation"
    answer = session.sql("EXPLAIN SELECT " + COUNTS.split(" ", 1)[1])
    assert "made by Python workers" in answer.value
    session.sql("SET skimql.route = jvm")
    answer = session.sql("EXPLAIN SELECT " + COUNTS.split(" ", 1)[1])
    assert "made in the JVM; hashes: countmin, intervals measured" in answer.value


def test_auto_takes_the_jvm_for_counts_of_large_files(session, spark, frame, tmp_path, monkeypatch):
    frame.drop("p").coalesce(1).write.parquet(str(tmp_path / "d"))
    session.table("d", tmp_path / "d")
    assert session.plan(COUNTS).build.family == "tabulation"
    monkeypatch.setattr(choice, "LARGE_BYTES", 1000)
    no_decimals = CHAIN.replace(", SUM(b.p)", "")
    families = [
        session.plan(sql).build.family for sql in (COUNTS, TOTALS.replace("SUM(p), ", ""), no_decimals)
    ]
    assert families == ["countmin", "folded", "tabulation"]
