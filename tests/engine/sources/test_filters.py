"""The order of conjuncts: cheap ones first, nothing that may fail before what guards it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from skimql.engine.sources.filters import cheap_first

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def schema(spark):
    return StructType.fromDDL("n BIGINT, m INT, s STRING, d DATE, e DATE, x DECIMAL(10, 2), r STRUCT<n: INT>")


@pytest.mark.parametrize(
    ("condition", "ordered"),
    [
        ("s = 'a' AND n < 5", "n < 5 AND s = 'a'"),
        (
            "s IN ('a', 'b') AND d < e AND x > 1 AND m IS NULL",
            "d < e AND m IS NULL AND s IN ('a', 'b') AND x > 1",
        ),
        ("s = 'a' AND d < e AND n < 5", "n < 5 AND d < e AND s = 'a'"),
        ("s = 'a' AND (n < 5 OR m > 3)", "(n < 5 OR m > 3) AND s = 'a'"),
        ("s = 'a' AND d >= CAST('1994-01-01' AS DATE)", "d >= CAST('1994-01-01' AS DATE) AND s = 'a'"),
        ("s = 'a' AND NOT n IN (1, -2)", "NOT n IN (1, -2) AND s = 'a'"),
        ("m <> 0 AND n / m > 2", "m <> 0 AND n / m > 2"),
        ("s <> '' AND CAST(s AS INT) > 2 AND m > 1", "m > 1 AND s <> '' AND CAST(s AS INT) > 2"),
        ("s LIKE 'a%' AND n + 1 > 2", "s LIKE 'a%' AND n + 1 > 2"),
        ("s = 'a' AND r.n > 1", "s = 'a' AND r.n > 1"),
        ("s = 'a' AND s > n", "s = 'a' AND s > n"),
        ("s = 'a' OR n < 5", "s = 'a' OR n < 5"),
        ("n < 5", "n < 5"),
    ],
)
def test_order(schema, condition, ordered):
    assert cheap_first(condition, schema) == ordered


@pytest.mark.parametrize(
    "condition",
    [
        "s = '1' AND (n < 50 OR m > 3) AND m <> 0 AND 10 / m > 2",
        r"q LIKE 'a%1\'x' AND n > 5",
        r"q RLIKE 'a\\\\d1' AND m NOT IN (1, 2)",
        r"q = 'a\\d1\'x' AND n < 50L AND m BETWEEN -5 AND 4Y",
        "q <> '' AND (m <=> 3 OR m IS NULL) AND NOT n = -7",
    ],
)
def test_spark_keeps_the_same_tuples(spark, condition):
    frame = spark.sql(
        r"SELECT id AS n, CAST(nullif(id % 7, 5) AS INT) AS m, CAST(id % 3 AS STRING) AS s, "
        r"'a\\d' || id % 3 || '\'x' AS q FROM range(100)"
    )
    ordered = cheap_first(condition, frame.schema)
    assert ordered != condition
    kept = frame.where(condition).collect()
    assert 0 < len(kept) < 100
    assert frame.where(ordered).collect() == kept
