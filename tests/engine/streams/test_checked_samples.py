"""Key samples of skewed streams: what stands out of the sketches beside them is apart, and heavy keys get room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from support.continuous import MemorySpark, asked, declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.beside import sketch_beside
from skimql.engine.streams.checked_samples import HEAVIER, CheckedSamples, checked_join
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.view_answer import joined_of
from skimql.engine.streams.views import planned
from skimql.engine.synopses import Built, Tally
from skimql.sketches.joins.sparse import SparseFirstSketch

DOMAIN = 8000
ONES = 1.0 / np.arange(1, DOMAIN + 1)
SCHEMA = "k BIGINT, v BIGINT, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
SELECT = "SELECT APPROXIMATE COUNT(*) AS n, SUM(b.v) AS s, AVG(b.v) AS m FROM a JOIN b ON a.k = b.k"
VIEWS = {
    "two": f"{SELECT} USING key_sample SIZE 24 KB",
    "three": f"{SELECT} JOIN c ON a.k = c.k USING key_sample SIZE 36 KB",
}
NONE = np.empty(0, np.int64)


def declared_views(folder):
    return declared(Catalog(folder / "c"), [stream_of(n, SCHEMA, DELETES) for n in "abc"], VIEWS)


def run_zipf(catalog, folder, seed):
    """Zipf keys, the second stream shifted by 3, a quarter deleted again; the weights and sums of each by key."""
    random, net = np.random.default_rng(seed), {}
    for number, name in enumerate("abc"):
        keys = (random.choice(DOMAIN, 12000, p=ONES / ONES.sum()) + 3 * (number == 1)) % DOMAIN
        values = keys % 7 + random.integers(0, 5, keys.size)
        gone = random.permutation(keys.size)[:3000]
        rows = pa.table({"k": keys, "v": values, "op": ["i"] * keys.size})
        MemorySpark(catalog, name, folder / name).run(
            [rows, rows.take(gone).set_column(2, "op", pa.array(["d"] * gone.size))]
        )
        left = np.setdiff1d(np.arange(keys.size), gone)
        net[name] = [np.bincount(keys[left], w, DOMAIN) for w in (None, values[left])]
    return net


def test_intervals_of_samples_have_the_truth_of_skewed_streams_too(tmp_path):
    missed, off = dict.fromkeys(((v, t) for v in VIEWS for t in "nsm"), 0), {v: [] for v in VIEWS}
    for seed in range(4):
        catalog = declared_views(tmp_path / str(seed))
        net = run_zipf(catalog, tmp_path / str(seed), seed)
        for view in VIEWS:
            others = net["a"][0] * (net["c"][0] if view == "three" else 1.0)
            truth = {"n": float(others @ net["b"][0]), "s": float(others @ net["b"][1])}
            truth["m"] = truth["s"] / truth["n"]
            (row,) = asked(catalog, view).records()
            off[view].append(abs(row["n"] / truth["n"] - 1.0))
            for name, value in truth.items():
                low, high = row[f"{name}_low"], row[f"{name}_high"]
                missed[view, name] += low is not None and not low <= value <= high
    assert max(missed.values()) <= 1, missed
    assert np.median(off["two"]) < 0.2
    assert np.median(off["three"]) < 0.5


def test_heavy_keys_that_no_batch_told_get_room(tmp_path):
    random = np.random.default_rng(5)
    catalog = declared_views(tmp_path)
    for name in "abc":
        keys = np.concatenate([random.integers(0, 4000, 6000), np.full(500, 77_777)])
        rows = pa.table({"k": keys, "v": np.ones(keys.size, np.int64), "op": ["i"] * keys.size})
        MemorySpark(catalog, name, tmp_path / name).run([rows])
    found = continuous(catalog)
    states = {n: load(catalog, s, 1).state for n, s in found.streams.items()}
    shown = planned(found.views["three"], found.streams)
    plan = shown.plan
    joined = joined_of(shown, states)
    assert 77_777 in next(iter(joined.weights.values())).sample.keys
    built = [states[s.table].summary(s, plan.seed).built for s in plan.synopses]
    beside = [Built(_sparse(joined.streams[i].beside), Tally(), 1.0) for i in range(len(plan.synopses))]
    blind = checked_join(plan, built, beside, NONE)
    terms = plan.aggregates[0].total
    assert all(77_777 not in w.sample.sample.keys for w in blind.weights.values())
    estimate = blind.total(terms, 0.95)
    assert estimate.low <= 500.0**3 <= estimate.high
    assert HEAVIER in estimate.notes
    assert abs(joined.total(terms, 0.95).value / 500.0**3 - 1.0) < 0.2


def test_samples_of_an_earlier_version_have_no_sketches_and_answer_alone(tmp_path):
    catalog = declared_views(tmp_path)
    run_zipf(catalog, tmp_path, 1)
    found = continuous(catalog)
    shown = planned(found.views["two"], found.streams)
    whole = {n: load(catalog, s, 1).state for n, s in found.streams.items()}
    besides = {sketch_beside(s) for s in shown.plan.synopses}
    states = {
        n: replace(state, summaries={k: v for k, v in state.summaries.items() if k not in besides})
        for n, state in whole.items()
    }
    alone, checked = joined_of(shown, states), joined_of(shown, whole)
    assert isinstance(checked, CheckedSamples)
    assert not isinstance(alone, CheckedSamples)
    terms = shown.plan.aggregates[0].total
    assert alone.total(terms, 0.95) == checked.samples.total(terms, 0.95)


def _sparse(dense):
    whole = SparseFirstSketch(dense.spec, 0)
    whole.merge(SparseFirstSketch.from_state(dense.spec, dense.state(), 0))
    return whole


def test_what_sketches_weigh_is_not_exact_and_a_count_is_not_below_0(tmp_path):
    random = np.random.default_rng(7)
    catalog = declared_views(tmp_path)
    few = pa.table({"k": [2, 3] * 1000, "v": [1] * 2000, "op": ["i"] * 2000})
    keys = random.integers(0, 3000, 9000)
    many = pa.table({"k": keys, "v": keys % 3, "op": ["i"] * 9000})
    for name, rows in (("a", few), ("b", many), ("c", many)):
        MemorySpark(catalog, name, tmp_path / name).run([rows])
    counts = np.bincount(keys, minlength=4)
    truth = 1000.0 * (counts[2] ** 2 + counts[3] ** 2)
    (row,) = asked(catalog, "three").records()
    assert row["certified"] is False
    assert 0 <= row["n_low"] <= truth <= row["n_high"] < np.inf
