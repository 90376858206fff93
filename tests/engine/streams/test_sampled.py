"""Views by key samples: right while few keys are kept, linear under deletions, the same wherever a batch is cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution.partial_aggregate import Partial, sketch_plan
from skimql.engine.streams.describe import show_queries
from skimql.engine.streams.state_file import decode, encode
from skimql.engine.streams.store import continuous, load
from skimql.errors import SkimqlError
from skimql.optimizer.plan import Attribute, Synopsis, Weight

SCHEMA = "k BIGINT, v BIGINT, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
THREE = "a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"


def events(keys, values, op="i"):
    return pa.table(
        {"k": np.asarray(keys, np.int64), "v": np.asarray(values, np.int64), "op": [op] * len(keys)}
    )


def views(folder, names, **views):
    return declared(Catalog(folder / "c"), [stream_of(n, SCHEMA, DELETES) for n in names], views)


def run(catalog, folder, **batches):
    for name, own in batches.items():
        MemorySpark(catalog, name, folder / f"of {name}").run(own)


def state_of(catalog, name):
    return load(catalog, continuous(catalog).streams[name], 1).state


def test_of_three_streams_on_one_key_the_interval_has_the_truth_after_deletions(tmp_path):
    text = f"SELECT APPROXIMATE COUNT(*) AS n, SUM(b.v) AS s, AVG(b.v) AS m FROM {THREE} USING key_sample"
    missed = {"n": 0, "s": 0, "m": 0}
    for seed in range(12):
        random, folder = np.random.default_rng(seed), tmp_path / str(seed)
        catalog = views(folder, "abc", q=f"{text} SIZE 12 KB SEED {seed + 1}")
        net = {}
        for name in "abc":
            keys = random.integers(0, 2000, 6000)
            values = keys % 7 + random.integers(0, 5, 6000)
            gone = random.permutation(6000)[:2000]
            batches = [events(keys[:4000], values[:4000]), events(keys[4000:], values[4000:])]
            run(catalog, folder, **{name: [*batches, events(keys[gone], values[gone], "d")]})
            left = np.setdiff1d(np.arange(6000), gone)
            net[name] = (
                np.bincount(keys[left], minlength=2000),
                np.bincount(keys[left], values[left], minlength=2000),
            )
        truth = {"n": float(net["a"][0] @ (net["b"][0] * net["c"][0]))}
        truth["s"] = float(net["a"][0] @ (net["b"][1] * net["c"][0]))
        truth["m"] = truth["s"] / truth["n"]
        (row,) = asked(catalog, "q").records()
        assert abs(row["n"] - truth["n"]) < 0.5 * truth["n"]
        assert row["certified"] is False
        for name, value in truth.items():
            missed[name] += not row[f"{name}_low"] <= value <= row[f"{name}_high"]
    assert max(missed.values()) <= 3, missed
    assert any("weighs much more" in note for note in asked(catalog, "q").notes)
    (told,) = show_queries(catalog, extended=True).records()
    assert told["method"] == "key_sample"
    assert told["bytes"] <= 13_000
    assert 0.3 < told["predicted"] / told["half_width"] < 1.5


def test_while_all_keys_are_kept_the_answer_is_exact(tmp_path):
    catalog = views(
        tmp_path,
        "ab",
        q="SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN b USING (k) USING key_sample",
    )
    rows = events([1, 1, 2, 3], [5, 6, 7, 8])
    run(catalog, tmp_path, a=[rows, events([1], [6], "d")], b=[events([1, 2, 2, 9], [0, 0, 0, 0])])
    answer = asked(catalog, "q")
    (row,) = answer.records()
    assert (row["n"], row["s"], row["certified"], answer.method) == (3, 5 + 7 + 7, True, "key_sample")
    assert not any("weighs" in note for note in answer.notes)
    assert show_queries(catalog, extended=True).records()[0]["predicted"] == 0.0
    run(catalog, tmp_path, a=[rows, events([1], [6], "d"), events([1, 2], [5, 7], "d")])
    (row,) = asked(catalog, "q").records()
    assert (row["n"], row["s"]) == (0, None)


def test_the_sample_of_a_batch_does_not_depend_on_how_it_is_cut():
    key = Attribute(("`k`",), ("bigint",), "c")
    plan = sketch_plan(Synopsis("s", None, (key,), Weight(), "key_sample", 1, 50), 7, "int64")
    random = np.random.default_rng(3)
    keys = np.concatenate([random.integers(0, 400, 500)] * 2)
    weights = np.concatenate([np.ones(500, np.int64), -np.ones(500, np.int64)])
    weights[:90] = 2
    order = random.permutation(len(keys))
    found = []
    for parts in ([order], np.array_split(order, 7), [np.arange(500), np.arange(500, 1000)]):
        whole = Partial.empty(plan)
        for part in parts:
            one = Partial.empty(plan)
            one.sketch.update(keys[part], weights=weights[part])
            sent = plan.restored(one.sketch.state())
            whole.sketch.merge(sent)
        kept = whole.sketch.net()
        found.append((kept.threshold, kept.keys.tolist(), kept.weights.tolist(), kept.totals.tolist()))
    assert found[0] == found[1] == found[2]
    assert 0 < len(found[0][1]) < 50
    assert all(w != 0 for w in found[0][2][0]), "what is deleted again is not kept"


def test_a_state_with_samples_is_read_as_it_was_written(tmp_path):
    catalog = views(
        tmp_path, "ab", q="SELECT APPROXIMATE COUNT(*) FROM a JOIN b USING (k) USING key_sample SIZE 1 KB"
    )
    random = np.random.default_rng(1)
    run(catalog, tmp_path, a=[events(random.integers(0, 500, 300), np.zeros(300))])
    state = state_of(catalog, "a")
    again = decode(encode(state), "here")
    assert encode(again) == encode(state)
    assert b'"format_version":2' in encode(state)
    (sample,) = (s.built.sketch for y, s in again.summaries.items() if y.method == "key_sample")
    assert 0 < sample.probability < 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.v USING key_sample", "joined on one key"),
        ("SELECT APPROXIMATE COUNT(*) FROM a USING key_sample", "joined on one key"),
        ("SELECT APPROXIMATE a.v, COUNT(*) FROM a JOIN b USING (k) GROUP BY a.v USING key_sample", "joined on one key"),
        ("SELECT APPROXIMATE COUNT(DISTINCT a.v) FROM a JOIN b USING (k) USING key_sample", "distinct values"),
        ("SELECT APPROXIMATE COUNT(*) FROM a JOIN b USING (k) USING two_level", "USING two_level"),
    ],
)  # fmt: skip
def test_what_samples_do_not_answer_is_refused(tmp_path, text, said):
    with pytest.raises(SkimqlError, match=said):
        views(tmp_path, "abc", q=text)


def test_sums_of_doubles_are_refused(tmp_path):
    streams = [stream_of(n, "k BIGINT, x DOUBLE") for n in "ab"]
    text = "SELECT APPROXIMATE SUM(a.x) FROM a JOIN b USING (k) USING key_sample"
    catalog = declared(Catalog(tmp_path / "c"), streams, {"q": text})
    with pytest.raises(SkimqlError, match="no sums of DOUBLE"):
        run(catalog, tmp_path, a=[arrow("k BIGINT, x DOUBLE", [(1, 0.5)])])
