"""Random supported queries over small random tables against Spark's own exact answer.

With exact maps every number must agree. Without them the exact value must lie in the interval as often as promised:
a row of a sketch on tables of a few keys is exact unless two of its keys share one of 4,096 buckets, so a miss is far
rarer than the 5 % allowed; the bound is for 5 %, with a false failure below 1e-6.

`SKIMQL_RANDOM_QUERIES=2000 pytest tests/engine/test_random_queries.py` is the long run of docs/language.md.
"""

from __future__ import annotations

import math
import os
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from support.exact import exact_answers
from support.seeds import ManySeeds
from support.theory import most_misses

from skimql import UnsupportedQuery

pytestmark = pytest.mark.spark

QUERIES = int(os.environ.get("SKIMQL_RANDOM_QUERIES", "60"))
TABLES_EVERY = 20
# Spark rounds AVG of a DECIMAL(8,2) to six places; we do not.
ROUNDED = 0.51e-6
SCHEMA = pa.schema(
    [("k", pa.int32()), ("l", pa.int64()), ("s", pa.string()), ("v", pa.int32()), ("d", pa.decimal128(8, 2))]
)


def random_rows(rng):
    def cell(values):
        return None if rng.random() < 0.15 else values[rng.integers(len(values))]

    return [
        (
            cell([0, 1, 2, 3]),
            cell([1, 2, 3, 10**12]),
            cell(["a", "b", "C", ""]),
            cell([-3, 0, 4, 7]),
            None if rng.random() < 0.1 else Decimal(int(rng.integers(-500, 500))) / 100,
        )
        for _ in range(rng.integers(1, 20))
    ]


def random_query(rng):
    """FROM, conditions and a few aggregates over one to four occurrences of three tables."""

    def one_of(*choices):
        return str(rng.choice(choices))

    number = int(rng.integers(1, 5))
    aliases = [f"t{i}" for i in range(number)]
    sources = [
        one_of("a", "b", "c", "(SELECT k, l, s, v + 1 AS v, d FROM a WHERE v IS NOT NULL)") for _ in aliases
    ]
    on = []
    for i in range(1, number):
        other = aliases[rng.integers(i)]
        mine = aliases[i]
        on.append(
            one_of(
                f"{mine}.k = {other}.k",
                f"{mine}.l = {other}.k",
                f"{mine}.s = {other}.s",
                f"{mine}.k = {other}.k AND {mine}.s = {other}.s",
                f"{mine}.k + 1 = {other}.l",
                f"upper({mine}.s) = {other}.s",
            )
        )
    joined = f"{sources[0]} {aliases[0]}"
    for source, alias, condition in zip(sources[1:], aliases[1:], on, strict=True):
        joined += f" JOIN {source} {alias} ON {condition}"
    where = []
    for _ in range(rng.integers(0, 3)):
        alias = aliases[rng.integers(number)]
        where.append(
            one_of(
                f"{alias}.v > 0",
                f"{alias}.s IN ('a', 'b')",
                f"({alias}.k = 1 OR {alias}.d < 0)",
                f"{alias}.v IS NOT NULL",
                f"NOT {alias}.k BETWEEN 1 AND 2",
                f"{alias}.s LIKE '%a%'",
            )
        )
    items = []
    for i in range(rng.integers(1, 4)):
        x, y = (aliases[rng.integers(number)] for _ in range(2))
        items.append(
            one_of(
                "COUNT(*)",
                f"COUNT({x}.v)",
                f"SUM({x}.v)",
                f"AVG({x}.v)",
                f"SUM({x}.v * {y}.k)",
                f"SUM({x}.v + {y}.v)",
                f"SUM({x}.d)",
                f"AVG({x}.d)",
                f"SUM(CASE WHEN {x}.k > 1 THEN {x}.v ELSE 0 END)",
                f"SUM({x}.v * (1 - {y}.k))",
                f"COUNT({x}.s) + COUNT(*)",
                f"COUNT(DISTINCT {x}.k)",
                f"COUNT(DISTINCT {x}.s, {x}.v)",
                f"COUNT(DISTINCT {x}.l, {y}.s)",
            )
            + f" AS r{i}"
        )
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"{', '.join(items)} FROM {joined}{condition}"


def scanned(session, queries, refused):
    """Each query with its columns as Spark computed them, in one scan a table; what is refused goes into the list."""
    plans = {}
    for query in queries:
        try:
            plans[query] = session.plan(f"SELECT APPROXIMATE {query}").build
        except UnsupportedQuery as error:
            refused.append((error.code, query))
    return dict(zip(plans, ManySeeds.of_several(session, list(plans.values())), strict=True))


def test_random_queries_agree_with_spark(session):
    rng = np.random.default_rng(20261127)
    refused, answered = [], []
    for _ in range(0, QUERIES, TABLES_EVERY):
        for name in "abc":
            # From Arrow Spark makes a local relation, which it reads without starting a job.
            columns = zip(*random_rows(rng), strict=True)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
            session.table(name, session.spark.createDataFrame(pa.Table.from_arrays(arrays, schema=SCHEMA)))
        found = scanned(session, [random_query(rng) for _ in range(TABLES_EVERY)], refused)
        truths = exact_answers(session, found)
        answered += [
            (q, many, [None if v is None else float(v) for v in truths[q][0]]) for q, many in found.items()
        ]
    values = misses = 0
    for number, (query, many, truth) in enumerate(answered):
        exact = many.answer(1).rows[0]
        got = [None if math.isnan(c.value) else c.value for c in exact]
        assert got == [None if t is None else pytest.approx(t, rel=1e-9, abs=ROUNDED) for t in truth], query
        assert all(c.exact for c in exact), query
        sketched = many.answer(number, sparse=False).rows[0]
        for cell, right in zip(sketched, truth, strict=True):
            if right is not None:
                values += 1
                slack = ROUNDED + 1e-9 * abs(right)
                known = not math.isnan(cell.value)
                misses += not (cell.low - slack <= right <= cell.high + slack) if known else 0
    print(f"{QUERIES} queries, {len(refused)} refused, {values} values, {misses} outside their interval")
    # Cyclic joins are refused, and values of two tables with others between them; nothing else that this generator writes.
    assert {code for code, _ in refused} <= {"SKIMQL_CYCLIC_JOIN", "SKIMQL_DISTINCT_JOIN"}, refused
    assert len(refused) < QUERIES / 4
    assert misses <= most_misses(values, 0.05)
