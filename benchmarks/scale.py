"""Speed against tuples: python -m benchmarks.scale --rows N --json FILE [--quick | --linear] [--rounds R].

CPU seconds of driver, JVM and Python workers, and seconds on the clock: the median of the warm rounds. Jobs are
interleaved, so that whatever else the machine does hits all of them; compare figures of one run only. Two cores:
Spark runs as local[2], DuckDB on two threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from skimql.engine.spark.session import start_spark

from .cpu import Spent, measured
from .data.keys import KEYS
from .report import RESULTS
from .scale_bars import COMPARED, bars, linear_bars
from .scale_jobs import MAIN, Bench, Job, jobs_of_key, join_jobs

LINEAR_MILLIONS = (5, 20, 60)
LINEAR_JOBS = (("sketch 7 x 1k", "arrow"), ("sketch 11 x 1k", "jvm"), ("sketch 11 x 4k", "jvm"))

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the records and the bars, write the records."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="tuples, in whole millions")
    parser.add_argument("--json", type=Path, help="file for the records")
    parser.add_argument("--rounds", type=int, default=3, help="warm rounds, after one to warm up")
    parser.add_argument("--quick", action="store_true", help="only what the bars compare")
    parser.add_argument("--linear", action="store_true", help="5M to 60M tuples instead, few jobs")
    parser.add_argument("--plot", type=Path, help="file for a plot of the records")
    options = parser.parse_args(arguments)
    spark = start_spark({"spark.master": "local[2]", "spark.driver.memory": "4g"})
    if options.linear:
        jobs = [
            job
            for millions in LINEAR_MILLIONS
            for job in jobs_of_key(Bench(spark, millions * 1_000_000), MAIN, all_jobs=True)
            if (job.job, job.route) in LINEAR_JOBS
        ]
        records = run(spark, jobs, options.rounds)
        print_bars(linear_bars(records))
    else:
        bench = Bench(spark, options.rows)
        bench.store()
        jobs = [job for key in KEYS for job in jobs_of_key(bench, key, all_jobs=key == MAIN)]
        jobs += join_jobs(bench)
        records = run(
            spark, [job for job in jobs if job.job in COMPARED or not options.quick], options.rounds
        )
        print_bars(bars(records))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")
    if options.plot:
        from .scale_plot import plot

        plot(records, RESULTS / options.plot if options.plot.parent == Path() else options.plot)


def run(spark: SparkSession, jobs: Sequence[Job], rounds: int) -> list[Record]:
    """The median of `rounds` rounds of all jobs, after one that does not count; prints a line for each job."""
    found: dict[tuple[str, str, str, int], list[Spent]] = {job.name: [] for job in jobs}
    for number in range(rounds + 1):
        for job in jobs:
            if job.route == "arrow":
                # Idle workers end after a minute; starting them anew is not the job's cost.
                spark.range(64).repartition(2).mapInArrow(lambda batches: batches, "id BIGINT").toArrow()
            spent = measured(job.run)
            print(f"round {number}: {job.job}, {job.route}, {job.key}: {spent.cpu_s:.2f} s", file=sys.stderr)
            if number:
                found[job.name].append(spent)
    print(f"{'job':32} {'route':7} {'key':16} {'rows':>11} {'CPU s':>8} {'wall s':>8} {'ns/row':>7}")
    records = []
    for job in jobs:
        cpu = statistics.median(s.cpu_s for s in found[job.name])
        wall = statistics.median(s.wall_s for s in found[job.name])
        records.append(
            {
                "job": job.job,
                "route": job.route,
                "rows": job.rows,
                "key": job.key,
                "cpu_s": cpu,
                "wall_s": wall,
            }
        )
        per_row = 1e9 * cpu / job.rows
        print(f"{job.job:32} {job.route:7} {job.key:16} {job.rows:11,} {cpu:8.2f} {wall:8.4f} {per_row:7.0f}")
    return records


def print_bars(found: Iterable[tuple[str, float, float, str]]) -> None:
    """Each bar with the measured ratio beside it."""
    for what, measured_ratio, bar, relation in found:
        met = measured_ratio <= bar if relation == "<=" else measured_ratio >= bar
        print(f"{'ok    ' if met else 'MISSED'} {what}: {measured_ratio:.3g} (bar {relation} {bar:g})")


if __name__ == "__main__":
    main()
