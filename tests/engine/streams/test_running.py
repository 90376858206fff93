"""Streams on Spark: real folders, real checkpoints."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.engine.streams.checkpoint import read_checkpoint, uncommit
from skimql.engine.streams.place import stream_folder
from skimql.engine.streams.store import continuous, load
from skimql.errors import SkimqlError, StreamError

HOSTS = np.arange(20) % 7
KILLED = Path(__file__).parents[2] / "support" / "killed.py"


def write(folder, number, k, v, op):
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": k, "v": v, "op": op}), folder / f"{number:03}.parquet")


def events(seed, rows=300):
    random = np.random.default_rng(seed)
    k, v = random.integers(0, 12, rows), random.integers(0, 90, rows)
    return k, v, np.where(random.random(rows) < 0.3, "d", "i")


def counters(session, name):
    catalog = Catalog(session.catalog.folder)
    state = load(catalog, continuous(catalog).streams[name], 1).state
    return {s: f.built.sketch.dense().counters.tolist() for s, f in state.summaries.items()}


def by_numpy(session, name, k, v, op):
    """The counters of a state, made of its events without Spark."""
    catalog = Catalog(session.catalog.folder)
    state = load(catalog, continuous(catalog).streams[name], 1).state
    hosts = np.bincount(HOSTS, minlength=12)
    sign = np.where(op == "d", -1, 1)
    found = {}
    for synopsis in state.summaries:
        inside = v > 20 if synopsis.filter is not None else np.ones(len(v), bool)
        weight = sign * (v if synopsis.weight.expression and not synopsis.weight.presence else 1)
        if synopsis.messages:
            weight, inside = weight * hosts[k], inside & (hosts[k] > 0)
        sketch = sketch_plan(synopsis, state.seed, "int64").empty()
        sketch.update([k[inside]] if synopsis.attributes else [], weight[inside])
        found[synopsis] = sketch.dense().counters.tolist()
    return found


def test_streams_are_read_once_whatever_happens_between(spark, tmp_path):
    first, second = events(1), events(2)
    write(tmp_path / "a", 0, *first)
    write(tmp_path / "b", 0, *second)
    session = Session(spark, catalog=tmp_path / "catalog")
    session.table("hosts", spark.createDataFrame([(int(ip),) for ip in HOSTS], "ip BIGINT"))
    for name in ("a", "b"):
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, op STRING) FROM PARQUET '{tmp_path / name}' DELETES WHEN op = 'd'"
        )
    now = "WITH (trigger = 'available now')"
    session.sql(
        f"CREATE CONTINUOUS VIEW named {now} AS"
        " SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM a JOIN hosts h ON a.k = h.ip WHERE v > 20"
    )
    assert counters(session, "a") == by_numpy(session, "a", *first)
    # A batch that Spark delivers again is in already.
    checkpoint = stream_folder(session.catalog, continuous(session.catalog).streams["a"]) / "checkpoint"
    uncommit(checkpoint, 0)
    before = counters(session, "a")
    session.sql("RESUME named")
    assert (counters(session, "a"), read_checkpoint(checkpoint).committed) == (before, 0)
    # A second view has what was read before it, from the files, and both go on.
    more = events(3)
    write(tmp_path / "a", 1, *more)
    session.sql(
        f"CREATE CONTINUOUS VIEW pairs {now} AS SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
    )
    both = [np.concatenate(c) for c in zip(first, more, strict=True)]
    whole = by_numpy(session, "a", *both)
    assert counters(session, "a") == whole
    assert counters(session, "b") == by_numpy(session, "b", *second)
    signs = [np.where(e[2] == "d", -1, 1) for e in (both, second)]
    weights = [np.bincount(e[0], s, 12) for e, s in zip((both, second), signs, strict=True)]
    assert session.sql("SELECT * FROM pairs").value == round(float(weights[0] @ weights[1]))
    # The newest state is cut off, and the batch is read again.
    newest = continuous(Catalog(session.catalog.folder)).streams["a"].state.file
    cut = tmp_path / "catalog" / newest
    cut.write_bytes(cut.read_bytes()[:-1])
    before = counters(session, "b")
    session.sql("RESUME named")
    assert counters(session, "a") == whole
    assert counters(session, "b") == before
    # Where a file is gone, a set that comes later counts from the next batch, and says so; what is there it has whole.
    (tmp_path / "a" / "000.parquet").unlink()
    session.sql(
        f"CREATE CONTINUOUS VIEWS w {now} (late AS (SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k WHERE a.v > 50),"
        " early AS (SELECT SUM(v) AS s FROM b)) SIZE 8 KB MINIMIZE MAX ERROR"
    )
    assert session.sql("SELECT * FROM early").value == int((signs[1] * second[1]).sum())
    late = session.sql("SELECT * FROM late")
    assert late.value == 0
    assert "it counts the events of a from batch 2 on: the view was created then" in late.notes
    assert "late" in session.sql("EXPLAIN SKETCHES w").rows[0][0]
    assert [r["query"] for r in session.sql("PAUSE w").records()] == ["early", "late"]
    session.sql("TERMINATE w")
    assert not {"late", "early"} & set(continuous(session.catalog).views)
    assert not continuous(session.catalog).sets
    # A checkpoint that is gone is not begun anew in silence.
    shutil.rmtree(checkpoint)
    with pytest.raises(StreamError, match="the checkpoint is new") as fault:
        session.sql("RESUME named")
    assert fault.value.code == "SKIMQL_CHECKPOINT_MISMATCH"
    session.close()


def test_events_are_counted_once_where_the_process_and_its_jvm_are_killed(tmp_path):
    """Every run is a process with a JVM of its own: none of this run's."""
    parts = {"a": [events(n, 100) for n in range(5)], "b": [events(9, 100)]}
    view = (
        f"CREATE CONTINUOUS VIEW q WITH (trigger = 'available now', sink = '{tmp_path / 'sink'}') AS"
        " SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN b ON a.k = b.k"
    )
    streams = [
        f"CREATE STREAM {name} (k BIGINT, v BIGINT, op STRING) FROM PARQUET '{tmp_path / name}'"
        " OPTIONS (maxFilesPerTrigger = 1) DELETES WHEN op = 'd'"
        for name in parts
    ]

    def run(place, batch, statements=(), between=lambda: None):
        command = [sys.executable, KILLED, tmp_path / "catalog", "q", place, str(batch)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, start_new_session=True, text=True, **pipes)
        for statement in statements:
            process.stdin.write(f"{statement}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{statement}\n"
        between()
        _, told = process.communicate(timeout=300)
        assert process.returncode == (0 if place == "nowhere" else -signal.SIGKILL), told

    def fill():
        for name, files in parts.items():
            for number, own in enumerate(files):
                write(tmp_path / name, number, *own)

    for name in parts:
        (tmp_path / name).mkdir()
    # Batch 1 is delivered again, batch 2 too though the state has it, and the next start goes on behind batch 3.
    run("built", 1, [*streams, view], fill)
    run("saved", 2)
    run("committed", 3)
    run("nowhere", 0)
    session = Session(catalog=tmp_path / "catalog")
    for name, files in parts.items():
        whole = [np.concatenate(c) for c in zip(*files, strict=True)]
        assert counters(session, name) == by_numpy(session, name, *whole)
    told = pq.read_table(tmp_path / "sink").select(["stream", "batch"]).to_pylist()
    assert sorted((r["stream"], r["batch"]) for r in told) == [*(("a", n) for n in range(5)), ("b", 0)]
    session.close()


def test_rows_that_cannot_be_read_are_counted_and_shown(spark, tmp_path):
    (tmp_path / "in").mkdir()
    rows = [json.dumps({"k": n % 3, "w": 2 - n % 2 * 3}) for n in range(10)]
    (tmp_path / "in" / "0.json").write_text("\n".join([*rows, "{no", '{"k": "x", "w": 1}']) + "\n")
    session = Session(spark, catalog=tmp_path / "catalog")
    session.sql(f"CREATE STREAM s (k BIGINT, w INT) FROM JSON '{tmp_path / 'in'}' WEIGHT w")
    session.sql(
        "CREATE CONTINUOUS VIEW q WITH (trigger = 'available now') AS SELECT APPROXIMATE COUNT(*) AS n FROM s"
    )
    assert session.sql("SELECT * FROM q").value == 5 * 2 - 5
    (row,) = session.sql("SHOW QUERIES").records()
    assert (row["events"], row["deletions"], row["bad"]) == (10, 5, 2)
    folder = stream_folder(session.catalog, continuous(session.catalog).streams["s"])
    (found,) = (folder / "quarantine" / "batch=0").glob("*.json")
    kept = [json.loads(line) for line in found.read_text().splitlines()]
    assert sorted(r["row"] for r in kept) == ['{"k": "x", "w": 1}', "{no"]
    assert all(r["file"].endswith("0.json") for r in kept)
    # Which rows of a CSV file there are does not depend on the columns that a view needs.
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "0.csv").write_text("1,10,a\n2,abc,b\n1,7\n3,5,c,extra\nxyz,1,d\n")
    session.sql(f"CREATE STREAM c (id INT, amt INT, tag STRING) FROM CSV '{tmp_path / 'csv'}'")
    session.sql(
        "CREATE CONTINUOUS VIEW p WITH (trigger = 'available now') AS SELECT APPROXIMATE COUNT(*) AS n FROM c"
    )
    assert session.sql("SELECT * FROM p").value == 1
    assert session.sql("SHOW QUERIES").records()[0]["bad"] == 4
    # A header says which column is which, or the stream stops.
    (tmp_path / "csv" / "0.csv").unlink()
    (tmp_path / "csv" / "0.csv").write_text("amt,id,tag\n10,1,a\n")
    session.sql("TERMINATE p")
    session.sql(
        f"CREATE OR REPLACE STREAM c (id INT, amt INT, tag STRING) FROM CSV '{tmp_path / 'csv'}' OPTIONS (header = true)"
    )
    with pytest.raises(SkimqlError, match="CSV header does not conform to the schema"):
        session.sql(
            "CREATE CONTINUOUS VIEW p WITH (trigger = 'available now') AS SELECT APPROXIMATE SUM(amt) AS n FROM c"
        )
    # Nor is a column that a file lacks taken for NULL, or one of another type told by the classes of a reader.
    for column, said in ((None, "has no column v"), (pa.array(["x"]), "has v as string")):
        (tmp_path / "p" / str(said)).mkdir(parents=True)
        columns = {"k": [1], **({} if column is None else {"v": column})}
        pq.write_table(pa.table(columns), tmp_path / "p" / said / "0.parquet")
        session.sql(f"CREATE OR REPLACE STREAM d (k BIGINT, v BIGINT) FROM PARQUET '{tmp_path / 'p' / said}'")
        with pytest.raises(StreamError, match=said) as fault:
            session.sql(
                "CREATE CONTINUOUS VIEW r WITH (trigger = 'available now') AS SELECT APPROXIMATE SUM(v) FROM d"
            )
        assert fault.value.code == "SKIMQL_STREAM_TYPE"
        session.sql("DROP STREAM d")
    # Who wants to stop there is stopped, with the state before.
    (tmp_path / "in" / "1.json").write_text("{no\n")
    with pytest.raises(StreamError, match="batch 1 of stream s has 1 rows that cannot be read") as fault:
        session.sql(
            "CREATE OR REPLACE CONTINUOUS VIEW q WITH (trigger = 'available now', bad_rows = 'fail') AS"
            " SELECT APPROXIMATE COUNT(*) AS n FROM s"
        )
    assert fault.value.code == "SKIMQL_BAD_ROWS"
    row = session.sql("SHOW STREAMS").records()[1]
    assert (row["state"], row["batch"], row["events"]) == ("failed", 0, 10)
    assert continuous(session.catalog).views["q"].settings == {"trigger": "available now"}
    session.close()


def test_tables_are_read_again_when_the_view_is_refreshed(spark, tmp_path):
    write(tmp_path / "a", 0, np.array([1, 1, 2]), np.array([5, 6, 7]), np.array(["i"] * 3))
    hosts = tmp_path / "hosts.parquet"
    pq.write_table(pa.table({"ip": [1]}), hosts)
    session = Session(spark, catalog=tmp_path / "catalog")
    session.table("hosts", hosts)
    session.sql(f"CREATE STREAM a (k BIGINT, v BIGINT, op STRING) FROM PARQUET '{tmp_path / 'a'}'")
    session.sql(
        "CREATE CONTINUOUS VIEW q WITH (trigger = 'available now') AS"
        " SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN hosts h ON a.k = h.ip"
    )
    assert session.sql("SELECT * FROM q").value == 2
    pq.write_table(pa.table({"ip": [1, 2, 2]}), hosts)
    write(tmp_path / "a", 1, np.array([2]), np.array([5]), np.array(["i"]))
    with pytest.raises(StreamError, match="REFRESH the view") as fault:
        session.sql("RESUME q")
    assert fault.value.code == "SKIMQL_STATIC_CHANGED"
    heard = []
    session.view("q").on_batch(lambda answer: heard.append(answer.value))
    session.sql("REFRESH q")
    session.sql("RESUME q")
    assert heard[-1:] == [2 + 2]
    assert session.sql("SELECT * FROM q").value == 2 + 2
    session.close()


def test_a_stream_runs_in_one_process_and_until_it_is_stopped(spark, tmp_path):
    session = Session(spark, catalog=tmp_path / "catalog")
    rate = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    session.stream("r", rate, weight="value % 2")
    session.sql("CREATE CONTINUOUS VIEW q AS SELECT APPROXIMATE COUNT(*) AS n FROM r")
    assert session.sql("SHOW QUERIES").records()[0]["state"] == "running"
    other = Session(spark, catalog=tmp_path / "catalog")
    for text in (
        "PAUSE q",
        "TERMINATE q",
        "RESUME q",
        "CREATE CONTINUOUS VIEW p AS SELECT APPROXIMATE COUNT(*) FROM r",
    ):
        with pytest.raises(
            StreamError, match=r"another process runs stream r \(process \d+ on .*, since 2"
        ) as fault:
            other.sql(text)
        assert fault.value.code == "SKIMQL_STREAM_RUNS"
    assert session.sql("PAUSE q").records()[0]["state"] == "paused"
    with pytest.raises(StreamError, match="a DataFrame that this session does not have") as fault:
        other.sql("RESUME q")
    assert fault.value.code == "SKIMQL_STREAM_FRAME"
    with pytest.raises(SkimqlError, match="stream of other columns or signs r already"):
        other.stream("r", rate)
    with pytest.raises(StreamError, match="does not stream"):
        other.stream("r", spark.range(3))
    assert not spark.streams.active
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(StreamError, match=r"other settings of Spark: spark.sql.ansi.enabled") as fault:
            session.sql("RESUME q")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert fault.value.code == "SKIMQL_STREAM_SETTINGS"
    session.sql("RESUME q")
    session.close()
    assert not spark.streams.active
