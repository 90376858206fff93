"""Random questions with random clauses, run by the product's own plans and held against the exact answer.

``python -m benchmarks.combinations --json FILE [--seeds FIRST:LAST] [--backend memory|spark]``: in memory, or through
`Session.sql` on Spark and against Spark (`combinations_on_spark` says what more is asked there). A seed is a question:
one to three tables, GROUP BY columns of one or several of them, HAVING, ORDER BY, LIMIT, COUNT(DISTINCT), every
method, ERROR, SIZE, OPTIONS, with and without the default target. Seeds that FILE has are not run again. A value
called exact must be equal; an interval must hold its value as often as it says; every refusal has a code and a way out;
nothing else may be raised. Exits with 1 if not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skimql import Estimate, Settings, SkimqlError
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables

from .questions import Rng, Words, question

# Doubles that stand for ratios of exact sums, and digits that a division leaves.
SLACK = 1e-9


def tables(rng: Rng) -> MemoryTables:
    """Three tables with keys from flat to very skewed, some NULL."""
    found = {}
    for name in "abc":
        # Small tables too: synopses of a key or two, groups of which a sample has seen nothing.
        rows = int(rng.integers(12, 120) if rng.random() < 0.3 else rng.integers(20, 1500))
        skew, keys = float(rng.choice([0.0, 0.0, 1.2, 2.0])), int(rng.choice([5, 60, 700]))

        def column(keys: int = keys, rows: int = rows, skew: float = skew) -> pa.Array:
            drawn = rng.zipf(max(skew, 1.01), rows) % keys if skew else rng.integers(0, keys, rows)
            return pa.array(drawn, pa.int64(), mask=rng.random(rows) < 0.03)

        values = np.rint(rng.lognormal(2, 1, rows)).astype(np.int64) - 3
        found[name] = pa.table(
            {
                "k": column(),
                "l": column(),
                "g": pa.array(rng.integers(0, 4, rows), mask=rng.random(rows) < 0.05),
                "h": pa.array([str(v) for v in rng.choice(["x", "y", "z"], rows)]),
                "v": pa.array(values, mask=rng.random(rows) < 0.05),
            }
        )
    return MemoryTables(found)


def record_of(seed: int) -> dict[str, Any]:
    """What came of one seed."""
    rng = np.random.default_rng(seed)
    backend = MemoryBackend(tables(rng))
    asked = question(Words(rng))
    bare, sql = asked.bare, asked.sql
    settings = Settings(seed=seed, error=None if rng.random() < 0.4 else 0.05, cache=rng.random() < 0.3)
    record: dict[str, Any] = {"seed": seed, "sql": sql, "error": settings.error}
    try:
        run = MemoryRun.of(sql, backend, settings)
        answer = run.answer()
    except SkimqlError as fault:
        refused = fault.code.startswith("SKIMQL_") and bool(fault.hint or fault.code == "SKIMQL_ACCURACY")
        return record | {
            "outcome": "refused",
            "code": fault.code,
            "fault": "" if refused else f"no way out: {fault}",
        }
    except Exception as fault:
        return record | {"outcome": "raised", "fault": f"{type(fault).__name__}: {fault}"}
    exact = MemoryRun.of(bare, backend, replace(settings, error=None)).exact()
    groups = len(run.query.groups)
    truths = {_key(row[:groups]): row for row in exact.rows}
    record |= {
        "outcome": "answered",
        "method": answer.method,
        "rows": len(answer.rows),
        "estimated": 0,
        "missed": 0,
    }
    faults = []
    for row in answer.rows:
        truth = truths.get(_key(row[:groups]))
        for name, cell, true in zip(answer.columns, row, truth or (None,) * len(row), strict=True):
            if isinstance(cell, Estimate):
                _hold(record, faults, name, cell, true, groups > 0 and truth is None)
    return record | {"fault": "; ".join(faults[:3])}


def _hold(
    record: dict[str, Any], faults: list[str], name: str, cell: Estimate, true: Any, absent: bool
) -> None:
    """Compare one value with the exact one; a group that joins nothing counts 0, and sums to NULL."""
    value = math.nan if true is None else float(true.value if isinstance(true, Estimate) else true)
    if absent:
        value = 0.0 if cell.value == cell.value else math.nan
    if cell.exact:
        same = math.isnan(cell.value) if math.isnan(value) else _near(float(cell.value), value)
        if not same:
            faults.append(f"{name} is called exact: {float(cell.value)!r} for {value!r}")
        return
    record["estimated"] += 1
    if math.isnan(value):
        return
    slack = SLACK * abs(value)
    if cell.certified and not cell.low - slack <= value <= cell.high + slack:
        record["missed"] += 1


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= SLACK * max(abs(one), abs(other))


def _key(values: Sequence[Any]) -> str:
    return repr([v.value if isinstance(v, Estimate) else v for v in values])


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, (np.floating, Fraction)) else value


def main() -> int:
    """Run the seeds that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", default="0:200", help="FIRST:LAST")
    parser.add_argument("--backend", choices=("memory", "spark"), default="memory")
    options = parser.parse_args()
    ask = record_of
    if options.backend == "spark":
        from .combinations_on_spark import runner

        ask = runner().record_of
    first, _, last = options.seeds.partition(":")
    found = json.loads(options.json.read_text()) if options.json.exists() else []
    known, started = {r["seed"] for r in found}, time.perf_counter()
    for seed in range(int(first), int(last)):
        if seed in known:
            continue
        begun = time.perf_counter()
        found.append({k: _plain(v) for k, v in ask(seed).items()})
        found[-1]["seconds"] = round(time.perf_counter() - begun, 2)
        if found[-1]["fault"]:
            print(found[-1]["seed"], found[-1]["sql"], found[-1]["fault"], sep="\n  ", file=sys.stderr)
        if seed % 50 == 0:
            print(f"{seed}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
            options.json.write_text(json.dumps(found, indent=0))
    options.json.write_text(json.dumps(found, indent=0))
    outcomes = Counter(r["outcome"] for r in found)
    methods = Counter(r["method"] for r in found if r["outcome"] == "answered")
    estimated, missed = (sum(r.get(name, 0) for r in found) for name in ("estimated", "missed"))
    faults = [r for r in found if r["fault"]]
    codes = Counter(r["code"] for r in found if r["outcome"] == "refused")
    print(f"{len(found):,} questions: {dict(outcomes)}; by {dict(methods)}; refused {dict(codes)}")
    print(f"{estimated:,} estimated values, {missed:,} certified intervals missed; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
