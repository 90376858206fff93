"""One pass per source table feeds every sketch of a plan.

Python workers keep one partial sketch per task and send its counters back, and the driver adds them up; or Spark
makes the sketches itself (see `jvm`). Integer counters are the same bits whatever the number and order of the
partitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ...optimizer.operators import SCAN
from ...optimizer.plan import Plan, Scan, most_bytes
from ...optimizer.route import TABULATION
from ..observed import Observation, metered, observed
from ..sources.files import partitions
from ..sources.tables import Frames
from ..spark.arrow_batches import large_batches
from ..spark.jobs import ProgressListener, run_job
from ..spark.shipping import ship
from ..spark.worker import in_worker
from ..synopses import Built
from .explanation import explained
from .jvm_scan import JvmScan
from .message_limit import DEFAULT_LIMIT_BYTES
from .messages import Messages
from .partial_aggregate import PARTIAL_SCHEMA, Partial, merging, received, task
from .scan import PreparedScan, prepare
from .scanned import tell

# Bytes of partial sketches that may reach the driver from one scan; more are added up by workers before.
MOST_SENT_BYTES = 64 << 20


def build(
    spark: SparkSession,
    plan: Plan,
    tables: Frames,
    listener: ProgressListener | None = None,
    message_bytes: int | None = DEFAULT_LIMIT_BYTES,
) -> tuple[Built, ...]:
    """Every sketch of the plan, one scan per table, after the exact messages into it, of `message_bytes` at most.

    Raises
    ------
    DataError
        If Spark fails on a value (a cast in ANSI mode, say), a weight is not finite, or a counter overflows.
    UnsupportedQuery
        If Spark refuses an expression, or an argument of SUM is no number.
    """
    built: dict[int, Built] = {}
    messages = Messages(spark, plan, tables, listener, message_bytes)
    passes: list[tuple[Scan, JvmScan, Observation]] = []
    for scan in plan.scans:
        with _explained(plan, scan), observed(SCAN, scan.table) as seen:
            prepared = prepare(plan, scan, tables.frame(scan.table), messages)
            if plan.family == TABULATION:
                state = sum(most_bytes(plan.synopses[i]) for i in scan.synopses)
                sent = partitions(tables.frame(scan.table))
                groups = math.isqrt(sent) if state * sent > MOST_SENT_BYTES else None
                built.update(_by_workers(spark, scan, prepared, listener, groups))
                _tell(seen, plan, scan, built)
            else:
                run = _runner(spark, scan, listener)
                passes.append((scan, JvmScan.first(plan, prepared, run), seen))
    # A join is exact where all of its maps are: one of them alone is worth no second pass.
    exact = all(p.few_keys for _, p, _ in passes)
    for scan, first, seen in passes:
        with _explained(plan, scan):
            scales = first.prepared.scales
            with observed(SCAN, scan.table) if exact else nullcontext():
                parts = first.partials(exact=exact)
            built.update({i: Built(part.sketch, part.tally, scales[i]) for i, part in parts.items()})
        _tell(seen, plan, scan, built)
    return tuple(built[i] for i in range(len(plan.synopses)))


def _by_workers(
    spark: SparkSession,
    scan: Scan,
    prepared: PreparedScan,
    listener: ProgressListener | None,
    groups: int | None,
) -> dict[int, Built]:
    """The sketches of a scan from Python workers that Spark sends Arrow batches to; `groups` of them add up first."""
    ship(spark)
    partials = prepared.columns.mapInArrow(in_worker(task(prepared.sketches, prepared.feeds)), PARTIAL_SCHEMA)
    if groups is not None:
        partials = partials.repartition(groups).mapInArrow(
            in_worker(merging(prepared.sketches)), PARTIAL_SCHEMA
        )
    with large_batches(spark):
        sent = run_job(spark, f"scan {scan.table}", partials.toArrow, listener)
    seen = metered()
    if seen is not None:
        seen.worker_seconds += sum(sent["cpu"].to_pylist())
    return add_up(prepared, sent.to_pylist())


def _tell(seen: Observation, plan: Plan, scan: Scan, built: Mapping[int, Built]) -> None:
    tell(seen, plan, scan, {i: (built[i].sketch.nbytes, built[i].tally) for i in scan.synopses})


def _runner(
    spark: SparkSession, scan: Scan, listener: ProgressListener | None
) -> Callable[[DataFrame], pa.Table]:
    return lambda frame: run_job(spark, f"scan {scan.table}", frame.toArrow, listener)


def add_up(prepared: PreparedScan, rows: Iterable[dict[str, Any]]) -> dict[int, Built]:
    """The finished sketches of a scan from the rows that its tasks sent, in any order."""
    wholes = {i: Partial.empty(plan) for i, plan in prepared.sketches.items()}
    for row in rows:
        i = row["synopsis"]
        wholes[i].merge(received(row, prepared.sketches[i]))
    return {i: Built(whole.sketch, whole.tally, prepared.scales[i]) for i, whole in wholes.items()}


def _explained(plan: Plan, scan: Scan) -> AbstractContextManager[None]:
    attributes = [a for i in scan.synopses for a in plan.synopses[i].attributes]
    return explained(plan.query.sql, scan.table, attributes)
