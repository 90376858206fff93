"""What any process is told of streams and views, from the catalog alone."""

from __future__ import annotations

from support.continuous import MemorySpark, declared, stream_of
from support.memory import arrow

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.spark.own import OwnSpark
from skimql.engine.streams.describe import describe_stream, show_queries, show_streams
from skimql.engine.streams.store import continuous

SCHEMA = "k BIGINT, op STRING"


def test_any_process_is_told_without_spark(tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", SCHEMA, "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END")],
        {
            "q": "SELECT APPROXIMATE COUNT(*) AS n FROM s",
            "empty": "SELECT APPROXIMATE COUNT(*) FROM s WHERE k > 9",
        },
    )
    rows = [(1, "i"), (2, "i"), (1, "d")]
    MemorySpark(catalog, "s", tmp_path / "checkpoint").run([arrow(SCHEMA, rows), arrow(SCHEMA, rows[:1])])
    session = Session(catalog=tmp_path / "c")
    (row,) = session.sql("SELECT * FROM q").records()
    came = row.pop("as_of")
    assert row == {
        **{"n": 2, "n_low": 2.0, "n_high": 2.0, "confidence": 1.0, "certified": True},
        "as_of_batch": 1,
    }
    assert session.sql("select * from `Q`;").value == 2
    shown = {r["query"]: r for r in session.sql("SHOW QUERIES").records()}
    assert {n: shown["q"][n] for n in ("streams", "state", "events", "deletions", "bad", "batch")} == {
        "streams": "s",
        "state": "stopped",
        "events": 4,
        "deletions": 1,
        "bad": 0,
        "batch": "1",
    }
    (wide,) = [r for r in session.sql("SHOW QUERIES EXTENDED").records() if r["query"] == "q"]
    assert (wide["value"], wide["half_width"], wide["predicted"], wide["fault"]) == (2.0, 0.0, 0.0, "")
    assert wide["method"] == "total"
    assert came.isoformat(timespec="milliseconds").replace("+00:00", "Z") == wide["updated"]
    assert 0 <= wide["lag"] < 600
    # One event in the last batch, as long after the one before it as the two states say.
    assert wide["events_per_second"] is None or wide["events_per_second"] > 0
    (row,) = session.sql("SHOW STREAMS").records()
    assert (row["stream"], row["batch"], row["events"], row["bytes"] > 0) == ("s", 1, 4, True)
    told = {r["property"]: r["value"] for r in session.sql("DESCRIBE STREAM s").records()}
    assert (told["columns"], told["views"], told["fault"]) == ("k bigint, op string", "empty, q", "")


def test_which_views_share_a_sketch_is_told(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("a", SCHEMA), stream_of("b", SCHEMA)],
        {
            "q": "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k",
            "r": "SELECT APPROXIMATE SUM(a.k) FROM a JOIN b ON a.k = b.k WHERE a.op = 'i'",
        },
    )
    MemorySpark(catalog, "b", tmp_path / "checkpoint").run([arrow(SCHEMA, [(1, "i")])])
    sketches = {
        name: [
            r[1] for r in describe_stream(catalog, continuous(catalog).streams[name]).rows if "sketch" in r[0]
        ]
        for name in ("a", "b")
    }
    assert sketches == {
        "a": [
            "hash by `k`: q",
            "hash by `k` of SUM(`k`) WHERE `op` = 'i': r",
            "hash by `k` of COUNT(`k`) WHERE `op` = 'i': r",
        ],
        "b": ["hash by `k` (exact, 16 bytes): q, r"],
    }


def test_a_stream_that_failed_says_why_and_a_catalog_without_any_is_empty(tmp_path):
    assert len(show_streams(Catalog(tmp_path / "none"))) == len(show_queries(Catalog(tmp_path / "none"))) == 0
    catalog = declared(
        Catalog(tmp_path / "c"), [stream_of("s", SCHEMA)], {"q": "SELECT APPROXIMATE COUNT(*) FROM s"}
    )
    from skimql.engine.streams.store import tell_fault

    tell_fault(catalog, continuous(catalog).streams["s"], "no more")
    assert show_streams(catalog).records()[0]["state"] == "failed"
    assert show_queries(catalog).records()[0]["state"] == "failed"
    assert ("fault", "no more") in describe_stream(catalog, continuous(catalog).streams["s"]).rows
