"""Dense keys of streams: found batch by batch, and taken out when two streams are joined."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemoryBuilder, MemorySpark, asked, declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.dense_keys import BYTES
from skimql.engine.streams.describe import show_queries
from skimql.engine.streams.state_file import decode, encode
from skimql.engine.streams.store import continuous, load
from skimql.errors import StreamError

SCHEMA = "k BIGINT, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
COUNT = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
DOMAIN, SHIFT, TUPLES = 50_000, 100, 40_000
ENDS = np.cumsum(1 / np.arange(1, DOMAIN + 1))


def zipf(random, shift, tuples=TUPLES):
    drawn = np.searchsorted(ENDS, ENDS[-1] * random.random(tuples))
    return ((drawn + shift) % DOMAIN).astype(np.int64)


def batch(keys, random, deleted):
    op = np.where(random.random(len(keys)) < deleted, "d", "i")
    return pa.table({"k": keys, "op": op}), np.bincount(keys, np.where(op == "d", -1, 1), DOMAIN)


def streamed(folder, text, seed, deleted=0.2, batches=2):
    """The answer of a view over two skewed streams, and the truth."""
    catalog = declared(
        Catalog(folder / "catalog"),
        [stream_of("a", SCHEMA, DELETES), stream_of("b", SCHEMA, DELETES)],
        {"q": text},
        seed=seed,
    )
    random = np.random.default_rng(seed)
    weights = []
    for name, shift in (("a", 0), ("b", SHIFT)):
        made = [batch(zipf(random, shift), random, deleted) for _ in range(batches)]
        MemorySpark(catalog, name, folder / f"checkpoint of {name}").run([t for t, _ in made])
        weights.append(sum((w for _, w in made), np.zeros(DOMAIN)))
    return catalog, asked(catalog, "q"), float(weights[0] @ weights[1])


def test_two_skewed_streams_are_skimmed_in_the_bytes_that_are_asked(tmp_path):
    size = 64 << 10
    errors = {"hash": [], "skimmed": []}
    inside = 0
    for seed in range(4):
        for method, text in (
            ("skimmed", f"{COUNT} SIZE 64 KB"),
            ("hash", f"{COUNT} USING hash SIZE 64 KB"),
        ):
            catalog, answer, truth = streamed(tmp_path / f"{seed} {method}", text, seed)
            assert answer.method == method
            found = continuous(catalog).streams.values()
            assert sum(load(catalog, s, seed).state.nbytes for s in found) <= size + 200
            (row,) = answer.records()
            errors[method].append(abs(row["n"] - truth))
            inside += row["n_low"] <= truth <= row["n_high"]
    assert np.mean(errors["skimmed"]) < 0.7 * np.mean(errors["hash"])
    assert inside >= 7


def test_the_keys_of_a_state_are_those_that_weigh_most_and_survive_its_file(tmp_path):
    catalog, _, _ = streamed(tmp_path, f"{COUNT} SIZE 64 KB", 1)
    state = load(catalog, continuous(catalog).streams["a"], 1).state
    (wide,) = show_queries(catalog, extended=True).records()
    assert wide["method"] == "skimmed"
    assert 0.4 < wide["predicted"] / wide["half_width"] < 2.5
    (dense,) = [s.dense for s in state.summaries.values() if len(s.dense)]
    assert len(dense) == BYTES // 8
    assert (np.sort(dense) == dense).all()
    assert {0, 1, 2, 3, 4, 5} <= set(dense.tolist())
    again = decode(encode(state), "here")
    assert [s.dense.tolist() for s in again.summaries.values()] == [
        s.dense.tolist() for s in state.summaries.values()
    ]


def test_views_beside_a_skimmed_one_change_nothing_of_it_and_have_no_dense_keys(tmp_path):
    schema = f"{SCHEMA}, ts TIMESTAMP"
    hour = {"window": "1 hour", "time": "ts"}
    others = {"grouped": f"{COUNT} GROUP BY a.op", "hourly": (COUNT, hour), "hashed": f"{COUNT} USING hash"}
    answers = []
    for number, beside in enumerate(({}, others)):
        catalog = declared(
            Catalog(tmp_path / f"catalog {number}"),
            [stream_of("a", schema, DELETES), stream_of("b", schema, DELETES)],
            {"q": f"{COUNT} SIZE 64 KB", **beside},
        )
        random = np.random.default_rng(1)
        for name, shift in (("a", 0), ("b", SHIFT)):
            table, _ = batch(zipf(random, shift), random, 0.2)
            moments = pa.array([0] * TUPLES, pa.timestamp("us", "UTC"))
            MemorySpark(catalog, name, tmp_path / f"{name} {number}").run(
                [table.append_column("ts", moments)]
            )
        answers.append(asked(catalog, "q"))
    assert answers[0].method == answers[1].method == "skimmed"
    assert answers[0].records() == answers[1].records()
    assert {asked(catalog, n).method for n in others} == {"hash"}
    shown = {r["query"]: r["predicted"] for r in show_queries(catalog, extended=True).records()}
    assert {n for n, predicted in shown.items() if predicted is None} == {"grouped", "hourly"}
    assert shown["q"] < shown["hashed"]
    for refused in (f"{COUNT} GROUP BY a.op USING skimmed", (f"{COUNT} USING skimmed", hour)):
        with pytest.raises(StreamError, match="without windows and groups"):
            declared(catalog, continuous(catalog).streams.values(), {"no": refused})


def test_a_key_whose_insertions_are_all_deleted_is_not_dense_any_more(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA, DELETES), stream_of("b", SCHEMA, DELETES)],
        {"q": f"{COUNT} OPTIONS (sparse = false, buckets = 512)"},
    )
    keys = np.repeat([7, -9], [400, 300])
    made = [pa.table({"k": keys, "op": [op] * 700}) for op in ("i", "d")]
    made.append(pa.table({"k": np.repeat([7, -9], [10, 40]), "op": ["d"] * 50}))
    spark = MemorySpark(catalog, "a", tmp_path / "a")
    spark.run(made)
    MemorySpark(catalog, "b", tmp_path / "b").run(made[:1])
    (row,) = asked(catalog, "q").records()
    # What is left weighs less than nothing, and is taken out as what weighs more.
    assert row["n_low"] <= -10 * 400 - 40 * 300 <= row["n_high"]
    assert abs(row["n"] + 16_000) < 1


def test_what_is_small_or_flat_or_of_three_streams_is_not_skimmed(tmp_path):
    catalog, answer, truth = streamed(tmp_path / "small", COUNT, 1, batches=0)
    assert answer.method == "hash"
    assert answer.value == truth == 0
    third = "SELECT APPROXIMATE COUNT(*) AS n FROM a x JOIN b ON x.k = b.k JOIN a y ON b.k = y.k"
    declared(catalog, continuous(catalog).streams.values(), {"three": third}, seed=1)
    handler = Batches(Catalog(catalog.folder), "a", MemoryBuilder("a"))
    assert handler.start().state.nbytes == 0
    for text in (f"{third} USING skimmed", f"{COUNT} USING skimmed SIZE 8 KB", f"{COUNT} USING agms"):
        with pytest.raises(StreamError, match="USING") as fault:
            declared(catalog, continuous(catalog).streams.values(), {"no": text}, seed=1)
        assert fault.value.code == "SKIMQL_STREAM_UNSUPPORTED"
