"""Streams under load: ``python -m benchmarks.stream_load --json FILE [--studies exact memory latency]``.

``exact``: a windowed join of two streams and its count, as a view and by Spark's own Structured Streaming (RocksDB
state, `StreamingQueryProgress` tells its bytes), and a view beside ``groupBy(key).count()`` in update mode; one after
the other on the same files. Keys are flat here: an exact join of Zipf keys puts out more rows than any machine has time
for.

``memory``: resident memory of driver, JVM and Python workers, and the bytes of the states, batch by batch, of two
streams with Zipf keys and deletions (`--events` in all).

``latency``: files arrive at a steady rate; how long until an answer has them, what ``SELECT * FROM q`` takes meanwhile,
and what batches take while the view is read 20 times a second and while it is not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from skimql import Session
from skimql.engine.spark.session import start_spark
from skimql.engine.streams.store import continuous

from .cpu import Spent, measured
from .streams import write_events

Record = dict[str, Any]
NAMES = ("a", "b")
FLAT_KEYS = 1_000_000
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
START = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1e6)
HOUR = 3_600_000_000
# Until then Spark compiles what it runs: a stream that goes on is measured.
WARM_SECONDS = 15.0


def spark_of(more: dict[str, str] | None = None) -> Any:
    """A session as the README's."""
    return start_spark(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "3g",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
            **(more or {}),
        }
    )


# --- beside Spark's own


def write_timed(folder: Path, events: int, batch: int) -> None:
    """Files of flat keys with times, an hour's for each batch."""
    random = np.random.default_rng(2)
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for number in range(events // batch):
            times = START + number * HOUR + np.sort(random.integers(0, HOUR, batch))
            table = pa.table(
                {
                    "k": random.integers(0, FLAT_KEYS, batch),
                    "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                }
            )
            pq.write_table(table, folder / name / f"{number:04}.parquet")


def view_of(spark: Any, folder: Path, catalog: Path, text: str, options: str = "") -> tuple[Spent, int]:
    """What it takes a view to read what is there, and the bytes of its states."""
    session = Session(spark, catalog=catalog)
    held = {n: (folder / n).rename(folder / f"held {n}") for n in NAMES}
    for name, files in held.items():
        (folder / name).mkdir()
        columns = ", ".join(f"{c} {t}" for c, t in columns_of(files))
        session.sql(
            f"CREATE STREAM {name} ({columns}) FROM PARQUET '{folder / name}' OPTIONS (maxFilesPerTrigger = 1)"
        )
    session.sql(f"CREATE CONTINUOUS VIEW q WITH (trigger = 'available now'{options}) AS {text}")
    for name, files in held.items():
        (folder / name).rmdir()
        files.rename(folder / name)
    spent = measured(lambda: session.sql("RESUME q"))
    found = session.answer("SHOW QUERIES").records()[0]["bytes"]
    session.close()
    return spent, int(found)


def columns_of(folder: Path) -> list[tuple[str, str]]:
    """Names and types of the columns of a folder's files."""
    schema = pq.read_schema(next(iter(sorted(folder.glob("*.parquet")))))
    kinds = {"int64": "BIGINT", "string": "STRING", "large_string": "STRING"}
    return [(f.name, kinds.get(str(f.type), "TIMESTAMP")) for f in schema]


def streamed_exactly(
    spark: Any, folder: Path, frame: Callable[[dict[str, Any]], Any], mode: str
) -> tuple[Spent, int]:
    """What Spark's own query over the same files takes, and the most bytes of state that its progress tells."""
    frames = {}
    for name in NAMES:
        ddl = ", ".join(f"{c} {t}" for c, t in columns_of(folder / name))
        frames[name] = (
            spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        )
    checkpoint = tempfile.mkdtemp(prefix="skimql-checkpoint-")
    most = 0

    def run() -> None:
        nonlocal most
        query = (
            frame(frames)
            .writeStream.outputMode(mode)
            .format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for progress in query.recentProgress:
            told = json.loads(progress.json) if hasattr(progress, "json") else progress
            most = max(most, sum(bytes_told(o) for o in told["stateOperators"]))

    return measured(run), most


def bytes_told(operator: dict[str, Any]) -> int:
    """Bytes of a stateful operator: on disk where RocksDB tells them, else in memory."""
    custom = operator.get("customMetrics", {})
    return max(int(custom.get("rocksdbSstFileSize", 0)), int(operator.get("memoryUsedBytes", 0)))


def exact(options: argparse.Namespace) -> Iterator[Record]:
    """A view beside Spark's own streaming."""
    spark = spark_of({"spark.sql.streaming.stateStore.providerClass": ROCKS})
    root = Path(tempfile.mkdtemp(prefix="skimql-load-"))
    write_timed(root / "warm", 8 * 20_000, 20_000)
    write_timed(root / "all", options.events // 2, options.batch)
    joined = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
    windows = ", window = '1 hour', time = ts, watermark = '10 minutes'"

    def windowed(frames: dict[str, Any]) -> Any:
        from pyspark.sql import functions as F

        sides = {
            n: f.withWatermark("ts", "10 minutes").select(
                F.col("k").alias(f"k{n}"),
                F.window("ts", "1 hour").alias(f"w{n}"),
                F.col("ts").alias(f"ts{n}"),
            )
            for n, f in frames.items()
        }
        pairs = sides["a"].join(sides["b"], F.expr("ka = kb AND wa = wb"))
        return pairs.groupBy("wa").count()

    def by_key(frames: dict[str, Any]) -> Any:
        return frames["a"].groupBy("k").count()

    for study, text, own, mode, streams in (
        ("windowed join", joined, windowed, "append", 2),
        ("count by key", joined, by_key, "update", 1),
    ):
        more = windows if study == "windowed join" else ""
        for place in ("warm", "all"):
            ours = view_of(spark, root / place, root / f"{study} {place}", text, more)
            theirs = streamed_exactly(spark, root / place, own, mode)
        events = options.events
        # Spark's count reads one stream, the view two.
        exactly = events * streams / 2
        yield {
            "study": study,
            "events": events,
            "events_per_s": round(events / ours[0].wall_s),
            "exact_events_per_s": round(exactly / theirs[0].wall_s),
            "faster": round(events / ours[0].wall_s / (exactly / theirs[0].wall_s), 2),
            "cpu_us_an_event": round(1e6 * ours[0].cpu_s / events, 3),
            "exact_cpu_us_an_event": round(1e6 * theirs[0].cpu_s / exactly, 3),
            "state_bytes": ours[1],
            "exact_state_bytes": theirs[1],
        }
    spark.stop()


# --- memory


def memory(options: argparse.Namespace) -> Iterator[Record]:
    """Resident memory from batch to batch."""
    spark = spark_of()
    root = Path(tempfile.mkdtemp(prefix="skimql-load-"))
    write_events(root, options.events // 2, options.batch, "parquet")
    session = Session(spark, catalog=root / "catalog")
    columns = "k BIGINT, g BIGINT, v BIGINT, op STRING"
    for name in NAMES:
        session.sql(
            f"CREATE STREAM {name} ({columns}) FROM PARQUET '{root / name}' OPTIONS (maxFilesPerTrigger = 1)"
            " DELETES WHEN op = 'd'"
        )
    looks: list[tuple[int, dict[str, int], int]] = []

    def look(_: Any) -> None:
        found = continuous(session.catalog)
        done = sum(
            0 if s.state is None else (s.state.batch + 1) * options.batch for s in found.streams.values()
        )
        size = session.answer("SHOW QUERIES").records()[0]["bytes"]
        looks.append((done, resident(), int(size)))

    text = "SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN b ON a.k = b.k"
    session.sql(f"CREATE CONTINUOUS VIEW q WITH (trigger = '0 seconds') AS {text}")
    session.view("q").on_batch(look)
    while not looks or looks[-1][0] < options.events:
        time.sleep(0.5)
    session.close()
    spark.stop()
    from_then = [x for x in looks if x[0] >= min(10_000_000, options.events // 4)]
    for part in ("driver", "jvm", "workers", "all", "state"):
        sizes = [x[2] if part == "state" else x[1][part] for x in from_then]
        yield {
            "study": "memory",
            "part": part,
            "events": options.events,
            "first_mb": round(sizes[0] / 2**20, 2),
            "least_mb": round(min(sizes) / 2**20, 2),
            "most_mb": round(max(sizes) / 2**20, 2),
            "growth": round(statistics.median(sizes[-5:]) / statistics.median(sizes[:5]) - 1, 4),
        }


def resident() -> dict[str, int]:
    """Bytes of memory of this process, its JVM, and Spark's Python workers."""
    own = psutil.Process()
    found = {"driver": own.memory_info().rss, "jvm": 0, "workers": 0}
    for child in own.children(recursive=True):
        try:
            size, name = child.memory_info().rss, child.name()
        except psutil.Error:
            continue
        found["jvm" if "java" in name else "workers"] += size
    return {**found, "all": sum(found.values())}


# --- latency


def latency(options: argparse.Namespace) -> Iterator[Record]:
    """From a file's arrival to an answer that has it."""
    spark = spark_of()
    root = Path(tempfile.mkdtemp(prefix="skimql-load-"))
    (root / "a").mkdir()
    each, pause = options.rate // 4, 0.25
    random = np.random.default_rng(3)
    table = pa.table({"k": random.integers(0, FLAT_KEYS, each), "v": random.integers(0, 100, each)})
    arrived: list[float] = []
    over = threading.Event()

    def arrive() -> None:
        began = time.monotonic()
        for number in range(int(options.seconds / pause)):
            time.sleep(max(0.0, began + number * pause - time.monotonic()))
            pq.write_table(table, root / "a" / f".{number}.parquet")
            (root / "a" / f".{number}.parquet").rename(root / "a" / f"{number:06}.parquet")
            arrived.append(time.monotonic())
        over.set()

    session = Session(spark, catalog=root / "catalog")
    session.sql(f"CREATE STREAM a (k BIGINT, v BIGINT) FROM PARQUET '{root / 'a'}'")
    session.sql(
        "CREATE CONTINUOUS VIEW q WITH (trigger = '1 second') AS"
        " SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM a"
    )
    run = session.view("q").runs().of("a")
    assert run is not None, "started"
    running = run.query
    thread = threading.Thread(target=arrive, daemon=True)
    waits: list[float] = []
    reads: dict[bool, list[float]] = {True: [], False: []}
    batches: dict[bool, list[float]] = {True: [], False: []}
    began, began_at = time.monotonic(), time.time()

    def watch() -> None:
        seen = 0
        thread.start()
        while not over.is_set() or seen < len(arrived):
            # Ten seconds with many reads, ten with few.
            often = int((time.monotonic() - began) / 10) % 2 == 0
            start = time.perf_counter()
            count = int(session.sql("SELECT * FROM q").rows[0][0].value or 0)
            now, have = time.monotonic(), count // each
            warm = now - began > WARM_SECONDS
            if warm:
                reads[often].append(time.perf_counter() - start)
                waits.extend(now - t for t in arrived[seen:have])
            seen = max(seen, have)
            time.sleep(0.05 if often else 0.4)

    spent = measured(watch)
    taken = 0
    # Asked for once: each time, all of them come through the gateway as JSON.
    for progress in running.recentProgress:
        told = json.loads(progress.json) if hasattr(progress, "json") else progress
        if told["numInputRows"]:
            taken += 1
            after = datetime.fromisoformat(told["timestamp"]).timestamp() - began_at
            if after > WARM_SECONDS:
                batches[int(after / 10) % 2 == 0].append(told["durationMs"]["triggerExecution"])
    session.close()
    spark.stop()
    p50, p95 = map(float, np.percentile(waits, [50, 95]))
    yield {"study": "arrival to answer", "rate": options.rate, "p50_s": round(p50, 3), "p95_s": round(p95, 3)}
    every = [*reads[True], *reads[False]]
    p50, p95 = map(float, np.percentile(every, [50, 95]))
    yield {
        "study": "all of it",
        "cpu_s_a_second": round(spent.cpu_s / spent.wall_s, 3),
        "batches": taken,
        "cpu_s_a_batch": round(spent.cpu_s / max(taken, 1), 3),
        "load": round(os.getloadavg()[0], 1),
    }
    yield {"study": "SELECT * FROM q", "p50_ms": round(1e3 * p50, 2), "p95_ms": round(1e3 * p95, 2)}
    yield {
        "study": "a batch beside 20 reads a second",
        "median_ms": round(statistics.median(batches[True]), 1),
        "without_ms": round(statistics.median(batches[False]), 1),
        "slower": round(statistics.median(batches[True]) / statistics.median(batches[False]) - 1, 3),
    }


STUDIES: dict[str, Callable[[argparse.Namespace], Iterator[Record]]] = {
    "exact": exact,
    "memory": memory,
    "latency": latency,
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", nargs="+", choices=tuple(STUDIES), default=tuple(STUDIES))
    parser.add_argument("--events", type=int, default=40_000_000, help="of both streams together")
    parser.add_argument("--batch", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=100_000, help="events a second, of `latency`")
    parser.add_argument("--seconds", type=float, default=75.0, help="of `latency`, with 15 to warm up")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for study in options.studies:
        for record in STUDIES[study](options):
            found.append(record)
            print(record, flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
