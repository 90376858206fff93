"""Streams whose processes are killed: ``python -m benchmarks.kills --kills 50 --json FILE``.

Two streams with 30 % deletions, from real folders with real checkpoints, joined with one another and with a table. The
process that runs them is killed with ``kill -9`` at random moments (with its JVM or without, or one of Spark's Python
workers alone) and started again until all files are read. Between two starts of every run, once each, a batch that the
state has is made to be delivered again, the newest state is cut off, and the disk is full (where a file system may be
mounted). Then every sketch of both states, as counters, must be bit for bit what numpy makes of the files without
Spark, with every event once, and the sink must have one row for each batch of each stream.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.engine.streams.checkpoint import read_checkpoint, uncommit
from skimql.engine.streams.place import stream_folder
from skimql.engine.streams.store import continuous, load

FILES, ROWS, KEYS = 24, 20_000, 50_000
VIEWS = {
    "pairs": "SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN b ON a.k = b.k",
    "named": "SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN hosts h ON a.k = h.ip WHERE a.v < 50",
}


def write_data(folder: Path, seed: int) -> None:
    """The files of both streams, and the table."""
    numbers = np.random.default_rng(seed)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / f"{name} to come").mkdir()
        for file in range(FILES):
            k = np.minimum(numbers.zipf(1.3, ROWS), KEYS).astype(np.int64)
            v = numbers.integers(0, 100, ROWS)
            op = np.where(numbers.random(ROWS) < 0.3, "d", "i")
            pq.write_table(
                pa.table({"k": k, "v": v, "op": op}), folder / f"{name} to come" / f"{file:03}.parquet"
            )
    hosts = pa.table({"ip": np.arange(1, 2_000, dtype=np.int64) % 500, "w": np.arange(1, 2_000)})
    pq.write_table(hosts, folder / "hosts.parquet")


def child(folder: Path) -> None:
    """Run the streams until all files are read: create what is not there yet, go on with what is."""
    from skimql import Session
    from skimql.engine.spark.session import start_spark

    spark = start_spark(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
            "spark.sql.session.timeZone": "UTC",
        }
    )
    session = Session(spark, catalog=folder / "catalog")
    session.table("hosts", folder / "hosts.parquet")
    for name in ("a", "b"):
        session.sql(
            f"CREATE STREAM IF NOT EXISTS {name} (k BIGINT, v BIGINT, op STRING) FROM PARQUET '{folder / name}'"
            " OPTIONS (maxFilesPerTrigger = 1) DELETES WHEN op = 'd'"
        )
    for view, select in VIEWS.items():
        if view not in continuous(session.catalog).views:
            sink = f", sink = '{folder / 'sink'}'" if view == "pairs" else ""
            session.sql(
                f"CREATE CONTINUOUS VIEW {view} WITH (trigger = '100 milliseconds'{sink}) AS {select}"
            )
        else:
            session.sql(f"RESUME {view}")
    # Every view is there before the first event: none begins in the middle.
    for name in ("a", "b"):
        for file in sorted((folder / f"{name} to come").iterdir()):
            file.rename(folder / name / file.name)
    print("running", flush=True)
    while any(_batch(session.catalog, name) != FILES - 1 for name in ("a", "b")):
        if not all(session._running_streams().of(name) for name in ("a", "b")):
            sys.exit(3)
        time.sleep(0.1)
    session.close()
    spark.stop()


def _batch(catalog: Catalog, name: str) -> int:
    state = continuous(Catalog(catalog.folder)).streams[name].state
    return -1 if state is None or state.batch is None else state.batch


def truth_differs(folder: Path) -> list[str]:
    """What of the final states is not what numpy makes of the files; nothing where all is."""
    catalog = Catalog(folder / "catalog")
    hosts = np.bincount(pq.read_table(folder / "hosts.parquet")["ip"].to_numpy(), minlength=KEYS + 1)
    found = []
    for name in ("a", "b"):
        stream = continuous(catalog).streams[name]
        loaded = load(catalog, stream, 1)
        if loaded.lost:
            found.append(f"{name}: {loaded.lost}")
        rows = pa.concat_tables(pq.read_table(f) for f in sorted((folder / name).iterdir()))
        k, v = rows["k"].to_numpy(), rows["v"].to_numpy()
        sign = np.where(np.asarray(rows["op"].to_pylist()) == "d", -1, 1).astype(np.int64)
        for synopsis, summary in loaded.state.summaries.items():
            weight = {None: sign, "`v`": sign * (1 if synopsis.weight.presence else v)}[
                synopsis.weight.expression
            ]
            inside = v < 50 if synopsis.filter is not None else np.ones(len(v), bool)
            if synopsis.messages:
                weight, inside = weight * hosts[k], inside & (hosts[k] > 0)
            sketch = sketch_plan(synopsis, loaded.state.seed, "int64").empty()
            sketch.update([k[inside]] if synopsis.attributes else [], weight[inside])
            mine, theirs = sketch.dense().counters, summary.built.sketch.dense().counters
            if not np.array_equal(mine, theirs) or summary.since != 0:
                found.append(f"{name}: the counters of {synopsis}")
            tuples = int(inside.sum())
            if summary.built.tally.tuples != tuples:
                found.append(f"{name}: {summary.built.tally.tuples} events for {tuples} in {synopsis}")
    return found + sink_differs(folder)


def sink_differs(folder: Path) -> list[str]:
    """What of the sink is not one row for each batch of each stream."""
    rows = pa.concat_tables(pq.read_table(f) for f in sorted((folder / "sink").glob("*.parquet")))
    there = sorted(zip(rows["stream"].to_pylist(), rows["batch"].to_pylist(), strict=True))
    wanted = [(name, batch) for name in ("a", "b") for batch in range(FILES)]
    return [] if there == wanted else [f"the sink has {there}"]


def deliver_again(folder: Path) -> bool:
    """Take back the commit of a batch that a state has, and the plan of the next one; whether there was one."""
    catalog = Catalog(folder / "catalog")
    for stream in continuous(catalog).streams.values():
        checkpoint = stream_folder(catalog, stream) / "checkpoint"
        found = read_checkpoint(checkpoint)
        have = None if stream.state is None else stream.state.batch
        if have is not None and have == found.committed and found.planned in (have, have + 1):
            for name in (f"{have + 1}", f".{have + 1}.crc"):
                (checkpoint / "offsets" / name).unlink(missing_ok=True)
            uncommit(checkpoint, have)
            return True
    return False


def batches(folder: Path) -> int:
    """How many batches are in the states of both streams."""
    catalog = Catalog(folder / "catalog")
    states = [s.state for s in continuous(catalog).streams.values()]
    return sum(s.batch + 1 for s in states if s is not None and s.batch is not None)


def progressed(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until another batch is in, or the process has ended: what is killed has then done something."""
    before = batches(folder)
    while process.poll() is None and batches(folder) == before:
        time.sleep(0.02)


def cut_off(folder: Path) -> bool:
    """Cut off the newest state of a stream that has one; whether there was one."""
    catalog = Catalog(folder / "catalog")
    for stream in continuous(catalog).streams.values():
        if stream.state is not None:
            file = folder / "catalog" / stream.state.file
            file.write_bytes(file.read_bytes()[:-1])
            return True
    return False


def mounted(folder: Path) -> bool:
    """Give the catalog a file system of its own that is soon full; whether that is allowed here."""
    (folder / "catalog").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder / "catalog")]
    return subprocess.run(command, capture_output=True).returncode == 0


def fill(folder: Path, process: subprocess.Popen[str]) -> bool:
    """Leave no room on the file system of the catalog until the process ends; whether it ended because of it."""
    filler = folder / "catalog" / "filler"
    try:
        with open(filler, "wb", buffering=0) as sink:
            while process.poll() is None:
                try:
                    sink.write(bytes(1 << 12))
                except OSError:
                    time.sleep(0.01)
    finally:
        filler.unlink()
    return process.returncode not in (0, -signal.SIGKILL)


def start(folder: Path) -> subprocess.Popen[str]:
    """A process that runs the streams, in a group of its own."""
    command = [sys.executable, "-m", "benchmarks.kills", "--child", str(folder)]
    return subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def workers_of(group: int) -> list[int]:
    """Spark's Python workers in a group of processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                own = os.getpgid(int(entry.name)) == group or _session(entry) == group
                words = (entry / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            if own and b"pyspark" in words and b"daemon" in words:
                found.append(int(entry.name))
    return found


def _session(entry: Path) -> int:
    return int((entry / "stat").read_text().rpartition(")")[2].split()[3])


def members_of(group: int) -> list[int]:
    """All processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if _session(entry) == group:
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
    return found


def kill(process: subprocess.Popen[str], how: str) -> None:
    """``kill -9`` of the driver and its JVM, of the driver alone, or of a Python worker."""
    targets = {
        "all": members_of(process.pid),
        "driver": [process.pid],
        "worker": workers_of(process.pid)[-1:],
    }
    for target in targets[how]:
        try:
            os.kill(target, signal.SIGKILL)
        except ProcessLookupError:
            continue


def run(folder: Path, kills: int, seed: int, longest: float) -> dict[str, object]:
    """One run with so many kills; the record of it."""
    chance = random.Random(seed)
    write_data(folder, seed)
    done: dict[str, int] = {"all": 0, "driver": 0, "worker": 0}
    started = time.monotonic()
    starts = 0
    faults = {"delivered again": deliver_again, "state cut off": cut_off}
    met: list[str] = []
    small = mounted(folder)
    while True:
        process, starts = start(folder), starts + 1
        assert process.stdout is not None
        process.stdout.readline()
        if small and starts == 1:
            progressed(folder, process)
            if fill(folder, process):
                met.append("disk full")
        while sum(done.values()) < kills and process.poll() is None:
            progressed(folder, process)
            time.sleep(chance.uniform(0.0, longest))
            how = chance.choices(("all", "driver", "worker"), (20, 15, 15))[0]
            if process.poll() is not None:
                break
            kill(process, how)
            done[how] += 1
            if how != "worker":
                break
        process.wait()
        for left in members_of(process.pid):
            os.kill(left, signal.SIGKILL)
        if process.returncode == 0:
            break
        for name, disturb in faults.items():
            if name not in met and disturb(folder):
                met.append(name)
                break
    wrong = truth_differs(folder)
    return {
        "study": "kills",
        "seed": seed,
        "kills": done,
        "met": met,
        "starts": starts,
        "events": 2 * FILES * ROWS,
        "seconds": round(time.monotonic() - started, 1),
        "wrong": wrong,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--a-run", type=int, default=10, help="kills in one run")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds until the next kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=Path)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return
    records = []
    left = options.kills
    while left > 0:
        folder = Path(tempfile.mkdtemp(prefix="skimql-kills-"))
        records.append(run(folder, min(left, options.a_run), options.seed + len(records), options.longest))
        print(records[-1], flush=True)
        left -= min(left, options.a_run)
        if not records[-1]["wrong"]:
            if (folder / "catalog").is_mount():
                subprocess.run(["umount", str(folder / "catalog")], check=True)
            shutil.rmtree(folder)
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1) + "\n")
    if any(r["wrong"] for r in records):
        sys.exit(1)


if __name__ == "__main__":
    main()
