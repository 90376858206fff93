"""Which method a view takes of itself where its bytes are given: that which its first events let expect to err least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemorySpark, asked, declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.memory_backend.batches import MemoryBuilder
from skimql.engine.streams.by_error import of_many_streams
from skimql.engine.streams.by_pilot import is_open, maps_of, settings_by_least_error
from skimql.engine.streams.describe import explain, show_queries
from skimql.engine.streams.planned import SPLIT, WHY
from skimql.engine.streams.sample_sketch import Split
from skimql.engine.streams.store import continuous
from skimql.engine.streams.views import planned, residual_of
from skimql.optimizer.plan import Plan, Scan

SCHEMA = "k BIGINT, v BIGINT"
CHAIN = "a JOIN b ON a.k = b.k JOIN c ON b.v = c.k"
STAR = "a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"
COUNT = "SELECT APPROXIMATE COUNT(*) AS n"
DOMAIN, ROWS = 2_000, 4_000


def zipf(random, z, rows):
    law = np.arange(1, DOMAIN + 1.0) ** -z
    return np.searchsorted(np.cumsum(law / law.sum()), random.random(rows)).clip(0, DOMAIN - 1)


def drawn(random, z, rows=ROWS):
    return pa.table({"k": zipf(random, z, rows), "v": zipf(random, z, rows)})


def view_of(catalog):
    found = continuous(catalog)
    return planned(found.views["q"], found.streams), found


def put(folder, text, first):
    """A view planned from first events; its catalog and what its settings got to say."""
    catalog = declared(Catalog(folder / "c"), [stream_of(n, SCHEMA) for n in first], {"q": text})
    shown, found = view_of(catalog)
    shown = of_many_streams(shown, found.streams)
    residual = residual_of(shown.query, shown.view.folds)
    assert is_open(shown, residual)
    plan, built = maps_of(shown, residual), {}
    for name, table in first.items():
        own = tuple(s for s in plan.synopses if s.table == name)
        part = Plan(plan.query, plan.seed, own, (Scan(name, tuple(range(len(own)))),), (), (), ())
        built.update(zip(own, MemoryBuilder(name).build(table, part, None)[0], strict=True))
    settings = settings_by_least_error(shown, residual, plan, built)
    view = replace(shown.view, settings={**shown.view.settings, **settings})
    catalog.change_streams(lambda now, _: replace(now, views={"q": view}))
    return catalog, settings


def count(tables, shape):
    of = {n: np.bincount(t["k"].to_numpy(), minlength=DOMAIN).astype(float) for n, t in tables.items()}
    if shape == STAR:
        return float(np.sum(of["a"] * of["b"] * of["c"]))
    b = tables["b"]
    return float(np.sum(of["a"][b["k"].to_numpy()] * of["c"][b["v"].to_numpy()]))


@pytest.mark.parametrize(
    ("shape", "z", "method"),
    [
        (CHAIN, 0.0, "sample_sketch"),
        (CHAIN, 0.5, "sample_sketch"),
        (CHAIN, 1.0, "convolution"),
        (STAR, 0.0, "key_sample"),
        (STAR, 0.6, "convolution"),
    ],
)
def test_what_is_taken_errs_less_than_the_other(tmp_path, shape, z, method):
    """5 seeds: the mean square error of the method that is taken is less than that of the other."""
    using = {
        "sample_sketch": "hash",
        "key_sample": "hash",
        "convolution": "key_sample" if shape == STAR else "sample_sketch",
    }
    errors = {"taken": [], "other": []}
    for seed in range(5):
        random = np.random.default_rng(seed)
        batches = {n: [drawn(random, z) for _ in range(3)] for n in "abc"}
        whole = {n: pa.concat_tables(b) for n, b in batches.items()}
        text = f"{COUNT} FROM {shape} SIZE 24 KB SEED {seed + 1}"
        folder = tmp_path / str(seed)
        taken, settings = put(folder / "taken", text, {n: b[0] for n, b in batches.items()})
        other = declared(
            Catalog(folder / "other"),
            [stream_of(n, SCHEMA) for n in "abc"],
            {"q": text.replace(" SIZE", f" USING {using[method]} SIZE")},
        )
        for name, catalog in (("taken", taken), ("other", other)):
            for stream, own in batches.items():
                MemorySpark(catalog, stream, folder / name / f"of {stream}").run(own)
            answer = asked(catalog, "q")
            errors[name].append(answer.records()[0]["n"] / count(whole, shape) - 1)
        assert asked(taken, "q").method == method
        told = settings[WHY]
        assert told.endswith(f"{'hash' if shape == STAR and method == 'convolution' else method} is taken")
        assert told in explain(taken, "q").rows[0][0]
        (row,) = show_queries(taken, extended=True).records()
        assert row["bytes"] <= 24 * 1024
        assert row["predicted"] > 0
        assert f"+-{row['predicted']:,.6g} predicted, by {method}" in explain(taken, "q").rows[0][0]
    mean = {name: np.mean(np.square(own)) for name, own in errors.items()}
    assert mean["taken"] < mean["other"], mean


def test_what_is_predicted_of_a_sample_is_what_its_interval_is(tmp_path):
    """Where the pilot is all there is; 6 seeds, their mean within a third."""
    ratios = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        first = {n: drawn(random, 0.3, 12_000) for n in "abc"}
        catalog, settings = put(
            tmp_path / str(seed), f"{COUNT} FROM {CHAIN} SIZE 24 KB SEED {seed + 1}", first
        )
        predicted = float(settings[WHY].split("+-")[1].split("%")[0]) / 100
        for name, table in first.items():
            MemorySpark(catalog, name, tmp_path / str(seed) / name).run([table])
        (row,) = asked(catalog, "q").records()
        ratios.append((row["n_high"] - row["n_low"]) / 2 / row["n"] / predicted)
    assert 0.67 < np.mean(ratios) < 1.5, ratios


def test_using_leaves_the_method_and_the_pilot_divides_its_bytes(tmp_path):
    random = np.random.default_rng(4)
    # The first stream has few keys: its class is the cheaper one to sample, but the third has many rows.
    first = {
        "a": pa.table({"k": random.integers(0, 50, 3000), "v": np.zeros(3000, np.int64)}),
        "b": drawn(random, 0.0),
        "c": drawn(random, 0.0, 20_000),
    }
    catalog, settings = put(tmp_path, f"{COUNT} FROM {CHAIN} USING sample_sketch SIZE 24 KB", first)
    assert "is taken" not in settings[WHY]
    split = Split.of(settings[SPLIT])
    shown, _ = view_of(catalog)
    sizes = {s.table: 8 * s.rows * s.buckets for s in shown.plan.synopses}
    assert sum(sizes.values()) <= 24 * 1024
    assert all(size <= n for size, n in zip(sizes.values(), split.nbytes, strict=True))
    assert sizes["b"] > sizes["a"]


@pytest.mark.parametrize(
    "first",
    [
        {n: pa.table({"k": [1], "v": [2]}) for n in "abc"},
        {n: pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}) for n in "abc"},
    ],
    ids=["nothing joins", "no events"],
)
def test_where_nothing_joins_the_rule_stays(tmp_path, first):
    catalog, settings = put(tmp_path, f"{COUNT} FROM {CHAIN}", first)
    assert settings == {}
    assert view_of(catalog)[0].plan.method == "convolution"


def test_sums_and_tables_of_a_few_keys_are_planned_too(tmp_path):
    """Exact in any case: the rule stays, as no method is better."""
    few = {n: pa.table({"k": [1, 2, 1], "v": [1, 1, 2]}) for n in "abc"}
    catalog, settings = put(tmp_path, f"SELECT APPROXIMATE SUM(b.v) AS s, AVG(c.v) AS m FROM {CHAIN}", few)
    assert settings[WHY].endswith("convolution is taken")
    for name, table in few.items():
        MemorySpark(catalog, name, tmp_path / name).run([table])
    (row,) = asked(catalog, "q").records()
    # By b: (1, 1) meets 2 of a and 2 of c, (2, 1) 1 and 2, (1, 2) 2 and 1.
    assert row["s"] == 1 * 4 + 1 * 2 + 2 * 2
    assert row["m"] == pytest.approx((4 / 2 * 3 + 2 / 2 * 3 + 2 * 1) / 8)


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        (f"{COUNT} FROM {CHAIN}", True),
        (f"{COUNT} FROM {CHAIN} USING sample_sketch", True),
        (f"{COUNT} FROM {CHAIN} USING hash", False),
        (f"{COUNT} FROM {STAR}", True),
        (f"{COUNT} FROM {STAR} USING key_sample", False),
        (f"{COUNT}, b.v FROM {CHAIN} GROUP BY b.v", False),
        (f"SELECT APPROXIMATE COUNT(DISTINCT a.k) FROM {STAR}", False),
        (f"{COUNT} FROM {STAR} ERROR WITHIN 5%", False),
        (f"{COUNT} FROM a JOIN b USING (k)", False),
    ],
)
def test_what_a_pilot_has_a_say_in(tmp_path, text, opened):
    catalog = declared(Catalog(tmp_path / "c"), [stream_of(n, SCHEMA) for n in "abc"], {"q": text})
    shown, found = view_of(catalog)
    shown = of_many_streams(shown, found.streams)
    assert is_open(shown, residual_of(shown.query, shown.view.folds)) == opened
