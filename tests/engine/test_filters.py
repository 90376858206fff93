"""The order of conjuncts: cheap ones first, nothing that may fail before what guards it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from skimql.engine.filters import cheap_first

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


def test_spark_keeps_the_same_tuples(spark, schema):
    frame = spark.sql("SELECT id AS n, CAST(id % 7 AS INT) AS m, CAST(id % 3 AS STRING) AS s FROM range(100)")
    condition = "s = '1' AND (n < 50 OR m > 3) AND m <> 0 AND 10 / m > 2"
    ordered = cheap_first(condition, frame.schema)
    assert ordered != condition
    assert frame.where(ordered).collect() == frame.where(condition).collect()
