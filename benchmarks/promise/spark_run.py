"""Cells end to end: tables as Parquet files, statements by `Session.sql`, everything that an answer costs."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from skimql import Estimate, Session, SkimqlError
from skimql.engine.results.answer import Answer
from skimql.engine.spark.session import start_spark
from skimql.optimizer.physical import ExactRun, SampleJoin, SketchJoin

from ..cpu import measured
from .cells import Seen, key_of, record_of, seen
from .data import GROUPED, Data, DataClass
from .routes import ROUTES, ROW_GROUPS, Asked, backend_of

WARM_UP = 2  # rounds that do not count
# Statements of a class: the aggregates of each.
STATEMENTS = (
    ("COUNT", "SUM", "AVG"),
    ("COUNT(DISTINCT)",),
    ("grouped",),
    ("grouped DISTINCT",),
    ("COUNT", "SUM", "AVG", "COUNT(DISTINCT)"),
)
CONFIGURATION = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # Tuples are drawn by their number in a partition: those of one partition are those of a table in memory.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": "2g",
}


def spark_session() -> SparkSession:
    """The Spark session of a run."""
    return start_spark(CONFIGURATION)


def route_of(statement: Sequence[str]) -> str:
    """Under which name its cells are recorded: with all aggregates in one statement they are others."""
    return "sql" if "COUNT(DISTINCT)" not in statement[1:] else "sql, all in one"


def spark_cells(
    spark: SparkSession,
    chosen: DataClass,
    asked: Sequence[tuple[tuple[str, ...], float]],
    seeds: int,
    tuples: int,
    *,
    compared: bool = True,
) -> Iterator[dict[str, Any]]:
    """One record for each aggregate of the statements, with their errors, that are asked.

    `compared`: whether it is looked whether the backend in memory gives the same values.

    The first draw of the class; the seeds are those of the statements.
    """
    data = chosen.data(0, tuples)
    tables = data.arrow()
    with tempfile.TemporaryDirectory() as folder:
        session = Session(spark)
        for name, table in tables.items():
            path = Path(folder) / f"{name}.parquet"
            pq.write_table(table, path, row_group_size=max(table.num_rows // ROW_GROUPS, 1))
            session.table(name, path)
        for statement, error in asked:
            yield from _statement(session, chosen, data, tables, statement, error, seeds, compared)


def _statement(
    session: Session,
    chosen: DataClass,
    data: Data,
    tables: dict[str, pa.Table],
    aggregates: tuple[str, ...],
    error: float,
    seeds: int,
    compared: bool,
) -> Iterator[dict[str, Any]]:
    select = data.select(*aggregates)
    exact_sql = select.replace("SELECT APPROXIMATE", "SELECT", 1)
    # Of all groups, whichever are shown.
    every = replace(data, behind="").select(*aggregates).replace("SELECT APPROXIMATE", "SELECT", 1)
    rows = session.sql(every).collect()
    grouped = aggregates[0] in GROUPED
    truths = [
        {key_of(row[: 1 if grouped else 0]): _number(row[1 if grouped else n]) for row in rows}
        for n in range(len(aggregates))
    ]
    found: list[list[Seen]] = [[] for _ in aggregates]
    same: list[bool] = []
    refused = ""
    asked = None
    if compared:
        route = ROUTES["distinct" if any("DISTINCT" in a for a in aggregates) else "first"]
        asked = Asked(backend_of(tables), select, error, route, data.max_groups)
    sql = f"{select} ERROR WITHIN {100 * error:g}%"

    def exactly() -> float:
        return measured(lambda: session.sql(exact_sql).collect()).cpu_s

    # In turns, warm: the JVM compiles the code of a query for some seconds.
    exact: list[float] = []
    try:
        for _ in range(WARM_UP):
            session.answer(f"{sql} SEED {seeds + 1}")
            exactly()
        for seed in range(1, seeds + 1):
            given: list[Answer] = []
            cpu = measured(lambda: given.append(session.answer(f"{sql} SEED {seed}"))).cpu_s  # noqa: B023
            exact.append(exactly())
            for n, truth in enumerate(truths):
                one = seen(given[0], truth, error, seed, cpu, n)
                if one is not None:
                    found[n].append(one)
            other = None if asked is None else _in_memory(asked, given[0], seed)
            if other is not None:
                same.append(_same(given[0], other))
    except SkimqlError as fault:
        refused = f"{fault.code}: {fault.message}"
    scan = measured(lambda: [session.sql(f"SELECT max(hash(*)) FROM {t}").collect() for t in tables]).cpu_s
    for aggregate, values in zip(aggregates, found, strict=True):
        yield {
            "class": chosen.name,
            "kind": chosen.kind,
            "aggregate": aggregate,
            "sql": sql,
            "route": route_of(aggregates),
            "backend": "spark",
            "error_asked": error,
            "refused": refused,
            "compared_in_memory": len(same),
            "same_in_memory": sum(same),
            **record_of(values, scan, median(exact) if exact else math.nan),
        }


def _in_memory(asked: Asked, given: Answer, seed: int) -> Answer | None:
    """What the backend in memory gives by the same plan; None where nothing was left to a plan."""
    first = given.attempts[0].attempt if given.attempts else None
    if isinstance(first, ExactRun):
        return None
    return asked.answer_from(first) if isinstance(first, (SampleJoin, SketchJoin)) else asked.answer(seed)


def _number(cell: Any) -> float:
    return math.nan if cell is None else float(cell)


def _same(one: Answer, other: Answer) -> bool:
    """Whether two answers have the same values, but for the last digits."""
    pairs = [
        (_value(a), _value(b))
        for rows in zip(one.rows, other.rows, strict=False)
        for a, b in zip(*rows, strict=True)
    ]
    near = all(a == b or abs(a - b) <= 1e-9 * abs(b) or (a != a and b != b) for a, b in pairs)
    return len(one.rows) == len(other.rows) and near


def _value(cell: Any) -> float:
    value = cell.value if isinstance(cell, Estimate) else cell
    return float(value) if isinstance(value, (int, float)) or hasattr(value, "__float__") else math.nan
