"""The first events of a view's streams, read before it runs: its method and size are planned from them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.continuous import counters_by_hand
from support.streams import zipf

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.store import continuous, load
from skimql.errors import SkimqlError


def write(folder, name, keys, op="i"):
    folder.mkdir(exist_ok=True)
    lines = (json.dumps({"k": int(k), "x": 0.5, "op": op}) for k in keys)
    (folder / name).write_text("\n".join(lines))


def test_a_view_is_planned_from_the_files_that_are_there(spark, tmp_path):
    random = np.random.default_rng(1)
    for name in "ab":
        write(tmp_path / name, "0.json", random.integers(0, 2000, 5000))
        write(tmp_path / name, "_hidden.json", [1] * 10)
    session = Session(spark, catalog=tmp_path / "c")
    for name in "ab":
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, x DOUBLE, op STRING) FROM JSON '{tmp_path / name}' DELETES WHEN op = 'd'"
        )
    select = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b USING (k)"
    create = "CREATE CONTINUOUS VIEW {} WITH (trigger = 'available now') AS {}"
    session.sql(create.format("q", f"{select} ERROR WITHIN 10%"))
    answer = session.answer("SELECT * FROM q")
    (row,) = answer.records()
    assert answer.method == "key_sample"
    # Spark knows the view by its name without being told.
    assert spark.table("q").columns == list(row)
    assert spark.sql("SELECT n FROM q").collect()[0].n == row["n"]
    assert (row["target"], row["as_of_batch"]) == ("unknown", "a 0, b 0")
    session.sql(create.format("h", f"{select} USING hash OPTIONS (buckets = 8192)"))
    exact = session.answer("SELECT * FROM h")
    assert exact.value == pytest.approx(row["n"], rel=0.15)
    plan = str(session.sql("EXPLAIN SKETCHES q"))
    assert "key_sample is taken" in plan
    assert "of the keys" in plan
    session.sql(
        "CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) FROM RATE '' OPTIONS (rowsPerSecond = 1)"
    )
    (tmp_path / "empty").mkdir()
    session.sql(f"CREATE STREAM e (k BIGINT) FROM PARQUET '{tmp_path / 'empty'}'")
    for other in ("r ON a.k = r.value", "e ON a.k = e.k"):
        with pytest.raises(SkimqlError, match="local folder with files") as fault:
            session.sql(
                create.format("p", f"SELECT APPROXIMATE COUNT(*) FROM a JOIN {other} ERROR WITHIN 5%")
            )
        assert fault.value.code == "SKIMQL_NO_PILOT"
    with pytest.raises(SkimqlError, match="no sums of DOUBLE") as fault:
        session.sql(create.format("p", f"{select.replace('COUNT(*)', 'SUM(a.x)')} USING key_sample"))
    assert fault.value.code == "SKIMQL_UNKNOWN_METHOD"
    for name, summed, way in (("n3", "COUNT(*)", "key_sample"), ("x3", "SUM(e.k * 0.5D)", "hash")):
        of_three = f"SELECT APPROXIMATE {summed} FROM a JOIN b USING (k) JOIN e ON b.k = e.k"
        session.sql(create.format(name, of_three))
        assert way in str(session.sql(f"EXPLAIN SKETCHES {name}"))
    session.sql("TERMINATE h")
    assert (spark.catalog.tableExists("h"), spark.catalog.tableExists("q")) == (False, True)
    session.close()
    assert not spark.catalog.tableExists("q")


def test_domains_are_split_as_the_files_that_are_there_say(spark, tmp_path):
    """Events to come have other keys, deletions too: every one is in one part, whatever the session between."""
    random, create = (
        np.random.default_rng(3),
        "CREATE STREAM {0} (k BIGINT, v BIGINT, op STRING) FROM PARQUET '{1}'",
    )
    orders = {n: np.random.default_rng(i).permutation(500) for i, n in enumerate("ab")}
    told = {}

    def arrive(number, extra=()):
        for name, order in orders.items():
            k = np.concatenate(
                [np.repeat(order, zipf(500, 1.5, 3000)), np.repeat(np.array(extra, np.int64), 4)]
            )
            k = random.permutation(k)
            op = np.where(random.random(len(k)) < 0.2, "d", "i")
            table = pa.table({"k": k, "v": k % 7, "op": op})
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(table, tmp_path / name / f"{number}.parquet")
            told.setdefault(name, []).append(table)

    arrive(0)
    session = Session(spark, catalog=tmp_path / "c", sparse=False)
    for name in "ab":
        session.sql(f"{create.format(name, tmp_path / name)} DELETES WHEN op = 'd'")
    views = (
        "CREATE CONTINUOUS VIEWS w WITH (trigger = 'available now') ("
        "q AS (SELECT COUNT(*) AS n FROM {0} a JOIN {1} b ON a.{2} = b.k),"
        "s AS (SELECT SUM(a.{3}) AS s FROM {0} a JOIN {1} b ON a.{2} = b.k)"
        ") SIZE 96 KB MINIMIZE AVERAGE ERROR PARTITION INTO 3"
    )
    session.sql(views.format("a", "b", "k", "v"))
    explained = str(session.sql("EXPLAIN SKETCHES w"))
    assert "PARTITION INTO 3, planned from the first events: 1 of the domains in parts" in explained
    unseen = [-(2**63), 2**63 - 1, -1, 777]
    arrive(1, unseen)
    session.sql("RESUME w")
    session.close()
    again = Session(spark, catalog=tmp_path / "c", sparse=False)
    arrive(2, unseen)
    again.sql("RESUME w")
    found = continuous(Catalog(tmp_path / "c"))
    counts = {}
    for name in "ab":
        whole = pa.concat_tables(told[name])
        sign = np.where(np.array(whole["op"].to_pylist()) == "d", -1, 1)
        counts[name] = [whole["k"].to_numpy(), sign, whole["v"].to_numpy()]
        state = load(Catalog(tmp_path / "c"), found.streams[name], 1).state
        assert state.batch == 2
        cells = {}
        for synopsis, summary in state.summaries.items():
            if synopsis.attributes:
                assert synopsis.cell, "both views have parts"
                cells.setdefault(replace(synopsis, cell=(), rows=1), {})[synopsis.cell] = summary.built
        for synopsis, parts in cells.items():
            rows = min(len(b.sketch.dense().counters) for b in parts.values())
            total = sum(b.sketch.dense().counters[:rows] for b in parts.values())
            assert np.array_equal(total, counters_by_hand(replace(synopsis, rows=rows), whole))
            assert sum(b.tally.tuples for b in parts.values()) == len(whole)
    (mine, signs, values), (theirs, others, _) = counts["a"], counts["b"]
    net = {}
    for k, s in zip(theirs.tolist(), others.tolist(), strict=True):
        net[k] = net.get(k, 0) + s
    partners = np.array([net.get(k, 0) for k in mine.tolist()])
    for name, truth in (("q", (signs * partners).sum()), ("s", (signs * values * partners).sum())):
        (row,) = again.answer(f"SELECT * FROM {name}").records()
        column = "n" if name == "q" else "s"
        assert row[f"{column}_low"] <= truth <= row[f"{column}_high"]
    again.sql("CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) FROM RATE '' OPTIONS (rowsPerSecond = 1)")
    refused = views.replace(" w ", " x ").replace("q AS", "q1 AS").replace("s AS", "s1 AS")
    with pytest.raises(SkimqlError, match="PARTITION INTO is planned from the first events") as fault:
        again.sql(refused.format("r", "b", "value", "value"))
    assert fault.value.code == "SKIMQL_NO_PILOT"
    assert refused.format("r", "b", "value", "value")[slice(*fault.value.span)] == "PARTITION INTO 3"
    again.close()


def test_of_streams_on_several_keys_the_first_events_tell_the_method(spark, tmp_path):
    random = np.random.default_rng(2)
    own = {n: random.integers(0, 300, (2, 4000)) for n in "abc"}
    session = Session(spark, catalog=tmp_path / "catalog")
    for name, (keys, others) in own.items():
        (tmp_path / name).mkdir()
        lines = [json.dumps({"k": int(k), "j": int(j), "op": "i"}) for k, j in zip(keys, others, strict=True)]
        lines += [line.replace('"i"', '"d"') for line in lines[:1000]]
        (tmp_path / name / "0.json").write_text("\n".join(lines))
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, j BIGINT, op STRING) FROM JSON '{tmp_path / name}' DELETES WHEN op = 'd'"
        )
    select = "SELECT APPROXIMATE COUNT(*) AS n, AVG(b.j) AS m FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.k"
    create = "CREATE CONTINUOUS VIEW {} WITH (trigger = 'available now') AS {}"
    a, b, c = (own[n][:, 1000:] for n in "abc")
    of_a, of_c = (np.bincount(keys, minlength=300) for keys in (a[0], c[0]))
    truth = int(np.sum(of_a[b[0]] * of_c[b[1]]))
    session.sql(create.format("q", f"{select} SIZE 12 KB"))
    session.sql(create.format("x", f"{select} USING sample_sketch SIZE 4 MB"))
    answer = session.answer("SELECT * FROM q")
    (row,) = answer.records()
    assert answer.method == "sample_sketch"
    assert row["n_low"] <= truth <= row["n_high"]
    assert 0 < row["n_high"] - row["n_low"] < 0.5 * truth
    assert session.answer("SELECT * FROM x").records()[0]["n"] == truth
    assert "sample_sketch is taken" in str(session.sql("EXPLAIN SKETCHES q"))
    (told,) = (r for r in session.answer("SHOW QUERIES EXTENDED").records() if r["query"] == "q")
    assert told["predicted"] > 0
    # A stream whose values are no integers has convolution sketches.
    session.sql(create.format("d", f"{select.replace('AVG(b.j)', 'SUM(b.j * 0.5D)')} SIZE 40 KB"))
    assert session.answer("SELECT * FROM d").method == "convolution"
    session.close()
