"""Change records: which rows they insert and delete, and when that cannot be said."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.continuous import MemorySpark, asked, declared, stream_of

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.changes import REASON, columns_needed, refusal, rows, times, updates
from skimql.engine.streams.state import BAD_ROW, events
from skimql.engine.streams.store import continuous
from skimql.errors import DataError, StreamError
from skimql.optimizer.plan import Attribute, Message, Synopsis, Weight

STREAM = replace(stream_of("s", "id BIGINT, v DOUBLE, t STRING", format="json"), changes="debezium")
FEED = replace(stream_of("f", "id BIGINT, _change_type STRING"), changes="delta")
UNSENT = "__debezium_unavailable_value"

# An event, and its rows: id, v, sign, and what a view of `v` makes of it.
EVENTS = [
    ({"op": "c", "before": None, "after": {"id": 1, "v": 2.5, "t": "x"}}, [(1, 2.5, 1)]),
    ({"op": "r", "before": None, "after": {"id": 1, "v": None}}, [(1, None, 1)]),
    ({"op": "u", "before": {"id": 1, "v": 1, "t": "q"}, "after": {"id": 1, "v": 2, "t": UNSENT}}, [(1, 1.0, -1), (1, 2.0, 1)]),
    ({"op": "d", "before": {"id": 1, "v": None, "t": None}, "after": None}, [(1, None, -1)]),
    ({"schema": {}, "payload": {"op": "c", "before": None, "after": {"id": 7, "v": 1}}}, [(7, 1.0, 1)]),
    ({"schema": None, "payload": None}, []),
    (None, []),
    ("", []),
    ({"op": "m"}, []),
    ({"op": "d", "before": {"id": 1}, "after": None}, "SKIMQL_NO_BEFORE_IMAGE: v is not in"),
    ({"op": "u", "before": None, "after": {"id": 1, "v": 2}}, "SKIMQL_NO_BEFORE_IMAGE: v is not in"),
    ({"op": "u", "before": {"id": 1, "v": 2}, "after": {"id": 1}}, "SKIMQL_NO_BEFORE_IMAGE: v is not in"),
    ({"op": "u", "before": {"id": 1, "v": 2}, "after": None}, "SKIMQL_BAD_CHANGE: op u without the row after it"),
    ({"op": "t"}, "SKIMQL_BAD_CHANGE: truncate"),
    ({"op": "z"}, "SKIMQL_BAD_CHANGE: op z"),
    ({"id": 1, "v": 2}, "no change record"),
    ([1], "no JSON object"),
    ("torn {", "no JSON object"),
    ({"op": "c", "after": {"id": "x"}}, "no JSON object"),
    ({"op": "c", "after": [1]}, "no JSON object"),
]  # fmt: skip


def text_of(event):
    return event if isinstance(event, str) else json.dumps(event)


def test_an_envelope_is_the_rows_it_deletes_and_inserts(spark):
    told = times(STREAM, frozenset(["v"])).replace("raise_error", "concat")  # what is raised is shown here
    told = told.replace("AS BIGINT)", "AS STRING)").replace(
        "ELSE `skimql sign`", "ELSE CAST(`skimql sign` AS STRING)"
    )
    frame = spark.createDataFrame(
        [(str(n), text_of(e)) for n, (e, _) in enumerate(EVENTS)], "`skimql file` STRING, value STRING"
    )
    found = {}
    for row in rows(STREAM, frame).selectExpr("*", f"{told} AS told").collect():
        found.setdefault(int(row["skimql file"]), []).append(row)
    for number, (event, wanted) in enumerate(EVENTS):
        own = found.get(number, [])
        if isinstance(wanted, list):
            assert [(r["id"], r["v"], int(r["told"])) for r in own] == wanted, event
            assert all(r[BAD_ROW] is None for r in own)
        elif wanted.startswith("SKIMQL"):
            assert own[0]["told"].startswith(wanted), event
            assert text_of(event)[:20] in own[0]["told"]
        else:
            assert (own[0][BAD_ROW], own[0]["skimql sign"]) == (text_of(event), 0), event
            assert wanted in own[0][REASON]


def test_images_of_typed_columns_are_rows_too(spark):
    image = "STRUCT<id: BIGINT, v: DOUBLE, t: STRING>"
    given = [
        ("c", None, (1, 2.0, "x")),
        ("u", None, (1, 2.0, "x")),
        ("d", (1, 2.0, "x"), None),
        (None, None, None),
    ]
    frame = spark.createDataFrame(given, f"op STRING, before {image}, after {image}")
    stream = replace(STREAM, format="parquet")
    # What sketches do not need of the image before, no one misses.
    found = rows(stream, frame).selectExpr(
        "id", "size(`skimql missing`) AS lacking", f"{times(stream, frozenset())} AS n"
    )
    assert [tuple(r) for r in found.collect()] == [(1, 0, 1), (None, 3, -1), (1, 0, 1), (1, 0, -1)]


def test_what_sketches_need_of_a_stream_are_the_columns_in_them():
    key = Attribute(("`id`", "lower(`a`.`b`)"), ("bigint", "string"), "id")
    message = Message(
        "hosts",
        "`w` > 1",
        Attribute(("`far`",), ("bigint",), "far"),
        Attribute(("`ip`",), ("bigint",), "far"),
        Weight("`x`"),
    )
    synopsis = Synopsis("s", "`T` IS NULL", (key,), Weight("`v` + 1"), "hash", 7, 64, messages=(message,))
    assert columns_needed([synopsis, events("s")]) == {"id", "a", "far", "t", "v"}


def test_a_fault_of_a_scan_names_the_event_and_the_setting_of_the_source():
    fault = DataError('scan of s failed: SKIMQL_NO_BEFORE_IMAGE: v is not in {"op":"d"} SQLSTATE: P0001')
    error = refusal(STREAM, 3, fault)
    assert (error.code, '{"op":"d"}' in error.message, "batch 3" in error.message) == (
        "SKIMQL_NO_BEFORE_IMAGE",
        True,
        True,
    )
    assert "REPLICA IDENTITY FULL" in error.hint
    assert refusal(STREAM, 3, DataError("SKIMQL_BAD_CHANGE: op z: {}")).code == "SKIMQL_BAD_CHANGE"
    assert refusal(STREAM, 3, DataError("division by zero")) is None
    assert refusal(replace(STREAM, changes=""), 3, fault) is None


def test_a_feed_without_the_images_before_updates_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "skimql.engine.streams.changes.times",
        lambda *_: "IF(`_change_type` IN ('insert', 'update_postimage'), 1, -1)",
    )
    catalog = declared(Catalog(tmp_path / "c"), [FEED], {"q": "SELECT APPROXIMATE COUNT(*) AS n FROM f"})
    whole = pa.table({"id": [1, 1, 1], "_change_type": ["insert", "update_preimage", "update_postimage"]})
    spark = MemorySpark(catalog, "f", tmp_path / "checkpoint")
    spark.run([whole])
    assert asked(catalog, "q").records()[0]["n"] == 1
    with pytest.raises(StreamError, match="1 updates have an update_postimage alone") as fault:
        spark.run([whole, whole.slice(2)])
    assert (fault.value.code, "delta.enableChangeDataFeed" in fault.value.hint) == (
        "SKIMQL_NO_BEFORE_IMAGE",
        True,
    )
    assert asked(catalog, "q").records()[0]["n"] == 1
    assert updates(STREAM) is None


def test_the_change_feed_of_a_delta_table_ends_where_the_table_does(spark, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    place, feed = str(tmp_path / "t"), tmp_path / "feed"
    first = pa.table({"id": pa.array(range(8), pa.int64()), "v": pa.array([10] * 8, pa.int64())})
    deltalake.write_deltalake(place, first, configuration={"delta.enableChangeDataFeed": "true"})
    table = deltalake.DeltaTable(place)
    table.update(updates={"v": "v + 10"}, predicate="id < 3")
    table.delete("id >= 6")
    deltalake.write_deltalake(
        place, pa.table({"id": pa.array([9], pa.int64()), "v": pa.array([5], pa.int64())}), mode="append"
    )
    table = deltalake.DeltaTable(place)
    changed = pa.table(table.load_cdf(starting_version=0))
    assert set(changed["_change_type"].to_pylist()) == {
        "insert",
        "delete",
        "update_preimage",
        "update_postimage",
    }
    feed.mkdir()
    pq.write_table(changed, feed / "0.parquet")
    session = Session(spark, catalog=tmp_path / "catalog")
    with pytest.raises(StreamError, match="a table of Delta") as fault:
        session.sql(f"CREATE STREAM t (id BIGINT, v BIGINT) FROM PARQUET '{place}'")
    assert fault.value.code == "SKIMQL_STREAM_OF_TABLE"
    session.sql(f"CREATE STREAM t (id BIGINT, v BIGINT) FROM PARQUET '{feed}' CHANGES DELTA")
    session.sql(
        "CREATE CONTINUOUS VIEW q WITH (trigger = 'available now') AS"
        " SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM t"
    )
    (row,) = session.sql("SELECT * FROM q").records()
    now = pa.table(table.to_pyarrow_table()) if hasattr(table, "to_pyarrow_table") else changed
    assert (row["n"], row["s"]) == (now.num_rows, sum(now["v"].to_pylist())) == (7, 3 * 20 + 3 * 10 + 5)
    session.close()


def test_a_stream_of_envelopes_stops_before_a_change_that_says_too_little(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()

    def write(number, *events):
        (folder / f"{number}.json").write_text("".join(text_of(e) + "\n" for e in events))

    row = {"id": 1, "v": 10}
    write(0, {"op": "r", "before": None, "after": row}, {"payload": {"op": "c", "before": None, "after": {"id": 2, "v": 7}}},
          {"op": "u", "before": row, "after": {"id": 1, "v": 20}}, None, "{torn", {"id": 5, "v": 5})  # fmt: skip
    session = Session(spark, catalog=tmp_path / "catalog")
    session.sql(f"CREATE STREAM s (id BIGINT, v BIGINT) FROM JSON '{folder}' CHANGES DEBEZIUM")
    now = "WITH (trigger = 'available now')"
    session.sql(f"CREATE CONTINUOUS VIEW q {now} AS SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM s")
    (found,) = session.sql("SELECT * FROM q").records()
    assert (found["n"], found["s"]) == (2, 27)
    (told,) = session.sql("SHOW STREAMS").records()
    assert (told["signs"], told["events"], told["deletions"], told["bad"]) == ("CHANGES DEBEZIUM", 4, 1, 2)
    (kept,) = (tmp_path / "catalog").glob("streams/*/quarantine/batch=0/rows.json")
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert sorted((r["row"], r["reason"][:16]) for r in lines) == [
        ('{"id": 5, "v": 5}', "no change record"),
        ("{torn", "the event is no "),
    ]
    write(1, {"op": "d", "before": {"id": 2}, "after": None}, {"op": "c", "before": None, "after": row})
    with pytest.raises(
        StreamError, match=r"batch 1 of stream s, v is not in .*\"id\": 2.*1\.json\)"
    ) as fault:
        session.sql("RESUME q")
    assert fault.value.code == "SKIMQL_NO_BEFORE_IMAGE"
    assert session.sql("SELECT * FROM q").records()[0]["n"] == 2
    # Who counts by the key alone needs no more than the key.
    session.sql("TERMINATE q")
    session.sql(f"CREATE CONTINUOUS VIEW p {now} AS SELECT APPROXIMATE COUNT(id) AS n FROM s WHERE id > 0")
    assert session.sql("SELECT * FROM p").records()[0]["n"] == 0
    assert continuous(session.catalog).streams["s"].fault == ""
    session.close()
