"""What samples of keys take of the exact run, beside what is predicted: the queries of TPC-H that decompose.

``python -m benchmarks.sampled_costs --sf 1 --json FILE``. For each query the exact run and, over the class that the
planner takes, one key in 64 and one in 8; CPU seconds of this process and its children.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from skimql import Session
from skimql.engine.execution.sampled_query import sampled_text
from skimql.engine.queries.sampled_tables import SampledTables
from skimql.engine.spark.session import start_spark
from skimql.optimizer.candidates.sampled_query import work_of
from skimql.optimizer.physical import SampledQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

from .tpch import measured
from .tpch_queries import DECOMPOSE, QUERIES, SCHEMA, approximate

RATES = (1 / 64, 1 / 8)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", default="1", help="scale factor")
    parser.add_argument("--queries", default=",".join(map(str, DECOMPOSE)), help="1,4,12")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path.home() / ".cache" / "skimql" / "tpch")
    parser.add_argument("--json", type=Path, help="records are added")
    options = parser.parse_args()
    spark = start_spark(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
    )
    for table in SCHEMA:
        path = options.data / f"sf{options.sf}" / f"{table}.parquet"
        spark.read.parquet(str(path)).createOrReplaceTempView(table)
    for number in map(int, options.queries.split(",")):
        record = _record(Session(spark), number, options.rounds) | {"sf": options.sf}
        print(json.dumps(record), flush=True)
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


def _record(session: Session, number: int, rounds: int) -> dict[str, Any]:
    error = "10%" if "\ngroup by" in QUERIES[number] else "5%"
    text = approximate(number, f"ERROR WITHIN {error} USING sampled_query")
    figures, plan = measured(lambda: session.plan(text))
    attempt = plan.attempt
    assert isinstance(attempt, SampledQuery)
    record = {"query": number, "class": attempt.class_name, "rate": attempt.rate, "why": attempt.why}
    record |= {"predicted": attempt.predicted.half_width, "planning_cpu_s": round(figures["cpu_s"], 3)}
    query = resolve_sampled(parse_statement(text), SCHEMA)  # type: ignore[arg-type]
    way = query.ways[attempt.way]
    with session.tables.statement(text):
        parts = SampledTables(session.context, jobs=True).parts(way, query.narrowing)

    def run(sql: str) -> float:
        session.spark.sql(sql).toArrow()
        times = [measured(lambda: session.spark.sql(sql).toArrow())[0]["cpu_s"] for _ in range(rounds)]
        return median(times)

    exact = run(QUERIES[number])
    record |= {"exact_cpu_s": exact, "predicted_exact_s": None if parts is None else work_of(parts).exact}
    for rate in RATES:
        record[f"at {rate:.3g}"] = run(sampled_text(query, way, rate, 3)) / exact
        if parts is not None:
            record[f"predicted at {rate:.3g}"] = work_of(parts).over_exact(rate)
    return record


if __name__ == "__main__":
    main()
