"""Comparisons as Spark makes them: NaN equals itself and is above every number."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.comparisons import compare
from skimql.engine.memory_backend.values import Value
from skimql.errors import UnsupportedQuery

NAN, INF = math.nan, math.inf
LEFT = Value("double", pa.array([NAN, NAN, 1.0, -0.0, None, INF]))
RIGHT = Value("double", pa.array([NAN, INF, 2.0, 0.0, 1.0, NAN]))


@pytest.mark.parametrize(
    ("sign", "told"),
    [
        ("=", [True, False, False, True, None, False]),
        ("<>", [False, True, True, False, None, True]),
        ("<", [False, False, True, False, None, True]),
        ("<=", [True, False, True, True, None, True]),
        (">", [False, True, False, False, None, False]),
        (">=", [True, True, False, True, None, False]),
    ],
)
def test_fractions(sign, told):
    assert compare(sign, LEFT, RIGHT).data.to_pylist() == told


def test_decimals_of_any_size_are_compared_exactly():
    large = Value("decimal(38,0)", pa.array([Decimal(10**37)], pa.decimal128(38, 0)))
    larger = Value("decimal(38,0)", pa.array([Decimal(10**37 + 1)], pa.decimal128(38, 0)))
    assert compare("<", large, larger).data.to_pylist() == [True]
    assert compare("=", large, large).data.to_pylist() == [True]


def test_false_is_below_true_and_nothing_is_known_of_nulls():
    flags = Value("boolean", pa.array([False, True])), Value("boolean", pa.array([True, True]))
    assert compare("<", *flags).data.to_pylist() == [True, False]
    nulls = Value("void", pa.nulls(2))
    assert compare("=", nulls, nulls).data.to_pylist() == [None, None]


def test_what_spark_does_not_compare_is_not_compared():
    with pytest.raises(UnsupportedQuery):
        compare("=", Value("date", pa.array([1], pa.date32())), Value("boolean", pa.array([True])))
