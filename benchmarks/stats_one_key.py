"""Two-level synopses on the one-key queries of STATS-CEB (filters by DuckDB, synopses by us).

``python -m benchmarks.stats_one_key FOLDER`` reads ``queries.json`` and the Parquet tables from FOLDER. The
data is Stack Exchange content (CC BY-SA) and not part of this project.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from .trials import Record, record
from .two_level import Table, jointly, sampled

EQUALITY = re.compile(r"^(\w+)\.(\w+)\s*=\s*(\w+)\.(\w+)$")
PERCENTILES = (50, 90, 95, 99)


def stats_one_key(folder: Path, budgets: Sequence[int] = (16_384, 102_400), seeds: int = 20) -> list[Record]:
    """Estimate every one-key query with every budget (bytes, split evenly over its tables).

    Returns
    -------
    list of dict
        Two records for each query and budget, ``two_level`` and ``key sample``.
    """
    records = []
    for query in json.loads((folder / "queries.json").read_text()):
        tables = one_key_tables(query["sql"], folder)
        if tables is None:
            continue
        for budget in budgets:
            each = budget // len(tables)
            two_level = [jointly(tables, seed, each) for seed in range(seeds)]
            plain = [sampled(tables, seed, each // 16) for seed in range(seeds)]
            data = {"query": query["id"], "tables": len(tables), "bytes": budget}
            for method, estimates in (("two-level", [e for e, _, _ in two_level]), ("key sample", plain)):
                records.append(record("stats", method, each // 8, data, estimates, float(query["true"])))
            records[-2]["rest"] = [plan.method for _, plan, _ in two_level]
    return records


def one_key_tables(sql: str, folder: Path) -> list[Table] | None:
    """Distinct join keys and their counts in each table; None if the query joins on more than one key."""
    source, condition = re.match(r"SELECT COUNT\(\*\) FROM (.*) WHERE (.*)$", sql, re.IGNORECASE).groups()
    aliases = dict(part.strip().split(" as ")[::-1] for part in source.split(","))
    filters, joins = defaultdict(list), []
    for predicate in re.split(r"\s+AND\s+", condition):
        match = EQUALITY.match(predicate.strip())
        if match:
            joins.append(((match[1], match[2]), (match[3], match[4])))
        else:
            filters[predicate.strip().split(".")[0]].append(predicate)
    ends = {end for join in joins for end in join}
    if len(ends) != len(aliases) or len({alias for alias, _ in ends}) != len(aliases):
        return None
    columns = dict(ends)
    return [
        counted(folder / f"{name}.parquet", alias, columns[alias], filters[alias])
        for alias, name in aliases.items()
    ]


def counted(path: Path, alias: str, column: str, filters: Sequence[str]) -> Table:
    """Keys and counts of one filtered table, keys ascending."""
    conditions = " AND ".join([f"{alias}.{column} IS NOT NULL", *filters])
    found = duckdb.sql(
        f"SELECT {alias}.{column} AS key, COUNT(*) AS n FROM read_parquet('{path}') AS {alias} "
        f"WHERE {conditions} GROUP BY 1 ORDER BY 1"
    ).fetchnumpy()
    return found["key"].astype(np.int64), found["n"].astype(np.int64)


def summary(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Percentiles of the relative error over queries and seeds, and coverage, for each budget and method."""
    lines = []
    for budget, method in sorted({(r["parameters"]["bytes"], r["method"]) for r in records}):
        chosen = [r for r in records if (r["parameters"]["bytes"], r["method"]) == (budget, method)]
        errors = np.concatenate([r["errors"] for r in chosen])
        lines.append(
            {
                "bytes": budget,
                "method": method,
                "queries": len(chosen),
                "percent": [round(100 * float(p), 2) for p in np.percentile(errors, PERCENTILES)],
                "coverage": float(np.mean([r["coverage"] for r in chosen])),
                "median_half_width_percent": 100 * float(np.median([r["mean_width"] for r in chosen])),
            }
        )
    return lines


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    records = stats_one_key(chosen.folder, seeds=chosen.seeds)
    for line in summary(records):
        print(json.dumps(line))
    if chosen.json:
        chosen.json.write_text(json.dumps(records))


if __name__ == "__main__":
    main()
