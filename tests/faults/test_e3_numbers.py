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

from skimql import DataError, Session
from skimql.cli.render import render
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.results.columns import arrow_type, typed
from skimql.engine.results.display import format_cell
from skimql.parser.resolve import resolve
from skimql.parser.statement import parse_statement
from skimql.sketches.intervals.interval import Estimate

ROW = (
    "1 AS k, CAST(1 AS TINYINT) AS i8, CAST(2 AS SMALLINT) AS i16, 9007199254740993L AS i, FLOAT(1.5) AS f, 0.1D AS d,"
    " CAST(12345.67 AS DECIMAL(12,2)) AS m, CAST(0.000000000000000016 AS DECIMAL(38,18)) AS w,"
    " CAST(7 AS DECIMAL(5,0)) AS n, '5' AS s, TIMESTAMP '1996-01-01 00:00:00' AS t, DATE '1992-02-03' AS day, true AS ok"
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


@pytest.fixture
def tables(session, spark):
    for name in ("a", "b"):
        session.table(name, spark.sql(f"SELECT {ROW} FROM range(2)"))
    return session


@pytest.mark.spark
def test_types_by_rule_are_those_of_spark(tables):
    items = ", ".join(f"{e} AS x{i}" for i, e in enumerate(EXPRESSIONS))
    analysed = [f.dataType.simpleString() for f in tables.sql(f"SELECT {items} {JOIN}").schema.fields]
    query = resolve(
        parse_statement(f"SELECT APPROXIMATE {items} {JOIN}"),
        tables.tables,
        known=("expression over aggregates", "COUNT(DISTINCT)"),
    )
    told = [i.type for i in query.items]
    assert [(e, t) for e, t in zip(EXPRESSIONS, told, strict=True)] == list(
        zip(EXPRESSIONS, analysed, strict=True)
    )


PATHS = (
    "",
    "OPTIONS (sparse = false, buckets = 64)",
    "ERROR WITHIN 5%",
    "USING key_sample",
    "ERROR WITHIN 0.0001% BEHAVIOR 'run_on_full_table' OPTIONS (sparse = false, buckets = 2, rows = 1)",
)


@pytest.mark.spark
@pytest.mark.parametrize("path", PATHS)
def test_every_path_gives_the_same_types_and_all_digits(tables, path):
    items = (
        "COUNT(*) AS n, SUM(a.m) AS m, AVG(a.m) AS am, SUM(a.k) AS k, AVG(a.k) AS ak, SUM(a.m * b.m) AS mm"
    )
    answer = tables.sql(f"SELECT APPROXIMATE {items} {JOIN} {path}")
    record = answer.records()[0]
    assert {n: record[n] for n in ("n", "m", "am", "k", "ak", "mm")} == {
        "n": 4,
        "m": Decimal("49382.68"),
        "am": Decimal("12345.670000"),
        "k": 4,
        "ak": 1.0,
        "mm": Decimal("609662270.9956"),
    }
    assert [type(record[n]) for n in ("n", "m", "k", "ak", "n_low", "m_high")] == [
        int,
        Decimal,
        int,
        float,
        float,
        float,
    ]
    kinds = {f.name: str(f.type) for f in answer.arrow().schema}
    assert [kinds[n] for n in ("n", "m", "am", "k", "ak", "mm", "n_low", "confidence", "certified")] == [
        *("int64", "decimal128(22, 2)", "decimal128(16, 6)", "int64", "double", "decimal128(35, 4)"),
        *("double", "double", "bool"),
    ]


@pytest.mark.spark
def test_sums_beyond_doubles_keep_their_digits(tables):
    answer = tables.sql(f"SELECT APPROXIMATE SUM(a.i) AS i, SUM(a.w) AS w {JOIN}")
    assert answer.rows[0][0].exact
    record = answer.records()[0]
    assert (record["i"], record["w"]) == (36028797018963972, Decimal("64E-18"))
    out = io.StringIO()
    render(answer, "json", out)
    assert '"i": 36028797018963972' in out.getvalue()
    assert '"w": 0.000000000000000064' in out.getvalue()
    assert answer.df.select("i", "w").first() == (36028797018963972, Decimal("64E-18"))
    assert answer.toPandas()["i"].dtype == "int64"


@pytest.mark.spark
def test_groups_stay_as_spark_gives_them(tables, spark):
    group = "year(a.day), a.t, a.s"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for words in ("", "OPTIONS (sparse = false, buckets = 64)"):
            answer = tables.sql(
                f"SELECT APPROXIMATE {group.replace(')', ') AS y', 1)}, COUNT(*) AS n {JOIN} GROUP BY {group} {words}"
            )
            assert "y = 1992\nt = 1995-12-31 19:00:00\ns = 5\nn = 4" in str(answer)
            assert answer.arrow().schema.types[:3] == [
                pa.int32(),
                pa.timestamp("us", "America/New_York"),
                pa.string(),
            ]
            assert answer.records()[0]["t"] == datetime.datetime(1996, 1, 1, tzinfo=datetime.UTC)
        for output in ("csv", "json", "table", "markdown", "vertical"):
            out = io.StringIO()
            render(answer, output, out)
            assert "1992" in out.getvalue()
            assert "1995-12-31 19:00:00" in out.getvalue()
            assert "+00:00" not in out.getvalue()
        out = io.StringIO()
        render(spark.sql("SELECT 1992 AS y, TIMESTAMP '1996-01-01 00:00:00' AS t, 1e10D AS d"), "table", out)
        assert "1992" in out.getvalue()
        assert "1996-01-01 00:00:00" in out.getvalue()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.spark
def test_comparing_shows_exact_values_everywhere(tables):
    answer = tables.compare(f"SELECT APPROXIMATE a.t AS t, COUNT(*) AS n, SUM(a.w) AS w {JOIN} GROUP BY a.t")
    assert "n = 4 (exact 4, error 0.00 %)" in str(answer)
    assert "0.000000000000000064" in answer._repr_html_()
    assert "exact" in answer._repr_html_()
    record = answer.records()[0]
    assert (record["w_exact"], record["n_exact"], record["w_relative_error"]) == (Decimal("64E-18"), 4, 0.0)
    assert answer.arrow().schema.field("w_exact").type == pa.decimal128(38, 18)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (2.5, "bigint", 2),
        (3.5, "bigint", 4),
        (-0.4, "bigint", 0),
        (1.005, "decimal(10,2)", Decimal("1.01")),
        (-1.005, "decimal(10,2)", Decimal("-1.01")),
        (0.1 + 0.2, "decimal(38,18)", Decimal("0.300000000000000040")),
        (1e300, "double", 1e300),
        (math.nan, "bigint", None),
        (math.inf, "decimal(10,2)", None),
    ],
)
def test_estimates_are_rounded_to_the_type(value, kind, expected):
    estimate = Estimate(value, value, value, 0.95, True, "theorem")
    found = typed(estimate, arrow_type(kind))
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1e19, "bigint"),
        (-1e19, "bigint"),
        (float(1 << 63), "bigint"),
        (1e8, "decimal(10,2)"),
        (40000.0, "smallint"),
    ],
)
def test_what_does_not_fit_is_refused(value, kind):
    with pytest.raises(DataError, match="does not fit") as fault:
        typed(Estimate(value, value, value, 0.95, True, "theorem"), arrow_type(kind))
    assert fault.value.code == "SKIMQL_OVERFLOW"


def test_kept_sketches_answer_in_types_without_spark(tmp_path):
    sizes = {"buckets": 512, "sparse": False}
    lines = kept(
        "s_lines", "lines", {"oid": [1, 1, 2, 9]}, classes=["id"], summed=("price", [5, 6, 7, 8]), **sizes
    )
    remember(Catalog(tmp_path), kept("s_orders", "orders", {"id": range(5)}, **sizes), lines)
    answer = Session(catalog=tmp_path).sql(
        "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s, AVG(l.price) AS a, SUM(l.price) / COUNT(*) AS r,"
        " lower_bound(COUNT(*)) AS low FROM orders o JOIN lines l ON o.id = l.oid"
    )
    assert [str(t) for t in answer.types] == ["int64", "int64", "double", "double", "double"]
    assert (answer.records()[0]["n"], answer.records()[0]["s"], answer.records()[0]["a"]) == (3, 18, 6.0)


def test_arithmetic_on_exact_sums_keeps_their_digits(tmp_path):
    lines = kept("s_lines", "lines", {"oid": [1, 1]}, classes=["id"], summed=("price", [1 << 60, 1]))
    remember(Catalog(tmp_path), kept("s_orders", "orders", {"id": range(5)}), lines)
    items = "SUM(l.price) - 1 AS less, SUM(l.price) + 0.1 AS more, SUM(l.price) * 3 / 2 AS half, AVG(l.price) AS mean"
    answer = Session(catalog=tmp_path).sql(
        f"SELECT APPROXIMATE {items} FROM orders o JOIN lines l ON o.id = l.oid"
    )
    assert list(answer.records()[0].values())[::3] == [
        1 << 60,
        Decimal((1 << 60) + 1) + Decimal("0.1"),
        1.5 * 2**60,
        2.0**59,
        True,
    ]
    assert isinstance(answer.rows[0][3].value, float)


def test_numbers_for_people():
    assert (
        format_cell(Estimate(283412.7, 276100.0, 290700.0, 0.95, True, "theorem"), pa.int64())
        == "283,400 ± 7,400"
    )
    assert format_cell(Estimate(0.4, 0.2, 0.7, 0.95, True, "theorem"), pa.int64()) == "0 ± 1"
    assert format_cell(1992) == "1992"
    assert format_cell(None) == "NULL"
    assert format_cell(math.nan) == "NaN"


def test_strict_json_of_every_value():
    from skimql import Answer

    row = (
        1 << 60,
        Decimal("0.10"),
        math.nan,
        -math.inf,
        None,
        True,
        b"ab",
        datetime.date(1992, 2, 3),
        {"a": [math.nan, 'x"']},
    )
    answer = Answer(tuple("abcdefghi"), (row,), exact=True)
    out = io.StringIO()
    render(answer, "jsonl", out)
    assert json.loads(out.getvalue(), parse_constant=lambda c: pytest.fail(f"{c} is no JSON")) == {
        **{
            "a": 1 << 60,
            "b": 0.1,
            "c": None,
            "d": None,
            "e": None,
            "f": True,
            "g": "YWI=",
            "h": "1992-02-03",
        },
        "i": {"a": [None, 'x"']},
    }
