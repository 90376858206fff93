"""Windows of streams on Spark: JSON with rows that do not parse, two streams, one pass."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import Session
from skimql.engine.streams.cell_answer import _values
from skimql.engine.streams.cells import _groups_of
from skimql.parser.join_graph import Group, Span

START = datetime(2026, 3, 29, tzinfo=UTC)


def at(minute):
    return START + timedelta(minutes=minute)


def write(folder, number, rows):
    folder.mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in rows]
    (folder / f"{number:03}.json").write_text("\n".join(lines))
    os.utime(
        folder / f"{number:03}.json", (1_780_000_000 + number,) * 2
    )  # the order in which Spark takes them


def event(k, v, minute, op="i"):
    return {"k": k, "v": v, "ts": None if minute is None else at(minute).isoformat(), "op": op}


def test_windows_on_spark_are_those_of_the_events_that_came_in_time(spark, tmp_path):
    session = Session(spark, catalog=tmp_path / "catalog")
    session.table("hosts", spark.createDataFrame([(1, "x"), (1, "y"), (2, "x")], "ip BIGINT, w STRING"))
    write(
        tmp_path / "a",
        0,
        [event(1, 5, 1), event(2, 7, 6), event(1, 5, 1, "d"), event(3, 1, None), "{nonsense"],
    )
    write(tmp_path / "b", 0, [event(1, 0, 2), event(2, 0, 7), event(2, 0, 11)])
    for name in ("a", "b"):
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP, op STRING) FROM JSON '{tmp_path / name}'"
            " OPTIONS (maxFilesPerTrigger = 1) DELETES WHEN op = 'd'"
        )
    says = "trigger = 'available now', window = '10 minutes', slide = '5 minutes', time = ts, watermark = '5 minutes'"
    session.sql(
        f"CREATE CONTINUOUS VIEW q WITH ({says}, sink = '{tmp_path / 'sink'}') AS"
        " SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM a JOIN hosts h ON a.k = h.ip"
    )
    session.sql(
        f"CREATE CONTINUOUS VIEW p WITH ({says}) AS SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
    )

    def rows(name):
        found = session.sql(f"SELECT * FROM {name}")
        return [(r["window_start"], r["n"], r.get("s")) for r in found.records()], found.notes

    windows, notes = rows("q")
    assert windows == [(at(-5), 0, None), (at(0), 1, 7), (at(5), 1, 7)]
    assert "1 event of a has no ts, and is in no window" in notes
    session.sql(
        f"CREATE CONTINUOUS VIEW r WITH ({says.split(',')[0]}) AS SELECT APPROXIMATE CAST(ts AS DATE) AS day, v % 2 AS odd,"
        " CAST(v AS DECIMAL(5, 1)) AS d, COUNT(*) AS n FROM a GROUP BY 1, 2, 3 HAVING n > 1 ORDER BY n DESC, odd"
    )
    session.sql(
        f"CREATE CONTINUOUS VIEW d WITH ({says.split(',')[0]}) AS SELECT APPROXIMATE COUNT(DISTINCT v) AS n"
        " FROM (SELECT v FROM a EXCEPT SELECT v FROM b)"
    )
    # A view that comes later has the panes of the batches from then on.
    assert [n for _, n, _ in rows("p")[0]] == [0, 0, 0, 0]
    write(tmp_path / "a", 1, [event(2, 9, 8), event(2, 9, 13), event(1, 9, 31)])
    write(tmp_path / "a", 2, [event(2, 9, 8), event(1, 1, 27)])
    write(tmp_path / "b", 1, [event(2, 9, 34), event(2, 9, 10**8)])
    session.sql("RESUME p")
    assert rows("q")[0] == [(at(10), 1, 9), (at(20), 2, 2), (at(25), 4, 20), (at(30), 2, 18)]
    assert "1 event of a came too late for any window that was there, and is in none" in rows("q")[1]
    counts = {-5: 0, 0: 1, 5: 4, 10: 1, 20: 0, 25: 0, 30: 0}
    assert [(start, n) for start, n, _ in rows("p")[0]] == [(at(m), n) for m, n in counts.items()]
    (shown,) = (r for r in session.sql("SHOW QUERIES").records() if r["query"] == "q")
    assert (shown["events"], shown["bad"], shown["late"], shown["dropped"]) == (9, 1, 0, 1)
    told = {r["property"]: r["value"] for r in session.sql("DESCRIBE STREAM a").records()}
    assert any("for every 300 s of ts" in v for n, v in told.items() if n.startswith("sketch"))
    assert session.sql("SELECT * FROM d").records()[0]["n"] == 1
    (both,) = session.sql("SELECT * FROM r").records()
    assert (both["day"], both["odd"], both["d"], both["n"], both["other"]) == (
        START.date(),
        1,
        Decimal("9.0"),
        4,
        False,
    )
    # A wrong clock is put aside.
    (aside,) = (tmp_path / "catalog" / "streams").glob("*/quarantine/batch=1/*.json")
    assert json.loads(aside.read_text())["reason"] == "ts is too far ahead of the others"
    # A row for every window that a batch has closed, in the file of that batch.
    closed = pq.read_table(tmp_path / "sink" / "a-000000000001.parquet").to_pylist()
    assert (closed[0]["window_start"], [r["n"] for r in closed]) == (at(-5), [0, 2, 3, 1, 2, 2])


@pytest.mark.parametrize(
    ("kind", "type", "values"),
    [
        ("bigint", pa.int64(), [3, -3, None]),
        ("boolean", pa.bool_(), [True, False, None]),
        ("string", pa.string(), ["x", "", None, "other", 'a"b']),
        ("double", pa.float64(), [0.1, -0.0, float("inf"), None]),
        ("float", pa.float32(), [0.5, None]),
        ("decimal(5,2)", pa.decimal128(5, 2), [Decimal("1.50"), None]),
        ("date", pa.date32(), [date(2026, 1, 1), date(1, 1, 1), None]),
        ("timestamp", pa.timestamp("us", "UTC"), [START, None]),
        ("timestamp_ntz", pa.timestamp("us"), [datetime(2026, 3, 29, 2, 30), None]),
        ("binary", pa.binary(), [b"\x00\xff", None]),
    ],
)
def test_the_values_of_groups_come_back_in_their_type(kind, type, values):
    group = Group(0, "g", "g", kind, Span(0, 0))
    codes, texts = _groups_of([pa.array(values * 2, type)])
    assert [_values([group], texts[c])[0] for c in codes] == values * 2
    assert len(texts) == len(set(texts)) == len(values)


def test_what_spark_has_as_one_group_is_one():
    nan = float("nan")
    codes, texts = _groups_of([pa.array([0.0, -0.0, nan, -nan, None, 1.0]), pa.array([1, 1, 2, 2, 3, 1])])
    assert (codes[0] == codes[1], codes[2] == codes[3], len(texts)) == (True, True, 4)
