"""Random questions with random clauses, run in memory by the product's own plans and held against the exact answer.

``python -m benchmarks.combinations --json FILE [--seeds FIRST:LAST]``. A seed is a question: one to three tables,
GROUP BY columns of one or several of them, HAVING, ORDER BY, LIMIT, COUNT(DISTINCT), every method, ERROR, SIZE,
OPTIONS, with and without the default target. Seeds that FILE has are not run again. A value called exact must be
equal; an interval must hold its value as often as it says; every refusal has a code and a way out; nothing else may
be raised. Exits with 1 if not.
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
from skimql.optimizer.methods import NAMED

Rng = np.random.Generator
# Doubles that stand for ratios of exact sums, and digits that a division leaves.
SLACK = 1e-9


def tables(rng: Rng) -> MemoryTables:
    """Three tables with keys from flat to very skewed, some NULL."""
    found = {}
    for name in "abc":
        rows = int(rng.integers(20, 1500))
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


def question(rng: Rng) -> tuple[str, list[str]]:
    """A SELECT APPROXIMATE, and what stands between it and its clauses: HAVING, ORDER BY, LIMIT."""

    def one_of(*choices: str) -> str:
        return str(rng.choice(choices))

    names = [one_of("a", "b", "c") for _ in range(int(rng.choice([1, 2, 2, 2, 3, 3])))]
    aliases = [f"t{i}" for i in range(len(names))]
    text = f"{names[0]} t0"
    for i in range(1, len(names)):
        parent, left, right = one_of(*aliases[:i]), one_of("k", "k", "l"), one_of("k", "k", "l")
        text += f" JOIN {names[i]} t{i} ON {parent}.{left} = t{i}.{right}"
    where = [f"{one_of(*aliases)}.v > {rng.integers(-2, 15)}" for _ in range(int(rng.choice([0, 0, 1])))]
    makers = (
        lambda: "COUNT(*)",
        lambda: f"COUNT({one_of(*aliases)}.v)",
        lambda: f"SUM({one_of(*aliases)}.v)",
        lambda: f"AVG({one_of(*aliases)}.v)",
        lambda: f"SUM({one_of(*aliases)}.v * {one_of(*aliases)}.g)",
        lambda: f"SUM({one_of(*aliases)}.v) / COUNT(*)",
    )
    items = [makers[int(rng.integers(len(makers)))]() for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.15:
        items = [
            f"COUNT(DISTINCT {one_of(*aliases)}.{one_of('k', 'l', 'v')})",
            *items[: int(rng.integers(0, 2))],
        ]
    groups = [f"{one_of(*aliases)}.{one_of('g', 'h')}" for _ in range(int(rng.choice([0, 0, 1, 1, 2])))]
    groups = list(dict.fromkeys(groups))
    behind = []
    if rng.random() < 0.25:
        behind.append(f"HAVING COUNT(*) > {int(rng.choice([0, 10, 1000]))}")
    if groups and rng.random() < 0.3:
        behind.append(f"ORDER BY {one_of('1', str(len(groups) + 1))} {one_of('ASC', 'DESC')}")
    if rng.random() < 0.15:
        behind.append(f"LIMIT {int(rng.integers(0, 6))}")
    select = ", ".join([*groups, *(f"{item} AS i{n}" for n, item in enumerate(items))])
    body = f"SELECT APPROXIMATE {select} FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")
    return body + (f" GROUP BY {', '.join(groups)}" if groups else ""), behind


def clauses(rng: Rng) -> str:
    """What is asked beside the question."""
    parts = []
    if rng.random() < 0.35:
        parts.append(f"ERROR WITHIN {rng.choice([1, 5, 20, 50])}%")
    if rng.random() < 0.35:
        parts.append(f"USING {rng.choice(NAMED)}")
    if rng.random() < 0.25:
        parts.append(f"SIZE {rng.choice([1, 8, 64, 512])} KB")
    if rng.random() < 0.2:
        parts.append(
            f"OPTIONS (buckets = {rng.choice([32, 256, 4096])}, sparse = {rng.choice(['true', 'false'])})"
        )
    return " ".join(parts)


def record_of(seed: int) -> dict[str, Any]:
    """What came of one seed."""
    rng = np.random.default_rng(seed)
    backend = MemoryBackend(tables(rng))
    bare, behind = question(rng)
    sql = " ".join([bare, *behind, clauses(rng)]).rstrip()
    settings = Settings(seed=seed, error=None if rng.random() < 0.4 else 0.05)
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
    options = parser.parse_args()
    first, _, last = options.seeds.partition(":")
    found = json.loads(options.json.read_text()) if options.json.exists() else []
    known, started = {r["seed"] for r in found}, time.perf_counter()
    for seed in range(int(first), int(last)):
        if seed in known:
            continue
        found.append({k: _plain(v) for k, v in record_of(seed).items()})
        if found[-1]["fault"]:
            print(found[-1]["seed"], found[-1]["sql"], found[-1]["fault"], sep="\n  ", file=sys.stderr)
        if seed % 100 == 0:
            print(f"{seed}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
            options.json.write_text(json.dumps(found, indent=0))
    options.json.write_text(json.dumps(found, indent=0))
    outcomes = Counter(r["outcome"] for r in found)
    methods = Counter(r["method"] for r in found if r["outcome"] == "answered")
    estimated, missed = (sum(r.get(name, 0) for r in found) for name in ("estimated", "missed"))
    faults = [r for r in found if r["fault"]]
    print(f"{len(found):,} questions: {dict(outcomes)}; by {dict(methods)}")
    print(f"{estimated:,} estimated values, {missed:,} certified intervals missed; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
