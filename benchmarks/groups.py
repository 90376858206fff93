"""Grouped questions: what becomes of those of TPC-H, how often their intervals hold, what they cost on small tables.

``python -m benchmarks.groups --json FILE [--study coverage|outcomes|demo] [--sf 1] [--seeds 500]``. The texts of TPC-H
are those of the specification (`tests/fixtures/tpch`). *coverage* runs 8 and 9 under ``USING key_sample`` in memory:
planned on the whole tables, then sampled anew for every seed on the tuples that pass the filters and have a partner in
``part``, which is all that the product reads behind its exact messages. Exits with 1 if a group misses oftener than the
binomial bound allows. *outcomes* asks 3, 8, 9, 10, 12, 16 and 18 on Spark, with free choice and ``USING key_sample``:
the method or the code, CPU beside Spark's exact run, and values outside of their intervals. *demo* asks the demo tables
with the default target, and Spark for the same, in turns: CPU and wall seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skimql import Answer, Estimate, Session, Settings, SkimqlError, demo_tables
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.compare import beside
from skimql.engine.spark.session import start_spark
from skimql.optimizer.prediction.pilot_counts import PILOT_TUPLES
from skimql.optimizer.prediction.relation import RelationStatistics
from skimql.parser.join_graph import Query

from .promise.cells import most
from .promise.known import KnownBackend
from .tpch import data, measured
from .tpch_queries import QUERIES, approximate

TABLES = ("part", "supplier", "lineitem", "orders", "customer", "nation", "region", "partsupp")
COVERED, GROUPED = (8, 9), (3, 8, 9, 10, 12, 16, 18)
USING = "USING key_sample"
DEMO = {
    "of one table": "f.origin, COUNT(*) AS n, SUM(f.distance) AS miles FROM flights f JOIN planes p "
    "ON f.tailnum = p.tailnum GROUP BY f.origin",
    "of two tables": "f.origin, p.engines, COUNT(*) AS n, AVG(f.arr_delay) AS late FROM flights f JOIN planes p "
    "ON f.tailnum = p.tailnum GROUP BY f.origin, p.engines",
    "with HAVING": "f.dest, COUNT(*) AS n FROM flights f JOIN weather w ON f.time_hour = w.time_hour "
    "AND f.origin = w.origin GROUP BY f.dest HAVING n > 5000 ORDER BY n DESC",
    "COUNT(DISTINCT)": "f.origin, COUNT(DISTINCT p.model) AS models FROM flights f JOIN planes p "
    "ON f.tailnum = p.tailnum GROUP BY f.origin",
}
YEAR = "extract(year from o_orderdate)"


class Planned(KnownBackend):
    """A backend that reads some of the tuples, with the statistics of all of them."""

    def __init__(self, whole: MemoryTables, read: MemoryTables) -> None:
        super().__init__(read, PILOT_TUPLES)
        object.__setattr__(self, "whole", KnownBackend(whole, PILOT_TUPLES))

    def statistics(self, query: Query, *, jobs: bool = True) -> tuple[RelationStatistics, ...]:
        """Those of the whole tables."""
        found: tuple[RelationStatistics, ...] = self.whole.statistics(query, jobs=jobs)  # type: ignore[attr-defined]
        return found


def tables_of(folder: Path, query: int) -> tuple[str, dict[str, pa.Table]]:
    """The text of a query, its year a column, and the columns that it reads."""
    text = approximate(query, USING).replace(YEAR, "o_year")
    columns = {"o_orderdate", *re.findall(r"\b(?:ps|[nrscpol])_[a-z]+\b", text)}
    found = {}
    for name in TABLES:
        path = folder / f"{name}.parquet"
        own = [c for c in pq.read_schema(path).names if c in columns]
        if own:
            read = pq.read_table(path, columns=own)
            kinds = [pa.string() if f.type == pa.string_view() else f.type for f in read.schema]
            found[name] = read.cast(pa.schema(list(zip(own, kinds, strict=True))))
    orders = found["orders"]
    found["orders"] = orders.append_column("o_year", pc.year(orders["o_orderdate"]))
    return text, found


def _reached(tables: Mapping[str, pa.Table], query: int) -> dict[str, pa.Table]:
    """The tuples that the filters leave of parts and orders, and those of lineitem with a part among them."""
    part, orders, lineitem = tables["part"], tables["orders"], tables["lineitem"]
    if query == 8:
        part = part.filter(pc.equal(part["p_type"], "ECONOMY ANODIZED STEEL"))
        orders = orders.filter(pc.is_in(orders["o_year"], pa.array([1995, 1996])))
    else:
        part = part.filter(pc.match_substring(part["p_name"], "green"))
    lineitem = lineitem.filter(pc.is_in(lineitem["l_partkey"], part["p_partkey"].combine_chunks()))
    return {**tables, "part": part, "orders": orders, "lineitem": lineitem}


def coverage(folder: Path, query: int, seeds: int) -> dict[str, Any]:
    """How often the intervals of a query's groups hold."""
    text, tables = tables_of(folder, query)
    backend = Planned(MemoryTables(tables), MemoryTables(_reached(tables, query)))
    truths = {row[:-1]: row[-1] for row in MemoryRun.of(text, backend).exact().rows}
    missed = dict.fromkeys(truths, 0)
    met, errors, widths = [], [], []
    for seed in range(1, seeds + 1):
        answer = MemoryRun.of(text, backend, Settings(seed=seed)).answer()
        met.append(len(answer.rows))
        for row in answer.rows:
            cell, truth = row[-1], float(truths[row[:-1]].value)
            assert isinstance(cell, Estimate)
            if cell.exact and cell.value is not None:
                errors.append(0.0)
                continue
            low, high = cell.low, cell.high
            missed[row[:-1]] += (low is not None and low > truth) or (high is not None and high < truth)
            if cell.value is not None and low is not None and high is not None:
                errors.append(abs(float(cell.value) - truth) / abs(truth))
                widths.append(float(high - low) / 2 / abs(truth))
        if seed % 20 == 0:
            print(f"{query}: {seed} of {seeds}, worst group {max(missed.values())} missed", file=sys.stderr)
    return {
        "study": "coverage",
        "query": query,
        "method": answer.method,
        "seeds": seeds,
        "groups": len(truths),
        "groups_met": statistics.median(met),
        "most_missed": max(missed.values()),
        "missed": sum(missed.values()),
        "values": sum(met),
        "allowed": most(seeds, 0.05, len(truths)),
        "median_error": float(np.median(errors)),
        "median_half_width": float(np.median(widths)) if widths else 0.0,
    }


def outcomes(folder: Path, rounds: int, queries: Sequence[int]) -> list[dict[str, Any]]:
    """What becomes of the grouped queries on Spark."""
    spark = start_spark(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
    )
    for table in TABLES:
        spark.read.parquet(str(folder / f"{table}.parquet")).createOrReplaceTempView(table)
    found = []
    for query in queries:
        exact_sql = QUERIES[query]
        cpu: dict[str, list[float]] = {"": [], USING: []}
        ran: list[float] = []
        told: dict[str, dict[str, Any]] = {}
        for number in range(rounds + 1):
            # The first round compiles code, and does not count.
            figures, _ = measured(spark.sql(exact_sql).collect)
            ran += [figures["cpu_s"]] if number else []
            for clause in cpu:
                figures, told[clause] = measured(partial(_outcome, Session(spark, seed=7), query, clause))
                cpu[clause] += [figures["cpu_s"]] if number else []
        exact = statistics.median(ran)
        for clause, record in told.items():
            over = {
                "cpu_s": statistics.median(cpu[clause]),
                "exact_cpu_s": exact,
                "over_exact": statistics.median(cpu[clause]) / exact,
            }
            found.append({"study": "outcomes", "query": query, "clause": clause, **record, **over})
            print(json.dumps(found[-1]), file=sys.stderr)
    return found


def demo(rounds: int) -> list[dict[str, Any]]:
    """What GROUP BY costs on the demo tables, beside Spark's own run."""
    spark = start_spark(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    )
    session = Session(spark)
    for name, path in demo_tables().items():
        session.table(name, path)
        spark.read.parquet(str(path)).createOrReplaceTempView(name)
    found = []
    for name, select in DEMO.items():
        taken: dict[str, list[dict[str, Any]]] = {"skimql": [], "spark": []}
        for number in range(rounds + 2):
            asked, answer = measured(partial(session.sql, f"SELECT APPROXIMATE {select}"))
            ran, _ = measured(lambda q=select: spark.sql(f"SELECT {q}").collect())
            if number > 1:
                taken["skimql"].append(asked)
                taken["spark"].append(ran)
        medians = {
            f"{engine}_{kind}": statistics.median(figures[kind] for figures in own)
            for engine, own in taken.items()
            for kind in ("cpu_s", "wall_s")
        }
        assert isinstance(answer, Answer)
        found.append(
            {
                "study": "demo",
                "query": name,
                "method": answer.method,
                "rows": len(answer.rows),
                **medians,
                "over_exact": medians["skimql_cpu_s"] / medians["spark_cpu_s"],
            }
        )
    return found


def _outcome(session: Session, query: int, clause: str) -> dict[str, Any]:
    try:
        answer = session.sql(approximate(query, clause))
    except SkimqlError as fault:
        return {"outcome": "refused", "code": fault.code, "reason": fault.message, "way_out": fault.hint}
    assert isinstance(answer, Answer)
    record = {"outcome": "answered", "method": answer.method, "rows": len(answer.rows), "exact": answer.exact}
    if not answer.exact:
        truth = session.sql(approximate(query).replace("SELECT APPROXIMATE", "EXACT SELECT", 1))
        assert isinstance(truth, Answer)
        record |= _held(beside(answer, truth))
    return record


def _held(answer: Answer) -> dict[str, Any]:
    values = missed = 0
    for row, truth in zip(answer.rows, answer.compared or (), strict=True):
        for cell, true in zip(row, truth or (0.0,) * len(row), strict=True):
            if isinstance(cell, Estimate) and true is not None:
                values += 1
                low, high = cell.low, cell.high
                missed += (low is not None and low > float(true)) or (high is not None and high < float(true))
    return {"values": values, "missed": missed}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", default="1")
    parser.add_argument("--data", type=Path, default=Path.home() / ".cache" / "skimql" / "tpch")
    parser.add_argument("--study", choices=("coverage", "outcomes", "demo"), action="append")
    parser.add_argument("--query", type=int, choices=GROUPED, action="append")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    studies = chosen.study or ["coverage", "outcomes", "demo"]
    folder = data(chosen.sf, chosen.data) if {"coverage", "outcomes"} & set(studies) else Path()
    wanted = chosen.query or list(GROUPED)
    records = []
    if "coverage" in studies:
        records += [coverage(folder, q, chosen.seeds) for q in COVERED if q in wanted]
    if "outcomes" in studies:
        records += outcomes(folder, chosen.rounds, wanted)
    if "demo" in studies:
        records += demo(chosen.rounds)
    for record in records:
        print(json.dumps(record))
    chosen.json.write_text(json.dumps(records, indent=1) + "\n")
    return int(any(r["study"] == "coverage" and r["most_missed"] > r["allowed"] for r in records))


if __name__ == "__main__":
    sys.exit(main())
