"""All 22 queries of TPC-H by `USING sampled_query`: which decompose, what is met, covered and saved.

Called by ``python -m benchmarks.tpch --queries all``. A query without groups is asked for an error
of 5 %, others of 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from skimql import Answer, Session
from skimql.engine.spark.session import start_spark
from skimql.errors import SkimqlError
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

from .tpch_queries import QUERIES, SCHEMA, approximate

Figures = dict[str, Any]
Measured = Callable[[Callable[[], Any]], tuple[Figures, Any]]


def run_sampled(
    files: Path, scale: str, seeds: int, measured: Measured, numbers: Sequence[int]
) -> Iterator[Figures]:
    """A record for each query of these numbers: why it is refused, or what the seeds gave beside the exact run."""
    spark = start_spark(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
    )
    for table in SCHEMA:
        spark.read.parquet(str(files / f"{table}.parquet")).createOrReplaceTempView(table)
    for number in numbers:
        record: Figures = {"query": number, "sf": scale, "seeds": []}
        refused = _refusal(number)
        if refused is not None:
            yield record | {"refused": refused}
            continue
        spark.sql(QUERIES[number]).collect()
        figures, rows = measured(lambda n=number: spark.sql(QUERIES[n]).collect())
        truth = [tuple(row) for row in rows]
        record |= {"exact_cpu_s": figures["cpu_s"], "rows": len(truth)}
        for seed in range(1, seeds + 1):
            record["seeds"].append(_asked(Session(spark), number, seed, truth, measured))
        yield record


def _refusal(number: int) -> str | None:
    try:
        resolve_sampled(parse_statement(approximate(number, "USING sampled_query")), SCHEMA)  # type: ignore[arg-type]
    except SkimqlError as fault:
        return fault.message
    return None


def _asked(
    session: Session, number: int, seed: int, truth: list[tuple[Any, ...]], measured: Measured
) -> Figures:
    error = "10%" if "\ngroup by" in QUERIES[number] else "5%"
    text = approximate(number, f"ERROR WITHIN {error} USING sampled_query SEED {seed}")
    figures, answer = measured(lambda: session.sql(text))
    assert isinstance(answer, Answer)
    named = _rows_by_group(truth, answer)
    inside = cells = within = 0
    for row in answer.rows:
        exact = named.get(_group(row, answer))
        for cell, true in zip(row, exact or (), strict=False):
            if not hasattr(cell, "low") or true is None:
                continue
            value = float(true)
            slack = 1e-9 * abs(value)
            cells += 1
            inside += cell.low - slack <= value <= cell.high + slack
            within += abs(float(cell.value) - value) <= float(error[:-1]) / 100 * abs(value)
    return {
        "seed": seed,
        "cpu_s": figures["cpu_s"],
        "target": answer.target,
        "exact": answer.exact,
        "notes": [n for n in answer.notes if "expected to take" in n or "more keys" in n],
        "rates": [getattr(a.attempt, "rate", None) for a in answer.attempts],
        "class": getattr(answer.attempts[0].attempt, "class_name", ""),
        "rows": len(answer.rows),
        "cells": cells,
        "inside": inside,
        "within": within,
    }


def _group(row: tuple[Any, ...], answer: Answer) -> tuple[Any, ...]:
    return tuple(str(c) for c, aggregated in zip(row, answer.aggregated, strict=True) if not aggregated)


def _rows_by_group(truth: list[tuple[Any, ...]], answer: Answer) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {_group(row, answer): row for row in truth}


def shown(record: Figures) -> str:
    """What a person reads of a record."""
    name = f"{record['query']:>2}"
    if "refused" in record:
        return f"{name} refused: {record['refused']}"
    seeds = record["seeds"]
    cells = sum(s["cells"] for s in seeds)
    shares = [sum(s[k] for s in seeds) / max(cells, 1) for k in ("inside", "within")]
    cpu = sorted(s["cpu_s"] for s in seeds)[len(seeds) // 2] if seeds else math.nan
    return (
        f"{name} {record['rows']:>5} rows, keys {seeds[0]['class'] if seeds else ''}: {shares[0]:.3f} covered, "
        f"{shares[1]:.3f} within the error, {sum(s['exact'] for s in seeds)} of {len(seeds)} on all keys, "
        f"{cpu / record['exact_cpu_s']:.2f} x the exact run's CPU"
    )
