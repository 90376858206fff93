"""Values keep the types that Spark gives them, on every path: years as years, counts as BIGINT, sums with all digits."""

from __future__ import annotations

import datetime
import io
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from support.kept import kept, remember

from skimql import DataError, Session, format_cell
from skimql.cli.render import render
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.result import arrow_type, typed
from skimql.parser.resolve import resolve
from skimql.parser.statement import parse_statement
from skimql.sketches.interval import Estimate

COLUMNS = (
    "k INT, i8 TINYINT, i16 SMALLINT, i BIGINT, f FLOAT, d DOUBLE, m DECIMAL(12,2), w DECIMAL(38,18),"
    " n DECIMAL(5,0), s STRING, c CHAR(3), t TIMESTAMP, day DATE, ok BOOLEAN"
)
JOIN = "FROM a JOIN b ON a.k = b.k"

EXPRESSIONS = (
    *("COUNT(*)", "COUNT(a.s)", "COUNT(DISTINCT a.s)", "SUM(a.k)", "SUM(a.i8)", "SUM(a.i)", "SUM(a.f)", "SUM(a.d)"),
    *("SUM(a.m)", "SUM(a.w)", "SUM(a.n)", "SUM(a.s)", "AVG(a.k)", "AVG(a.i8)", "AVG(a.f)", "AVG(a.m)", "AVG(a.w)", "AVG(a.n)"),
    *("SUM(a.k + 1)", "SUM(a.k * 0.5)", "SUM(a.m * 2)", "SUM(a.m * (1 - b.m))", "SUM(a.m / 3)", "SUM(a.k / 2)", "SUM(-a.m)"),
    *("SUM(a.m + a.n)", "SUM(a.m - a.w)", "SUM(a.w * a.w)", "SUM(a.m * 1e2)", "SUM(a.i * a.k)", "SUM(a.m * a.k)", "SUM(2.50)"),
    *("SUM(a.k) / COUNT(*)", "SUM(a.m) / COUNT(*)", "SUM(a.m) * 1.10", "COUNT(*) * 2", "COUNT(*) / 2", "-SUM(a.m)"),
    *("SUM(CAST(a.s AS DECIMAL(10,4)))", "SUM(CASE WHEN a.ok THEN a.m ELSE 0 END)", "SUM(CASE WHEN a.ok THEN 1 END)"),
    *("SUM(COALESCE(a.m, 0))", "SUM(CASE WHEN a.ok THEN a.k ELSE 0.25 END)", "AVG(a.m * 1.5)", "SUM(a.m) FILTER (WHERE a.ok)"),
    *("SUM(a.m % 7)", "SUM(abs(a.m))", "SUM(0.05 * a.m)", "SUM(a.k * 3000000000)", "SUM(IF(a.ok, a.i8, a.i16))"),
)  # fmt: skip


def schema_of(frame):
    return {f.name: f.dataType.simpleString() for f in frame.schema.fields}


@pytest.fixture
def tables(session, spark):
    row = (
        "1, CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 9007199254740993L, FLOAT(1.5), 0.1D, 12345.67BD, 0.000000000000000016BD,"
        " 7BD, '5', 'ab', TIMESTAMP '1996-01-01 00:00:00', DATE '1992-02-03', true"
    )
    for name in ("a", "b"):
        session.table(name, spark.sql(f"SELECT {typed_row(row)} FROM range(2)"))
    return session


def typed_row(row):
    names = [c.split()[0] for c in COLUMNS.replace("DECIMAL(12,2)", "M").replace("DECIMAL(38,18)", "W").split(", ")]
    kinds = ["INT", "TINYINT", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12,2)", "DECIMAL(38,18)", "DECIMAL(5,0)"]
    kinds += ["STRING", "CHAR(3)", "TIMESTAMP", "DATE", "BOOLEAN"]
    parts, depth, start = [], 0, 0
    for i, c in enumerate(row + ","):
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append(row[start:i])
            start = i + 1
    kinds = ["STRING" if k.startswith("CHAR") else k for k in kinds]
    return ", ".join(f"CAST({p} AS {k}) AS {n}" for p, k, n in zip(parts, kinds, names, strict=True))


@pytest.mark.spark
def test_types_by_rule_are_those_of_spark(tables, spark):
    items = ", ".join(f"{e} AS x{i}" for i, e in enumerate(EXPRESSIONS))
    analysed = list(schema_of(spark.sql(f"SELECT {items} {JOIN}")).values())
    query = resolve(
        parse_statement(f"SELECT APPROXIMATE {items} {JOIN}"), tables.tables, known=("expression over aggregates", "COUNT(DISTINCT)")
    )
    told = [i.type for i in query.items]
    assert [(e, t) for e, t in zip(EXPRESSIONS, told, strict=True)] == list(zip(EXPRESSIONS, analysed, strict=True))


