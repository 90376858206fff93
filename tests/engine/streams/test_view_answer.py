"""The answers of views from the states of their streams: what is there now, with which events."""

from __future__ import annotations

import numpy as np
from support.continuous import MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.store import continuous

SCHEMA = "k BIGINT, g BIGINT, v BIGINT, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"


def spark_of(catalog, tmp_path, name):
    return MemorySpark(catalog, name, tmp_path / f"checkpoint of {name}")


def test_two_streams_with_deletions_join_what_is_there_now(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA, DELETES), stream_of("b", SCHEMA, DELETES)],
        {
            "q": "SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s, AVG(b.v) AS m FROM a JOIN b ON a.k = b.k WHERE b.g < 3"
        },
    )
    left = [
        arrow(SCHEMA, [(1, 0, 10, "i"), (1, 0, 10, "i"), (2, 0, 5, "i")]),
        arrow(SCHEMA, [(1, 0, 10, "d")]),
    ]
    right = [arrow(SCHEMA, [(1, 1, 4, "i"), (1, 7, 100, "i"), (2, 2, 8, "d")])]
    spark_of(catalog, tmp_path, "a").run(left[:1])
    assert (
        asked(catalog, "q").records()[0]["n"],
        asked(catalog, "q").notes[0].endswith("no batch of b yet"),
    ) == (
        0,
        True,
    )
    spark_of(catalog, tmp_path, "b").run(right)
    (row,) = asked(catalog, "q").records()
    # The deletion of a row that was never inserted takes one from the count.
    assert (row["n"], row["s"], row["m"], row["certified"]) == (2 - 1, 20 - 5, 2 * 4 - 8, True)
    spark_of(catalog, tmp_path, "a").run(left)
    (row,) = asked(catalog, "q").records()
    # Where net nothing joins, a sum is NULL, as SQL has it.
    assert (row["n"], row["s"]) == (0, None)


def test_a_sum_of_what_is_deleted_and_was_never_inserted_is_no_sum_of_nothing(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA, DELETES)],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s, SUM(g) AS t, AVG(g) AS m FROM a"},
    )
    spark_of(catalog, tmp_path, "a").run([arrow(SCHEMA, [(1, 5, 0, "d")])])
    (row,) = asked(catalog, "q").records()
    assert (row["n"], row["s"], row["t"], row["m"]) == (-1, 0, -5, 5)


def test_after_deletions_an_interval_is_not_clipped_by_what_is_gone(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA, DELETES), stream_of("b", SCHEMA)],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"},
        sparse=False,
        buckets=16,
    )
    random = np.random.default_rng(1)
    rows = [(int(k), 0, 0, "i") for k in random.integers(0, 1000, 400)]
    gone = [(k, g, v, "d") for k, g, v, _ in rows]
    batches = [arrow(SCHEMA, rows), arrow(SCHEMA, gone)]
    spark_of(catalog, tmp_path, "b").run(batches[:1])
    spark_of(catalog, tmp_path, "a").run(batches[:1])
    assert asked(catalog, "q").records()[0]["n_low"] >= 0, "nothing was deleted: a count is not negative"
    spark_of(catalog, tmp_path, "a").run(batches)
    (row,) = asked(catalog, "q").records()
    assert (row["n"], row["n_low"], row["n_high"]) == (0, 0, 0), "counters are linear: everything is gone"
    extra = arrow(SCHEMA, [(int(k), 0, 0, "d") for k in random.integers(0, 1000, 400)])
    spark_of(catalog, tmp_path, "a").run([*batches, extra])
    assert asked(catalog, "q").records()[0]["n_low"] < 0


def test_a_view_that_comes_later_says_from_which_batch_it_counts(tmp_path):
    batches = [arrow(SCHEMA, [(1, 0, 1, "i")])] * 3
    catalog = declared(
        Catalog(tmp_path / "catalog"),
        [stream_of("a", SCHEMA)],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n FROM a"},
    )
    spark_of(catalog, tmp_path, "a").run(batches, last=2)
    declared(catalog, [continuous(catalog).streams["a"]], {"r": "SELECT APPROXIMATE SUM(v) AS s FROM a"})
    spark_of(catalog, tmp_path, "a").run(batches)
    assert asked(catalog, "q").records()[0]["n"] == 3
    late = asked(catalog, "r")
    assert late.records()[0]["s"] == 1
    assert "it counts the events of a from batch 2 on: the view was created then" in late.notes
