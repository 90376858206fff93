"""A master and two workers from pip's pyspark; the package on the driver only; a worker killed in the middle.

Run by tests/cluster.sh: it starts processes of its own, and is no part of the suite. Ends with "ok" or a traceback.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from skimql import Session
from skimql.engine.execution.build import add_up, build
from skimql.engine.execution.messages import Messages
from skimql.engine.execution.partial_aggregate import task
from skimql.engine.execution.scan import prepare
from skimql.engine.spark.session import start_spark

CHAIN = "SELECT APPROXIMATE COUNT(*), SUM(a.v) FROM d a JOIN d b ON a.k = b.k JOIN d c ON b.t = c.t"
WAIT_SECONDS = 120
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def main() -> None:
    """Start the cluster, run the checks, end what was started."""
    with tempfile.TemporaryDirectory(prefix="skimql-cluster-") as name:
        scratch = Path(name)
        python = worker_python(scratch)
        processes: list[subprocess.Popen[bytes]] = []
        try:
            master, url = start_master(scratch)
            processes.append(master)
            workers = [start_worker(scratch, url, number) for number in range(2)]
            processes += workers
            wait_for(
                lambda: (scratch / "master.log").read_text().count("Registering worker") == 2, "two workers"
            )
            check(scratch, url, python, workers)
        finally:
            for process in processes:
                end(process)


def check(scratch: Path, url: str, python: Path, workers: list[subprocess.Popen[bytes]]) -> None:
    """The answers of the cluster against numpy, before and while a worker dies."""
    os.environ["PYSPARK_PYTHON"] = str(python)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = start_spark(
        {
            "spark.master": url,
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
        }
    )
    try:
        path = write_table(scratch / "d")
        lacking = spark.range(4).mapInArrow(lacks_the_package, "lacks BOOLEAN").toArrow()["lacks"].to_pylist()
        assert lacking
        assert all(lacking), "this test wants workers that have no skimql of their own"
        for route in ("arrow", "jvm"):
            counters, expected = both(spark, path, route)
            assert counters == expected, route
            print(f"{route}: the counters of the twin", flush=True)
        for route in ("arrow", "jvm"):
            if route == "jvm":
                workers[1] = start_worker(scratch, url, 1)
                time.sleep(5)
            killer = threading.Timer(1.5, kill, [workers[1]])
            killer.start()
            counters, expected = both(spark, path, route, slow=True)
            killer.join()
            assert workers[1].wait(10) != 0, "the worker outlived the build"
            assert counters == expected, route
            print(f"{route}: the same after a worker was killed", flush=True)
    finally:
        spark.stop()
    print("ok")


def lacks_the_package(batches):
    """In a worker: whether it cannot import the package."""
    import importlib.util

    import pyarrow

    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"lacks": [importlib.util.find_spec("skimql") is None]})


def both(spark, path: Path, route: str, *, slow: bool = False):
    """Counters that the cluster builds, and those that numpy makes of the same columns."""
    session = Session(spark, route=route, sparse=False, buckets=256)
    frame = spark.read.parquet(str(path))
    session.table("d", frame.where("length(sha2(repeat(t, 400), 512)) > 0") if slow else frame)
    plan = session.plan(CHAIN).build
    made = [b.sketch.dense().counters.tobytes() for b in build(spark, plan, session.tables)]
    expected, messages = {}, Messages(spark, plan, session.tables)
    for scan in plan.scans:
        prepared = prepare(plan, scan, session.tables.frame(scan.table), messages)
        sent = task(prepared.sketches, prepared.feeds)(iter(prepared.columns.toArrow().to_batches()))
        expected |= add_up(prepared, [row for batch in sent for row in batch.to_pylist()])
    return made, [expected[i].sketch.dense().counters.tobytes() for i in range(len(expected))]


def write_table(folder: Path, files: int = 8, tuples: int = 50_000) -> Path:
    """Parquet files with an integer key, a text key and a value."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(files):
        k = rng.integers(0, 5000, tuples)
        table = pa.table(
            {"k": k, "t": [f"t{x % 700}" for x in k.tolist()], "v": rng.integers(0, 100, tuples)}
        )
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


def worker_python(scratch: Path) -> Path:
    """A Python with the libraries of this one, but without the package."""
    packages = scratch / "packages"
    packages.mkdir()
    for folder in [Path(sysconfig.get_path("purelib")), *pth_folders()]:
        for entry in folder.iterdir():
            if not entry.name.lower().startswith("skimql") and entry.suffix != ".pth":
                (packages / entry.name).exists() or (packages / entry.name).symlink_to(entry)
    python = scratch / "python"
    real = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{real}" "$@"\n')
    python.chmod(0o755)
    return python


def pth_folders() -> list[Path]:
    """Folders that .pth files of this environment add."""
    files = Path(sysconfig.get_path("purelib")).glob("*.pth")
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    return [Path(line) for line in lines if line and not line.startswith("import") and Path(line).is_dir()]


def start_master(scratch: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A master on a free port of loopback, and its URL."""
    log = scratch / "master.log"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    process = spark_class(scratch, "org.apache.spark.deploy.master.Master", arguments, log)
    wait_for(lambda: "Starting Spark master at " in log.read_text(), "the master", log)
    line = next(x for x in log.read_text().splitlines() if "Starting Spark master at " in x)
    return process, line.split("Starting Spark master at ")[1].split()[0]


def start_worker(scratch: Path, url: str, number: int) -> subprocess.Popen[bytes]:
    """A worker of one core."""
    folder = scratch / f"worker-{number}"
    folder.mkdir(exist_ok=True)
    arguments = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
    arguments += ["--work-dir", str(folder), url]
    log = scratch / f"worker-{number}.log"
    return spark_class(scratch, "org.apache.spark.deploy.worker.Worker", arguments, log)


def spark_class(scratch: Path, name: str, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    """A Java process of Spark in a process group of its own, its log in a file."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))
    }
    environment |= {"SPARK_LOCAL_DIRS": str(scratch), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as sink:
        command = [str(SPARK_CLASS), name, *arguments]
        return subprocess.Popen(command, stdout=sink, stderr=sink, env=environment, start_new_session=True)


def kill(worker: subprocess.Popen[bytes]) -> None:
    """The worker and its executors, at once."""
    os.killpg(worker.pid, signal.SIGKILL)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        kill(process)
        process.wait()


def wait_for(condition, what: str, log: Path | None = None) -> None:
    """Poll until something is there."""
    for _ in range(10 * WAIT_SECONDS):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError(f"{what} did not come up\n{log.read_text()[-2000:] if log else ''}")


if __name__ == "__main__":
    main()
