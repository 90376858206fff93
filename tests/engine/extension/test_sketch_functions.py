"""The SQL functions of sketches: the bytes that Python makes of the same tuples, pairs that are refused, plans."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from support.extension import enabled
from support.imports import ROOT
from support.kept import kept, remember
from support.tables import forget_views

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.sketches import (
    ConvolutionSpec,
    JoinTerm,
    LevelSpec,
    Meaning,
    SparseFirstSketch,
    SparseLevelSketch,
    fingerprint,
    from_bytes,
    make_family,
    meaning_of,
    sum_estimate,
    to_bytes,
)
from skimql.sketches.joins.folding import fine_bits_for

KINDS = ("countmin", "folded", "tabulation")


@pytest.fixture(scope="module")
def home(spark, tmp_path_factory):
    with enabled(spark, tmp_path_factory.mktemp("jar")) as session:
        yield session
    forget_views(spark)


def families(kind, seed, labels, buckets):
    parameters = {"fine_bits": fine_bits_for(buckets)} if kind == "folded" else {}
    return tuple(make_family(kind, seed, **parameters).derive(label) for label in labels)


def python_bytes(kind, options, keys, types, weights=None, scale=1, dtype="int64", labels=("key",)):
    """What Python stores of the same tuples."""
    rows, buckets, seed = options
    sketch = SparseFirstSketch(ConvolutionSpec(families(kind, seed, labels, buckets), rows, buckets, dtype))
    sketch.update(keys, weights)
    return to_bytes(sketch, Meaning(types, scale, "counts" if weights is None else "sums"))


def test_the_bytes_are_those_of_python(home):
    """Every family and type of key and weight, NULLs, exact maps and counters, in one job over two Spark partitions."""
    rng = np.random.default_rng(5)
    n, groups = 1_200, 2
    group, keys = rng.integers(0, groups, n), rng.integers(-300, 300, n)
    keys[:3] = [2**63 - 1, -(2**63), 0]
    others, weights, absent = rng.integers(0, 5, n), rng.integers(-(2**40), 2**40, n), rng.random(n) < 0.1
    rows = [
        (
            int(g),
            None if a else int(k),
            f"t{o}é",
            int(o),
            None if o == 4 else int(w),
            Decimal(int(w % 10**6)).scaleb(-2),
        )
        for g, k, o, w, a in zip(group, keys, others, weights, absent, strict=True)
    ]
    home.spark.createDataFrame(
        rows, "g INT, k BIGINT, t STRING, o INT, w BIGINT, d DECIMAL(10,2)"
    ).repartition(2).createOrReplaceTempView("sf")
    options = (11, 64, 7)
    items_of = {
        "counts": "skim_sketch(k, {})",
        "sums": "skim_sketch(k, w, {})",
        "decimals": "skim_sketch(t, d, {})",
        "doubles": "skim_sketch(DATE '1970-01-01' + o, CAST(o AS DOUBLE), {})",
        "two keys": "skim_sketch(named_struct('U', k, 'i', o), {})",
    }
    told = "'rows = 11, buckets = 64, seed = 7, family = {}'"
    asked = [("countmin", what) for what in ("decimals", "doubles", "two keys")]
    asked += [("folded", "sums"), ("folded", "two keys"), ("tabulation", "counts")]
    made = {(kind, what): items_of[what].format(told.format(kind)) for kind, what in asked}
    items = ", ".join(f"{item} AS c{i}" for i, item in enumerate(made.values()))
    for g, *found in home.spark.sql(f"SELECT g, {items} FROM sf GROUP BY g").collect():
        here = group == g
        some = here & ~absent
        two = ("bigint", "bigint")
        texts, days = (
            fingerprint([f"t{o}é" for o in others[here]]),
            fingerprint(others[here].astype(np.int32)),
        )
        same = {
            "counts": {"keys": [keys[some]], "types": ("bigint",)},
            "sums": {
                "keys": [keys[some]],
                "types": ("bigint",),
                "weights": np.where(others == 4, 0, weights)[some],
            },
            "decimals": {
                "keys": [texts],
                "types": ("string",),
                "weights": weights[here] % 10**6,
                "scale": 100,
            },
            "doubles": {
                "keys": [days],
                "types": ("date",),
                "weights": others[here].astype(float),
                "dtype": "float64",
            },
            "two keys": {"keys": [keys[some], others[some]], "types": two, "labels": ("u", "i")},
        }
        for (kind, what), value in zip(made, found, strict=True):
            assert bytes(value) == python_bytes(kind, options, **same[what]), (g, kind, what)
    assert {type(from_bytes(bytes(v)).exact).__name__ for v in found} == {"ExactMap", "NoneType"}


def random_join(rng, number):
    """Sketches of two to four tables, what Python estimates of their join, and the function that is to."""
    kind = KINDS[number % 3]
    buckets, rows, size = int(rng.choice([32, 64, 256])), int(rng.choice([3, 11, 23])), number % 2 == 0
    attributes, edges = [
        (["u", "u"], [(0, 1, 0, 0)]),
        (["u", "ui", "i"], [(0, 1, 0, 0), (1, 2, 1, 0)]),
        (["u", "uiz", "i", "z"], [(0, 1, 0, 0), (1, 2, 1, 0), (1, 3, 2, 0)]),
    ][number // 2 % 3]
    sketches, meanings = [], []
    span, most = int(rng.choice([5, 40, 2_000])), int(rng.choice([6, 200, 2_000]))
    for labels in attributes:
        weighted = not size and rng.random() < 0.6
        spec = ConvolutionSpec(families(kind, number, labels, buckets), rows, buckets)
        sketch = SparseFirstSketch(spec, None if rng.random() < 0.7 else 0)
        tuples = int(rng.integers(0, most))
        sketch.update(
            [rng.integers(0, span, tuples) for _ in labels], rng.integers(-5, 9, tuples) if weighted else None
        )
        sketches.append(sketch)
        # A scale beyond 1 would round what a Fourier transform leaves behind the point.
        scale = 100 if weighted and kind == "folded" else 1
        meanings.append(Meaning(("bigint",) * len(labels), scale, "sums" if weighted else "counts"))
    bounds = (0, math.prod(s.tuples for s in sketches)) if size else ()
    term = JoinTerm(tuple(sketches), 1 / math.prod(m.scale for m in meanings))
    expected = sum_estimate([term], edges, 0.9, *bounds)
    data = [bytearray(to_bytes(s, m)) for s, m in zip(sketches, meanings, strict=True)]
    return (data, "size" if size else "sum"), expected


def test_joins_are_those_of_python_interval_and_all(home):
    rng = np.random.default_rng(11)
    asked, expected = zip(*(random_join(rng, number) for number in range(36)), strict=True)
    rows = [(number, function, *(data + [None] * 4)[:4]) for number, (data, function) in enumerate(asked)]
    home.spark.createDataFrame(
        rows, "n INT, f STRING, a BINARY, b BINARY, c BINARY, d BINARY"
    ).createOrReplaceTempView("sj")
    cases = " ".join(
        f"WHEN f = '{f}' AND {given} IS NULL THEN skim_join_{f}_bounds({sketches}, 0.9D)"
        for f in ("size", "sum")
        for given, sketches in (("c", "a, b"), ("d", "a, b, c"), ("NULL", "a, b, c, d"))
    )
    found = home.spark.sql(f"SELECT n, CASE {cases} END AS e FROM sj ORDER BY n").collect()
    for (number, e), estimate in zip(found, expected, strict=True):
        ours = tuple(e)
        assert ours == (*(float(x) for x in (estimate.value, estimate.low, estimate.high)), *ours[3:]), number
        assert ours[3:] == (estimate.confidence, estimate.certified), number
    assert {e.basis for e in expected} >= {"exact", "measured", "theorem"}


def test_a_table_of_days_is_merged_and_joined_with_a_kept_sketch(home):
    spark, ids = home.spark, np.arange(200)
    catalog = remember(Catalog(), kept("kept", "db", {"k": ids % 50}, summed=("y", ids), buckets=4096))
    table = Session(spark, catalog=catalog).sketches("kept")
    assert table.column("weight").to_pylist() == [None, "`y`"]
    assert meaning_of(table.column("sketch")[1].as_py()) == Meaning(("bigint",), 1, "sums")
    spark.createDataFrame(table.to_pandas(), "weight STRING, sketch BINARY").createOrReplaceTempView("dk")
    found = spark.sql(
        "WITH days AS (SELECT id % 7 AS day, skim_sketch(id % 40, 'family = tabulation, key = k') AS s FROM range(700) GROUP BY day) "
        "SELECT skim_join_size(d.s, c.sketch), skim_join_sum(d.s, t.sketch) FROM "
        "(SELECT skim_merge(s) AS s FROM days WHERE day < 3) d, dk c, dk t WHERE c.weight IS NULL AND t.weight = '`y`'"
    ).collect()
    days = np.arange(700)[np.arange(700) % 7 < 3] % 40
    times = np.bincount(days, minlength=50)[ids % 50]
    assert tuple(found[0]) == (times.sum(), (times * ids).sum())


def test_distinct_keys_are_counted_by_the_bytes_and_with_the_interval_of_python(home):
    rng = np.random.default_rng(3)
    n = 3_000
    group, keys = rng.integers(0, 3, n), rng.integers(-(2**62), 2**62, n)
    # One group stays an exact map.
    keys[group == 2] %= 20
    home.spark.createDataFrame(
        [(int(g), int(k)) for g, k in zip(group, keys, strict=True)] + [(0, None)], "g INT, k BIGINT"
    ).createOrReplaceTempView("sd")
    told = "kind = distinct, buckets = 32, levels = 12, seed = 7, key = u, family = "
    items = ", ".join(
        f"skim_sketch(k, '{told}{kind}') AS {name}" for name, kind in (("x", "xxhash64"), ("t", "tabulation"))
    )
    found = home.spark.sql(
        f"WITH d AS (SELECT g, {items} FROM sd GROUP BY g), m AS (SELECT skim_merge(x) AS x FROM d) "
        "SELECT g, x, t, skim_distinct(t), skim_distinct_bounds(t, 0.9), (SELECT skim_distinct(x) FROM m), "
        "skim_distinct(x, x) = skim_distinct(x) FROM d ORDER BY g"
    ).collect()

    def sketch_of(kind, some):
        made = SparseLevelSketch(LevelSpec(make_family(kind, 7).derive("u"), 32, 12))
        made.update(some)
        return made

    everything = sketch_of("xxhash64", keys).estimate().value
    for g, x, t, value, bounds, merged, same in found:
        one, other = (sketch_of(kind, keys[group == g]) for kind in ("xxhash64", "tabulation"))
        assert [bytes(x), bytes(t)] == [to_bytes(s, Meaning(("bigint",))) for s in (one, other)]
        estimate = other.estimate(0.9)
        assert value == bounds.value == pytest.approx(estimate.value, rel=1e-12)
        assert tuple(bounds)[1:] == (estimate.low, estimate.high, estimate.confidence, estimate.certified)
        assert merged == pytest.approx(everything, rel=1e-12)
        assert same
    assert (found[2][3], found[2][4].confidence) == (20, 1.0)


TWO = "SELECT {}(a, b) FROM (SELECT skim_sketch(id) AS a FROM range(3)), (SELECT skim_sketch({}) AS b FROM range(3))"
MERGED = "SELECT skim_merge(s) FROM (SELECT skim_sketch(id) AS s FROM range(3) UNION ALL SELECT skim_sketch({}) FROM range(3))"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (TWO.format("skim_join_size", "id, 'seed = 2'"), "SKIMQL_SKETCH_PAIR", r"countmin\(seed=1, key='key'\).*seed=2"),
        (TWO.format("skim_join_size", "id, 'buckets = 64'"), "SKIMQL_SKETCH_PAIR", "11 x 4096 .* 11 x 64"),
        (TWO.format("skim_join_size_bounds", "id, 'family = folded'"), "SKIMQL_SKETCH_PAIR", "countmin.*folded"),
        (TWO.format("skim_join_sum", "CAST(id AS STRING)"), "SKIMQL_SKETCH_PAIR", "types .*: bigint and string"),
        (TWO.format("skim_join_size", "id, id"), "SKIMQL_SKETCH_PAIR", "try: skim_join_sum"),
        (MERGED.format("id, 'rows = 3'"), "SKIMQL_SKETCH_PAIR", "11 x 4096 .* 3 x 4096|3 x 4096 .* 11 x 4096"),
        (MERGED.format("id, id"), "SKIMQL_SKETCH_PAIR", "counts by bigint and sums by bigint|sums by bigint and counts"),
        ("SELECT skim_join_size(x'00', x'00') FROM range(1)", "SKIMQL_NO_SKETCH", "no sketch of SkimQL"),
        ("SELECT skim_sketch(k, 9223372036854775807) FROM VALUES (1), (1) AS t(k)", "SKIMQL_OVERFLOW", "64 bits"),
        ("SELECT skim_sketch(id, CAST('NaN' AS DOUBLE)) FROM range(1)", "SKIMQL_NOT_FINITE", "NaN"),
        ("SELECT skim_sketch(array(id)) FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "array<bigint>"),
        ("SELECT skim_sketch(id, true) FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "boolean"),
        ("SELECT skim_sketch(id, 'bucket = 5') FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "bucket = 5"),
        ("SELECT skim_sketch(id, 'buckets = 48') FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "try: buckets = 32"),
        ("SELECT skim_sketch() FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "takes a key"),
        ("SELECT skim_sketch(id, id, 'kind = distinct') FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "no weights"),
        ("SELECT skim_sketch(struct(id), 'kind = distinct') FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "one key"),
        ("SELECT skim_sketch(id, 'kind = any') FROM range(1)", "SKIMQL_SKETCH_ARGUMENT", "kind = distinct"),
        ("SELECT skim_distinct(skim_sketch(id)) FROM range(1)", "SKIMQL_SKETCH_PAIR", "kind = distinct"),
        (TWO.format("skim_join_size", "id, 'kind = distinct'"), "SKIMQL_SKETCH_PAIR", "joins with none"),
        (TWO.replace("skim_sketch(id)", "skim_sketch(id, 'kind = distinct')").format("skim_distinct", "id, 'kind = distinct, seed = 3'"), "SKIMQL_SKETCH_PAIR", "seed=1, .*seed=3"),
        (MERGED.format("id, 'kind = distinct'"), "SKIMQL_SKETCH_PAIR", "one of distinct keys"),
        ("SELECT skim_merge(1)", "SKIMQL_SKETCH_ARGUMENT", "BINARY"),
        ("SELECT skim_join_sum(x'00')", "SKIMQL_SKETCH_ARGUMENT", "two sketches"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_by_name(home, text, code, said):
    from pyspark.errors import AnalysisException, SparkRuntimeException

    with pytest.raises((AnalysisException, SparkRuntimeException)) as caught:
        home.spark.sql(text).collect()
    assert caught.value.getCondition() == code
    assert re.search(said, str(caught.value), re.DOTALL)


def test_null_and_nothing(home):
    found = home.spark.sql(
        "SELECT skim_merge(CAST(NULL AS BINARY)), skim_join_size(max(s), NULLIF(max(s), max(s))), skim_join_size(max(s), max(s)) "
        "FROM (SELECT skim_sketch(CAST(NULL AS INT)) AS s FROM range(3))"
    ).collect()
    assert tuple(found[0]) == (None, None, 0.0)


def test_the_aggregation_is_partial_and_equal_calls_are_one(home):
    frame = home.spark.sql(
        "SELECT id % 3 AS g, skim_sketch(id) AS a, skim_sketch(id) AS b FROM range(9) GROUP BY 1"
    )
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("partial_skim_sketch(") == 1
    assert plan.count("ObjectHashAggregate") == 2


def test_the_example_of_the_docs_runs(home):
    """Small tables of these columns: all maps are exact, and so are the answers."""
    spark = home.spark
    spark.sql("SELECT id % 9 AS day, id % 20 AS user FROM range(180)").createOrReplaceTempView("visits")
    spark.sql(
        "SELECT id % 30 AS user, CAST(id AS DECIMAL(8,2)) AS price FROM range(60)"
    ).createOrReplaceTempView("orders")
    section = (ROOT / "docs" / "spark-sql.md").read_text().split("## Functions of sketches")[1]
    example = re.sub("--.*", "", re.search("```sql\n(.*?)```", section, re.DOTALL)[1])
    try:
        *_, days, week = [spark.sql(part).collect() for part in example.split(";") if part.strip()]
    finally:
        spark.sql("DROP TABLE IF EXISTS visits_by_day")
    users = np.arange(60) % 30
    bought, paid = np.bincount(users), np.bincount(users, weights=np.arange(60))
    ids = np.arange(180)
    pairs = [int(bought[ids[ids % 9 == day] % 20].sum()) for day in range(9)]
    assert [(r.day, r.pairs, r.bounds.low, r.bounds.certified) for r in days] == [
        (day, n, n, True) for day, n in enumerate(pairs)
    ]
    within = ids[(ids % 9 >= 1) & (ids % 9 <= 7)]
    assert week[0].week.value == week[0].week.high == pytest.approx(paid[within % 20].sum(), rel=1e-12)
