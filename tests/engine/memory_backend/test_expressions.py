"""Expressions in memory against Spark: the same values and types, or a refusal; never another value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as D

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.expressions import evaluate
from skimql.engine.memory_backend.values import NOT_IN_MEMORY, ValueFault
from skimql.errors import UnsupportedQuery

NAN, INF = math.nan, math.inf
N = 8
TABLE = pa.table(
    {
        "i": pa.array([None, 0, 1, -1, 7, -7, 30000, -30000], pa.int32()),
        "k": pa.array([3, 3, None, 2, 2, -2, 5, 1], pa.int32()),
        "tiny": pa.array([1, -128, 127, None, 0, 3, 4, 5], pa.int8()),
        "j": pa.array([1, None, 9007199254740993, -5, 0, 2**40, -(2**40), 11], pa.int64()),
        "d": pa.array(
            [D("0.01"), D("-0.05"), None, D("99999999.99"), D("2.50"), D("3.50"), D("-2.50"), D("0")],
            pa.decimal128(10, 2),
        ),
        "e": pa.array(
            [
                D("1"),
                D("123456789012345678901.123456"),
                D("-0.000001"),
                None,
                D("7.5"),
                D("0.5"),
                D("-0.5"),
                D("3"),
            ],
            pa.decimal128(30, 6),
        ),
        "x": pa.array([1.5, -0.0, NAN, INF, -INF, None, 2.5, -2.5], pa.float64()),
        "y": pa.array([2.0, 0.5, 1e300, NAN, 3.0, 4.0, -1.25, 1e-300], pa.float64()),
        "f": pa.array([0.1, -0.0, NAN, None, 2.5, 16777217.0, -1e30, 3.0], pa.float32()),
        "s": pa.array(["", "a", "Ab", None, " x ", "a%b", "été", "a_b\n"], pa.string()),
        "u": pa.array(["a", "b", "ab", "x", None, "a%", "é", "B"], pa.string()),
        "w": pa.array(["1", " 2 ", "-3", "+4", None, "0", "12", "100"], pa.string()),
        "day": pa.array(
            [
                dt.date(1970, 1, 1),
                dt.date(1969, 12, 31),
                None,
                dt.date(2024, 2, 29),
                dt.date(2000, 1, 1),
                dt.date(1900, 3, 1),
                dt.date(2099, 12, 31),
                dt.date(2023, 12, 31),
            ],
            pa.date32(),
        ),
        "dtext": pa.array(
            ["1970-01-01", "2024-2-9", None, "2024-02-29", "2000-01-01 ", "1999", "2001-05", "2023-12-31"],
            pa.string(),
        ),
        "t": pa.array(
            [
                0,
                -1,
                None,
                1709210096123456,
                951782400000000,
                -2203891200000001,
                3_600_000_000,
                1704067199999999,
            ],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array(
            [0, -1, 1709210096123456, None, 951782400000000, 5, 3_600_000_000, 1704067199999999],
            pa.timestamp("us"),
        ),
        "b": pa.array([True, False, None, True, False, None, True, False], pa.bool_()),
        "c": pa.array([True, True, True, None, False, False, None, None], pa.bool_()),
        "y2": pa.array([b"", b"\x00", b"a", None, b"\xff", b"b", b"ab", b"a"], pa.binary()),
    }
)
NUMBERS = ("i", "tiny", "j", "d", "e", "x", "f", "2", "2.5", "3L", "1.5D", "NULL")
FEW = ("k", "d", "y", "-1", "1e1", "1.50BD")

COLUMNS = {"int": "ik", "text": "su"}


def _expressions():
    for a in NUMBERS:
        for b in NUMBERS:
            if a != "NULL" or b != "NULL":
                yield from (f"{a} + {b}", f"{a} * {b}", f"{a} = {b}", f"{a} < {b}")
        for b in FEW:
            yield from (f"{b} - {a}", f"{a} >= {b}", f"{a} <=> {b}")
    for a in ("i", "j", "d", "e", "x", "f", "1.5", "7"):
        for b in ("nullif(k, 0)", "nullif(d, 0)", "4", "0.3", "nullif(y, 0)", "1e1"):
            yield f"{a} / {b}"
            yield f"{a} % {b}"
        yield from (
            f"{a} div 3",
            f"-{a}" if not a[0].isdigit() else f"-({a})",
            f"abs({a})",
            f"round({a}, 1)",
            f"round({a})",
        )
        yield from (f"floor({a})", f"ceil({a})", f"sqrt(abs({a}))", f"sign({a})", f"isnan({a})")
        yield from (f"cast({a} as {t})" for t in ("double", "decimal(30,3)", "string", "float"))
        yield from (
            f"{a} IS NULL",
            f"{a} IS NOT NULL",
            f"coalesce({a}, k)",
            f"coalesce(NULL, {a}, 1.5)",
            f"nullif({a}, 7)",
        )
        yield from (
            f"greatest({a}, k)",
            f"least({a}, 2.5, k)",
            f"{a} BETWEEN 0 AND 3",
            f"{a} NOT BETWEEN k AND 3",
            f"{a} IN (1, 7, 2.5)",
            f"{a} NOT IN (1, NULL)",
        )
        yield from (
            f"CASE WHEN {a} > 1 THEN {a} WHEN k > 2 THEN k ELSE 0 END",
            f"IF({a} > 1, {a}, NULL)",
            f"CASE {a} WHEN 1 THEN 'one' WHEN 7 THEN 'x' END",
        )
    for kind in ("tinyint", "smallint", "int", "bigint", "boolean"):
        yield from (
            f"cast(k as {kind})",
            f"cast(nullif(d, 99999999.99) as {kind})",
            f"cast(cast(nullif(i, 30000) + 30000 as bigint) % 100 as {kind})",
            f"cast(trim(w) as {kind})" if kind != "boolean" else "cast('yes' as boolean)",
            f"cast(b as {kind})",
        )
        yield f"cast(y2 is null as {kind})"
    yield from (
        "cast(w as decimal(5,1))",
        "cast(w as double)",
        "w + 1",
        "w + 1.5",
        "w * 2L",
        "w = 12",
        "w > 1.5",
        "1 = w",
        "w = 'a'",
        "w / 2",
        "-w",
    )
    yield from (
        "cast(cast(x as decimal(10,3)) as int)" if False else "cast(y as float)",
        "cast(f as double)",
        "cast(i as float)",
    )
    for a in ("s", "u", "'a'", "upper(u)" if False else "u"):
        yield from (
            f"length({a})",
            f"trim({a})",
            f"ltrim({a})",
            f"rtrim({a})",
            f"substring({a}, 1, 1)",
            f"substring({a}, -2)",
            f"substring({a}, 0, 2)",
            f"substr({a}, 2)",
            f"concat({a}, '-', u)",
        )
        yield from (
            f"replace({a}, 'a', 'bb')",
            f"startswith({a}, 'a')",
            f"endswith({a}, 'b')",
            f"contains({a}, '%')",
        )
        yield from (
            f"{a} LIKE 'a%'",
            f"{a} LIKE '%'",
            f"{a} LIKE 'a_b_'",
            f"{a} NOT LIKE '_'",
            f"{a} LIKE 'a\\\\%b'",
            f"{a} LIKE 'a!%%' ESCAPE '!'",
            f"{a} LIKE ''",
            f"{a} ILIKE 'A%'" if a != "s" and a != "u" else f"{a} LIKE '%b'",
        )
        yield from (
            f"{a} = u",
            f"{a} < u",
            f"{a} >= 'a'",
            f"{a} IN ('a', 'b')",
            f"{a} BETWEEN 'A' AND 'b'",
            f"coalesce({a}, 'none')",
            f"nullif({a}, 'a')",
            f"CASE WHEN {a} > 'a' THEN {a} END",
            f"trim('a' from {a})",
            f"{a} <=> NULL",
            f"length(concat({a}, cast(k as string)))",
            f"{a} IS NULL OR {a} = ''",
        )
    yield from (
        "upper(dtext)",
        "length(y2)",
        "lower('ABC')",
        "upper(nullif(nullif(s, 'été'), 'x'))",
        "'it\\'s'",
        "'a\\tb'",
        "'a\\\\b'",
        '"dq"',
        "concat('a', 1, d)",
        "concat(day, '')",
        "concat(b)",
    )
    for a in ("day", "t", "n", "dtext"):
        yield from (
            f"{p}({a})" for p in ("year", "month", "day", "dayofmonth", "quarter", "dayofweek", "dayofyear")
        )
        yield from (
            f"{a} = '2024-02-29'",
            f"{a} > DATE '1999-12-31'",
            f"{a} BETWEEN DATE '1970-01-01' AND '2024-12-31'",
            f"cast({a} as date)",
            f"{a} IN (DATE '2000-01-01')" if a != "dtext" else f"to_date({a})",
            f"datediff({a}, DATE '2000-01-01')",
            f"date_add({a}, 3)",
            f"EXTRACT(YEAR FROM {a})",
            f"extract(month FROM {a})",
            f"date_sub({a}, k)",
            f"to_date({a})",
        )
        if a != "dtext":
            yield from (
                f"cast({a} as string)",
                f"cast({a} as timestamp)",
                f"cast({a} as timestamp_ntz)",
                f"{a} < TIMESTAMP '2000-02-29 00:00:00'",
                f"{a} IS NULL",
            )
        if a in ("t", "n"):
            yield from (f"hour({a})", f"minute({a})", f"second({a})")
    yield from (
        "cast(t as bigint)",
        "t = n",
        "day < t",
        "day = n",
        "greatest(day, DATE '2000-01-01')",
        "coalesce(day, DATE '2000-01-01')",
        "year(day) * 100 + month(day)",
        "cast(dtext as timestamp)",
        "day + INTERVAL '1' YEAR",
        "day - INTERVAL 14 MONTHS",
        "day + INTERVAL '2' DAY - INTERVAL '1' MONTH",
        "day < DATE '2024-02-29' + INTERVAL '-12' MONTH",
        "day BETWEEN DATE '2023-12-31' - INTERVAL '1' DAY AND DATE '2099-12-31'",
    )
    yield from ("i < k IS NULL", "NOT i < k IS NULL", "NOT i = k")
    for a in ("b", "c", "i > 0", "NULL", "TRUE"):
        for b in ("b", "c", "k > 2", "FALSE"):
            yield from (
                f"({a}) AND ({b})",
                f"({a}) OR ({b})",
                f"NOT ({a}) AND {b}",
                f"({a}) = ({b})",
                f"({a}) <=> ({b})",
            )
        yield from (f"({a}) IS TRUE", f"({a}) IS NOT TRUE", f"({a}) IS FALSE", f"({a}) IS NULL", f"NOT ({a})")
    yield from (
        "b < c",
        "b IN (TRUE)",
        "isnull(b)",
        "isnotnull(i)",
        "pmod(i, 3)",
        "pmod(i, -3)",
        "nvl(i, k)",
        "ifnull(i, 1L)",
        "nvl2(i, k, 2.5)",
        "mod(i, 4)",
        "y2 = y2",
        "y2 < X'61'" if False else "y2 IS NULL",
    )
    yield from ("CASE s WHEN 'a' THEN u WHEN 'Ab' THEN 'it' END", "s IN ('a', 'it\\'s') OR s = 'a%b'")
    # What stands behind a condition is evaluated where that does not decide.
    yield from (
        "i <> 0 AND 7 % i = 0",
        "i = 0 OR 7 / i > 1",
        "CASE WHEN i <> 0 THEN 7 / i END",
        "IF(k IS NULL, 0, 1 / k)",
        "coalesce(k, 1 / 0)",
        "u = 'nothing' AND cast(u as int) = 1",
        "CASE WHEN FALSE THEN cast(s as int) ELSE 1 END",
    )
    yield from (
        "2147483647 + 1L",
        "2147483648",
        "99999999999999999999",
        "1.",
        ".5",
        "00.10",
        "123456789.123456789 * 987654321.987654321",
        "1/3",
        "1.0/3",
        "2/3.000",
        "e * e",
        "e * 1.0000000001",
        "e + 0.00000001",
        "d * d * d",
        "d * d * d * d * d",
        "(1 - 0.05) * (1 + d) * e",
        "d / 3",
        "100 * d / 7",
        "e / d" if False else "e / 7",
        "d - d",
        "d % 0.3",
        "e % 7",
        "cast(1.005 as decimal(3,2))",
        "cast(-1.005 as decimal(3,2))",
        "cast(2.5 as int)",
        "cast(-2.5 as int)",
        "cast(2.5e0 as bigint)",
        "cast(0.1 as double)",
        "cast(12345678901234567890.5 as double)",
        "1e0",
        "1e-3",
        "1E5",
    )


# What Spark cannot compute either on one of the tuples.
FAULTS = (
    "tiny + tiny",
    "tiny * tiny",
    "j * j",
    "e * e",
    "d * d * d * d * d",
    "coalesce(k, 1 / 0)",
    "cast(f as decimal(30,3))",
)
EXPRESSIONS = list(dict.fromkeys(e for e in _expressions() if e not in FAULTS))


def _plain(column):
    """Values that are equal where they are the same, NaN and -0.0 too."""
    return [repr(v) if isinstance(v, float) else v for v in column.to_pylist()]


def test_values_and_types_are_those_of_spark(spark):
    in_zone = pa.schema(
        [f if f.name != "n" else pa.field("n", pa.timestamp("us", "UTC")) for f in TABLE.schema]
    )
    names = ", ".join(n if n != "n" else "CAST(n AS TIMESTAMP_NTZ) AS n" for n in TABLE.column_names)
    frame = spark.createDataFrame(TABLE.cast(in_zone)).selectExpr(*names.split(", ")).coalesce(1)
    known, refused = _evaluated()
    texts = list(known)
    found = frame.selectExpr(*(f"{text} AS c{n}" for n, text in enumerate(texts)))
    kinds = [f.dataType.simpleString() for f in found.schema.fields]
    rows = found.toArrow()
    wrong = {}
    for n, text in enumerate(texts):
        own, theirs = _plain(known[text].data), _plain(rows[n])
        if known[text].kind != kinds[n] or own != theirs:
            wrong[text] = (known[text].kind, kinds[n], own, theirs)
    assert not wrong, "\n".join(f"{text}: {found}" for text, found in wrong.items())
    assert len(texts) >= 1000
    assert len(refused) <= 20, refused


def _evaluated():
    known, refused = {}, []
    for text in EXPRESSIONS:
        try:
            known[text] = evaluate(text, TABLE)
        except UnsupportedQuery:
            refused.append(text)
    return known, refused


@pytest.mark.parametrize(
    "text",
    [
        *FAULTS,
        *(
            "-tiny",
            "abs(tiny)",
            "i / 0",
            "i % 0",
            "7 div i",
            "cast(s as int)",
            "cast(j as int)",
            "cast(x as int)",
        ),
        *(
            "cast('2024-02-30' as date)",
            "cast(99.5 as decimal(2,1))",
            "s + 1",
            "'maybe' = b",
            "s LIKE 'a\\\\b'",
        ),
    ],
)
def test_a_value_that_spark_cannot_compute_is_a_fault(text):
    with pytest.raises(ValueFault):
        evaluate(text, TABLE)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "rand()",
            "exp(x)",
            "log(x)",
            "s RLIKE 'a'",
            "cast(x as string)",
            "try_cast(s as int)",
            "date_format(day, 'yyyy')",
            "i & 1",
            "a = i",
            "upper('é')",
            "explode(s)",
        ),
        *(
            "i = k = b",
            "i IN (SELECT 1)",
            "t + INTERVAL 1 DAY",
            "day + INTERVAL 1 HOUR",
            "day + INTERVAL k DAY",
            "day + INTERVAL 9000 YEARS",
            "'a' 'b'",
            "substring(s, k)",
            "cast(s as date format 'x')",
            "i.k",
            "collate(s, 'UTF8_LCASE')",
            "named_struct('a', 1)",
        ),
    ],
)
def test_what_is_not_known_is_refused_by_its_code(text):
    with pytest.raises(UnsupportedQuery) as fault:
        evaluate(text, TABLE)
    assert fault.value.code == NOT_IN_MEMORY
