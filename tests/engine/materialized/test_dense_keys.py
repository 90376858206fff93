"""Hash sketches that count dense keys beside their counters: as asked, followed, planned, and by every statement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kept import kept, remember
from support.kept_kinds import of_table
from support.tables import forget_views

from skimql import Session, SkimqlError
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.creating import Creation
from skimql.engine.materialized.form_sizing import FormSizing
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings
from skimql.optimizer.describe.plan import describe_apart
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from skimql.parser.statement import parse_statement
from skimql.sketches.samples.dense_first import DenseFirstSketch
from skimql.sketches.samples.sample_sketch_join import point_rows
from skimql.sketches.samples.two_level_plan import heaviest

RNG = np.random.default_rng(3)
SKEWED = np.concatenate([np.repeat(np.arange(5), 400), RNG.integers(5, 3_000, 4_000)])


def drafted(monkeypatch, text, *sketches, keys=SKEWED, **settings):
    catalog = remember(Catalog(), kept("any", "t", {"k": [1], "l": [1]}, classes=["x", "y"]), *sketches)
    distinct, counts = np.unique(keys, return_counts=True)
    squares = float((counts.astype(float) ** 2).sum())
    known = AttributeStatistics(float(distinct.size), squares, heaviest(distinct, counts, 200))
    relation = RelationStatistics(float(counts.sum()), (known,), float(counts.sum()), source="exact")
    monkeypatch.setattr(FormSizing, "statistics", lambda self, draft: (relation, relation))
    context = Session(catalog=catalog, **settings).context
    return Creation(context, parse_statement(f"CREATE SKETCH {text}")).drafted()


def test_the_heaviest_keys_are_counted_beside_counters_of_the_same_size(monkeypatch):
    head, form = drafted(monkeypatch, "s ON t (k) OPTIONS (dense_keys = 5, buckets = 64)")
    assert (head.method, head.rows, head.buckets, head.parameters) == ("hash", 11, 64, (("dense", 5),))
    assert sorted(form.dense.tolist()) == [0, 1, 2, 3, 4]
    assert head.most_bytes == 8 * 11 * 64 + 16 * 5
    _, all_known = drafted(monkeypatch, "s ON t (k) OPTIONS (dense_keys = 900)")
    assert all_known.dense.size == 200
    assert "200 keys are known" in all_known.notes[-1]
    plain, none = drafted(monkeypatch, "s ON t (k) OPTIONS (dense_keys = 0)")
    assert (plain.parameters, none.dense) == ((), None)


@pytest.mark.parametrize(
    ("asked", "least", "most"), [("dense_keys = 100", 100, 100), ("dense_keys = auto", 5, 200)]
)
def test_dense_keys_and_counters_share_the_size_that_is_asked(monkeypatch, asked, least, most):
    head, form = drafted(monkeypatch, f"s ON t (k) SIZE 10 KB OPTIONS ({asked})")
    assert least <= form.dense.size <= most
    assert 9_900 < head.most_bytes <= 10_240
    flat, none = drafted(
        monkeypatch, "s ON t (k) SIZE 10 KB OPTIONS (dense_keys = auto)", keys=np.arange(9_000)
    )
    assert (flat.parameters, none.dense) == ((), None)
    assert 9_900 < flat.most_bytes <= 10_240


@pytest.mark.parametrize(
    ("clauses", "code", "said"),
    [
        ("(k) OPTIONS (dense_keys = many)", "SKIMQL_BAD_SETTING", "dense_keys = auto"),
        ("(k) OPTIONS (dense_keys = -1)", "SKIMQL_BAD_SETTING", "dense_keys = auto"),
        ("(k) OPTIONS (dense_keys = 9999999)", "SKIMQL_BAD_SETTING", "1,048,576"),
        ("(k) USING key_sample OPTIONS (dense_keys = 3)", "SKIMQL_CLAUSE", "by key_sample"),
        ("(k, l) OPTIONS (dense_keys = 3)", "SKIMQL_CLAUSE", "by convolution"),
        ("(k) SIZE 1 KB OPTIONS (dense_keys = 90)", "SKIMQL_BUDGET_EXCEEDED", "SIZE 1616"),
    ],
)
def test_what_cannot_have_dense_keys_is_refused_with_a_way_out(monkeypatch, clauses, code, said):
    with pytest.raises(SkimqlError) as refused:
        drafted(monkeypatch, f"s ON t {clauses}")
    assert refused.value.code == code
    assert said in str(refused.value)


def test_a_sketch_of_the_class_takes_the_dense_keys_of_the_first(monkeypatch):
    first = of_table("far", "hash", "w", {"k": SKEWED}, None, buckets=16, parameters=(("dense", 2),))
    hub = of_table(
        "hub",
        "sample_sketch",
        "h",
        {"j": SKEWED, "k": SKEWED},
        None,
        rows=1,
        parameters=(("dense", 0), ("sampled", 0)),
    )
    hub = replace(hub, head=replace(hub.head, created="2025-01-01T00:00:00Z"))
    for others in ([first], [hub, first]):
        head, form = drafted(monkeypatch, "s ON t (k)", *others)
        assert (head.parameters, head.buckets, form.dense.tolist()) == ((("dense", 2),), 16, [1, 3])
    several, form = drafted(monkeypatch, "s ON t (k, l)", first)
    assert (several.method, several.parameters, form.dense) == ("convolution", (), None)


CHAIN = "FROM t JOIN h ON t.k = h.k JOIN w ON h.l = w.l"
TABLES = {
    "t": pa.table({"k": RNG.integers(0, 50, 300)}),
    "h": pa.table({"k": RNG.integers(0, 50, 900), "l": RNG.integers(0, 3_000, 900)}),
    "w": pa.table({"l": SKEWED, "x": RNG.integers(-2, 5, SKEWED.size), "d": RNG.random(SKEWED.size)}),
}


def test_what_is_planned_of_dense_keys_is_built_and_answers():
    # Keys far apart, most of which join nothing: an exact map of them takes more than the size.
    apart, idle = 1_000_003**2, np.random.default_rng(3).integers(0, 1 << 50, 3_000)
    h, w = TABLES["h"], pa.table({"l": np.concatenate([SKEWED * apart, idle])})
    far = {**TABLES, "h": pa.table({"k": h["k"], "l": h["l"].to_numpy() * apart}), "w": w}
    asked = f"SELECT APPROXIMATE COUNT(*) AS n {CHAIN} USING sample_sketch SIZE 20 KB"
    run = MemoryRun.of(asked, MemoryBackend(MemoryTables(far)), Settings())
    plan, answer = run.plan(), run.answer()
    (beyond,) = (s for s in plan.attempt.synopses if s.table == "w")
    assert dict(beyond.parameters)["dense"] == len(beyond.dense) > 3
    assert f"and {len(beyond.dense):,} dense keys" in describe_apart(plan.attempt)
    (cell,), (truth,) = answer.rows[0], run.exact().rows[0]
    assert cell.low <= truth.value <= cell.high
    assert abs(cell.value / truth.value - 1.0) < 2.0 * plan.attempt.predicted.half_width < 0.2


def test_dense_keys_stay_exact_through_every_statement(spark, tmp_path):
    for name, table in TABLES.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    more = pa.table({"l": [0, 0, 7, 4_000], "x": [1, 2, 3, 4], "d": [0.5] * 4})
    pq.write_table(more, tmp_path / "more.parquet")
    with Session(spark, catalog=tmp_path / "catalog") as session:
        for name in (*TABLES, "more"):
            session.table(name, tmp_path / f"{name}.parquet")
        create = "CREATE SKETCH w ON w (l) FOR SUM(x) OPTIONS (dense_keys = 5, buckets = 32, sparse = false)"
        session.sql(create)

        def weights():
            """The number of tuples and the sum of x of some dense keys, and all counters."""
            built = [b.sketch for b in session.catalog.load("w").built]
            assert all(isinstance(s, DenseFirstSketch) and s.exact is None for s in built)
            keys = np.array([0, 1])
            return [point_rows(s, keys)[0].tolist() for s in built[:2]], [
                s.plain().dense().counters for s in built
            ]

        x = TABLES["w"]["x"].to_numpy()
        truth = [[400, 400], [x[SKEWED == 0].sum(), x[SKEWED == 1].sum()]]
        found, first = weights()
        assert found == truth
        # In memory the same bits.
        head = session.catalog.load("w").head
        again = MemoryBackend(MemoryTables(TABLES)).apart(head, np.arange(5), 1, "")[1]
        assert all(
            np.array_equal(b.sketch.plain().dense().counters, c) for b, c in zip(again, first, strict=True)
        )
        session.sql("APPEND SKETCH w FROM more")
        assert weights()[0] == [[402, 400], [truth[1][0] + 3, truth[1][1]]]
        session.sql("APPEND SKETCH w FROM more WEIGHT (-1)")
        session.sql("APPEND SKETCH w FROM w DELETES WHEN l = 1")
        assert weights()[0] == [[800, 0], [2 * truth[1][0], 0]]
        session.sql(create.replace("CREATE", "CREATE OR REPLACE", 1))
        session.sql("CREATE SKETCH m ON more (l) FOR SUM(x)")
        session.sql("APPEND SKETCH w FROM SKETCH m")
        assert weights()[0] == [[402, 400], [truth[1][0] + 3, truth[1][1]]]
        session.sql(f"EXPORT SKETCH w TO '{tmp_path / 'out.parquet'}'")
        session.sql("DROP SKETCH w")
        session.sql(f"IMPORT SKETCH w FROM '{tmp_path / 'out.parquet'}' TRUSTED")
        session.sql("REFRESH SKETCH w")
        assert weights()[0] == [[402, 400], [truth[1][0] + 3, truth[1][1]]]
        own = session.sql("SELECT APPROXIMATE COUNT(*) FROM w a JOIN w b ON a.l = b.l USING hash").rows[0][0]
        counts = np.bincount(np.concatenate([SKEWED, [0, 0, 7, 4_000]]))
        assert own.low <= float(counts @ counts) <= own.high
        session.sql("CREATE SKETCH d ON w (l CLASS other) FOR SUM(d) OPTIONS (dense_keys = 5, buckets = 32)")
        summed = session.catalog.load("d").built[1].sketch
        wanted = np.bincount(SKEWED, TABLES["w"]["d"].to_numpy())[:5]
        assert point_rows(summed, np.arange(5))[0] == pytest.approx(wanted)
    forget_views(spark)
