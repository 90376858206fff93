"""A year of flights as events: departures join the weather of their hour in windows of four weeks, asked week by week.

    python examples/flights_stream.py [--folder DIR] [--size 8] [--plot windy.png]

The flights and the weather of New York in 2013 (`skimql.demo_tables`) are written as Parquet files, a week each, and
read as two streams. A continuous view counts the departures in windy hours over windows that slide by a week, from a
few kilobytes for each week and stream. What it had after each batch is in its sink; beside it stands the exact count.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import skimql

WEEK = timedelta(days=7)
WINDOW = 4 * WEEK
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WINDY = 12.0  # miles an hour
WEEKS_A_BATCH = 4
TABLES = {"departures": "flights", "weather": "weather"}
COLUMNS = {"departures": ["origin", "time_hour"], "weather": ["origin", "time_hour", "wind_speed"]}


def main() -> None:
    """Write the events, run the view over them, and show what it had beside what is exact."""
    asked = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    asked.add_argument(
        "--folder", type=Path, help="for events, catalog and sink; a temporary one if left out"
    )
    asked.add_argument("--size", type=int, default=8, help="kilobytes for the sketches of a week")
    asked.add_argument("--plot", type=Path, help="a picture of it, which takes matplotlib")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        events = {name: read(name) for name in TABLES}
        for name, table in events.items():
            write_weeks(table, folder / name)
        found = run(folder, given.size)
    exact = counted(events)
    print(f"{'window from':12} {'estimate':>9} {'interval':>21} {'exact':>9} {'off by':>7}")
    for start, row in sorted(found.items()):
        true = exact[start]
        ends = f"{row['n_low']:,.0f} to {row['n_high']:,.0f}"
        off = f"{row['n'] / true - 1:+.1%}" if true else ""
        print(f"{start:%Y-%m-%d}   {row['n']:>9,} {ends:>21} {true:>9,} {off:>7}")
    inside = sum(row["n_low"] <= exact[s] <= row["n_high"] for s, row in found.items())
    print(f"{inside} of {len(found)} intervals have the exact count")
    if given.plot is not None:
        plot(found, exact, given.plot)


def read(name: str) -> pa.Table:
    """The events of a stream, in order of time."""
    table = pq.read_table(skimql.demo_tables()[TABLES[name]], columns=COLUMNS[name])
    times = table["time_hour"].cast(pa.timestamp("us", "UTC"))
    return table.set_column(1, "time_hour", times).sort_by("time_hour")


def write_weeks(table: pa.Table, folder: Path) -> None:
    """A file for each week, the older the earlier it is read."""
    folder.mkdir(parents=True, exist_ok=True)
    weeks = pc.divide(table["time_hour"].cast(pa.int64()), WEEK // timedelta(microseconds=1))
    for number, week in enumerate(sorted(pc.unique(weeks).to_pylist())):
        path = folder / f"week-{week}.parquet"
        pq.write_table(table.filter(pc.equal(weeks, week)), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def run(folder: Path, kilobytes: int) -> dict[datetime, dict[str, Any]]:
    """What the view had of every window when it was shown last."""
    with skimql.Session(catalog=folder / "catalog") as session:
        options = f"OPTIONS (maxFilesPerTrigger = {WEEKS_A_BATCH})"
        session.sql(
            "CREATE STREAM departures (origin STRING, time_hour TIMESTAMP)"
            f" FROM PARQUET '{folder / 'departures'}' {options}"
        )
        session.sql(
            "CREATE STREAM weather (origin STRING, time_hour TIMESTAMP, wind_speed DOUBLE)"
            f" FROM PARQUET '{folder / 'weather'}' {options}"
        )
        session.sql(
            "CREATE CONTINUOUS VIEW windy WITH (window = '28 days', slide = '7 days', time = time_hour,"
            f" watermark = '1 day', trigger = 'available now', sink = '{folder / 'sink'}') AS"
            " SELECT APPROXIMATE COUNT(*) AS n FROM departures d"
            " JOIN weather w ON d.origin = w.origin AND d.time_hour = w.time_hour"
            f" WHERE w.wind_speed > {WINDY} SIZE {kilobytes} KB"
        )
        print(session.answer("SHOW QUERIES EXTENDED"))
        last = session.answer("SELECT * FROM windy").records()
    files = sorted((folder / "sink").glob("*.parquet"), key=lambda f: f.stat().st_mtime_ns)
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    return {row["window_start"].astimezone(UTC): row for row in [*rows, *last]}


def counted(events: dict[str, pa.Table]) -> dict[datetime, int]:
    """The exact count of every window that has events, by its start."""
    windy = events["weather"].filter(pc.greater(events["weather"]["wind_speed"], WINDY))
    joined = events["departures"].join(windy, ["origin", "time_hour"], join_type="inner")
    times = np.sort(joined["time_hour"].cast(pa.int64()).to_numpy())
    every = [pc.min_max(table["time_hour"]).as_py() for table in events.values()]
    last = max(ends["max"] for ends in every)
    start = EPOCH + (min(ends["min"] for ends in every) - EPOCH) // WEEK * WEEK - WINDOW + WEEK
    found = {}
    while start <= last:
        micros = [(t - EPOCH) // timedelta(microseconds=1) for t in (start, start + WINDOW)]
        low, high = np.searchsorted(times, micros)
        found[start] = int(high - low)
        start += WEEK
    return found


def plot(found: dict[datetime, dict[str, Any]], exact: dict[datetime, int], path: Path) -> None:
    """Estimates with their intervals, and the exact counts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4))
    axes = figure.subplots()
    starts = sorted(found)
    values = [found[s]["n"] for s in starts]
    below = [found[s]["n"] - found[s]["n_low"] for s in starts]
    above = [found[s]["n_high"] - found[s]["n"] for s in starts]
    axes.errorbar(starts, values, yerr=[below, above], fmt="o", capsize=3, label="estimate, 95 %")
    axes.plot(starts, [exact[s] for s in starts], color="black", label="exact")
    axes.set_ylabel(f"departures with more than {WINDY:g} mph of wind")
    axes.set_xlabel("four weeks from")
    axes.legend()
    figure.autofmt_xdate()
    figure.savefig(path)
    print(f"written: {path}")


if __name__ == "__main__":
    main()
