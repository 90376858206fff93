"""Streams at work: ``python -m benchmarks.streams --json FILE``.

Two streams in Parquet or JSON (Zipf 1.0 over a domain, the second shifted by 100, 20 % deletions), joined by one view
and by several that share their sketches or do not; beside it the same sketches in one scan of the same files.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skimql import Session
from skimql.engine.spark.session import start_spark
from skimql.engine.streams.frames import whole_rows
from skimql.engine.streams.spark_builder import SparkBuilder
from skimql.engine.streams.state import batch_plan, times_of
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.views import readers

from .cpu import measured

DOMAIN, SHIFT, DELETED = 1_000_000, 100, 0.2
# Two join keys, four filters; COUNT, SUM and AVG.
JOINS = ("a.k = b.k", "a.g = b.g")
FILTERS = ("", " WHERE a.v < 50", " WHERE b.v >= 20", " WHERE a.v < 50 AND b.v >= 20")
TERMS = ("COUNT(*)", "SUM(a.v)", "AVG(b.v)")


def selects(number: int) -> list[str]:
    """So many different views over the two streams."""
    every = [
        f"SELECT APPROXIMATE {t} AS x FROM a JOIN b ON {j}{f}" for j in JOINS for f in FILTERS for t in TERMS
    ]
    return every[:number]


def write_events(folder: Path, events: int, batch: int, source: str, seed: int = 1) -> None:
    """The files of both streams, one for each batch."""
    random = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, DOMAIN + 1)
    ends = np.cumsum(weights / weights.sum())
    for name, shift in (("a", 0), ("b", SHIFT)):
        (folder / name).mkdir(parents=True)
        for number in range(events // batch):
            k = (np.searchsorted(ends, random.random(batch)) + shift) % DOMAIN
            columns = {
                "k": k.astype(np.int64),
                "g": random.integers(0, 100_000, batch),
                "v": random.integers(0, 100, batch),
                "op": np.where(random.random(batch) < DELETED, "d", "i"),
            }
            table, file = pa.table(columns), folder / name / f"{number:04}.{source}"
            if source == "parquet":
                pq.write_table(table, file)
            else:
                table.to_pandas().to_json(file, orient="records", lines=True)


def streamed(
    spark: Any, folder: Path, source: str, views: list[str], shared: bool
) -> tuple[float, float, int]:
    """CPU and wall seconds of reading all events, and the bytes of the states."""
    catalog = folder / f"catalog {len(views)} {shared}"
    session = Session(spark, catalog=catalog)
    columns = "k BIGINT, g BIGINT, v BIGINT, op STRING"
    # Views that share nothing have streams of their own, each of which reads all.
    copies = [""] if shared else [str(n) for n in range(len(views))]
    for copy in copies:
        for name in ("a", "b"):
            session.sql(
                f"CREATE STREAM {name}{copy} ({columns}) FROM {source.upper()} '{folder / name}'"
                " OPTIONS (maxFilesPerTrigger = 1) DELETES WHEN op = 'd'"
            )
    held = folder / "held"
    for name in ("a", "b"):
        (folder / name).rename(held.with_name(f"held {name}"))
        (folder / name).mkdir()
    for number, text in enumerate(views):
        if not shared:
            text = text.replace("FROM a JOIN b", f"FROM a{number} AS a JOIN b{number} AS b")
        session.sql(f"CREATE CONTINUOUS VIEW v{number} WITH (trigger = 'available now') AS {text}")
    for name in ("a", "b"):
        (folder / name).rmdir()
        held.with_name(f"held {name}").rename(folder / name)
    spent = measured(lambda: [session.sql(f"RESUME v{n}") for n in range(1 if shared else len(views))])
    found = continuous(session.catalog)
    size = sum(load(session.catalog, s, 1).state.nbytes for s in found.streams.values())
    session.close()
    return spent.cpu_s, spent.wall_s, size


def scanned(spark: Any, folder: Path, source: str, views: int) -> float:
    """CPU seconds of making the same sketches in one scan of each stream: its files as a single batch.

    To be called after `streamed` for as many views that share.
    """
    session = Session(spark, catalog=folder / f"catalog {views} True")
    own, found = session.context, continuous(session.catalog)

    def scan() -> None:
        for name in ("a", "b"):
            stream, planned = found.streams[name], readers(found, name)
            plan = batch_plan(
                planned[0].query,
                planned[0].view.seed,
                stream,
                dict.fromkeys(s for v in planned for s in v.synopses_of(name)),
            )
            builder = SparkBuilder(own.spark, own.tables, folder)
            builder.warm(plan)
            frame = whole_rows(own.spark.read.format(source), stream, str(folder / name))
            builder.build(frame, plan, times_of(stream), ())

    return measured(scan).cpu_s


def records(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """A record for each number of views."""
    spark = start_spark(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
        }
    )
    folder = Path(tempfile.mkdtemp(prefix="skimql-streams-"))
    write_events(folder, options.events, options.batch, options.source)
    (folder / "warm").mkdir()
    write_events(folder / "warm", 40 * 10_000, 10_000, options.source)
    # What is measured is a stream that goes on: Spark's planning of micro-batches is compiled by then.
    streamed(spark, folder / "warm", options.source, selects(1), True)
    scanned(spark, folder / "warm", options.source, 1)
    yield from rounds(spark, folder, options)
    for number in (n for n in options.views if n > 1):
        for shared in (True, False):
            yield record(
                options, number, shared, *streamed(spark, folder, options.source, selects(number), shared)
            )
    spark.stop()
    shutil.rmtree(folder)


def rounds(spark: Any, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One view, and its sketches in a single scan, in turns: the medians of rounds after one that does not count."""
    views, scans = [], []
    for number in range(options.rounds + 1):
        views.append(streamed(spark, folder, options.source, selects(1), True))
        scans.append(scanned(spark, folder, options.source, 1))
        if number < options.rounds:
            shutil.rmtree(folder / "catalog 1 True")
    cpu, wall, size = zip(*views[1:], strict=True)
    yield record(options, 1, True, statistics.median(cpu), statistics.median(wall), size[0])
    scan = statistics.median(scans[1:])
    yield {
        "study": "scan",
        "source": options.source,
        "views": 1,
        "events": 2 * options.events,
        "cpu_s": round(scan, 2),
        "view_over_scan": [round(v / s, 2) for v, s in zip(cpu, scans[1:], strict=True)],
    }


def record(
    options: argparse.Namespace, views: int, shared: bool, cpu: float, wall: float, size: int
) -> dict[str, object]:
    """What is told of one number of views."""
    events = 2 * options.events
    return {
        "study": "views",
        "source": options.source,
        "views": views,
        "shared": shared,
        "events": events,
        "deletes": DELETED,
        "events_per_s": round(events / wall),
        "cpu_s": round(cpu, 2),
        "cpu_us_an_event": round(1e6 * cpu / events, 3),
        "state_bytes": size,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000, help="of each stream")
    parser.add_argument("--batch", type=int, default=1_000_000)
    parser.add_argument("--source", choices=("parquet", "json"), default="parquet")
    parser.add_argument("--views", type=int, nargs="+", default=[5, 20], help="beside one")
    parser.add_argument("--rounds", type=int, default=3, help="of one view, after one that does not count")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for record in records(options):
        found.append(record)
        print(record, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
